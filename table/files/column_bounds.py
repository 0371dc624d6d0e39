"""The bounds of a data file's columns, short enough for a task's message: of values, and of parts of a file together.

A bound is a value in Parquet's plain encoding, decimals as the bytes of their unscaled values, the highest first. The
order of floating point numbers is Spark's, in which NaN is greater than all others; zero is bounded by both zeroes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import plain

MOST_OF_A_BOUND = 64
PLAIN = {"BOOLEAN": "<?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}
TEXT, DECIMAL, OCTETS = "text", "decimal", "octets"
"""Encodings of bounds that have no fixed width; the others are formats of `struct`."""

_FLOATS = (PLAIN["FLOAT"], PLAIN["DOUBLE"])
_GREATEST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


class ColumnBounds(NamedTuple):
    """What one column of a data file holds.

    Attributes:
        least: A value than which none is less; None if there is no value, or no bound is known.
        greatest: A value than which none is greater.
        nulls: How many rows have no value; None if that is unknown, and of a column that a log file lacks.
        size: Bytes of the column in a base file; 0 in a log file.
        uncompressed: The same before compression.
    """

    column: str
    least: bytes | None
    greatest: bytes | None
    nulls: int | None
    size: int = 0
    uncompressed: int = 0

    def says_all(self, rows: int) -> bool:
        """Return whether it has both bounds, or so many rows have no value at all."""
        return self.nulls is not None and (self.nulls >= rows or None not in (self.least, self.greatest))


def encoding_of(kind: pa.DataType) -> str:
    """Return the encoding of bounds of a canonical type, whose values may be in a dictionary."""
    types = pa.types
    if types.is_dictionary(kind):
        return encoding_of(kind.value_type)
    if types.is_string(kind):
        return TEXT
    if types.is_binary(kind):
        return OCTETS
    if types.is_decimal(kind):
        return DECIMAL
    if types.is_boolean(kind):
        return PLAIN["BOOLEAN"]
    if types.is_int32(kind) or types.is_date32(kind):
        return PLAIN["INT32"]
    if types.is_int64(kind) or types.is_timestamp(kind):
        return PLAIN["INT64"]
    return {pa.float32(): PLAIN["FLOAT"], pa.float64(): PLAIN["DOUBLE"]}[kind]


def have_width(bounds: ColumnBounds, kind: pa.DataType) -> bool:
    """Return whether bounds have the width of their type's encoding; texts, bytes and decimals have any width."""
    encoding = encoding_of(kind)
    if encoding in (TEXT, OCTETS, DECIMAL):
        return True
    return all(bound is None or len(bound) == struct.calcsize(encoding) for bound in (bounds.least, bounds.greatest))


def bounds_of_values(column: str, values: pa.Array | pa.ChunkedArray) -> ColumnBounds:
    """Return the exact bounds of values of a canonical type; `widened` makes them short enough for messages."""
    values = plain(values)
    span = pc.min_max(values)
    least, greatest = span["min"], span["max"]  # one value a call
    if not least.is_valid:
        return ColumnBounds(column, None, None, values.null_count)
    encoding = encoding_of(values.type)
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():  # one value a call
        # In Spark's order NaN is greater than all other numbers.
        greatest = pa.scalar(float("nan"), values.type)
    return ColumnBounds(column, _packed(least, encoding), _packed(greatest, encoding), values.null_count)


def united(parts: Sequence[ColumnBounds], rows: Sequence[int], encoding: str) -> ColumnBounds:
    """Return the bounds of a column over parts of a file; none if a part with values does not say all.

    ``rows`` is how many rows each part has, and ``encoding`` that of the bounds.
    """
    nulls = [part.nulls for part in parts if part.nulls is not None]
    sizes = sum(part.size for part in parts), sum(part.uncompressed for part in parts)
    # A part of nothing but nulls needs no bounds.
    with_values = [part for part, count in zip(parts, rows, strict=True) if part.nulls is None or part.nulls < count]
    least = [part.least for part in with_values if part.least is not None]
    greatest = [part.greatest for part in with_values if part.greatest is not None]
    name, order = parts[0].column, _order(encoding)
    return ColumnBounds(
        name,
        min(least, key=order) if least and len(least) == len(with_values) else None,
        max(greatest, key=order) if greatest and len(greatest) == len(with_values) else None,
        sum(nulls) if len(nulls) == len(parts) else None,
        *sizes,
    )


