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
from ..table.arrow.arrays import list_array, struct_array
from ..table.schema.types import LOCAL_MICROS, MAX_DECIMAL_PRECISION, UTC_MICROS, children, is_bytes, is_list, is_text
from .taken_values import list_values, taken

# The longest part of a value that an error shows, in characters.
_SHOWN = 100
# A text of another layout may have more bytes than one plain array can hold.
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class HudiTypes:
    """How the columns of some rows are brought to a table's types.

    Attributes:
        given: The columns as the rows have them.
        schema: The columns that they become.
        zoneless: The new columns of timestamps without zone, which become moments in UTC.
    """

    given: pa.Schema
    schema: pa.Schema
    zoneless: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: pa.Schema, stored: pa.Schema | None, *, local: bool = False) -> HudiTypes:
        """Return the types for rows of a table with some columns, None for a new one.

        In new columns, timestamps without zone become moments, unless they are ``local``.
        """
        fields, zoneless = [], []
        for field in given:
            place = None if stored is None else stored.get_field_index(field.name)
            wanted = None if stored is None or place is None or place < 0 else stored.field(place).type
            kind = _hudi_type(field.type, wanted, local=local)
            fields.append(pa.field(field.name, kind, nullable=field.nullable))
            if wanted is None and not local and _has_zoneless(field.type):
                zoneless.append(field.name)
        return cls(given, pa.schema(fields), tuple(zoneless))

    def batches(self, batch: pa.RecordBatch, first: int) -> list[pa.RecordBatch]:
        """Return the rows of a batch in the types of the table; ``first`` is the number of the batch's first row.

        Raises `ColumnValueError` for a value that has no exact place there.
        """
        if batch.schema.types == self.schema.types:
            return [pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)]
        if batch.nbytes > _MOST_BYTES and batch.num_rows > 1:
            half = batch.num_rows // 2
            return [*self.batches(batch.slice(0, half), first), *self.batches(batch.slice(half), first + half)]
        columns = [_column(column, field, first) for column, field in zip(batch.columns, self.schema, strict=True)]
        return [pa.RecordBatch.from_arrays(columns, schema=self.schema)]


def needs_stored_columns(given: pa.Schema | None) -> bool:
    """Return whether the types that some rows take depend on the columns of their table."""
    if given is None:
        return True
    return any(_has_zoneless(field.type) or _has_null(field.type) for field in given)


def _has_null(kind: pa.DataType) -> bool:
    kind = _stored(kind)
    return bool(pa.types.is_null(kind)) or any(_has_null(field.type) for field in _inside(kind))


