"""Sets of record keys as hashes of 128 bits, which memory holds at 16 bytes a key.

A hash stands for its key: two of a billion keys share a hash with a probability below 1e-20. A key that was made to
collide brings its row to the file group of the other key, if the merge compares keys, so that no row is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrow.arrays import Mask
from ..arrow.string_hash import hash64, other_hash64
from .winners import Positions

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
BYTES_OF_A_KEY = 16
# Recent keys are merged with the others once there is one in so many.
_RECENT_SHARE = 8


@dataclass(frozen=True, slots=True)
class KeyHashes:
    """The hashes of n record keys, as two halves of 64 bits."""

    first: Hashes
    other: Hashes

    @classmethod
    def of(cls, keys: pa.Array) -> KeyHashes:
        """Return the hashes of record keys, none null."""
        return cls(hash64(keys), other_hash64(keys))

    @classmethod
    def joined(cls, parts: Iterable[KeyHashes]) -> KeyHashes:
        """Return the hashes of all parts."""
        all_parts = [_NONE, *parts]
        return cls(
            np.concatenate([part.first for part in all_parts]), np.concatenate([part.other for part in all_parts])
        )

    def __len__(self) -> int:
        return len(self.first)

    @property
    def nbytes(self) -> int:
        return self.first.nbytes + self.other.nbytes

    def take(self, chosen_rows: Positions | Mask) -> KeyHashes:
        return KeyHashes(self.first[chosen_rows], self.other[chosen_rows])

    def unique(self) -> KeyHashes:
        """Return each hash once, in the order of the first halves."""
        ordered = self.take(np.argsort(self.first))
        repeated = (ordered.first[1:] == ordered.first[:-1]) & (ordered.other[1:] == ordered.other[:-1])
        return ordered.take(np.append(True, ~repeated)) if repeated.any() else ordered

    def without(self, removed: Mask) -> KeyHashes:
        """Return the hashes but for those marked."""
        return self.take(~removed) if removed.any() else self

    def within(self, ordered: KeyHashes) -> Mask:
        """Return which of these hashes are among others that are in the order of their first halves."""
        is_within = np.zeros(len(self), np.bool_)
        candidates = np.searchsorted(ordered.first, self.first)
        undecided = np.arange(len(self))
        # Hardly ever do two hashes share a first half.
        while len(undecided):
            undecided = undecided[candidates[undecided] < len(ordered)]
            undecided = undecided[ordered.first[candidates[undecided]] == self.first[undecided]]
            are_equal = ordered.other[candidates[undecided]] == self.other[undecided]
            is_within[undecided[are_equal]] = True
            undecided = undecided[~are_equal]
            candidates[undecided] += 1
        return is_within


_NONE = KeyHashes(np.zeros(0, np.uint64), np.zeros(0, np.uint64))


@dataclass(frozen=True, slots=True)
class KeySet:
    """A set of keys that changes by copies: most keys in one ordered array, recent keys in a small one."""

    most: KeyHashes
    recent: KeyHashes

    @classmethod
    def of(cls, parts: Iterable[KeyHashes]) -> KeySet:
        """Return the set of all keys of some parts."""
        return cls(KeyHashes.joined(parts).unique(), _NONE)

    def __len__(self) -> int:
        return len(self.most) + len(self.recent)

    @property
    def nbytes(self) -> int:
        return self.most.nbytes + self.recent.nbytes

    def holds(self, keys: KeyHashes) -> Mask:
        """Return which keys are in the set; keys in the order of their first halves are found faster."""
        is_held = keys.within(self.most)
        if len(self.recent):
            is_held |= keys.within(self.recent)
        return is_held

    def added(self, keys: KeyHashes) -> KeySet:
        """Return the set with more keys; the same set if it has them all."""
        unique = keys.unique()
        new_keys = unique.without(self.holds(unique))
        if not len(new_keys):
            return self
        recent = _inserted(self.recent, new_keys)
        if _RECENT_SHARE * len(recent) < len(self.most):
            return KeySet(self.most, recent)
        return KeySet(_inserted(self.most, recent), _NONE)

    def without(self, keys: KeyHashes) -> KeySet:
        """Return the set less some keys."""
        removed = keys.unique()
        return KeySet(*(part.without(part.within(removed)) for part in (self.most, self.recent)))


EMPTY = KeySet(_NONE, _NONE)


def _inserted(ordered: KeyHashes, new_keys: KeyHashes) -> KeyHashes:
    """Return ordered hashes with others, none of them equal, put in their places."""
    positions = np.searchsorted(ordered.first, new_keys.first)
    return KeyHashes(
        np.insert(ordered.first, positions, new_keys.first), np.insert(ordered.other, positions, new_keys.other)
    )
