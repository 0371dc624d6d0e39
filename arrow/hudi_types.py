"""Rows of any Arrow types in the types of a Hudi table, if each value has an exact place there.

Layouts become plain: dictionaries, runs, views, large and fixed-size lists and texts. Unsigned and small whole numbers
take the next signed type, half floats become floats. A timestamp becomes microseconds: with a zone it is a moment,
without one what the table's column says, and in a new column what the writer asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnValueError
from ..table.arrow.arrays import bitmap, list_array, struct_array
from ..table.schema.types import LOCAL_MICROS, MAX_DECIMAL_PRECISION, UTC_MICROS, children, is_bytes, is_list, is_text
from .taken_values import list_values, struct_fields, values_at

# The longest part of a value that an error shows, in characters.
_SHOWN = 100
# A text of another layout may have more bytes than one plain array can hold.
_MOST_BYTES = 1 << 30
_MOST_OF_OFFSETS = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class HudiTypes:
    """How the columns of some rows are brought to a table's types.

    Attributes:
        row_columns: The columns as the rows have them.
        schema: The columns that they become.
        zoneless: The new columns of timestamps without zone, which become moments in UTC.
    """

    row_columns: pa.Schema
    schema: pa.Schema
    zoneless: tuple[str, ...] = ()

    @classmethod
    def of(cls, row_columns: pa.Schema, stored_columns: pa.Schema | None, *, local: bool = False) -> HudiTypes:
        """Return the types for rows of a table with some columns, None for a new one.

        In new columns, timestamps without zone become moments, unless they are ``local``.
        """
        fields, zoneless = [], []
        for field in row_columns:
            place = None if stored_columns is None else stored_columns.get_field_index(field.name)
            stored_type = (
                None if stored_columns is None or place is None or place < 0 else stored_columns.field(place).type
            )
            data_type = _hudi_type(field.type, stored_type, local=local)
            fields.append(pa.field(field.name, data_type, nullable=field.nullable))
            if stored_type is None and not local and _has_zoneless(field.type):
                zoneless.append(field.name)
        return cls(row_columns, pa.schema(fields), tuple(zoneless))

    def batches(self, batch: pa.RecordBatch, first_row: int) -> list[pa.RecordBatch]:
        """Return the rows of a batch in the types of the table; ``first_row`` is the number of the batch's first row.

        Raises `ColumnValueError` for a value that has no exact place there.
        """
        if batch.schema.types == self.schema.types:
            return [pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)]
        # Otherwise a plain array might have to hold more bytes than it can.
        if batch.nbytes > _MOST_BYTES and batch.num_rows > 1:
            return self._in_two_parts(batch, first_row)
        try:
            columns = [
                _converted_column(column, field, first_row)
                for column, field in zip(batch.columns, self.schema, strict=True)
            ]
        except (pa.ArrowInvalid, pa.ArrowCapacityError):
            # No single value failed. The texts of a dictionary, or of views, may have more bytes than the batch.
            if batch.num_rows < 2:
                raise
            return self._in_two_parts(batch, first_row)
        return [pa.RecordBatch.from_arrays(columns, schema=self.schema)]

    def _in_two_parts(self, batch: pa.RecordBatch, first_row: int) -> list[pa.RecordBatch]:
        """Return what `batches` returns for each half of a batch."""
        half = batch.num_rows // 2
        return [*self.batches(batch.slice(0, half), first_row), *self.batches(batch.slice(half), first_row + half)]


def needs_stored_columns(row_columns: pa.Schema | None) -> bool:
    """Return whether some rows take types from their table's columns, as an iterator without a batch (None) does."""
    if row_columns is None:
        return True
    return any(_has_zoneless(field.type) or _has_null(field.type) for field in row_columns)


def _has_null(data_type: pa.DataType) -> bool:
    """Return whether a type has nulls alone at some depth, as Arrow gives to a column without a value."""
    data_type = _value_type(data_type)
    return bool(pa.types.is_null(data_type)) or any(_has_null(field.type) for field in _parts_of(data_type))


def _has_zoneless(data_type: pa.DataType) -> bool:
    """Return whether a type has timestamps without a zone at some depth."""
    data_type = _value_type(data_type)
    if pa.types.is_timestamp(data_type):
        return data_type.tz is None
    return any(_has_zoneless(field.type) for field in _parts_of(data_type))


