"""The text of values in record keys and partition paths (``StringUtils.objToString`` on the Avro write path)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DataError, UnsupportedTypeError
from ..arrow.java_text import decimal_text
from ..schema.types import is_text

RECORD_KEY = "record key"
PARTITION = "partition"

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, the years of four digits


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of record keys or partition paths; its name is dotted inside structs."""

    field: str
    role: str

    def check_type(self, kind: pa.DataType) -> None:
        """Raise UnsupportedTypeError for a type that Apache Hudi's writers and readers do not spell alike."""
        types = pa.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_timestamp(kind) and self.role == PARTITION:
            raise UnsupportedTypeError(
                f"The partition column {self.field!r} has type {kind}; Apache Hudi reads such folders back as nulls.",
                "Partition by a date or a string made of it.",
            )
        is_number = types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind) or types.is_null(kind)
        if not (is_number or is_text(kind) or types.is_date(kind) or types.is_timestamp(kind)):
            raise UnsupportedTypeError(
                f"The {self.role} column {self.field!r} has type {kind}, which Hudi's writers do not all spell alike "
                f"in a {self.role}.",
                "Cast it to a string, or choose a column of another type.",
            )

    def check_stored_type(self, kind: pa.DataType) -> None:
        """Raise UnsupportedTypeError for a table's key column whose times may be spelt in another unit."""
        if pa.types.is_timestamp(kind) and kind.unit != "us":
            raise UnsupportedTypeError(
                f"The table keeps the {self.role} column {self.field!r} as {kind}, and Hudi's writers do not agree on "
                "the unit of times in keys.",
                "Copy the rows into a table whose key is a string, a number or a time in microseconds.",
            )

    def check_text(self, values: pa.Array) -> None:
        """Raise DataError for texts that are not valid UTF-8; a data file may hold such texts, a path may not."""
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"The {self.role} column {self.field!r} holds a text that is not valid UTF-8: {error}.",
                "Repair the column, or turn it into text (base64, hex) before the write.",
            ) from error

    def texts(self, values: pa.Array) -> pa.StringArray:
        """Return the text of every value, not dictionary-encoded; a timestamp's is its epoch microseconds."""
        if pa.types.is_timestamp(values.type):
            return self._epoch_micros(values).cast(pa.string())
        if pa.types.is_date(values.type):
            return self._dates(values)
        if pa.types.is_decimal(values.type):
            return decimal_text(values)
        return values if pa.types.is_string(values.type) else values.cast(pa.string())

    def _epoch_micros(self, values: pa.Array) -> pa.Array:
        """Return the microseconds of timestamps; DataError if a timestamp has a fraction of one."""
        try:
            return values.cast(pa.timestamp("us", values.type.tz)).view(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(
                f"The {self.role} column {self.field!r} holds times that are no whole microseconds: {error}.",
                "Round the column to microseconds.",
            ) from error

    def _dates(self, values: pa.Array) -> pa.StringArray:
        """Return dates as ``yyyy-MM-dd``; DataError for years of other than four digits."""
        days = values.cast(pa.date32())
        span = pc.min_max(days.view(pa.int32())) if len(days) > days.null_count else None
        least, greatest = (span["min"].as_py(), span["max"].as_py()) if span is not None else (0, 0)  # O(1)
        if least < _FIRST_DAY or greatest > _LAST_DAY:
            raise DataError(
                f"The {self.role} column {self.field!r} holds dates outside the years 1 to 9999.",
                "Correct or drop those rows.",
            )
        return days.cast(pa.string())
