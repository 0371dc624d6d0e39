"""What is in a delete block: keys, and from which ordering value on each may come back.

An ordering value is wrapped in a record, whose type tells the value's. The integer 0, or none, means a delete without
order. Source: ``HoodieDeleteBlock``, ``HoodieDeleteRecord.avsc`` and ``OrderingValues``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....errors import SchemaMismatchError, UnsupportedTypeError
from ...arrow.arrays import plain, struct_array
from ...schema.casts import cast, fits
from ...schema.conform import conform_array
from .avro_bytes import Encoded, fixed, numbers, repeated, side_by_side, sized, slices, spread, texts
from .avro_columns import AvroPositions
from .avro_records import decoded, number, read_number
from .decimals import decimals, shortest, unscaled

_VERSION = 3
_HEAD = struct.Struct(">ii")
_DECIMAL = pa.decimal128(38, 15)
_LEAST_RECORD = 3

# The positions of the wrappers in Apache Hudi's union, which delete blocks store.
_BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES, _STRING, _DATE, _DECIMALS, _TIME, _TIMESTAMP, _ARRAY = range(1, 13)
# By position, from 1 on, as 0 is null: the wrapper's name, the Avro type in it, and the Arrow type that it is read as.
_WRAPPED: tuple[tuple[str, str, pa.DataType], ...] = (
    ("boolean", "boolean", pa.bool_()),
    ("int", "int", pa.int32()),
    ("long", "long", pa.int64()),
    ("float", "float", pa.float32()),
    ("double", "double", pa.float64()),
    ("bytes", "bytes", pa.binary()),
    ("string", "bytes", pa.string()),
    ("date", "int", pa.int32()),
    ("decimal", "bytes", pa.binary()),
    ("time", "long", pa.int64()),
    ("timestamp", "long", pa.int64()),
)
_LOCAL_DATE = ("local_date", "int", pa.int32())


class OldVersionError(Exception):
    """The content is of a version that old releases wrote: objects as Java serialises them."""


@dataclass(frozen=True, slots=True)
class Deletes:
    """Deleted keys, with an array for each ordering field; null if ``default``, that is, without an order."""

    keys: pa.Array
    partition_paths: pa.Array
    ordering: tuple[pa.Array, ...]
    default: pa.Array

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.keys, self.partition_paths, self.default, *self.ordering))

    def filter(self, is_wanted: pa.Array) -> Deletes:
        keys, paths, default = (a.filter(is_wanted) for a in (self.keys, self.partition_paths, self.default))
        return Deletes(keys, paths, tuple(values.filter(is_wanted) for values in self.ordering), default)


def joined(parts: Sequence[Deletes]) -> Deletes:
    """Return the deletes of all parts, in their order."""
    columns = ([getattr(part, name) for part in parts] for name in ("keys", "partition_paths", "default"))
    keys, paths, default = (pa.concat_arrays(arrays) for arrays in columns)
    ordering: Iterator[Sequence[pa.Array]] = zip(*(part.ordering for part in parts), strict=True)
    return Deletes(keys, paths, tuple(pa.concat_arrays(list(arrays)) for arrays in ordering), default)


def encode(deletes: Deletes) -> bytes:
    """Return a delete block's content; `UnsupportedTypeError` if Apache Hudi has no place for an ordering value."""
    count = len(deletes)
    string = repeated(number(1), count)
    names = texts(plain(deletes.keys)), texts(plain(deletes.partition_paths))
    columns = [string, names[0], string, names[1], _encode_ordering(deletes)]
    body = number(count) + side_by_side(columns).data.tobytes() + number(0) if count else number(0)
    return _HEAD.pack(_VERSION, len(body)) + body


def _encode_ordering(deletes: Deletes) -> Encoded:
    """Return each delete's ordering value: the integer 0 without an order, a list of several fields' values."""
    is_ordered = pc.invert(deletes.default) if deletes.ordering else pa.array(np.zeros(len(deletes), dtype=np.bool_))
    ordered_rows = is_ordered.to_numpy(zero_copy_only=False)
    without_order = repeated(number(_INT) + number(0), int(len(ordered_rows) - ordered_rows.sum()))
    values = [plain(array).filter(is_ordered) for array in deletes.ordering]
    if any(array.null_count for array in values):
        raise ValueError("a delete that asks for an order has no value for it")
    if not ordered_rows.any():
        return without_order
    if len(values) == 1:
        encoded = _encode_values(values[0])
    else:
        count = int(ordered_rows.sum())
        # The wrapper's number, 1 as the list in it is not null, the number of items, the items, and a 0 as the end.
        list_head = repeated(number(_ARRAY) + number(1) + number(len(values)), count)
        encoded = side_by_side([list_head, *(_encode_values(array) for array in values), repeated(number(0), count)])
    return side_by_side([spread(without_order, ~ordered_rows), spread(encoded, ordered_rows)])


