"""What bounds in a metadata table prove of one column's values as rows are read; in doubt they prove nothing.

Writers leave more in doubt than the format says. Sources: ``HoodieTableMetadataUtil.collectColumnRangeMetadata``,
``ParquetUtils.readColumnStatsFromMetadata``, ``ValueType``, and ``Statistics`` of parquet-java.

- Of a row group without bounds Apache Hudi says that all its values are null, and gives numbers the bounds 0 and 0.
  Parquet omits bounds of INT96, and those of long texts: if a base file has nulls, its texts may have values
  beyond the bounds.
- Of floats with NaN it takes 0.0 for both bounds, and adds the bounds of other row groups. So the bounds of a base file
  prove nothing unless both are above or below zero.
- Some bounds of texts are in Java's order, that of UTF-16, others in the order of bytes. Both orders agree on two texts
  if all characters of the first are below U+D800: if they differ, this character is less than a surrogate, and less
  than each character that takes two surrogates. All other bounds prove nothing.
- Parquet may cut texts, and makes a greatest text greater that it cuts. A writer that only cuts leaves 64, 128, 256 ...
  characters or bytes: such a greatest text proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask, mask
from ..files.logs.decimals import decimals
from ..schema.casts import cast
from ..schema.types import children

_LEAST, _GREATEST = "minValue", "maxValue"
# The types in ``HoodieValueTypeInfo``; a record of an older release says none.
_UNSTATED = 0
_BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _STRING, _DECIMAL, _UUID, _DATE = 2, 3, 4, 5, 6, 7, 10, 11, 12
_UNITS_ZONED = {15: "ms", 16: "us", 17: "ns"}
_UNITS_LOCAL = {18: "ms", 19: "us", 20: "ns"}
# Without a unit, numbers of this size are microseconds: as milliseconds they would be after the year 9999, which ends
# what Spark knows, and is what tables state for a time without an end; as nanoseconds they would be before 1973.
_LEAST_MICROS, _MOST_MICROS = 253_402_300_800_000, 10**17
_MOST_MILLIS = (1 << 63) // 1000
_LONG_TEXT = 64
# Parquet omits bounds that have so many bytes together: then the longer bound has at least half as many.
_OMITTED_BYTES = 4096
_BEYOND = "[\ue000-\U0010ffff]"
_WIDE = pa.decimal256(76, 38)


@dataclass(frozen=True, slots=True)
class ColumnSpans:
    """What some records, each of one file or partition, prove of one column, record by record.

    Attributes:
        least: A value of the column's type than which none is less; null if a record proves none.
        greatest: A value than which none is greater.
        nulls: Whether there may be nulls.
        values: Whether there may be anything but nulls.
    """

    least: pa.Array
    greatest: pa.Array
    nulls: Mask
    values: Mask

    def __len__(self) -> int:
        return len(self.least)


def column_spans(records: pa.StructArray, kind: pa.DataType) -> ColumnSpans:
    """Return what records of bounds, as a metadata table has them, prove of a column of a canonical type.

    For the reasons why some bounds of base files prove nothing see the beginning of this module.
    """
    types, counts = pa.types, _Counts.of(records)
    least, greatest = _bounds(records, kind)
    # These bounds prove nothing: of values whose bounds Parquet omits, Apache Hudi says that they are all null.
    doubtful = ~counts.live | (counts.all_null & counts.of_base)
    if types.is_string(kind):
        # A column of fewer bytes has no text whose bounds are omitted.
        is_small = (counts.bytes >= 0) & (counts.bytes < _OMITTED_BYTES // 2)
        doubtful |= counts.of_base & (counts.nulls != 0) & ~is_small
    if types.is_floating(kind):
        # If there is NaN, Apache Hudi takes zero for a bound.
        doubtful |= counts.of_base & ~_exclude_zero(least, greatest)
    # These types then get zero for both bounds, so that a record without bounds has nulls alone.
    has_zeroes = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_date32(kind)
    only_nulls = counts.live & counts.all_null & (~counts.of_base | has_zeroes)
    if only_nulls.any():
        only_nulls &= mask(pc.and_(_lack_bound(records, _LEAST), _lack_bound(records, _GREATEST)))
    no_nulls = counts.live & (counts.nulls == 0) & (counts.rows > 0)
    hidden = pa.array(doubtful)
    return ColumnSpans(_hide(least, hidden), _hide(greatest, hidden), ~no_nulls, ~only_nulls)


@dataclass(frozen=True, slots=True)
class _Counts:
    """The counts of records; -1 if a record says none. ``bytes`` is 0 for log files."""

    live: Mask
    rows: np.ndarray[tuple[int], np.dtype[np.int64]]
    nulls: np.ndarray[tuple[int], np.dtype[np.int64]]
    bytes: np.ndarray[tuple[int], np.dtype[np.int64]]

    @classmethod
    def of(cls, records: pa.StructArray) -> _Counts:
        """Read the counts of records; a record that is null or deleted is not ``live``."""
        deleted = pc.fill_null(_field(records, "isDeleted", pa.bool_()), False)
        live = mask(pc.and_(records.is_valid(), pc.invert(deleted)))
        rows, nulls, size = (
            pc.fill_null(_field(records, name, pa.int64()), -1).to_numpy()
            for name in ("valueCount", "nullCount", "totalUncompressedSize")
        )
        return cls(live, rows, nulls, size)

    @property
    def of_base(self) -> Mask:
        return np.asarray(self.bytes != 0)

    @property
    def all_null(self) -> Mask:
        return np.asarray((self.rows > 0) & (self.nulls >= self.rows))


def _bounds(records: pa.StructArray, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Return both bounds in ``kind``, the type of the column, null if a record's type and the column's do not agree.

    A bound is null, too, if it proves nothing: NaN, a text that UTF-16 and bytes order differently, or a cut text.
    """
    stated = _StatedBounds(records)
    types = pa.types
    if types.is_boolean(kind):
        return stated.both_bounds([("Boolean", (_UNSTATED, _BOOLEAN))], kind)
    if types.is_int32(kind):
        return stated.both_bounds([("Int", (_UNSTATED, _INT))], kind)
    if types.is_int64(kind):
        return stated.both_bounds([("Long", (_UNSTATED, _LONG)), ("Int", (_UNSTATED, _INT))], kind)
    if types.is_float32(kind):
        return _without_nan(stated.both_bounds([("Float", (_UNSTATED, _FLOAT))], kind))
    if types.is_float64(kind):
        return _without_nan(
            stated.both_bounds([("Double", (_UNSTATED, _DOUBLE)), ("Float", (_UNSTATED, _FLOAT))], kind)
        )
    if types.is_string(kind):
        least, greatest = stated.both_bounds([("String", (_UNSTATED, _STRING, _UUID))], kind)
        return _texts_in_every_order(least), _uncut_texts(_texts_in_every_order(greatest))
    if types.is_date32(kind):
        days = (_UNSTATED, _DATE)
        return stated.both_bounds([("Date", days), ("LocalDate", days), ("Int", days)], kind)
    if types.is_decimal128(kind):
        return stated.decimals(_LEAST, kind), stated.decimals(_GREATEST, kind)
    if types.is_timestamp(kind) and kind.unit == "us":
        return _bounds_of_times(stated, kind)
    return stated.nothing(kind), stated.nothing(kind)


