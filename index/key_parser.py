"""From record keys back to the values of their fields, as Apache Hudi's writers parse them before they hash.

A record key of several fields reads ``f1:v1,f2:v2`` and escapes nothing, so releases of Apache Hudi parse a value that
holds ``,`` or ``:`` differently. To find the bucket that a writer chose, a process must parse as that writer did.

Source: ``KeyGenUtils.extractRecordKeysByFields`` and ``BucketIdentifier`` of Apache Hudi 0.15.0 and 1.2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..table.arrow.string_hash import Bytes, Offsets, string_buffers
from ..table.keys.generator import KeyPart

NULL_VALUE = "__null__"
EMPTY_VALUE = "__empty__"

_COMMA = 0x2C
_COLON = 0x3A

Mask = np.ndarray[Any, np.dtype[np.bool_]]


class KeyParser(str, Enum):
    """The release whose rules apply: that of the table's writers, whatever the table's version."""

    RELEASE_0 = "0.15"
    RELEASE_1 = "1.x"


@dataclass(frozen=True, slots=True)
class _KeyPieces:
    """The m pieces of n record keys, each a field's name and value, as byte offsets in the order of the text.

    Attributes:
        start: Where a piece's name begins.
        colon: The colon between name and value; -1 for a piece without a colon.
        end: Where its value ends.
        whole: Which of the n keys have no pieces and are their own only value.
    """

    row: Offsets
    start: Offsets
    colon: Offsets
    end: Offsets
    whole: Mask


@dataclass(frozen=True, slots=True)
class _Separators:
    """Every comma and colon of n record keys, by byte offset; ``bounds[i]`` to ``bounds[i + 1]`` are those of key i."""

    at: Offsets
    is_colon: Mask
    row: Offsets
    bounds: Offsets

    @classmethod
    def of(cls, texts: _KeyTexts) -> _Separators:
        """Return the commas and colons of record keys."""
        offsets = np.flatnonzero((texts.data == _COMMA) | (texts.data == _COLON))
        bounds = np.searchsorted(offsets, texts.offsets)
        row = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        return cls(offsets, texts.data[offsets] == _COLON, row, bounds)

    def colons_before(self) -> Offsets:
        """Return for each mark, and for the end, how many colons precede it in all keys."""
        counted = np.zeros(len(self.at) + 1, np.int64)
        np.cumsum(self.is_colon, out=counted[1:])
        return counted

    def of_rows(self, rows: Mask) -> _Separators:
        """Return the marks of chosen keys alone; the others then have none."""
        if rows.all():
            return self
        is_of_rows = rows[self.row]
        counts = np.where(rows, np.diff(self.bounds), 0)
        return _Separators(
            self.at[is_of_rows], self.is_colon[is_of_rows], self.row[is_of_rows], _bounds_of_counts(counts)
        )


@dataclass(frozen=True, slots=True)
class _KeyTexts:
    """n record keys, one after another; `offsets` has n + 1 elements."""

    data: Bytes
    offsets: Offsets

    def spans(self, start: Offsets, end: Offsets) -> pa.Array:
        """Return the texts from start to end; a span must not begin before the previous span ends."""
        if not len(start):
            return pa.array([], pa.large_string())
        # Texts and the gaps between them are the elements of one array over the same bytes; texts have even positions.
        edges = np.empty(2 * len(start), np.int64)
        edges[0::2] = start
        edges[1::2] = end
        pieces = pa.LargeStringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), pa.py_buffer(self.data))
        return pieces.take(pa.array(np.arange(0, len(edges), 2)))

    def cut_as_release_1(self) -> _KeyPieces | None:
        """Return keys cut as releases 1.x do: at each comma that a colon follows as the next mark, after a first colon.

        None if no key has a comma: then each key is its own only value. 1.2.0 never returns from a key whose last piece
        is of an unwanted field and holds a second colon; here that piece ends.
        """
        if not (self.data == _COMMA).any():
            return None
        offsets, marks = self.offsets, _Separators.of(self)
        colons = np.diff(marks.colons_before()[marks.bounds])
        composite = (colons > 0) & (np.diff(marks.bounds) > colons)
        marks = marks.of_rows(composite)
        colons_before = marks.colons_before()
        colons_in_row_before = colons_before[:-1] - colons_before[marks.bounds[:-1]][marks.row]

        precedes_colon = np.zeros(len(marks.at), np.bool_)
        precedes_colon[:-1] = marks.is_colon[1:] & (marks.row[1:] == marks.row[:-1])
        separates = ~marks.is_colon & precedes_colon & (colons_in_row_before > 0)
        begins_value = marks.is_colon & (colons_in_row_before == 0)
        begins_value[1:] |= separates[:-1]

        row = marks.row[begins_value]
        start = offsets[:-1][row]
        end = offsets[1:][row]
        is_first = np.ones(len(row), np.bool_)
        is_first[1:] = row[1:] != row[:-1]
        separators = marks.at[separates]
        start[~is_first] = separators + 1
        end[:-1][~is_first[1:]] = separators
        return _KeyPieces(row, start, marks.at[begins_value], end, ~composite)

    def cut_as_release_0(self) -> _KeyPieces:
        """Return keys cut as 0.15 does: at every comma, pieces at their first colon; no empty pieces at the end.

        A key without a colon is not cut: it is its own only value.
        """
        offsets, marks = self.offsets, _Separators.of(self)
        composite = np.diff(marks.colons_before()[marks.bounds]) > 0
        marks = marks.of_rows(composite)

        rows = np.flatnonzero(composite)
        commas = np.bincount(marks.row[~marks.is_colon], minlength=len(composite))
        bounds = _bounds_of_counts(np.where(composite, commas + 1, 0))
        is_first = np.zeros(bounds[-1], np.bool_)
        is_first[bounds[:-1][rows]] = True
        is_last = np.roll(is_first, -1)
        start = _interleaved(is_first, offsets[:-1][rows], marks.at[~marks.is_colon] + 1)
        end = _interleaved(is_last, offsets[1:][rows], marks.at[~marks.is_colon])
        row = np.repeat(rows, commas[rows] + 1)

        colons = np.append(marks.at[marks.is_colon], len(self.data))
        colon = colons[np.searchsorted(colons[:-1], start)]
        colon = np.where(colon < end, colon, -1)

        # Every cut key has a colon and thus a piece that is not empty.
        filled = np.flatnonzero(end > start)
        last_filled = np.zeros(len(composite), np.int64)
        last_filled[rows] = filled[np.searchsorted(filled, bounds[1:][rows]) - 1]
        keep = np.arange(len(row)) <= last_filled[row]
        return _KeyPieces(row[keep], start[keep], colon[keep], end[keep], ~composite)


def parse_record_keys(record_keys: pa.Array, fields: Sequence[str], parser: KeyParser) -> pa.LargeListArray:
    """Return for each record key the list of its values in some fields, in the order of the key; no fields mean all.

    ``__null__`` becomes null and ``__empty__`` an empty string. ``parser`` is the release whose rules the writers of
    the keys followed:

    - ``RELEASE_1``: a key without a comma, without a colon, or with none of the fields is its own only value. In other
      keys a comma ends a value if a name and a colon follow, so that values may hold commas and colons.
    - ``RELEASE_0``: only a key without a colon is its own only value. Others are cut at every comma, and a piece
      without a colon is a value, too.
    """
    texts = _KeyTexts(*string_buffers(record_keys))
    cut_keys = texts.cut_as_release_0 if parser is KeyParser.RELEASE_0 else texts.cut_as_release_1
    pieces = cut_keys() if (texts.data == _COLON).any() else None
    offsets = texts.offsets
    if pieces is None or pieces.whole.all():
        return pa.LargeListArray.from_arrays(np.arange(len(offsets)), record_keys)
    # Only RELEASE_0 makes pieces without a name, and these always count.
    has_name = pieces.colon >= 0
    is_wanted = ~has_name
    if fields:
        names = texts.spans(pieces.start[has_name], pieces.colon[has_name])
        wanted = pc.is_in(names, value_set=pa.array(fields, pa.large_string()))
        is_wanted[has_name] = wanted.to_numpy(zero_copy_only=False)
    else:
        is_wanted[:] = True
    row, has_name = pieces.row[is_wanted], has_name[is_wanted]
    start = np.where(has_name, pieces.colon[is_wanted] + 1, pieces.start[is_wanted])
    end = pieces.end[is_wanted]

    counts = np.bincount(row, minlength=len(record_keys))
    is_own_value = pieces.whole if parser is KeyParser.RELEASE_0 else counts == 0
    bounds = _bounds_of_counts(np.where(is_own_value, 1, counts))
    is_whole = np.zeros(bounds[-1], np.bool_)
    is_whole[bounds[:-1][is_own_value]] = True
    values = texts.spans(
        _interleaved(is_whole, offsets[:-1][is_own_value], start),
        _interleaved(is_whole, offsets[1:][is_own_value], end),
    )
    return pa.LargeListArray.from_arrays(bounds, _without_placeholders(values, _interleaved(is_whole, False, has_name)))


def separate_values(parts: Sequence[KeyPart], fields: Sequence[str]) -> list[pa.Array] | None:
    """Return what `parse_record_keys` would find in keys composed of these parts; None if that is unsure.

    The result is sure, under any parser's rules, if neither a field's name nor a text holds a comma or a colon.
    """
    values = [text for name, text in parts if name in fields]
    # A key of a single part may be hashed whole, with the field's name.
    if len(parts) < 2 or not values or any(mark in name for name, _ in parts for mark in ",:"):
        return None
    for _, text in parts:
        data, _ = string_buffers(text)
        if ((data == _COMMA) | (data == _COLON)).any():
            return None
    return [_without_placeholders(text, np.ones(len(text), np.bool_)) for text in values]


def _without_placeholders(values: pa.Array, named: Mask) -> pa.Array:
    """Return values with null and the empty text in place of Hudi's placeholders for these.

    ``named`` says which values follow a field's name in their key; a text without a name is never a placeholder.
    """
    for mark, meaning in ((NULL_VALUE, None), (EMPTY_VALUE, "")):
        marked = pc.and_(pc.equal(values, mark), pa.array(named))
        if pc.any(marked).as_py():  # O(1)
            values = pc.if_else(marked, pa.scalar(meaning, values.type), values)
    return values


def _interleaved(chosen: Mask, where_chosen: Any, elsewhere: Any) -> np.ndarray[Any, Any]:
    """Return an array with the elements of one array, in order, where ``chosen``, and of another array elsewhere."""
    merged = np.empty(len(chosen), np.asarray(elsewhere).dtype)
    merged[chosen] = where_chosen
    merged[~chosen] = elsewhere
    return merged


def _bounds_of_counts(counts: Offsets) -> Offsets:
    """Return where each of some groups begins, and the end of the last, given the number of elements of each."""
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    return bounds