def _has_zoneless(kind: pa.DataType) -> bool:
    kind = _stored(kind)
    if pa.types.is_timestamp(kind):
        return kind.tz is None
    return any(_has_zoneless(field.type) for field in _inside(kind))


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values behind a dictionary, runs or an extension."""
    if kind == pa.bool8():
        return pa.bool_()
    if isinstance(kind, pa.BaseExtensionType):
        return _stored(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _stored(kind.value_type)
    return kind


def _inside(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if is_list(kind):
        return [kind.value_field]
    return children(kind) if pa.types.is_struct(kind) else []


def _hudi_type(kind: pa.DataType, wanted: pa.DataType | None, *, local: bool) -> pa.DataType:
    """Return the type that values take for a column of the table, None for a new one; a type Hudi lacks stays."""
    kind, types = _stored(kind), pa.types
    if types.is_null(kind):
        return kind if wanted is None else wanted
    if types.is_integer(kind):
        return _whole_number(kind)
    if types.is_float16(kind):
        return pa.float32()
    if is_text(kind):
        return pa.string()
    if is_bytes(kind):
        return pa.binary()
    if types.is_date(kind):
        return pa.date32()
    if types.is_decimal(kind):
        return pa.decimal128(min(kind.precision, MAX_DECIMAL_PRECISION), kind.scale)
    if types.is_timestamp(kind):
        is_moment = kind.tz is not None or (wanted == UTC_MICROS if _is_timestamp(wanted) else not local)
        return UTC_MICROS if is_moment else LOCAL_MICROS
    return _nested_type(kind, wanted, local=local)


def _nested_type(kind: pa.DataType, wanted: pa.DataType | None, *, local: bool) -> pa.DataType:
    inside = [] if wanted is None else _inside(wanted)

    def inner(field: pa.Field, name: str, wanted_field: pa.Field | None) -> pa.Field:
        stored = _hudi_type(field.type, None if wanted_field is None else wanted_field.type, local=local)
        return pa.field(name, stored, nullable=field.nullable)

    if pa.types.is_map(kind):
        keys, items = inside if wanted is not None and pa.types.is_map(wanted) else (None, None)
        key = inner(kind.key_field, "key", keys).with_nullable(False)
        return pa.map_(key, inner(kind.item_field, "value", items))
    if is_list(kind):
        inner_field = inside[0] if wanted is not None and is_list(wanted) else None
        return pa.list_(inner(kind.value_field, "element", inner_field))
    if pa.types.is_struct(kind):
        by_name = {field.name: field for field in inside}
        return pa.struct([inner(field, field.name, by_name.get(field.name)) for field in children(kind)])
    return kind


def _whole_number(kind: pa.DataType) -> pa.DataType:
    signed = pa.types.is_signed_integer(kind)
    return pa.int32() if kind.bit_width < 32 or (signed and kind.bit_width == 32) else pa.int64()


def _is_timestamp(kind: pa.DataType | None) -> bool:
    return kind is not None and bool(pa.types.is_timestamp(kind))


def _column(column: pa.Array, field: pa.Field, first: int) -> pa.Array:
    try:
        return _converted(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
        row = _first_failing(lambda start, rows: _converted(column.slice(start, rows), field.type), len(column))
        if row is None:
            raise
        value = _text_of(column[row])
        raise ColumnValueError(
            f"Column {field.name!r} has the type {column.type}, and its value in row {first + row}, {value}, has no "
            f"exact place in a Hudi table's {field.type}.",
            "Round or cast the column, or drop the row; rows are counted from 0.",
        ) from error


def _text_of(value: pa.Scalar) -> str:
    try:
        return str(value)[:_SHOWN]
    except (ValueError, OverflowError):
        # A time beyond the years of Python, which may be a value of a run or of a list.
        number = getattr(value, "value", None)
        return f"{number} of its unit" if isinstance(number, int) else "a time beyond the year 9999"


def _first_failing(convert: Callable[[int, int], Any], rows: int) -> int | None:
    """Return the first row at which a conversion fails, found by halves; None if it fails for no single row."""
    start, end = 0, rows
    while end - start > 1:
        half = (start + end) // 2
        if _fails(convert, start, half - start):
            end = half
        else:
            start = half
    return start if rows and _fails(convert, start, 1) else None


def _fails(convert: Callable[[int, int], Any], start: int, rows: int) -> bool:
    try:
        convert(start, rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        return True
    return False


def _converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values in a type of `_hudi_type`; pa.ArrowInvalid if a value does not fit."""
    types = pa.types
    if isinstance(array, pa.ExtensionArray):
        return _converted(array.storage, kind)
    if types.is_dictionary(array.type):
        # Values that no row has need no place in the table.
        return _converted(taken(array.dictionary, array.indices), kind)
    if types.is_run_end_encoded(array.type):
        return _converted(taken(array, pa.array(np.arange(len(array)))), kind)
    if array.type == kind:
        return array
    if types.is_null(array.type):
        return pa.nulls(len(array), kind)
    if _inside(kind):
        return _nested(array, kind)
    if types.is_date64(array.type) and types.is_date32(kind):
        return _whole_days(array)
    if types.is_timestamp(kind):
        # Without a zone the digits count as UTC.
        return array.cast(pa.timestamp("us", array.type.tz)).cast(kind)
    return array.cast(kind)


def _whole_days(array: pa.Array) -> pa.Array:
    days = array.cast(pa.date32())
    if not pc.all(pc.equal(days.cast(array.type), array), min_count=0).as_py():  # one value
        raise pa.ArrowInvalid("a date has a time of day")
    return days


def _nested(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return lists, maps or structs with their parts converted, without values outside a slice or below a null."""
    valid = None if array.null_count == 0 else array.is_valid()
    if pa.types.is_struct(kind):
        parts = array.flatten()
        made = [_converted(part, field.type) for part, field in zip(parts, children(kind), strict=True)]
        return struct_array(kind, len(array), valid, made)
    if len(array) == 0:
        return pa.array([], kind)
    lengths, values = list_values(array)
    if pa.types.is_map(kind):
        keys, items = values.flatten()
        parts = [_converted(keys, kind.key_type), _converted(items, kind.item_type)]
        inner = pa.struct([kind.key_field, kind.item_field])
        return list_array(kind, valid, lengths, struct_array(inner, len(values), None, parts))
    return list_array(kind, valid, lengths, _converted(values, kind.value_type))
