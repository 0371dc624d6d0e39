"""The content of an Avro data block: how many rows, and each with its length in front.

Source: ``HoodieAvroDataBlock``. Whole columns are encoded at once. What is read is decoded into columns of the Arrow
types that the values have in bytes; the table's types are views of these.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....storage.bounds import parse_json
from ...arrow.arrays import list_array, plain, struct_array, without_nulls
from ...schema.types import children, decimal_bytes
from . import avro_columns
from .avro_bytes import (
    Encoded,
    Integers,
    fixed,
    lists_of,
    numbers,
    repeated,
    side_by_side,
    spread,
    texts,
    total_lengths,
)
from .avro_records import decoded, number
from .decimals import decimals, unscaled

# Old releases wrote versions 1 and 2, which differ from 3 in how they encode deletes.
_VERSIONS = (1, 2, 3)
_HEAD = struct.Struct(">ii")
_ROW_LENGTH = 4
_LENGTH = "_pyhudi_length"
_SLICE_ROWS = 16_384
_SLICE_BYTES = 8 << 20
# How much is fetched at a time, and how much of that is decoded at a time.
_READ_BYTES = 32 << 20
_WINDOW_BYTES = 4 << 20
_LONGEST_DECIMAL = 16
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def encode_head(count: int) -> bytes:
    """Return the beginning of a block's content: its version and the number of rows."""
    return _HEAD.pack(_VERSIONS[-1], count)