def _encode_values(array: pa.Array) -> Encoded:
    """Return ordering values, none of them null, each with the number of its wrapper in front."""
    wrapper, values = _wrap(array)
    return side_by_side([repeated(number(wrapper), len(array)), values])


def _wrap(array: pa.Array) -> tuple[int, Encoded]:
    """Return the number of the wrapper that Apache Hudi reads for a type, and the values as it holds them.

    ``array`` has ordering values, none of them null. A wrapper is a record of one field, one record for each type; the
    block has its number before each value.
    """
    types, kind = pa.types, array.type
    if types.is_boolean(kind):
        return _BOOLEAN, fixed(array.to_numpy(zero_copy_only=False).astype(np.uint8).reshape(-1, 1))
    if types.is_int32(kind) or types.is_date32(kind):
        # Apache Hudi cannot read its own wrapper of dates, but accepts the number of days.
        return _INT, numbers(array.view(pa.int32()).to_numpy())
    if types.is_int64(kind) or types.is_timestamp(kind):
        return _LONG, numbers(array.view(pa.int64()).to_numpy())
    if types.is_float32(kind) or types.is_float64(kind):
        order = array.to_numpy().astype("<f4" if types.is_float32(kind) else "<f8")
        wrapper = _FLOAT if types.is_float32(kind) else _DOUBLE
        return wrapper, fixed(order.view(np.uint8).reshape(-1, order.itemsize))
    if types.is_string(kind):
        return _STRING, texts(array)
    if types.is_binary(kind):
        return _BYTES, texts(array)
    if types.is_decimal(kind):
        try:
            return _DECIMALS, sized(shortest(unscaled(array.cast(_DECIMAL))))
        except pa.ArrowInvalid as error:
            raise UnsupportedTypeError(
                f"An ordering value of type {kind} has no place in a delete block, which has 15 digits behind the "
                f"point ({error}).",
                "Round the column, or choose another ordering field.",
            ) from error
    raise UnsupportedTypeError(
        f"A column of type {kind} cannot order deletes in a log file.", "Choose another ordering field."
    )


def decode(content: bytes, written: Sequence[pa.DataType], wanted: Sequence[pa.Field]) -> Deletes:
    """Return the deletes in a whole block, with the values of the fields in ``wanted``, converted to their types.

    ``written`` are the types of the ordering fields when the block was written. Raises `ValueError` if the content
    is damaged, `OldVersionError`, and `SchemaMismatchError` if an ordering value does not fit its field.
    """
    records, at = _count_and_start(content, len(content))
    body = content[at:]
    # Most blocks have deletes that are alike enough to be read all at once.
    keys, paths, values = _alike(body, records) or _one_by_one(body, records)
    if keys.null_count:
        raise ValueError("a key in it is null")
    # No value, and the integer 0, mean a delete without an order. `values` are structs with a field for each wrapper.
    default = pc.or_(values.is_null(), pc.fill_null(pc.equal(pc.struct_field(values, "int"), 0), False))
    if not wanted:
        return Deletes(keys, paths, (), pa.array(np.ones(len(keys), dtype=np.bool_)))
    values = pc.if_else(default, pa.scalar(None, values.type), values)
    ordering = _ordering(values, default, written, wanted)
    return Deletes(keys, paths, ordering, default)


def count(content: bytes, size: int) -> int:
    """Return how many deletes a content of ``size`` bytes says that it has, given its first bytes.

    Raises as `decode` does.
    """
    return _count_and_start(content, size)[0]


def _count_and_start(content: bytes, size: int) -> tuple[int, int]:
    """Return the number of records in a block, and where the first begins.

    ``content`` are at least the first bytes of the block's content, which has ``size`` bytes.
    """
    if size < _HEAD.size:
        raise ValueError("it breaks off")
    version, length = _HEAD.unpack_from(content)
    if version in (1, 2):
        raise OldVersionError(version)
    if version != _VERSION or length != size - _HEAD.size:
        raise ValueError(f"its content has version {version} and {length} bytes, as it says")
    records, first_record = read_number(content, _HEAD.size)
    if not 0 <= records <= length // _LEAST_RECORD:
        raise ValueError(f"it says that it has {records} records")
    return records, first_record


