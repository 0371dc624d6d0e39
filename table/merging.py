"""Who wins when several rows have one record key: the only place that decides it.

Rules of Apache Hudi's record merge modes (``HoodieRecordMerger``, RFC-46): under COMMIT_TIME_ORDERING the later row
wins; under EVENT_TIME_ORDERING the greater ordering value wins and a tie goes to the later row, deletes included.
"Later" means further down in the rows given here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .string_hash import hash64

Positions = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


def fold(keys: pa.Array, ordering: pa.Array | None) -> Positions:
    """Return the positions of the rows that win among their own key, in ascending order.

    Args:
        keys: Record keys, n strings, none null.
        ordering: n ordering values, none null; None where the later row wins.
    """
    codes = keys.dictionary_encode()
    if len(codes.dictionary) == len(keys):
        return np.arange(len(keys), dtype=np.int64)
    code = codes.indices.to_numpy(zero_copy_only=False)
    by_key = np.argsort(code, kind="stable") if ordering is None else np.lexsort((_ranks(ordering), code))
    sorted_code = code[by_key]
    last = np.append(sorted_code[1:] != sorted_code[:-1], True)
    return np.sort(by_key[last]).astype(np.int64)


def base_wins(base: pa.Array, incoming: pa.Array) -> Mask:
    """Return where a base row keeps its place against the incoming row beside it: its ordering value is greater.

    Args:
        base: n ordering values; null counts as the least, for tables whose older rows have none.
        incoming: n ordering values of the same type, none null.
    """
    base, incoming = _comparable(base), _comparable(incoming)
    greater = pc.greater(base, incoming)
    if pa.types.is_floating(base.type):
        # Double.compareTo, which Apache Hudi uses, puts NaN above every number.
        greater = pc.or_(greater, pc.and_(pc.is_nan(base), pc.invert(pc.is_nan(incoming))))
    return np.asarray(pc.fill_null(greater, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _comparable(ordering: pa.Array) -> pa.Array:
    return ordering.cast(pa.int8()) if pa.types.is_boolean(ordering.type) else ordering


def _ranks(ordering: pa.Array) -> Positions:
    """Return integers that sort as the ordering values do, NaN last."""
    ordering = _comparable(ordering)
    if pa.types.is_floating(ordering.type) or pa.types.is_integer(ordering.type):
        return ordering.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    if pa.types.is_temporal(ordering.type):
        width = pa.int32() if pa.types.is_date32(ordering.type) else pa.int64()
        return ordering.view(width).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    ranks = pc.rank(ordering, sort_keys="ascending", tiebreaker="dense")
    return ranks.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class KeyProbe:
    """Finds record keys among a fixed set of unique ones by a sorted table of their hashes.

    Attributes:
        keys: The unique keys, m strings.
        hashes: Their 64-bit hashes, sorted.
        positions: Which key each hash belongs to.
        longest_run: How many keys share one hash at most; 1 unless hashes collide.
    """

    keys: pa.Array
    hashes: np.ndarray[Any, np.dtype[np.uint64]]
    positions: Positions
    longest_run: int

    @classmethod
    def over(cls, keys: pa.Array) -> KeyProbe:
        """Return a probe over unique keys."""
        hashes = hash64(keys)
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else np.zeros(0, int)
        runs = np.diff(np.append(starts, len(ordered)))
        return cls(keys, ordered, order.astype(np.int64), int(runs.max()) if len(runs) else 0)

    def find(self, wanted: pa.Array) -> Positions:
        """Return for each wanted key its position among the unique keys, -1 where it is absent."""
        found = np.full(len(wanted), -1, dtype=np.int64)
        if not len(self.hashes) or not len(wanted):
            return found
        hashes = hash64(wanted)
        at = np.searchsorted(self.hashes, hashes)
        for step in range(self.longest_run):
            slot = np.minimum(at + step, len(self.hashes) - 1)
            rows = np.flatnonzero((self.hashes[slot] == hashes) & (found < 0))
            if not len(rows):
                break
            candidates = self.positions[slot[rows]]
            same = pc.equal(wanted.take(pa.array(rows)), self.keys.take(pa.array(candidates)))
            hit = same.to_numpy(zero_copy_only=False)
            found[rows[hit]] = candidates[hit]
        return found