def _value_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type of the values behind a dictionary, runs or an extension."""
    # An extension whose storage is int8, though its values are booleans.
    if data_type == pa.bool8():
        return pa.bool_()
    if isinstance(data_type, pa.BaseExtensionType):
        return _value_type(data_type.storage_type)
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return _value_type(data_type.value_type)
    return data_type


def _parts_of(data_type: pa.DataType) -> list[pa.Field]:
    """Return the fields inside of a map, list or struct; none for any other type."""
    if pa.types.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    if is_list(data_type):
        return [data_type.value_field]
    return children(data_type) if pa.types.is_struct(data_type) else []


def _hudi_type(data_type: pa.DataType, stored_type: pa.DataType | None, *, local: bool) -> pa.DataType:
    """Return the type that values take for a column of the table, whose ``stored_type`` is None for a new column.

    In a new column, timestamps without zone become moments in UTC, unless they are ``local``. A type that Hudi lacks
    stays, and planning the write refuses it.
    """
    data_type, types = _value_type(data_type), pa.types
    if types.is_null(data_type):
        return data_type if stored_type is None else stored_type
    if types.is_integer(data_type):
        return _type_of_whole_numbers(data_type)
    if types.is_float16(data_type):
        return pa.float32()
    if is_text(data_type):
        return pa.string()
    if is_bytes(data_type):
        return pa.binary()
    if types.is_date(data_type):
        return pa.date32()
    if types.is_decimal(data_type):
        return pa.decimal128(min(data_type.precision, MAX_DECIMAL_PRECISION), data_type.scale)
    if types.is_timestamp(data_type):
        is_moment = data_type.tz is not None or (
            stored_type.tz is not None if stored_type is not None and types.is_timestamp(stored_type) else not local
        )
        return UTC_MICROS if is_moment else LOCAL_MICROS
    return _nested_type(data_type, stored_type, local=local)


def _nested_type(data_type: pa.DataType, stored_type: pa.DataType | None, *, local: bool) -> pa.DataType:
    """Return the type that lists, maps and structs take, each part as `_hudi_type` says; any other type stays.

    ``stored_type`` is the type of the same place in the table, None if the table has no such place, and ``local`` is
    as of `_hudi_type`. If the stored type has another shape, the parts take the types of a new column.
    """
    stored_parts = [] if stored_type is None else _parts_of(stored_type)

    def inner(field: pa.Field, name: str, stored_field: pa.Field | None) -> pa.Field:
        """Return a part with the name that Hudi gives it, in the type that it takes."""
        inner_type = _hudi_type(field.type, None if stored_field is None else stored_field.type, local=local)
        return pa.field(name, inner_type, nullable=field.nullable)

    if pa.types.is_map(data_type):
        keys, items = stored_parts if stored_type is not None and pa.types.is_map(stored_type) else (None, None)
        key = inner(data_type.key_field, "key", keys).with_nullable(False)
        return pa.map_(key, inner(data_type.item_field, "value", items))
    if is_list(data_type):
        inner_field = stored_parts[0] if stored_type is not None and is_list(stored_type) else None
        return pa.list_(inner(data_type.value_field, "element", inner_field))
    if pa.types.is_struct(data_type):
        by_name = {field.name: field for field in stored_parts}
        return pa.struct([inner(field, field.name, by_name.get(field.name)) for field in children(data_type)])
    return data_type


def _type_of_whole_numbers(data_type: pa.DataType) -> pa.DataType:
    """Return the type for whole numbers of any width and sign: the next signed type that a table can have."""
    signed = pa.types.is_signed_integer(data_type)
    return pa.int32() if data_type.bit_width < 32 or (signed and data_type.bit_width == 32) else pa.int64()


def _converted_column(column: pa.Array, field: pa.Field, first_row: int) -> pa.Array:
    """Return a column in the type of a field; ColumnValueError names the first row whose value does not fit."""
    try:
        return _converted(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
        row = _first_failing(lambda start, rows: _converted(column.slice(start, rows), field.type), len(column))
        if row is None:
            raise
        value = _text_for_errors(column[row])
        raise ColumnValueError(
            f"Column {field.name!r} has the type {column.type}, and its value in row {first_row + row}, {value}, has "
            f"no exact place in a Hudi table's {field.type}.",
            "Round or cast the column, or drop the row; rows are counted from 0.",
        ) from error


def _text_for_errors(value: pa.Scalar) -> str:
    """Return a value as an error shows it."""
    try:
        return str(value)[:_SHOWN]
    except (ValueError, OverflowError):
        # A time beyond the years of Python, which may be a value of a run or of a list.
        number = getattr(value, "value", None)
        return f"{number} of its unit" if isinstance(number, int) else "a time beyond the year 9999"


def _first_failing(convert: Callable[[int, int], Any], rows: int) -> int | None:
    """Return the first row at which a conversion fails, found by halves; None if it fails for no single row.

    ``convert`` gets the first row to convert, and how many.
    """
    start, stop = 0, rows
    while stop - start > 1:
        half = (start + stop) // 2
        if _fails(convert, start, half - start):
            stop = half
        else:
            start = half
    return start if rows and _fails(convert, start, 1) else None


def _fails(convert: Callable[[int, int], Any], start: int, rows: int) -> bool:
    """Return whether a conversion fails for so many rows from a start on."""
    try:
        convert(start, rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        return True
    return False


def _converted(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return the values of an array in ``data_type``, which `_hudi_type` chose for the array's type.

    Raises pa.ArrowInvalid if a value has no exact place in that type.
    """
    types = pa.types
    if isinstance(array, pa.ExtensionArray):
        return _converted(array.storage, data_type)
    if types.is_dictionary(array.type):
        # Values of the dictionary that no row has need no place in the table, so only those of rows are converted.
        return _converted(values_at(array.dictionary, array.indices), data_type)
    if types.is_run_end_encoded(array.type):
        return _converted(values_at(array, pa.array(np.arange(len(array)))), data_type)
    if array.type == data_type:
        return array
    if types.is_null(array.type):
        return pa.nulls(len(array), data_type)
    if _parts_of(data_type):
        return _converted_parts(array, data_type)
    if types.is_date64(array.type) and types.is_date32(data_type):
        return _whole_days(array)
    if types.is_timestamp(data_type):
        # Without a zone the digits count as UTC.
        return array.cast(pa.timestamp("us", array.type.tz)).cast(data_type)
    return _near_its_start(array).cast(data_type)


