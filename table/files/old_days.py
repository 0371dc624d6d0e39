"""Days and moments of files in the calendar that Spark had before 3.0: Julian before 1582-10-15, Gregorian since.

A file's footer says so, by the version of Spark or by an entry of its own. Spark has written dates and times in the
proleptic Gregorian calendar since 3.0, but still writes the old calendar if its rebase modes are ``LEGACY``. Source:
``DataSourceUtils`` and ``RebaseDateTime`` of Apache Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import list_array, plain, struct_array
from ..schema.types import children

_SPARK = b"org.apache.spark.version"
# The entries, and the versions of Spark from which on only files with the entry are in the old calendar.
_DAYS = (b"org.apache.spark.legacyDateTime", b"3.0.0")
_INT96 = (b"org.apache.spark.legacyINT96", b"3.1.0")
# 1582-10-15, from which day on both calendars agree.
_FIRST_DAY = -141_427
# The second 1900-01-01T00:00:00Z, from which on the old calendar has the moments of all time zones as they are now.
_FIRST_SECOND = -2_208_988_800
_SECONDS_OF_A_DAY = 86_400
_IN_A_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_LEAST_NUMBER = -(1 << 63)
# Days from 0000-03-01 of the Julian calendar to 1970-01-01. Years that begin in March end with the leap day.
_BEFORE_1970 = 719_470
_DAYS_OF_FOUR_YEARS = 1461


class OldMomentsError(Exception):
    """A column, whose name it has, holds moments in the old calendar, whose time zone its numbers depend on."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


def has_old_days(footer: Mapping[bytes, bytes], *, int96: bool = False) -> bool:
    """Return whether a file's days and moments are in the old calendar; under ``int96`` its moments in INT96."""
    entry, version = _INT96 if int96 else _DAYS
    # Spark compares these versions as texts, too.
    return entry in footer or footer.get(_SPARK, version) < version


def is_old(kind: pa.DataType, value: int) -> bool:
    """Return whether a value, a number as Parquet stores it, may be another day or moment in the old calendar."""
    if pa.types.is_date32(kind):
        return value < _FIRST_DAY
    return _is_moment(kind) and value < _FIRST_SECOND * _IN_A_SECOND[kind.unit]


def widened_days(least: pa.Array, greatest: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return bounds between which days lie also if their numbers, days since 1970, are of the old calendar."""

    def moved(days: pa.Array, by: int) -> pa.Array:
        return pc.if_else(pc.less(days, _FIRST_DAY), pc.add(days, pa.scalar(by, pa.int32())), days)

    # From the year 1 to 1582, a day has a number up to two greater, or up to ten less, than in the old calendar.
    return moved(least, -10), moved(greatest, 2)


def widened_moments(least: pa.Array, greatest: pa.Array, unit: str) -> tuple[pa.Array, pa.Array]:
    """Return bounds between which moments lie also if their numbers, in a unit since 1970, are of the old calendar."""
    day, first = (number * _IN_A_SECOND[unit] for number in (_SECONDS_OF_A_DAY, _FIRST_SECOND))
    # As far as days, and one day more for the time zones, whose offsets differ between the calendars, too.
    below, above = 11 * day, 3 * day
    # No number is less than the least that 64 bits hold.
    lowered = pc.subtract(pc.max_element_wise(least, _LEAST_NUMBER + below, skip_nulls=False), below)
    # The greatest of the moments before 1900 may come to lie after a later moment.
    return (
        pc.if_else(pc.less(least, first), lowered, least),
        pc.if_else(pc.less(greatest, first + above), pc.add(greatest, above), greatest),
    )


def with_days_of_now(batch: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
    """Return a batch in which the days of some columns have the numbers that they have in the calendar of now.

    Raises `OldMomentsError` if one of the columns has a moment before 1900.
    """
    names = batch.schema.names
    arrays = [
        _of_now(array, name) if name in columns else array for name, array in zip(names, batch.columns, strict=True)
    ]
    # A batch made of no arrays would have no rows.
    return pa.RecordBatch.from_arrays(arrays, names=names) if arrays else batch


def _of_now(array: pa.Array, column: str) -> pa.Array:
    """Return the values of a column, or inside it, with their days as they are now; ``column`` is its name."""
    kind = array.type
    if not _may_hold_old(kind):
        return array
    if pa.types.is_date32(kind):
        return _days_of_now(array)
    if _is_moment(kind):
        least = pc.min(array.cast(pa.int64())).as_py()  # one value a batch
        if least is not None and is_old(kind, least):
            raise OldMomentsError(column)
        return array
    valid = array.is_valid()
    if pa.types.is_struct(kind):
        return struct_array(kind, len(array), valid, [_of_now(plain(part), column) for part in array.flatten()])
    if pa.types.is_map(kind):
        array = array.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
    else:
        kind = pa.list_(kind.value_field)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return list_array(kind, valid, lengths, _of_now(plain(array.flatten()), column))


def _days_of_now(array: pa.Array) -> pa.Array:
    """Return the days of the old calendar as days of the same year, month and day of the month."""
    days = pc.fill_null(array.view(pa.int32()), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    is_julian = days < _FIRST_DAY
    if not is_julian.any():
        return array
    years = (4 * (days + _BEFORE_1970) + 3) // _DAYS_OF_FOUR_YEARS
    # Of the leap days at the ends of centuries, the Gregorian calendar has only every fourth.
    days += np.where(is_julian, 2 - years // 100 + years // 400, 0)
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(days.astype(np.int32), pa.int32(), mask=is_null).view(pa.date32())


def _may_hold_old(kind: pa.DataType) -> bool:
    return _is_moment(kind) or pa.types.is_date32(kind) or any(_may_hold_old(field.type) for field in children(kind))


def _is_moment(kind: pa.DataType) -> bool:
    """Return whether a type is of times with a zone; Spark has always stored local times as they are."""
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)