def _alike(body: bytes, count: int) -> list[pa.Array] | None:
    """Return the columns of deletes that are all of one partition and have values of one type, as in most blocks.

    The columns are the keys, the partitions, and the ordering values as structs with a field for each wrapper, the
    record of one type. ``body`` has the ``count`` deletes and the end of their list.

    The bytes that they share separate each key from its value, and the next key follows. None unless every part between
    those bytes is exactly that, which leaves no other reading; the caller then decodes delete by delete.
    """
    layout = _first_record(body) if count else None
    if layout is None:
        return None
    key, shared, path, position = layout
    head, *parts = body.split(shared)
    if head != number(1) + number(len(key)) + key or len(parts) != count or not parts[-1].endswith(number(0)):
        return None
    # Behind the last value the list ends; an empty key takes the place of the next key.
    parts[-1] = parts[-1][: -len(number(0))] + number(1) + number(0)
    encoded = slices(pa.array(parts, pa.binary()))
    ends = np.cumsum(encoded.lengths)
    positions = AvroPositions(encoded.data, ends - encoded.lengths, ends)
    name, avro, kind = _WRAPPED[position - 1]
    try:
        wrapped = positions.read(avro, pa.field(name, kind), wanted=True)
        keys = positions.read(["null", "string"], pa.field("key", pa.string()), wanted=True)
        first, paths = pa.array([key], pa.string()), pa.array([path], pa.string())
    except ValueError:
        return None
    if keys is None or keys.null_count or (positions.at != ends).any():
        return None
    values = [wrapped if wrapper == name else pa.nulls(count, kind) for wrapper, _, kind in _WRAPPED]
    nothing = pa.nulls(count, _ORDERING.field("array").type)
    ordering = struct_array(_ORDERING, count, None, [*values, nothing])
    return [pa.concat_arrays([first, keys[:-1]]), pa.repeat(paths[0], count), ordering]


def _first_record(body: bytes) -> tuple[bytes, bytes, bytes, int] | None:
    """Return the first key, the bytes between it and its value, and in these the partition and the wrapper's number.

    None if the key or the partition is null, or the value is null or that of several fields.
    """
    spans = []
    position = 0
    for _ in range(2):
        branch, position = read_number(body, position)
        # A union of null and text: 0 stands for null, and 1 for a text, whose length follows.
        length, position = read_number(body, position) if branch == 1 else (-1, position)
        if length < 0:
            return None
        spans.append((position, position + length))
        position += length
    (key, end), (path, path_end) = spans
    wrapper, end_of_shared = read_number(body, path_end)
    if not 0 < wrapper <= len(_WRAPPED):
        return None
    return body[key:end], body[end:end_of_shared], body[path:path_end], wrapper


def _one_by_one(body: bytes, count: int) -> list[pa.Array]:
    """Return the columns of any deletes, decoded by fastavro."""
    chunks = [pa.array(records, _ROW) for records in _records(body, count)]
    columns: list[pa.Array] = plain(pa.chunked_array(chunks, type=_ROW)).flatten()
    return columns


def _records(body: bytes, count: int) -> Iterator[list[dict[str, Any]]]:
    """Yield all records of a block, some thousand at a time; ValueError if they do not end where it ends.

    ``body`` is the block's content after ``count``, the number of its records.
    """
    if count == 0:
        if body:
            raise ValueError("bytes follow its records")
        return
    # What ends the list reads as a key that is null: with two numbers more it is a record. Another record behind it
    # shows that no further bytes lie there.
    with_end = body + number(0) * 2 + number(1) + number(len(_END)) + _END + number(0) * 2
    waiting: list[dict[str, Any]] = []
    for records in decoded(_AVRO, count + 2, with_end):
        waiting += records
        yield waiting[:-2]
        waiting = waiting[-2:]
    if [row["key"] for row in waiting] != [None, _END]:  # O(2)
        raise ValueError("its records do not end where it does")


