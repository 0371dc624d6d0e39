"""Rows in the order of a curve that visits every point of a cube: what is near on the curve is near in each column.

A position on the curve is a number of `BITS` bits a column, cut into words of 64 bits, the most significant first. The
Z-order is G. M. Morton's ("A computer oriented geodetic data base", IBM 1966). The Hilbert curve is computed as in
J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers = np.ndarray[Any, np.dtype[np.uint64]]

# Bits of a coordinate: far more values than a file has row groups along an axis.
BITS = 16
WORD_BITS = 64


def zorder(axes: Sequence[Numbers], bits: int = BITS) -> list[Numbers]:
    """Return the words of the positions at which the Z-order visits some points; each axis has `bits` bits."""
    # A position has the highest bit of each axis, then the next bit of each axis, and so on.
    words = [np.zeros(len(axes[0]), np.uint64) for _ in range(-(-len(axes) * bits // WORD_BITS))]
    highest_bit = len(axes) * bits - 1
    for number in range(len(axes) * bits):
        axis, shift = axes[number % len(axes)], np.uint64(bits - 1 - number // len(axes))
        place = highest_bit - number
        words[len(words) - 1 - place // WORD_BITS] |= ((axis >> shift) & np.uint64(1)) << np.uint64(place % WORD_BITS)
    return words


def hilbert(axes: Sequence[Numbers], bits: int = BITS) -> list[Numbers]:
    """Return the words of the positions at which the Hilbert curve visits some points; each axis has `bits` bits."""
    along = [axis.astype(np.uint64) for axis in axes]
    first_axis = along[0]
    # Skilling's steps: undo the turns of the curve within each cube, from the largest cubes to the smallest, then make
    # a Gray code of the coordinates. Bit by bit, as in a Z-order, they are then the position.
    for bit in range(bits - 1, 0, -1):
        bit_value, lower_bits = np.uint64(1 << bit), np.uint64((1 << bit) - 1)
        for axis in along:
            inverts = (axis & bit_value) != 0
            swapped = np.where(inverts, np.uint64(0), (first_axis ^ axis) & lower_bits)
            np.bitwise_xor(axis, swapped, out=axis)
            first_axis ^= np.where(inverts, lower_bits, swapped)
    for number in range(1, len(along)):
        along[number] ^= along[number - 1]
    turned = np.zeros(len(first_axis), np.uint64)
    for bit in range(bits - 1, 0, -1):
        turned ^= ((along[-1] >> np.uint64(bit)) & np.uint64(1)) * np.uint64((1 << bit) - 1)
    return zorder([axis ^ turned for axis in along], bits)


CURVES: Mapping[str, Callable[[Sequence[Numbers]], list[Numbers]]] = {"zorder": zorder, "hilbert": hilbert}


def coordinates(values: pa.Array, sample: pa.Array | None = None, bits: int = BITS) -> Numbers:
    """Return for each value the share of values below it, in `bits` bits: nulls first, NaN last.

    The share is that of a sample of the values, or of the values themselves. So half of the rows lie below the middle
    of an axis, however a column spreads its values.
    """
    with_sample = values if sample is None else pa.concat_arrays([sample, values])
    valid = np.asarray(with_sample.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    counts_below = np.zeros(len(with_sample), np.uint64)
    nulls = np.uint64(np.count_nonzero(~valid))
    counts_below[valid] = _ranks(with_sample) + nulls
    if sample is None:
        return _scaled(counts_below, len(values), bits)
    # Take off the values themselves that are below: those of the sample remain.
    below_in_values = np.zeros(len(values), np.uint64)
    valid_values = valid[len(sample) :]
    below_in_values[valid_values] = _ranks(values) + np.uint64(np.count_nonzero(~valid_values))
    return _scaled(counts_below[len(sample) :] - below_in_values, len(sample), bits)


def _ranks(values: pa.Array) -> Numbers:
    """Return for each value that is not null how many of these values are less."""
    present = values.drop_null()
    if not len(present):
        return np.zeros(0, np.uint64)
    ranks = pc.rank(_comparable(present), sort_keys="ascending", tiebreaker="min")
    exceeded: Numbers = ranks.to_numpy().astype(np.uint64) - np.uint64(1)
    return exceeded


def _comparable(values: pa.Array) -> pa.Array:
    """Return floating-point numbers as integers of the same order, with one NaN and one zero; other values as given."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    bits = np.ascontiguousarray(numbers).view(np.int64)
    return pa.array(bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF)))


def _scaled(counts: Numbers, total: int, bits: int) -> Numbers:
    """Return counts of at most `total` values as shares of it, in `bits` bits."""
    greatest = np.uint64((1 << bits) - 1)
    shares: Numbers = np.minimum(counts * np.uint64(1 << bits) // np.uint64(max(total, 1)), greatest)
    return shares