def widened(bounds: ColumnBounds, encoding: str) -> ColumnBounds:
    """Return bounds that are short enough for a task's message: texts and binary values have at most 64 bytes.

    A bound of zero becomes -0.0 as the least and 0.0 as the greatest value, for the values may be either. A greatest
    value stays whole if no short value is greater.
    """
    least, greatest = bounds.least, bounds.greatest
    if encoding in _FLOATS:
        least = struct.pack(encoding, -0.0) if _is_zero(least, encoding) else least
        greatest = struct.pack(encoding, 0.0) if _is_zero(greatest, encoding) else greatest
    elif encoding in (TEXT, OCTETS):
        is_text = encoding == TEXT
        least = None if least is None else least_within(least, is_text=is_text)
        greatest = None if greatest is None else greatest_within(greatest, is_text=is_text) or greatest
    return bounds._replace(least=least, greatest=greatest)


def least_within(value: bytes, *, is_text: bool) -> bytes:
    """Return a value of few bytes that is not greater."""
    cut_off = value[:MOST_OF_A_BOUND]
    return cut_off.decode(errors="ignore").encode() if is_text else cut_off


def greatest_within(value: bytes, *, is_text: bool) -> bytes | None:
    """Return a value of few bytes that is not less; None if none is greater than all values that begin alike."""
    if len(value) <= MOST_OF_A_BOUND:
        return value
    cut_off = least_within(value, is_text=is_text)
    if not is_text:
        cut_off = cut_off.rstrip(b"\xff")
        return cut_off[:-1] + bytes([cut_off[-1] + 1]) if cut_off else None
    # Raise the last character that has a successor, and leave out what follows it.
    text = cut_off.decode()
    for position in reversed(range(len(text))):
        character = ord(text[position]) + 1
        # UTF-8 has no surrogates.
        character = _SURROGATES.stop if character in _SURROGATES else character
        if character <= _GREATEST_CHARACTER:
            greater = f"{text[:position]}{chr(character)}".encode()
            if len(greater) <= MOST_OF_A_BOUND:
                return greater
    return None


class BoundsOfRows:
    """The bounds of some columns over batches of rows, each of which may lack some columns."""

    def __init__(self, columns: Iterable[pa.Field]) -> None:
        self._columns = {field.name: encoding_of(field.type) for field in columns}
        self._bounds: dict[str, tuple[ColumnBounds, int]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Widen the bounds by those of a batch's rows."""
        if not batch.num_rows:
            return
        for name in batch.schema.names:
            encoding = self._columns.get(name)
            if encoding is not None:
                bounds, rows = bounds_of_values(name, batch.column(name)), batch.num_rows
                if name in self._bounds:
                    earlier, count = self._bounds[name]
                    bounds, rows = united([earlier, bounds], [count, rows], encoding), rows + count
                self._bounds[name] = bounds, rows

    def bounds(self) -> tuple[ColumnBounds, ...]:
        return tuple(widened(bounds, self._columns[name]) for name, (bounds, _) in self._bounds.items())


def of_parts(
    columns: Sequence[pa.Field], parts: Sequence[tuple[int, Sequence[ColumnBounds]]]
) -> tuple[ColumnBounds, ...]:
    """Return the bounds of columns over parts of a log file, which are given with their numbers of rows."""
    rows = [count for count, _ in parts]
    by_part = [{bounds.column: bounds for bounds in stated} for _, stated in parts]
    all_bounds = []
    for column in columns:
        of_column = [stated[column.name] for stated in by_part]
        unbounded = ColumnBounds(column.name, None, None, 0)
        bounds = united(of_column, rows, encoding_of(column.type)) if of_column else unbounded
        # The sizes are those of columns in base files.
        all_bounds.append(bounds._replace(size=0, uncompressed=0))
    return tuple(all_bounds)


def _is_zero(bound: bytes | None, encoding: str) -> bool:
    return bound is not None and struct.unpack(encoding, bound)[0] == 0


def _packed(value: pa.Scalar, encoding: str) -> bytes:
    """Return a value's bytes in an encoding of bounds."""
    if encoding in (TEXT, OCTETS):
        return bytes(value.as_buffer())
    if encoding == DECIMAL:
        # Arrow has the lowest byte first.
        return bytes(pa.array([value.as_py()], value.type).buffers()[1])[15::-1]  # one value a call
    raw: Any = value.value if pa.types.is_temporal(value.type) else value.as_py()  # one value a call
    return struct.pack(encoding, raw)


def _order(encoding: str) -> Callable[[bytes], Any]:
    """Return the key by which bounds compare."""
    if encoding in (TEXT, OCTETS):
        return bytes
    if encoding == DECIMAL:
        return _unscaled
    if encoding in _FLOATS:
        return lambda bound: _above_all(struct.unpack(encoding, bound)[0])
    return lambda bound: struct.unpack(encoding, bound)[0]


def _above_all(value: float) -> tuple[bool, float]:
    """Return a key by which NaN comes after all other numbers."""
    is_nan = value != value
    return is_nan, 0.0 if is_nan else value


def _unscaled(value: bytes) -> int:
    """Return the unscaled number of a decimal's bound."""
    return int.from_bytes(value, "big", signed=True)
