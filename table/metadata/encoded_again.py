"""Decoded records of a metadata table in Avro's encoding again, whole columns at a time, by the schema of a new file.

A merge of records decodes the few that several files state, and writes them anew. Source: ``HoodieMetadata.avsc``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..files.logs.avro_bytes import (
    Encoded,
    Integers,
    fixed,
    lists_of,
    numbers,
    repeated,
    side_by_side,
    sized,
    spread,
    texts,
)
from ..files.logs.decimals import shortest, unscaled
from ..schema.types import children
from .avro_schema import META, types_in, wrapped_name
from .encoding import binary_array
from .records import schema_of

_EMPTY_KEY, _END = b"\x00", b"\x00"
# Of a field that an older release's records lack.
_DEFAULTS: Mapping[str, bytes] = {"boolean": b"\x00", "int": b"\x00", "long": b"\x00", "string": b"\x00"}


def encoded_again(records: pa.StructArray, schema: str) -> pa.BinaryArray:
    """Return the values of records by a schema; their keys stay out of the values, as in each HFile.

    Raises ValueError if the schema has no place for a bound.
    """
    columns, count = {field.name for field in children(records.type)}, len(records)
    fields = []
    for field in schema_of(schema).avro["fields"]:
        name, avro = field["name"], field["type"]
        if name == "key":
            fields.append(repeated(_EMPTY_KEY, count))
        else:
            array = records.field(name) if name in columns and not name.startswith(META) else None
            fields.append(_encoded_column(avro, array, count))
    return binary_array(side_by_side(fields))


def _encoded_column(avro: Any, array: pa.Array | None, count: int) -> Encoded:
    """Return the values of one field, of the type ``avro``, in Avro's encoding.

    If the records lack the field (``array`` is None), each of the ``count`` values is null or a default.
    """
    if not isinstance(avro, list):
        return _encoded_default(avro, count) if array is None else _encoded_values(avro, array)
    if array is None:
        return repeated(_avro_number(avro.index("null")), count)
    if len(types_in(avro)) > 1:
        return _encoded_wrappers(avro, array)
    chosen = types_in(avro)[0]
    if "null" not in avro:
        return _encoded_values(chosen, array)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    branches = numbers(np.where(valid, avro.index(chosen), avro.index("null")))
    return side_by_side([branches, spread(_encoded_values(chosen, array.filter(array.is_valid())), valid)])


def _encoded_wrappers(avro: list[Any], array: pa.StructArray) -> Encoded:
    """Return the bounds of one field, each in the wrapper of its type; the array has a field for each wrapper.

    ``avro`` is the union of the wrappers and null.
    """
    names = [field.name for field in children(array.type)]
    branches = np.full(len(array), avro.index("null"), dtype=np.int64)
    columns = []
    for wrapper in types_in(avro):
        name = wrapped_name(wrapper)
        if name not in names:
            continue
        values = array.field(name)
        chosen = pc.and_(values.is_valid(), array.is_valid())
        mask = chosen.to_numpy(zero_copy_only=False)
        branches[mask] = avro.index(wrapper)
        field = wrapper["fields"][0]["type"]
        columns.append(spread(_encoded_column(field, values.filter(chosen), int(mask.sum())), mask))
        names.remove(name)
    # The remaining names are of wrappers that the union lacks.
    unwritten = [name for name in names if array.field(name).null_count < len(array)]
    if unwritten:
        raise ValueError(f"for its schema has no bounds of the types {', '.join(unwritten)}")
    return side_by_side([numbers(branches), *columns])


def _encoded_values(avro: Any, array: pa.Array) -> Encoded:
    """Return values of the type ``avro``, none of them null, in Avro's encoding.

    A field that ``array`` lacks, as an older release wrote its records, becomes null, or the default of its type.
    """
    base = avro if isinstance(avro, str) else avro["type"]
    if base == "record":
        names = {field.name for field in children(array.type)}
        return side_by_side(
            [
                _encoded_column(
                    field["type"], array.field(field["name"]) if field["name"] in names else None, len(array)
                )
                for field in avro["fields"]
            ]
        )
    if not len(array):
        return Encoded(np.zeros(0, np.int64), np.zeros(0, np.uint8))
    if base == "map":
        starts = array.offsets.to_numpy()
        first, size = int(starts[0]), int(starts[-1] - starts[0])
        entries = side_by_side(
            [texts(array.keys.slice(first, size)), _encoded_values(avro["values"], array.items.slice(first, size))]
        )
        return _encoded_lists(np.diff(starts).astype(np.int64), entries)
    if base == "array":
        lengths = pc.list_value_length(array).to_numpy(zero_copy_only=False).astype(np.int64)
        items = array.flatten()
        return _encoded_lists(lengths, _encoded_column(avro["items"], items, len(items)))
    return _encoded_primitives(array)


def _encoded_primitives(array: pa.Array) -> Encoded:
    """Return numbers, texts, bytes or decimals without nulls in Avro's encoding."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return fixed(array.to_numpy(zero_copy_only=False).astype(np.uint8).reshape(-1, 1))
    if pa.types.is_floating(kind):
        values = array.to_numpy(zero_copy_only=False)
        return fixed(values.view(np.uint8).reshape(-1, values.itemsize))
    if pa.types.is_decimal128(kind):
        return sized(shortest(unscaled(array)))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return texts(array)
    plain = pa.int32() if kind.bit_width == pa.int32().bit_width else pa.int64()
    return numbers(array.view(plain).to_numpy(zero_copy_only=False).astype(np.int64))


def _encoded_lists(lengths: Integers, items: Encoded) -> Encoded:
    """Return lists, or maps, as Avro's blocks: a count, the items, and an end; an empty list is the end alone."""
    filled = lengths > 0
    counts = spread(numbers(lengths[filled]), filled)
    return side_by_side([counts, lists_of(items, lengths), repeated(_END, len(lengths))])


def _encoded_default(avro: Any, count: int) -> Encoded:
    """Return a default value for each record; raise ValueError if the type has none."""
    base = avro if isinstance(avro, str) else avro["type"]
    if base not in _DEFAULTS:
        raise ValueError(f"for its records lack a field of the type {base}")
    return repeated(_DEFAULTS[base], count)


def _avro_number(value: int) -> bytes:
    """Return a whole number in Avro's encoding."""
    return numbers(np.array([value], dtype=np.int64)).data.tobytes()
