"""Several stored rows of one record key, as inserts without a lookup leave them, and the rows made of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...errors import DuplicateKeyError
from ..arrow.arrays import Mask
from .key_probe import KeyProbe
from .winners import Positions


class StoredCopies:
    """Counts the stored rows of n unique keys beside the incoming rows of these keys, each made of a stored row.

    ``incoming_counts`` has the number of incoming rows of each key.
    """

    def __init__(self, keys: pa.Array, incoming_counts: Positions) -> None:
        self._probe = KeyProbe(keys)
        self._incoming_counts = incoming_counts
        self._stored = np.zeros(len(keys), np.int64)

    @classmethod
    def of_keys(cls, keys: pa.Array, incoming: pa.Array) -> StoredCopies:
        """Return the counts for unique ``keys``, which are all keys of the ``incoming`` rows, some maybe repeated."""
        if len(keys) == len(incoming):
            return cls(keys, np.ones(len(keys), np.int64))
        return cls(keys, np.bincount(KeyProbe(keys).find(incoming), minlength=len(keys)))

    def add(self, hits: Positions) -> None:
        """Count stored rows, given the positions of their keys."""
        np.add.at(self._stored, hits, 1)

    def add_keys(self, keys: pa.Array) -> None:
        """Count stored rows, given their keys, of which some may be others."""
        positions = self._probe.find(keys)
        self.add(positions[positions >= 0])

    @property
    def any(self) -> bool:
        return bool(self._copied.any())

    def check(self, where: str) -> None:
        """Raise `DuplicateKeyError` if incoming rows were made of some rows of a key and not of all."""
        partly = np.flatnonzero(self._copied & (self._stored > self._incoming_counts))
        if len(partly):
            position = int(partly[0])
            key = self._probe.keys[position].as_py()  # one value, for the error
            raise only_some(key, int(self._stored[position]), int(self._incoming_counts[position]), where)

    @property
    def _copied(self) -> Mask:
        copied: Mask = self._stored > 1
        return copied


def only_some(key: str, stored: int, given: int, where: str) -> DuplicateKeyError:
    """Return the error of a write that was made of some stored rows of a key and not of all.

    ``stored`` and ``given`` are the numbers of the key's rows in the table and in the write; ``where`` names the file
    group, or the table.
    """
    return DuplicateKeyError(
        f"The record key {key!r} has {stored} rows in {where}, as inserts without a lookup leave them, and a condition "
        f"or clause of this write holds for {given} of them. A write changes all rows of a key or none.",
        "Let the condition hold for all rows of the key, as a condition on the key's columns does; or delete the key "
        "by HudiTable.delete with rows of keys, upsert the row that is right, and run this again.",
    )
