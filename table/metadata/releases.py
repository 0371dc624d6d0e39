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
        kind = _wider(kind, part.type)
    return pa.concat_arrays([_as(part, kind) for part in parts])


def _wider(kind: pa.DataType, other: pa.DataType) -> pa.DataType:
    if kind == other or pa.types.is_null(other):
        return kind
    if pa.types.is_struct(kind) and pa.types.is_struct(other):
        fields = {field.name: field for field in children(kind)}
        for field in children(other):
            same = fields.get(field.name)
            fields[field.name] = field if same is None else same.with_type(_wider(same.type, field.type))
        return pa.struct(list(fields.values()))
    if pa.types.is_list(kind) and pa.types.is_list(other):
        return pa.list_(_wider(kind.value_type, other.value_type))
    if pa.types.is_map(kind) and pa.types.is_map(other):
        return pa.map_(kind.key_type, _wider(kind.item_type, other.item_type))
    return other


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    valid = array.is_valid() if array.null_count else None
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        names = {field.name for field in children(array.type)}
        columns = [
            _as(array.field(field.name), field.type) if field.name in names else pa.nulls(len(array), field.type)
            for field in children(kind)
        ]
        return struct_array(kind, len(array), valid, columns)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        lengths = np.diff(array.offsets.to_numpy()).astype(np.int64)
        if pa.types.is_list(kind):
            return list_array(kind, valid, lengths, _as(array.flatten(), kind.value_type))
        entries = pa.struct(children(kind))
        columns = [array.keys, _as(array.items, kind.item_type)]
        return list_array(kind, valid, lengths, struct_array(entries, len(array.keys), None, columns))
    return array.cast(kind)