def encode(batch: pa.RecordBatch) -> Iterator[bytes]:
    """Yield the bytes of rows, the columns being what `format_avro` makes a schema of; dictionaries become plain."""
    first_row = 0
    while first_row < batch.num_rows:
        rows = max(1, min(_SLICE_ROWS, _SLICE_BYTES * batch.num_rows // max(batch.nbytes, 1)))
        part = batch.slice(first_row, rows)
        columns = [_nullable_values(part.column(i), field.nullable) for i, field in enumerate(part.schema)]
        lengths = fixed(total_lengths(columns).astype(">i4").view(np.uint8).reshape(-1, _ROW_LENGTH))
        yield side_by_side([lengths, *columns]).data.tobytes()
        first_row += rows


def _nullable_values(array: pa.Array, nullable: bool) -> Encoded:
    """Return values with the number of the union's branch before each if the column is nullable: 0 for null."""
    array = plain(array)
    if not nullable:
        return _encoded_values(array)
    if array.null_count == 0:
        return side_by_side([repeated(number(1), len(array)), _encoded_values(array)])
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return side_by_side([numbers(valid.astype(np.int64)), spread(_encoded_values(array.drop_null()), valid)])


def _encoded_values(array: pa.Array) -> Encoded:
    """Return the values of a plain array, none of them null, each in Avro's encoding of its type.

    Values inside structs, lists and maps may be null. Raises ValueError for a type that no table has.
    """
    types, kind = pa.types, array.type
    if len(array) == 0:  # pyarrow leaves out buffers then
        return Encoded(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint8))
    if types.is_boolean(kind):
        return fixed(array.to_numpy(zero_copy_only=False).astype(np.uint8).reshape(-1, 1))
    if types.is_int32(kind) or types.is_date32(kind):
        return numbers(array.view(pa.int32()).to_numpy())
    if types.is_int64(kind) or types.is_timestamp(kind):
        return numbers(array.view(pa.int64()).to_numpy())
    if types.is_float32(kind) or types.is_float64(kind):
        low_first = array.to_numpy().astype("<f4" if types.is_float32(kind) else "<f8")
        return fixed(low_first.view(np.uint8).reshape(-1, low_first.itemsize))
    if types.is_string(kind) or types.is_binary(kind):
        return texts(array)
    if types.is_decimal128(kind):
        return fixed(unscaled(array)[:, _LONGEST_DECIMAL - decimal_bytes(kind.precision) :])
    if types.is_struct(kind):
        parts = zip(array.flatten(), children(kind), strict=True)
        return side_by_side([_nullable_values(part, field.nullable) for part, field in parts])
    if types.is_map(kind):
        ends = np.frombuffer(array.buffers()[1], dtype=np.int32)[array.offset :][: len(array) + 1].astype(np.int64)
        keys, items = (part.slice(ends[0], ends[-1] - ends[0]) for part in (array.keys, array.items))
        return _lists(np.diff(ends), side_by_side([texts(keys), _nullable_values(items, kind.item_field.nullable)]))
    if types.is_list(kind):
        counts = pc.list_value_length(array).to_numpy().astype(np.int64)
        return _lists(counts, _nullable_values(array.flatten(), kind.value_field.nullable))
    raise ValueError(f"a column of type {kind} is none of a table's")


def _lists(counts: Integers, items: Encoded) -> Encoded:
    """Return lists: the number of items unless it is 0, the items, and a 0 that ends the list."""
    filled = counts > 0
    return side_by_side(
        [spread(numbers(counts[filled]), filled), lists_of(items, counts), repeated(number(0), len(counts))]
    )


def count(content: bytes, size: int) -> int:
    """Return how many rows a content of ``size`` bytes has; `ValueError` or `struct.error` if it is damaged."""
    version, rows = _HEAD.unpack_from(content)
    if version not in _VERSIONS:
        raise ValueError(f"its content is of version {version}")
    if not 0 <= rows <= (size - _HEAD.size) // _ROW_LENGTH:
        raise ValueError(f"it says that it has {rows} rows")
    return int(rows)


def decode(
    read: Callable[[int], bytes], size: int, avro_schema: str, columns: pa.Schema, names: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a block's content, holding a part of it in memory at a time.

    ``read`` returns the next bytes of the content, whose ``size`` is given; ``columns`` are those of ``avro_schema`` as
    `parse_avro` read them, and ``names`` those that are wanted.
    Raises `ValueError`, or another error of fastavro or pyarrow, if the content is damaged.
    """
    rows_left = count(read(_HEAD.size), size)
    record = parse_json(avro_schema)
    one_by_one = partial(_one_by_one, record, pa.schema([field for field in columns if field.name in names]))
    unread, data = size - _HEAD.size, b""
    at_once = avro_columns.takes_bytes(record)
    while at_once and rows_left and unread:
        data += _exactly(read, min(_READ_BYTES, unread))
        unread = max(0, unread - _READ_BYTES)
        octets, position = np.frombuffer(data, dtype=np.uint8), 0
        while rows_left and (len(data) - position >= _WINDOW_BYTES or not unread):
            window = octets[position : position + _WINDOW_BYTES]
            starts = avro_columns.row_starts(window)
            if starts is None:
                # A row is longer than the window, or its length says so.
                at_once = False
                break
            starts = starts[: rows_left + 1]
            yield from avro_columns.decode(window, starts, record, columns, names, one_by_one)
            rows_left -= len(starts) - 1
            position += int(starts[-1])
        data = data[position:]
    # The remaining rows are decoded one by one; bytes that belong to none make that raise.
    if rows_left or data or unread:
        yield from one_by_one(data + _exactly(read, unread), rows_left)


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """Return the next bytes; ValueError if the content has fewer."""
    data = read(size)
    if len(data) != size:
        raise ValueError("it breaks off")
    return data


def _one_by_one(record: dict[str, Any], columns: pa.Schema, data: bytes, count: int) -> Iterator[pa.RecordBatch]:
    """Yield the ``columns`` of rows of any schema, decoded one by one.

    ``record`` is the schema in Avro. ValueError if ``data`` does not hold just ``count`` rows of the lengths that they
    state.
    """
    raw_type = pa.struct([pa.field(_LENGTH, pa.binary(_ROW_LENGTH)), *(_raw_field(field) for field in columns)])
    physical = _Physical()
    schema = physical.record(record)
    fields = [child for child in schema["fields"] if raw_type.get_field_index(child["name"]) >= 0]
    # A column's type may be defined in another column.
    wanted_schema = None if physical.refers else {**schema, "fields": fields}
    rows = length = 0
    for records in decoded(schema, count, data, wanted_schema):
        lengths, *values = pa.array(records, raw_type).flatten()
        rows += len(records)
        length += int(np.frombuffer(lengths.buffers()[1], dtype=">i4", count=len(lengths)).sum(dtype=np.int64))
        arrays = [_logical(array, field) for array, field in zip(values, columns, strict=True)]
        yield pa.RecordBatch.from_struct_array(struct_array(pa.struct(list(columns)), len(records), None, arrays))
    if rows != count or length + count * _ROW_LENGTH != len(data):
        raise ValueError(f"its {count} rows do not have the bytes that they say")


class _Physical:
    """Makes another schema of a schema: its values take the same bytes, and fastavro decodes them as Arrow needs them.

    It has no logical types, and maps are the lists of entries that they are in bytes. Strings are read as bytes, which
    Arrow checks. A type that takes no bytes is refused: a forged count would never end.

    Attributes:
        refers: Whether the schema names a type, such as an enum, instead of defining it. Then its caller does not use
            the other schema.
    """

    def __init__(self) -> None:
        self._maps = 0
        self.refers = False

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the rows, with their length as the first column."""
        length = {"name": _LENGTH, "type": {"type": "fixed", "name": f"{_LENGTH}_type", "size": _ROW_LENGTH}}
        schema = self._record(record)
        return {**schema, "fields": [length, *schema["fields"]]}

    def _record(self, avro: dict[str, Any]) -> dict[str, Any]:
        """Return the record type whose fields have the other types of the same bytes."""
        if not avro["fields"]:
            raise ValueError("its schema has a record without fields")
        fields = [{"name": child["name"], "type": self._type(child["type"])} for child in avro["fields"]]
        return {"type": "record", **self._name(avro), "fields": fields}

    def _name(self, avro: dict[str, Any]) -> dict[str, Any]:
        """Return the name of a named type, as its definition has it."""
        return {key: avro[key] for key in ("name", "namespace") if avro.get(key) is not None}

    def _type(self, avro: Any) -> Any:
        """Return the type that reads the bytes of values of a type: a string as bytes, a map as a list of entries."""
        if isinstance(avro, list):
            return [self._type(branch) for branch in avro]
        if isinstance(avro, str):
            self.refers |= avro not in _PRIMITIVES
            return "bytes" if avro == "string" else avro
        base = avro["type"]
        if base == "record":
            return self._record(avro)
        if base == "array":
            return {"type": "array", "items": self._type(avro["items"])}
        if base == "map":
            self._maps += 1
            name = f"_pyhudi_entry_{self._maps}"
            pair = [{"name": "key", "type": "bytes"}, {"name": "value", "type": self._type(avro["values"])}]
            return {"type": "array", "items": {"type": "record", "name": name, "fields": pair}}
        if base == "fixed":
            if not 0 < avro["size"] <= _LONGEST_DECIMAL:
                raise ValueError(f"its schema has decimals of {avro['size']} bytes")
            return {"type": "fixed", **self._name(avro), "size": avro["size"]}
        return self._type(base)


def _raw_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _raw_type(field.type))


def _raw_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type of a column's values as fastavro returns them, before `_logical` converts them."""
    types = pa.types
    if types.is_date32(kind):
        return pa.int32()
    if types.is_timestamp(kind):
        return pa.int64()
    if types.is_decimal(kind):
        return pa.binary()
    if types.is_struct(kind):
        return pa.struct([_raw_field(field) for field in children(kind)])
    if types.is_map(kind):
        return pa.list_(pa.struct([_raw_field(field) for field in children(kind)]))
    if types.is_list(kind):
        return pa.list_(_raw_field(kind.value_field))
    return kind


def _logical(array: pa.Array, field: pa.Field) -> pa.Array:
    """Return the values of a column; a column that is not nullable has nulls only in rows without a struct."""
    types, kind = pa.types, field.type
    if not types.is_nested(kind):
        values = decimals(array, kind) if types.is_decimal(kind) else array.view(kind)
        return values if field.nullable else without_nulls(values)
    valid = array.is_valid() if field.nullable and array.null_count else None
    if types.is_struct(kind):
        parts = [_logical(part, inner) for part, inner in zip(array.flatten(), children(kind), strict=True)]
        return struct_array(kind, len(array), valid, parts)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64)
    item = pa.field("entries", pa.struct(children(kind)), nullable=False) if types.is_map(kind) else kind.value_field
    return list_array(kind, valid, lengths, _logical(array.flatten(), item))
