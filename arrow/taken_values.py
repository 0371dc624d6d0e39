"""Arrays of any Arrow layout by their values: what pyarrow's `take` and `list_flatten` lack."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..table.arrow.arrays import Lengths, list_array, mask, struct_array
from ..table.schema.types import children, is_bytes, is_list, is_text


def values_at(array: pa.Array, places: pa.Array) -> pa.Array:
    """Return the values at some places, the positions in an array, as an array without runs, dictionaries and views.

    A null place yields null.
    """
    data_type, types = array.type, pa.types
    if isinstance(array, pa.ExtensionArray):
        return values_at(array.storage, places)
    if types.is_dictionary(data_type):
        return values_at(array.dictionary, array.indices.take(places))
    if types.is_run_end_encoded(data_type):
        return values_at(array.values, _runs_of(array, places))
    if types.is_struct(data_type):
        return _struct_at(array, places)
    if is_list(data_type) or types.is_map(data_type):
        return _lists_at(array, places)
    if is_text(data_type) or is_bytes(data_type):
        # pyarrow takes no values of views.
        array = array.cast(pa.large_string() if is_text(data_type) else pa.large_binary())
    return array.take(places)


def list_values(array: pa.Array) -> tuple[Lengths, pa.Array]:
    """Return how many elements each list or map has, and the elements of all, without those below a null."""
    if pa.types.is_map(array.type):
        key, item = array.type.key_field, array.type.item_field
        entries = pa.struct([key.with_name("key"), item.with_name("value")])
        array = array.cast(pa.list_(entries))
    if pa.types.is_fixed_size_list(array.type):
        # pyarrow leaves out what is below a null by a copy that not every layout has.
        size, valid = array.type.list_size, mask(array.is_valid())
        rows = np.flatnonzero(valid) + array.offset
        places = (rows[:, None] * size + np.arange(size)).ravel()
        return np.where(valid, size, 0).astype(np.int64), values_at(array.values, pa.array(places, pa.int64()))
    lengths = np.asarray(pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    try:
        return lengths, array.flatten()
    except pa.ArrowNotImplementedError:
        # As above, of lists with elements below a null.
        starts = array.offsets.to_numpy()[: len(array)]
        position_in_list = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return lengths, values_at(array.values, pa.array(np.repeat(starts, lengths) + position_in_list, pa.int64()))


def _runs_of(array: pa.RunEndEncodedArray, places: pa.Array) -> pa.Array:
    """Return the numbers of the runs to which places belong."""
    ends = array.run_ends.to_numpy(zero_copy_only=False)
    runs = np.searchsorted(ends, _positions_of(places) + array.offset, side="right")
    return pa.array(runs, pa.int64(), mask=mask(places.is_null()))


def struct_fields(array: pa.StructArray) -> list[pa.Array]:
    """Return the fields of structs, null below a null struct: pyarrow's `flatten` leaves the values of runs there."""
    parts: list[pa.Array] = array.flatten()
    if array.null_count == 0:
        return parts
    places = pa.array(np.arange(len(array)), mask=array.is_null().to_numpy(zero_copy_only=False))
    return [values_at(part, places) if pa.types.is_run_end_encoded(part.type) else part for part in parts]


def _struct_at(array: pa.StructArray, places: pa.Array) -> pa.Array:
    """Return structs at some places, each field by itself."""
    parts = [values_at(part, places) for part in struct_fields(array)]
    fields = [field.with_type(part.type) for field, part in zip(children(array.type), parts, strict=True)]
    return struct_array(pa.struct(fields), len(places), _holds_value(array, places), parts)


def _lists_at(array: pa.Array, places: pa.Array) -> pa.Array:
    """Return lists or maps at some places, as lists of the values at the places of their elements."""
    lengths, values = list_values(array)
    # Null places count as the first list, which an array without lists lacks.
    lengths = lengths if len(lengths) else np.zeros(1, np.int64)
    starts = np.cumsum(lengths) - lengths
    positions, valid = _positions_of(places), _holds_value(array, places)
    counts = np.where(mask(valid), lengths[positions], 0)
    position_in_list = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    inner_values = values_at(values, pa.array(np.repeat(starts[positions], counts) + position_in_list, pa.int64()))
    return list_array(pa.list_(pa.field("element", inner_values.type)), valid, counts, inner_values)


def _positions_of(places: pa.Array) -> Lengths:
    """Return places for numpy, null as 0."""
    return np.asarray(pc.fill_null(places, 0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _holds_value(array: pa.Array, places: pa.Array) -> pa.BooleanArray:
    """Return which places are neither null nor hold null."""
    return pc.fill_null(array.is_valid().take(places), False)
