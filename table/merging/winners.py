"""Which of several rows with one record key wins: the only place that decides it.

Rules of Apache Hudi's record merge modes (``BufferedRecordMergers``, RFC-46): under COMMIT_TIME_ORDERING the later row
wins; under EVENT_TIME_ORDERING the greater ordering value wins and a tie goes to the later row, deletes included.
Several ordering fields are compared in turn (``ArrayComparable``). "Later" means further down in the given rows.

Values compare as Apache Hudi 1.2 was seen to compare them: floating-point numbers in the total order of
``Double.compareTo``, strings by their UTF-8 bytes, binary values by signed bytes (``ByteBuffer.compareTo``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask, mask
from .key_codes import Codes, key_codes

Positions = np.ndarray[Any, np.dtype[np.int64]]
# The values of each ordering field, the most significant first; empty if the later row wins.
Ordering = Sequence[pa.Array]


def fold(
    keys: pa.Array,
    ordering: Ordering = (),
    resets: Mask | None = None,
    stood: Positions | None = None,
    yields: Mask | None = None,
) -> Positions:
    """Return the positions of the rows that win among their own key, in ascending order.

    A null ordering value is the least. Rows of ``resets`` win against all rows above them and lose against any row
    below, whatever their ordering values. Rows of ``yields`` lose against a reset above them if only such rows are
    between. ``stood`` has the rows' positions before a shuffle; None if they are in their order.
    """
    code = key_codes(keys)
    if code is None:
        return np.arange(len(keys), dtype=np.int64)
    ranks = list(map(_ranks, reversed(ordering)))
    if stood is None:
        return np.sort(_last_of_each(code, ranks, resets, yields))
    order = np.argsort(stood, kind="stable")
    marks = [None if marked is None else marked[order] for marked in (resets, yields)]
    return np.sort(order[_last_of_each(code[order], [rank[order] for rank in ranks], *marks)])


def base_wins(base: Ordering, incoming: Ordering) -> Mask:
    """Return which base rows have a greater ordering value than the incoming row beside them; null is the least."""
    wins = np.zeros(len(base[0]), dtype=np.bool_)
    tied = np.ones(len(base[0]), dtype=np.bool_)
    for ours, theirs in zip(map(_comparable, base), map(_comparable, incoming), strict=True):
        greater, equal = mask(pc.greater(ours, theirs)), mask(pc.equal(ours, theirs))
        # A null in `ours` alone makes both comparisons null, which count as false.
        if theirs.null_count:
            absent = mask(theirs.is_null())
            greater |= absent & mask(ours.is_valid())
            equal |= absent & mask(ours.is_null())
        wins |= tied & greater
        tied &= equal
    return wins


def joint_ranks(ordering: Ordering, count: int) -> Positions:
    """Return the dense ranks, from 0, of the ``count`` tuples of ordering values; without any, all are equal."""
    ranks = [_ranks(values) for values in ordering]
    order = np.lexsort([*reversed(ranks)]) if ranks else np.arange(count)
    steps = np.zeros(count, dtype=np.bool_)
    for rank in ranks:
        steps[1:] |= rank[order][1:] != rank[order][:-1]
    joint = np.empty(count, dtype=np.int64)
    joint[order] = np.cumsum(steps)
    return joint


def _last_of_each(
    code: Codes, ranks: Sequence[Positions], resets: Mask | None, yields: Mask | None = None
) -> Positions:
    """Return the position of each key's greatest row, the last rank most significant; the later of equal rows.

    ``code`` has the number of each row's key (`key_codes`); ``resets`` and ``yields`` are as of `fold`.
    """
    sorting: list[Positions] = [*ranks, *since_reset(code, resets, yields), code.astype(np.int64, copy=False)]
    by_key = np.lexsort(sorting)
    sorted_code = code[by_key]
    is_last = np.append(sorted_code[1:] != sorted_code[:-1], True)
    greatest: Positions = by_key[is_last].astype(np.int64)
    return greatest


def since_reset(code: Codes, resets: Mask | None, yields: Mask | None) -> list[Positions]:
    """Return a list with one array, which sorts the rows of a key by the last reset at or above them.

    Rows that yield come before their reset. The list is empty without a reset. ``code`` has the number of each row's
    key (`key_codes`); ``resets`` and ``yields`` are as of `fold`.
    """
    if resets is None or not resets.any():
        return []
    by_key = np.argsort(code, kind="stable")
    is_reset = resets[by_key]
    # Of the n-th reset: rows that yield to it get 3n - 2, it gets 3n - 1, and all other rows below it 3n.
    rank = 3 * np.cumsum(is_reset) - is_reset
    if yields is not None and yields.any():
        rank -= 2 * yielding(code[by_key], is_reset, yields[by_key])
    count = np.empty(len(code), dtype=np.int64)
    count[by_key] = rank
    return [count]


def yielding(code: Codes, resets: Mask, yields: Mask) -> Mask:
    """Return which rows of ``yields``, sorted by key, are below a reset of their key with only such rows between.

    ``code`` has the number of each row's key (`key_codes`).
    """
    rows = np.arange(len(code))
    begins = np.append(True, code[1:] != code[:-1])
    begin = np.maximum.accumulate(np.where(begins, rows, 0))
    reset = np.maximum.accumulate(np.where(resets, rows, -1))
    stands = np.cumsum(~resets & ~yields)
    yields_here: Mask = yields & (reset >= begin) & (stands == stands[reset])
    return yields_here


def _comparable(values: pa.Array) -> pa.Array:
    """Return values that Arrow orders as Apache Hudi orders the given values."""
    if pa.types.is_boolean(values.type):
        return values.cast(pa.int8())
    if pa.types.is_floating(values.type):
        return _total_order(values)
    if pa.types.is_binary(values.type):
        return _signed_bytes(values)
    return values


def _total_order(values: pa.Array) -> pa.Array:
    """Return integers in the order of ``Double.compareTo``: -0.0 below 0.0, every NaN equal and on top."""
    kind = np.dtype(f"i{values.type.bit_width // 8}")
    floats = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
    bits = floats.view(kind)
    bits = np.where(bits < 0, bits ^ np.iinfo(kind).max, bits)
    bits[np.isnan(floats)] = np.iinfo(kind).max
    nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(bits, mask=nulls)


def _signed_bytes(values: pa.Array) -> pa.Array:
    """Return binary values that sort by unsigned bytes as the given values sort by signed bytes."""
    valid, offsets, data = values.buffers()
    if data is None:
        return values
    flipped = np.frombuffer(data, dtype=np.uint8) ^ np.uint8(0x80)
    return pa.Array.from_buffers(
        values.type, len(values), [valid, offsets, pa.py_buffer(flipped)], offset=values.offset
    )


def _ranks(ordering: pa.Array) -> Positions:
    """Return numbers that order as the values do, null as the least."""
    ordering = _comparable(ordering)
    if pa.types.is_temporal(ordering.type):
        ordering = ordering.view(pa.int32() if pa.types.is_date32(ordering.type) else pa.int64())
    if pa.types.is_integer(ordering.type) and not ordering.null_count:
        return ordering.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    ranks = pc.rank(ordering, sort_keys="ascending", tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64)
    # The least of dense ranks is 1.
    ranks[mask(ordering.is_null())] = 0
    return ranks  # type: ignore[no-any-return]
