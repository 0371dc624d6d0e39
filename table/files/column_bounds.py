"""The bounds of a base file's columns, as its Parquet footer states them, short enough for a task's message."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MOST_OF_A_BOUND = 64
_PLAIN = {"BOOLEAN": "<?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}
_GREATEST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


class ColumnBounds(NamedTuple):
    """What a base file's footer states of one column.

    Attributes:
        least: A value than which none is less, in Parquet's plain encoding; None where there is none.
        greatest: A value than which none is greater; None where there is none.
        nulls: How many rows have no value; None where the footer does not say.
    """

    column: str
    least: bytes | None
    greatest: bytes | None
    nulls: int | None


def column_bounds(footer: pq.FileMetaData, columns: Collection[str]) -> tuple[ColumnBounds, ...]:
    """Return the bounds of some columns that are not nested, with texts and binary values cut to 64 bytes."""
    schema = footer.schema
    return tuple(_bounds(footer, leaf) for leaf in range(len(schema)) if schema.column(leaf).path in columns)


def least_within(value: bytes, *, is_text: bool) -> bytes:
    """Return a value of few bytes that is not greater."""
    cut = value[:MOST_OF_A_BOUND]
    return cut.decode(errors="ignore").encode() if is_text else cut


def greatest_within(value: bytes, *, is_text: bool) -> bytes | None:
    """Return a value of few bytes that is not less; None where none is greater than all values that begin alike."""
    if len(value) <= MOST_OF_A_BOUND:
        return value
    cut = least_within(value, is_text=is_text)
    if not is_text:
        cut = cut.rstrip(b"\xff")
        return cut[:-1] + bytes([cut[-1] + 1]) if cut else None
    text = cut.decode()
    for last in reversed(range(len(text))):
        character = ord(text[last]) + 1
        character = _SURROGATES.stop if character in _SURROGATES else character
        if character <= _GREATEST_CHARACTER:
            greater = f"{text[:last]}{chr(character)}".encode()
            if len(greater) <= MOST_OF_A_BOUND:
                return greater
    return None


def _bounds(footer: pq.FileMetaData, leaf: int) -> ColumnBounds:
    column = footer.schema.column(leaf)
    chunks = [footer.row_group(number).column(leaf) for number in range(footer.num_row_groups)]
    stated = [(chunk.num_values, chunk.statistics if chunk.is_stats_set else None) for chunk in chunks]
    nulls = [None if found is None or not found.has_null_count else found.null_count for _, found in stated]
    with_values = [found for (values, found), count in zip(stated, nulls, strict=True) if count != values]
    bounded = [found for found in with_values if found is not None and found.has_min_max]
    least = greatest = None
    if bounded and len(bounded) == len(with_values):
        least, greatest = _span(column, bounded)
    known = [count for count in nulls if count is not None]
    return ColumnBounds(column.path, least, greatest, sum(known) if len(known) == len(nulls) else None)


def _span(column: Any, row_groups: Sequence[Any]) -> tuple[bytes, bytes | None]:
    least, greatest = [found.min_raw for found in row_groups], [found.max_raw for found in row_groups]
    packed = _PLAIN.get(column.physical_type)
    if packed is not None:
        return struct.pack(packed, min(least)), struct.pack(packed, max(greatest))
    least, greatest = [*map(_encoded, least)], [*map(_encoded, greatest)]
    kind = column.logical_type.type
    if kind == "DECIMAL":
        return min(least, key=_unscaled), max(greatest, key=_unscaled)
    is_text = kind == "STRING"
    # An empty upper bound may mean that there is none: see `greatest_text` in footers.py.
    most = greatest_within(max(greatest), is_text=is_text) if all(greatest) else None
    return least_within(min(least), is_text=is_text), most


def _encoded(raw: Any) -> bytes:
    return raw.encode() if isinstance(raw, str) else bytes(raw)


def _unscaled(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)
