"""How values are spelt in record keys and partition paths (``StringUtils.objToString`` on the Avro write path)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DataError, UnsupportedTypeError
from ..arrow.java_text import decimal_text
from ..schema.types import is_text

RECORD_KEY = "record key"
PARTITION = "partition"

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, the years of four digits


def check_key_type(kind: pa.DataType, field: str, role: str) -> None:
    """Refuse a type whose values have no spelling on which all of Apache Hudi's writers and readers agree.

    Args:
        kind: Type of a key or partition column.
        field: The column's name, for messages.
        role: `RECORD_KEY` or `PARTITION`.

    Raises:
        UnsupportedTypeError: Names the column and its type.
    """
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_timestamp(kind) and role == PARTITION:
        raise UnsupportedTypeError(
            f"The partition column {field!r} has type {kind}; Apache Hudi reads such folders back as nulls.",
            "Partition by a date or a string made of it.",
        )
    whole = types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind) or types.is_null(kind)
    if not (whole or is_text(kind) or types.is_date(kind) or types.is_timestamp(kind)):
        raise UnsupportedTypeError(
            f"The {role} column {field!r} has type {kind}, which Hudi's writers do not all spell alike in a {role}.",
            "Cast it to a string, or choose a column of another type.",
        )


def check_kept_key_type(kind: pa.DataType, field: str) -> None:
    """Refuse the type that a table keeps a record key column in where its keys may be spelt in another unit.

    Raises:
        UnsupportedTypeError: Names the column and its type.
    """
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        raise UnsupportedTypeError(
            f"The table keeps the {RECORD_KEY} column {field!r} as {kind}, and Hudi's writers do not agree on the unit "
            "of such a time in a key.",
            "Copy the rows into a table whose key is a string, a number or a time in microseconds.",
        )


def format_values(column: pa.Array, field: str, role: str) -> pa.StringArray:
    """Return the text of every value of a key or partition column; null stays null.

    Args:
        column: Not dictionary-encoded, of a type that `check_key_type` lets pass; timestamps are spelt as epoch
            microseconds.
        field: The column's name, for messages.
        role: `RECORD_KEY` or `PARTITION`.

    Raises:
        DataError: A value is a time finer than a microsecond, or a date whose year has not four digits.
    """
    if pa.types.is_timestamp(column.type):
        return _epoch_micros(column, field, role).cast(pa.string())
    if pa.types.is_date(column.type):
        return _dates(column, field, role)
    if pa.types.is_decimal(column.type):
        return decimal_text(column)
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def check_text(column: pa.Array, field: str, role: str) -> None:
    """Refuse a text column with bytes that are no text, which a file may hold and a path may not.

    Raises:
        DataError: A value is not valid UTF-8.
    """
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"The {role} column {field!r} holds a text that is not valid UTF-8: {error}.",
            "Repair the column, or turn it into text (base64, hex) before the write.",
        ) from error


def _epoch_micros(column: pa.Array, field: str, role: str) -> pa.Array:
    try:
        return column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64())
    except pa.ArrowInvalid as error:
        raise DataError(
            f"The {role} column {field!r} holds times that are no whole microseconds: {error}.",
            "Round the column to microseconds.",
        ) from error


def _dates(column: pa.Array, field: str, role: str) -> pa.StringArray:
    days = column.cast(pa.date32())
    span = pc.min_max(days.view(pa.int32())) if len(days) > days.null_count else None
    least, greatest = (span["min"].as_py(), span["max"].as_py()) if span is not None else (0, 0)  # O(1)
    if least < _FIRST_DAY or greatest > _LAST_DAY:
        raise DataError(
            f"The {role} column {field!r} holds dates outside the years 1 to 9999.", "Correct or drop those rows."
        )
    return days.cast(pa.string())