def _ordering(
    values: pa.StructArray, default: pa.Array, written: Sequence[pa.DataType], wanted: Sequence[pa.Field]
) -> tuple[pa.Array, ...]:
    """Return one array for each ordering field in ``wanted``, with null for a delete without an order.

    ``values`` has a field for each wrapper, ``default`` says which deletes have no order, and ``written`` has the types
    of the fields when the block was written.
    """
    lists = pc.struct_field(values, "array")
    # A writer wraps the value of a single field without a list around it.
    if len(wanted) == 1 and lists.null_count == len(lists):
        return (_values_of_field(values, written[0], wanted[0]),)
    lengths = pc.fill_null(pc.list_value_length(lists), -1)
    if pc.any(pc.and_(pc.invert(default), pc.not_equal(lengths, len(wanted)))).as_py():  # one value a block
        raise ValueError(f"an ordering value in it is not one of {len(wanted)} fields")
    present = lists.drop_null()
    items = present.flatten()
    # The position of each delete's list among the lists that are present.
    row = pc.if_else(default, None, pc.subtract(pc.cumulative_sum(pc.cast(pc.invert(default), pa.int64())), 1))
    # The items of all lists lie one after another, so that those of one field are evenly spaced.
    return tuple(
        _values_of_field(items.take(pa.array(np.arange(number, len(items), len(wanted)))), kind, field).take(row)
        for number, (kind, field) in enumerate(zip(written, wanted, strict=True))
    )


def _values_of_field(wrapped: pa.StructArray, written: pa.DataType, wanted: pa.Field) -> pa.Array:
    """Return the values of one ordering field, whichever wrappers hold them, in the field's type."""
    values_of_field = pa.nulls(len(wrapped), written)
    for name, _, _ in (*_WRAPPED, _LOCAL_DATE):
        index = wrapped.type.get_field_index(name)
        values = None if index < 0 else pc.struct_field(wrapped, name)
        if values is not None and values.null_count < len(values):
            values_of_field = pc.coalesce(values_of_field, _as_written(values, name, written, wanted.name))
    return conform_array(values_of_field, wanted.with_nullable(True))


def _as_written(values: pa.Array, wrapper: str, kind: pa.DataType, name: str) -> pa.Array:
    """Return the values of one wrapper in the type that the column had when they were written.

    ``kind`` is that type, and ``name`` the column's. Apache Hudi's wrappers hold days and microseconds as numbers,
    microseconds for a column in milliseconds too, and pyhudi writes dates and times as plain numbers.
    """
    if wrapper in ("date", "local_date") or (wrapper == "int" and pa.types.is_date32(kind)):
        values = values.view(pa.date32())
    elif wrapper == "timestamp":
        values = values.view(pa.timestamp("us", kind.tz if pa.types.is_timestamp(kind) else None))
    elif wrapper == "long" and pa.types.is_timestamp(kind):
        values = values.view(kind)
    elif wrapper == "decimal":
        return decimals(values, _DECIMAL).cast(kind)
    if wrapper == "time" or not fits(values.type, kind):
        raise SchemaMismatchError(
            f"Column {name!r} orders by {kind}, and a delete in a log file by {values.type}.",
            "Roll back the instant that wrote the log file.",
        )
    return cast(values, kind)


def _wrapper(name: str, avro: str) -> dict[str, Any]:
    """Return the record that holds a value; its field is named after it, so that no two wrappers are confused."""
    return {"type": "record", "name": f"of_{name}", "fields": [{"name": name, "type": avro}]}


_END = b"end of the list"
_VALUE = pa.struct([pa.field(name, kind) for name, _, kind in _WRAPPED])
_ITEM = pa.struct([*_VALUE, pa.field(_LOCAL_DATE[0], _LOCAL_DATE[2])])
_ORDERING = pa.struct([*_VALUE, pa.field("array", pa.list_(_ITEM))])
_ROW = pa.struct([pa.field("key", pa.string()), pa.field("path", pa.string()), pa.field("ordering", _ORDERING)])
# A record's name in place of its definition refers to the definition further up.
_LIST = {"type": "array", "items": ["null", *(f"of_{name}" for name, _, _ in _WRAPPED), _wrapper(*_LOCAL_DATE[:2])]}
_SEVERAL = {"type": "record", "name": "of_several", "fields": [{"name": "array", "type": ["null", _LIST]}]}
_AVRO: dict[str, Any] = {
    "type": "record",
    "name": "delete",
    "fields": [
        {"name": "key", "type": ["null", "bytes"]},
        {"name": "path", "type": ["null", "bytes"]},
        {"name": "ordering", "type": ["null", *(_wrapper(name, avro) for name, avro, _ in _WRAPPED), _SEVERAL]},
    ],
}
