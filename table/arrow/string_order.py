"""Columns of strings sorted by their bytes, as Arrow sorts them, mostly in a fraction of its time.

Most keys are numbers, times and UUIDs: they have one length, and differ in a few columns of few different bytes. The
ranks of these bytes make a number of 64 bits (of sixteen decimal or hexadecimal digits), and numpy sorts numbers
quickly. If the result is not in order, Arrow sorts the strings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import mask
from .string_hash import Words, string_buffers

Positions = np.ndarray[Any, np.dtype[np.int64]]

_WORD_BITS = 64
_SAMPLE_ROWS = 1_024


def in_order(strings: pa.StringArray) -> pa.StringArray:
    """Return the strings sorted by their bytes."""
    return (_sorted(strings) or _sorted_by_arrow(strings))[0]


def unique_in_order(strings: pa.StringArray) -> tuple[pa.StringArray, Positions]:
    """Return the distinct strings sorted by their bytes, and the position of each given string among these."""
    ordered, order = _sorted(strings) or _sorted_by_arrow(strings)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = mask(pc.less(ordered[:-1], ordered[1:]))
    positions = np.empty(len(ordered), np.int64)
    positions[order] = np.cumsum(is_first) - 1
    return ordered if is_first.all() else ordered.filter(pa.array(is_first)), positions


def _sorted(strings: pa.StringArray) -> tuple[pa.StringArray, Positions] | None:
    """Return strings of one length in order, with the position that each had; None if Arrow has to sort them."""
    words = _words(strings)
    if words is None:
        return None
    order: Positions = np.argsort(words)
    ordered = strings.take(pa.array(order))
    return (ordered, order) if pc.all(pc.less_equal(ordered[:-1], ordered[1:])).as_py() else None  # one value


def _sorted_by_arrow(strings: pa.StringArray) -> tuple[pa.StringArray, Positions]:
    """Return strings in order, with the position that each had."""
    order = pc.sort_indices(strings)
    return strings.take(order), order.to_numpy().astype(np.int64)


def _words(strings: pa.StringArray) -> Words | None:
    """Return for each string a number made of the first columns of bytes that differ; None if lengths differ.

    A sample of the strings decides which columns and bytes count. Strings outside the sample may have others, so the
    caller checks the resulting order.
    """
    data, offsets = string_buffers(strings)
    length = len(data) // max(len(strings), 1)
    if not length or (np.diff(offsets) != length).any():
        return None
    rows = data.reshape(-1, length)
    sample = rows[:: max(len(rows) // _SAMPLE_ROWS, 1)]
    words, room = np.zeros(len(rows), np.uint64), _WORD_BITS
    for column in np.flatnonzero((sample != sample[0]).any(axis=0)):  # at most sixty-four fit
        occurs = np.bincount(sample[:, column], minlength=256) > 0
        bits = int(occurs.sum() - 1).bit_length()
        if bits > room:
            # The number is full. Strings that differ only from here on may come out of order.
            break
        room -= bits
        ranks = np.maximum(np.cumsum(occurs) - 1, 0).astype(np.uint8)
        words = (words << np.uint64(bits)) | ranks[rows[:, column]]
    return words
