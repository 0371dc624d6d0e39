"""A lookup of arrays of record keys in a fixed set of keys: by Arrow's hash table, or by sorted hashes of ours.

Arrow builds its table, with copies of the keys, anew for each array of wanted keys. That is the faster way as long as
no fewer keys are looked for than the set has, and the set is small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask
from ..arrow.string_hash import hash64
from .winners import Positions

# Of how many keys Arrow builds a table.
_FEW_KEYS = 1 << 17
# A table of ours has at least so many entries for each key, so that few absent keys pass, and at most 2 ** 22: a table
# beyond the processor's cache costs more than it saves.
_SPACE_FOR_A_KEY = 16
_MOST_BITS = 22


class KeyProbe:
    """Finds record keys in a fixed set of unique keys, none of which is null."""

    def __init__(self, keys: pa.Array) -> None:
        self.keys = keys

    def find(self, wanted: pa.Array) -> Positions:
        """Return for each wanted key its position among the unique keys, -1 if it is absent."""
        if not len(self.keys) or not len(wanted):
            return np.full(len(wanted), -1, dtype=np.int64)
        if len(self.keys) <= min(len(wanted), _FEW_KEYS):
            matches = pc.index_in(wanted, value_set=self.keys).fill_null(-1)
            positions: Positions = matches.to_numpy(zero_copy_only=False).astype(np.int64)
            return positions
        return self._hashed.find(wanted)

    @cached_property
    def _hashed(self) -> _HashedKeys:
        return _HashedKeys.of_keys(self.keys)


@dataclass(frozen=True, slots=True)
class _HashedKeys:
    """A sorted table of the hashes of unique keys.

    Attributes:
        positions: Which key each hash belongs to.
        longest_run: How many keys share one hash at most; 1 unless hashes collide.
        seen: By the low bits of a hash whether any key has such a hash; rules out most absent keys.
    """

    keys: pa.Array
    hashes: np.ndarray[Any, np.dtype[np.uint64]]
    positions: np.ndarray[Any, np.dtype[np.int32]]
    longest_run: int
    seen: Mask

    @classmethod
    def of_keys(cls, keys: pa.Array) -> _HashedKeys:
        """Return the table of some unique keys."""
        hashes = hash64(keys)
        seen = np.zeros(1 << min(_MOST_BITS, (_SPACE_FOR_A_KEY * len(keys)).bit_length()), np.bool_)
        seen[_low_bits(hashes, seen)] = True
        order = np.argsort(hashes)
        ordered = hashes[order]
        # With millions of keys each array of hashes counts.
        del hashes
        return cls(keys, ordered, order.astype(np.int32), _longest_run(ordered), seen)

    def find(self, wanted: pa.Array) -> Positions:
        """Return positions as `KeyProbe.find`: candidates by their hashes, of which the keys are compared."""
        positions = np.full(len(wanted), -1, dtype=np.int64)
        hashes = hash64(wanted)
        likely = np.flatnonzero(self.seen[_low_bits(hashes, self.seen)])
        # Search in the order of the hashes, so that neighbouring searches find their part of the table in the cache.
        likely = likely[np.argsort(hashes[likely])]
        hashes = hashes[likely]
        slots = np.searchsorted(self.hashes, hashes)
        # Keys that share a hash lie side by side in the table.
        for step in range(self.longest_run):
            slot = np.minimum(slots + step, len(self.hashes) - 1)
            alike = (self.hashes[slot] == hashes) & (positions[likely] < 0)
            if not alike.any():
                break
            rows, candidates = likely[alike], self.positions[slot[alike]]
            are_equal = pc.equal(wanted.take(pa.array(rows)), self.keys.take(pa.array(candidates)))
            hit = are_equal.fill_null(False).to_numpy(zero_copy_only=False)
            positions[rows[hit]] = candidates[hit]
        return positions


def _longest_run(ordered: np.ndarray[Any, np.dtype[np.uint64]]) -> int:
    """Return how many hashes are equal at most; 1 if all differ."""
    alike = ordered[1:] == ordered[:-1]
    if not alike.any():
        return min(1, len(ordered))
    edges = np.flatnonzero(np.concatenate(([True], ~alike, [True])))
    return int(np.diff(edges).max())


def _low_bits(hashes: np.ndarray[Any, np.dtype[np.uint64]], table: Mask) -> Positions:
    """Return for each hash its slot in a table whose size is a power of two."""
    slots: Positions = (hashes & np.uint64(len(table) - 1)).view(np.int64)
    return slots
