"""Columns of values in Avro's binary encoding, a whole column at a time: how many bytes each value has, and the bytes.

Format: the Avro specification 1.11, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

Integers = np.ndarray[Any, np.dtype[np.int64]]
Octets = np.ndarray[Any, np.dtype[np.uint8]]
_LONGEST_NUMBER = 10


@dataclass(frozen=True, slots=True)
class Encoded:
    """The encodings of n values, one behind the other; ``lengths`` has the bytes of each."""

    lengths: Integers
    data: Octets


def numbers(values: Integers) -> Encoded:
    """Return numbers in the zig-zag encoding of Avro's int and long."""
    signed = values.astype(np.int64, copy=False)
    folded = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    lengths = np.ones(len(folded), dtype=np.int64)
    for group in range(1, _LONGEST_NUMBER):
        is_longer = folded >> np.uint64(7 * group) != 0
        if not is_longer.any():
            break
        lengths += is_longer
    width = int(lengths.max(initial=1))
    digits = np.empty((len(folded), width), dtype=np.uint8)
    for group in range(width):
        digits[:, group] = (folded >> np.uint64(7 * group)) & np.uint64(0x7F)
        digits[:, group] |= (lengths > group + 1).astype(np.uint8) << 7
    if width == 1:
        return Encoded(lengths, digits[:, 0])
    return Encoded(lengths, digits[np.arange(width) < lengths[:, None]])


def fixed(rows: Octets) -> Encoded:
    """Return values that all have as many bytes as the matrix has columns."""
    return Encoded(np.full(rows.shape[0], rows.shape[1], dtype=np.int64), rows.reshape(-1))


def repeated(value: bytes, count: int) -> Encoded:
    """Return one value ``count`` times; ``value`` is its encoding."""
    encoded = np.frombuffer(value, dtype=np.uint8)
    return fixed(np.broadcast_to(encoded, (count, len(encoded))))


def texts(array: pa.Array) -> Encoded:
    """Return strings or bytes, none of them null, each with its length in front."""
    return sized(slices(array))


def sized(values: Encoded) -> Encoded:
    """Return values with their lengths in front."""
    return side_by_side([numbers(values.lengths), values])


def slices(array: pa.Array) -> Encoded:
    """Return the bytes of strings, none of them null, without their lengths."""
    _, offsets, data = array.buffers()
    if len(array) == 0 or offsets is None:
        return Encoded(np.zeros(len(array), dtype=np.int64), np.zeros(0, dtype=np.uint8))
    ends = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    octets = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return Encoded(np.diff(ends), octets[ends[0] : ends[-1]])


def side_by_side(columns: Sequence[Encoded]) -> Encoded:
    """Return rows that have their value of the first column, then that of the second, and so on."""
    if len(columns) == 1:
        return columns[0]
    lengths = total_lengths(columns)
    data = np.empty(int(lengths.sum()), dtype=np.uint8)
    position = np.cumsum(lengths) - lengths
    for column in columns:
        _put(data, position, column)
        position = position + column.lengths
    return Encoded(lengths, data)


def stacked(parts: Sequence[Encoded]) -> Encoded:
    """Return the values of the first part, then those of the second, and so on."""
    if len(parts) == 1:
        return parts[0]
    return Encoded(np.concatenate([part.lengths for part in parts]), np.concatenate([part.data for part in parts]))


def total_lengths(columns: Sequence[Encoded]) -> Integers:
    """Return how many bytes each row has in all columns."""
    total: Integers = np.zeros(len(columns[0].lengths), dtype=np.int64)
    for column in columns:
        total += column.lengths
    return total


def lists_of(values: Encoded, counts: Integers) -> Encoded:
    """Return lists of values, given how many values each list has."""
    ends = np.concatenate(([0], np.cumsum(values.lengths)))
    list_ends = np.cumsum(counts)
    return Encoded(ends[list_ends] - ends[list_ends - counts], values.data)


def spread(values: Encoded, has_value: np.ndarray[Any, np.dtype[np.bool_]]) -> Encoded:
    """Return values in the rows of ``has_value``, and none in the others."""
    lengths = np.zeros(len(has_value), dtype=np.int64)
    lengths[has_value] = values.lengths
    return Encoded(lengths, values.data)


def _put(data: Octets, starts: Integers, column: Encoded) -> None:
    """Copy each value of a column into ``data``, to its row's start."""
    lengths = column.lengths
    if len(column.data) == 0:
        return
    width = int(lengths[0])
    # Values of one length, as most columns have, are copied byte by byte for all rows at once.
    if width and len(column.data) == width * len(lengths) and (lengths == width).all():
        values = column.data.reshape(-1, width)
        for octet in range(width):  # O(bytes of one value)
            data[starts + octet] = values[:, octet]
        return
    positions = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    positions += np.arange(len(positions))
    data[positions] = column.data
