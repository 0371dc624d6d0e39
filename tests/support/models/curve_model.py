"""Orders along a curve, computed number by number from what their authors published, for comparison with the code."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

BITS = 16


def plain_zorder(point: Sequence[int], bits: int = BITS) -> int:
    """Return Morton's number of a point: the first bits of all coordinates, then the second bits, and so on."""
    place = 0
    for bit in reversed(range(bits)):
        for coordinate in point:
            place = place << 1 | (coordinate >> bit) & 1
    return place


def plain_hilbert(point: Sequence[int], bits: int = BITS) -> int:
    """Return a point's number as Skilling's AxestoTranspose computes it, written down a second time."""
    along, bit = list(point), 1 << (bits - 1)
    while bit > 1:
        for number in range(len(along)):
            if along[number] & bit:
                along[0] ^= bit - 1
            else:
                swapped = (along[0] ^ along[number]) & (bit - 1)
                along[0] ^= swapped
                along[number] ^= swapped
        bit >>= 1
    for number in range(1, len(along)):
        along[number] ^= along[number - 1]
    turned, bit = 0, 1 << (bits - 1)
    while bit > 1:
        turned ^= (bit - 1) if along[-1] & bit else 0
        bit >>= 1
    return plain_zorder([one ^ turned for one in along], bits)


CURVES = {"zorder": plain_zorder, "hilbert": plain_hilbert}


def in_order(rows: Sequence[dict[str, Any]], columns: Sequence[str], curve: str) -> bool:
    """Return whether the rows of a file lie in an order, nulls first."""
    keys = {name: [(row[name] is not None, row[name]) for row in rows] for name in columns}
    if curve == "linear" or len(columns) == 1:
        places: list[Any] = list(zip(*keys.values(), strict=True))
        return all(_at_most(one, other) for one, other in itertools.pairwise(places))
    axes = [[_share(key, keys[name]) for key in keys[name]] for name in columns]
    found = [CURVES[curve](point) for point in zip(*axes, strict=True)]
    return found == sorted(found)


def _at_most(one: Sequence[tuple[bool, Any]], other: Sequence[tuple[bool, Any]]) -> bool:
    for (has_value, value), (also, next_value) in zip(one, other, strict=True):
        if has_value != also:
            return also
        if has_value and value != next_value:
            return bool(value < next_value)
    return True


def _share(key: tuple[bool, Any], keys: Sequence[tuple[bool, Any]]) -> int:
    """Return which share of the keys is less than a key, in bits."""
    there, value = key
    less = sum((there and not also) or (there and also and other < value) for also, other in keys)
    return less * (1 << BITS) // len(keys)