@dataclass(frozen=True, slots=True)
class _StatedBounds:
    """Bounds as records state them, each in the wrapper of its type."""

    records: pa.StructArray

    def both_bounds(
        self, wrappers: Sequence[tuple[str, tuple[int, ...]]], kind: pa.DataType
    ) -> tuple[pa.Array, pa.Array]:
        """Return the least and the greatest bound of each record, null if a record has another type of bounds.

        ``wrappers`` pairs the names of wrappers, such as ``Long``, with the type ordinals that the record may state.
        """
        least, greatest = (self._one_bound(bound, wrappers, kind) for bound in (_LEAST, _GREATEST))
        return least, greatest

    def _one_bound(self, bound: str, wrappers: Sequence[tuple[str, tuple[int, ...]]], kind: pa.DataType) -> pa.Array:
        """Return the least or the greatest bound of each record, from the first wrapper that has one.

        ``bound`` is `_LEAST` or `_GREATEST`. With each wrapper come the type ordinals of records that may use it.
        """
        bounds = self.nothing(kind)
        for wrapper, ordinals in wrappers:
            values = self.bounds_wrapped_as(bound, wrapper, ordinals)
            if values.null_count < len(values):
                bounds = pc.coalesce(bounds, cast(values, kind))
        return bounds

    def bounds_wrapped_as(self, bound: str, wrapper: str, ordinals: Sequence[int]) -> pa.Array:
        """Return the bounds in a wrapper, null for records with another wrapper or with other type ordinals."""
        wrapped = _child(self.records, bound)
        values = None if wrapped is None else _child(wrapped, wrapper)
        if values is None:
            return pa.nulls(len(self.records))
        if values.null_count == len(values):
            return values
        return pc.if_else(pc.is_in(self.ordinals, pa.array(ordinals, pa.int32())), values, None)

    @property
    def ordinals(self) -> pa.Array:
        """The type that each record states, as in ``HoodieValueTypeInfo``; `_UNSTATED` if it states none."""
        value_types = _child(self.records, "valueType")
        if value_types is None or not pa.types.is_struct(value_types.type):
            return pa.array(np.full(len(self.records), _UNSTATED, np.int32))
        return pc.fill_null(_field(value_types, "typeOrdinal", pa.int32()), _UNSTATED)

    def decimals(self, bound: str, kind: pa.Decimal128Type) -> pa.Array:
        """Return bounds as decimals of the column's type.

        Null if a record's scale cannot be read, or the value does not fit.
        """
        bounds_in_decimals = self.bounds_wrapped_as(bound, "Decimal", (_UNSTATED,))
        bounds = _narrowed(bounds_in_decimals.cast(_WIDE), kind)
        bounds_in_bytes = self.bounds_wrapped_as(bound, "Bytes", (_DECIMAL,))
        if bounds_in_bytes.null_count == len(bounds_in_bytes):
            return bounds
        decimal_types = _field(_child(self.records, "valueType"), "additionalInfo", pa.string())
        types_of_bounds = decimal_types.filter(bounds_in_bytes.is_valid()).unique()
        for text in types_of_bounds.to_pylist():  # O(decimal types that a column had)
            scale = _scale(text)
            if scale is not None:
                of_type = pc.if_else(pc.equal(decimal_types, text), bounds_in_bytes, None)
                bounds = pc.coalesce(bounds, _narrowed(_decimals_in_bytes(of_type, scale), kind))
        return bounds

    def nothing(self, kind: pa.DataType) -> pa.Array:
        return pa.nulls(len(self.records), kind)


