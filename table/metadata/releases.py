"""Records of different releases in the same columns: a field that an older release lacks is null."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ..arrow.arrays import list_array, struct_array
from ..schema.types import children


def joined(parts: Sequence[pa.Array]) -> pa.Array:
    """Return arrays of records as one array, with all fields that occur in any of them."""
    kind = parts[0].type
    for part in parts[1:]:
        kind = _common_type(kind, part.type)
    return pa.concat_arrays([_in_type(part, kind) for part in parts])


def _common_type(kind: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type with the fields of both types, at any depth.

    A struct has the fields of ``kind`` first, then those that ``other`` adds. If flat types differ, ``other`` counts,
    unless it is the type of nulls.
    """
    if kind == other or pa.types.is_null(other):
        return kind
    if pa.types.is_struct(kind) and pa.types.is_struct(other):
        fields = {field.name: field for field in children(kind)}
        for field in children(other):
            field_of_both = fields.get(field.name)
            fields[field.name] = (
                field
                if field_of_both is None
                else field_of_both.with_type(_common_type(field_of_both.type, field.type))
            )
        return pa.struct(list(fields.values()))
    if pa.types.is_list(kind) and pa.types.is_list(other):
        return pa.list_(_common_type(kind.value_type, other.value_type))
    if pa.types.is_map(kind) and pa.types.is_map(other):
        return pa.map_(kind.key_type, _common_type(kind.item_type, other.item_type))
    return other


def _in_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array in a type of more fields, which are null."""
    if array.type == kind:
        return array
    valid = array.is_valid() if array.null_count else None
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        names = {field.name for field in children(array.type)}
        columns = [
            _in_type(array.field(field.name), field.type) if field.name in names else pa.nulls(len(array), field.type)
            for field in children(kind)
        ]
        return struct_array(kind, len(array), valid, columns)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        lengths = np.diff(array.offsets.to_numpy()).astype(np.int64)
        if pa.types.is_list(kind):
            return list_array(kind, valid, lengths, _in_type(array.flatten(), kind.value_type))
        entries = pa.struct(children(kind))
        columns = [array.keys, _in_type(array.items, kind.item_type)]
        return list_array(kind, valid, lengths, struct_array(entries, len(array.keys), None, columns))
    return array.cast(kind)
