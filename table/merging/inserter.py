"""Incoming rows added to a file group, beside the rows that it holds or only where their keys are new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from ...errors import DuplicateKeyError
from ..arrow.arrays import Mask
from ..schema.columns import RECORD_KEY
from .key_probe import KeyProbe
from .merger import Meeting, MergeCounts, MergeRules, folded
from .row_spec import Judged


class Inserter:
    """Holds one set of incoming rows against a base of which every row stays.

    Deletes among the rows remove nothing.

    Args:
        spec: What the incoming rows hold.
        incoming: The deciding columns of keyed rows, later ones further down; small enough for memory.
        rules: Whether rows of one key are folded, and what becomes of a row whose key is there.
        where: Names the file group, for errors.
    """

    def __init__(self, spec: Judged, incoming: pa.RecordBatch, rules: MergeRules, where: str) -> None:
        self._meeting = rules.meeting
        self._where = where
        self._added = np.ones(incoming.num_rows, dtype=np.bool_)
        if rules.fold:
            self._added[:] = False
            self._added[folded(spec, incoming)] = True
        deleted = spec.deleted(incoming) & self._added
        self._added &= ~deleted
        self._keys = incoming.column(RECORD_KEY)
        self.counts = MergeCounts(not_found=int(np.count_nonzero(deleted)))

    def survivors(self, base: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the base rows, all of them, having looked which incoming keys are among theirs.

        Raises:
            DuplicateKeyError: One is, and the rules forbid it.
        """
        if self._meeting is Meeting.ADD:
            yield from base
            return
        # Keys may repeat among the incoming rows, so that each distinct one is looked for once.
        keys = self._keys.filter(pa.array(self._added)).dictionary_encode()
        probe: KeyProbe | None = None
        met = np.zeros(len(keys.dictionary), dtype=np.bool_)
        for batch in base:
            # A new file group has no base, and needs none.
            if probe is None:
                probe = KeyProbe.over(keys.dictionary)
            found = probe.find(batch.column(RECORD_KEY))
            met[found[found >= 0]] = True
            if self._meeting is Meeting.FAIL and met.any():
                raise self._duplicate(keys.dictionary.filter(pa.array(met)))
            yield batch
        dropped = met[keys.indices.to_numpy(zero_copy_only=False)]
        self.counts.dropped = int(np.count_nonzero(dropped))
        self._added[np.flatnonzero(self._added)[dropped]] = False

    def arrivals(self) -> Mask:
        """Return which of the incoming rows are added; call it after `survivors` is exhausted."""
        self.counts.inserts = int(np.count_nonzero(self._added))
        return self._added

    def _duplicate(self, keys: pa.Array) -> DuplicateKeyError:
        return DuplicateKeyError(
            f"The record key {keys[0].as_py()!r} is in {self._where} already.",  # one value, for the error
            "Write with the operation upsert, leave such rows out with hoodie.datasource.insert.dup.policy=drop, or "
            "keep both with hoodie.datasource.insert.dup.policy=none.",
        )