def _scale(text: str | None) -> int | None:
    """Return the scale of a decimal type that a record spells as ``10,2``; None if it spells none that fits."""
    precision, _, scale = (text or "").partition(",")
    if not (precision.strip().isdecimal() and scale.strip().isdecimal()):
        return None
    return int(scale) if int(scale) <= int(precision) <= _WIDE.scale else None


def _decimals_in_bytes(encoded: pa.Array, scale: int) -> pa.Array:
    """Return the decimals that Java encoded as bytes; null for bytes that are no decimal of 38 digits."""
    size = pc.binary_length(encoded)
    fits = pc.and_(pc.greater(size, 0), pc.less_equal(size, 16))
    try:
        return decimals(pc.if_else(fits, encoded, None), pa.decimal128(_WIDE.scale, scale)).cast(_WIDE)
    except (ValueError, pa.ArrowInvalid):
        # One value with too many digits leaves all in doubt.
        return pa.nulls(len(encoded), _WIDE)


def _narrowed(wide: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    """Return decimals in a type, null if they are no values of it."""
    if wide.null_count == len(wide):
        return pa.nulls(len(wide), kind)
    digits = kind.precision - kind.scale
    if digits < _WIDE.scale:
        wide = pc.if_else(pc.less(pc.abs(wide), pa.scalar(Decimal(10) ** digits, _WIDE)), wide, None)
    narrow = wide.cast(kind, safe=False)
    return pc.if_else(pc.equal(narrow.cast(_WIDE), wide), narrow, None)


def _without_nan(bounds: tuple[pa.Array, pa.Array]) -> tuple[pa.Array, pa.Array]:
    """Return both bounds with null for NaN, which proves nothing."""
    least, greatest = (pc.if_else(pc.is_nan(bound), None, bound) for bound in bounds)
    return least, greatest


def _exclude_zero(least: pa.Array, greatest: pa.Array) -> Mask:
    """Return which pairs of bounds lie both above or both below zero."""
    return mask(pc.greater(least, 0.0)) | mask(pc.less(greatest, 0.0))


def _texts_in_every_order(bounds: pa.Array) -> pa.Array:
    """Return bounds whose order is the same in UTF-16 and in bytes; null for all others."""
    return pc.if_else(pc.match_substring_regex(bounds, _BEYOND), None, bounds)


def _uncut_texts(bounds: pa.Array) -> pa.Array:
    """Return greatest texts, null for a text that a writer may have cut: of 64, 128, 256 … characters or bytes."""
    cut = pa.array(np.zeros(len(bounds), np.bool_))
    for lengths in (pc.utf8_length(bounds), pc.binary_length(bounds)):
        counted = pc.fill_null(lengths, 0).to_numpy()
        # The powers of two from 64 on.
        cut = pc.or_(cut, pa.array((counted >= _LONG_TEXT) & ((counted & (counted - 1)) == 0)))
    # As of footers, an empty text may stand for no bound.
    return pc.if_else(pc.or_(cut, pc.fill_null(pc.equal(bounds, ""), False)), None, bounds)


def _bounds_of_times(stated: _StatedBounds, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Return both bounds of a column of times in microseconds.

    Null if the unit that a record states is unknown or another zone's.
    """
    zoned = kind.tz is not None
    bounds = _times_without_unit(stated)
    if zoned:
        # In records that state no type this wrapper has microseconds in UTC.
        older_bounds = (
            stated.bounds_wrapped_as(bound, "TimestampMicros", (_UNSTATED,)) for bound in (_LEAST, _GREATEST)
        )
        bounds = [pc.coalesce(mine, other.cast(pa.int64())) for mine, other in zip(bounds, older_bounds, strict=True)]
    for ordinal, unit in (_UNITS_ZONED if zoned else _UNITS_LOCAL).items():
        for number, bound in enumerate((_LEAST, _GREATEST)):
            raw = stated.bounds_wrapped_as(bound, "Long", (ordinal,)).cast(pa.int64())
            bounds[number] = pc.coalesce(bounds[number], _micros(raw, unit))
    least, greatest = (bound.cast(kind) for bound in bounds)
    return least, greatest


def _times_without_unit(stated: _StatedBounds) -> list[pa.Array]:
    """Return the bounds of records that state no unit, null unless the numbers can only be microseconds."""
    least, greatest = (
        stated.bounds_wrapped_as(bound, "Long", (_UNSTATED,)).cast(pa.int64()) for bound in (_LEAST, _GREATEST)
    )
    sizes = [pc.fill_null(bound, 0).to_numpy() for bound in (least, greatest)]
    size = np.maximum(*[np.abs(bound.astype(np.float64)) for bound in sizes])
    micros = pa.array((size >= _LEAST_MICROS) & (size < _MOST_MICROS))
    return [pc.if_else(micros, bound, None) for bound in (least, greatest)]


def _micros(raw: pa.Array, unit: str) -> pa.Array:
    """Return numbers of a unit as microseconds; null for milliseconds that would overflow."""
    if unit == "ms":
        fits = pc.and_(pc.less(raw, _MOST_MILLIS), pc.greater(raw, -_MOST_MILLIS))
        return pc.multiply(pc.if_else(fits, raw, None), 1000)
    if unit == "ns":
        # Times finer than a microsecond are refused when they are read.
        return pa.array(pc.fill_null(raw, 0).to_numpy() // 1000, mask=raw.is_null().to_numpy(zero_copy_only=False))
    return raw


def _hide(bounds: pa.Array, hidden: pa.Array) -> pa.Array:
    """Return bounds with null where ``hidden`` is true."""
    return pc.if_else(hidden, None, bounds)


def _lack_bound(records: pa.StructArray, bound: str) -> pa.Array:
    """Return which records have no bound of any type."""
    wrapped = _child(records, bound)
    if wrapped is None or not pa.types.is_struct(wrapped.type):
        return pa.array(np.ones(len(records), np.bool_))
    lacks_bound = pa.array(np.ones(len(records), np.bool_))
    for field in children(wrapped.type):
        lacks_bound = pc.and_(lacks_bound, pc.is_null(pc.struct_field(wrapped, [field.name])))
    return lacks_bound


def _child(records: pa.Array, name: str) -> pa.Array | None:
    """Return a field of structs, null if a struct is null; None if the release that wrote them has none."""
    if not any(field.name == name for field in children(records.type)):
        return None
    return pc.struct_field(records, [name])


def _field(records: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    """Return a field of structs in a type; nulls if the release that wrote them lacks it."""
    child = _child(records, name)
    return pa.nulls(len(records), kind) if child is None else child.cast(kind)