def _near_its_start(array: pa.Array) -> pa.Array:
    """Return large texts and bytes, or bytes of a fixed width, with their first value at the start of their buffer.

    Arrow's casts to types with offsets of 32 bits leave a slice's values where they lie in the whole array. Beyond
    2 GiB they fail, or return offsets that have wrapped around.
    """
    types = pa.types
    if types.is_fixed_size_binary(array.type) and array.offset:
        width = array.type.byte_width
        values = array.buffers()[1].slice(array.offset * width, len(array) * width)
        return pa.Array.from_buffers(array.type, len(array), [_bitmap(array), values])
    if len(array) and (types.is_large_string(array.type) or types.is_large_binary(array.type)):
        _, offsets_buffer, values = array.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
        if offsets[-1] > _MOST_OF_OFFSETS:
            values = values.slice(offsets[0], offsets[-1] - offsets[0])
            buffers = [_bitmap(array), pa.py_buffer(offsets - offsets[0]), values]
            return pa.Array.from_buffers(array.type, len(array), buffers)
    return array


def _bitmap(array: pa.Array) -> Any:
    """Return the validity of an array from its first value on, as Arrow's buffers have it."""
    return bitmap(array.is_valid() if array.null_count else None)


def _whole_days(array: pa.Array) -> pa.Array:
    """Return times of days as days; pa.ArrowInvalid if a time is not midnight."""
    days = array.cast(pa.date32())
    if not pc.all(pc.equal(days.cast(array.type), array), min_count=0).as_py():  # one value
        raise pa.ArrowInvalid("a date has a time of day")
    return days


def _converted_parts(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return lists, maps or structs in ``data_type``, which has the same shape, with their parts converted.

    Values outside a slice or below a null are not converted, because no row has them and they might not fit.
    """
    valid = None if array.null_count == 0 else array.is_valid()
    if pa.types.is_struct(data_type):
        parts = struct_fields(array)
        converted_parts = [_converted(part, field.type) for part, field in zip(parts, children(data_type), strict=True)]
        return struct_array(data_type, len(array), valid, converted_parts)
    if len(array) == 0:
        return pa.array([], data_type)
    lengths, values = list_values(array)
    if pa.types.is_map(data_type):
        keys, items = values.flatten()
        parts = [_converted(keys, data_type.key_type), _converted(items, data_type.item_type)]
        inner = pa.struct([data_type.key_field, data_type.item_field])
        return list_array(data_type, valid, lengths, struct_array(inner, len(values), None, parts))
    return list_array(data_type, valid, lengths, _converted(values, data_type.value_type))
