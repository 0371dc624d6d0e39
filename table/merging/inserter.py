"""Incoming rows added to a file group whose rows all stay: every row, or only rows with new keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from ...errors import DuplicateKeyError
from ..arrow.arrays import Mask
from ..schema.columns import RECORD_KEY
from .key_probe import KeyProbe
from .merger import MergeCounts, MergeRules, RowMeeting, folded
from .row_spec import Judged


class Inserter:
    """Compares incoming rows with a base of which every row stays; deletes among the rows remove nothing."""

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
        """Yield all base rows, and note which incoming keys they have; DuplicateKeyError where that is refused."""
        if self._meeting is RowMeeting.ADD:
            yield from base
            return
        # Keys may repeat among the incoming rows; look up each distinct key once.
        keys = self._keys.filter(pa.array(self._added)).dictionary_encode()
        probe: KeyProbe | None = None
        met = np.zeros(len(keys.dictionary), dtype=np.bool_)
        for batch in base:
            # A new file group has no base, and needs no probe.
            if probe is None:
                probe = KeyProbe.over(keys.dictionary)
            found = probe.find(batch.column(RECORD_KEY))
            met[found[found >= 0]] = True
            if self._meeting is RowMeeting.FAIL and met.any():
                raise self._duplicate(keys.dictionary.filter(pa.array(met)))
            yield batch
        dropped = met[keys.indices.to_numpy(zero_copy_only=False)]
        self.counts.dropped = int(np.count_nonzero(dropped))
        self._added[np.flatnonzero(self._added)[dropped]] = False

    def arrivals(self) -> Mask:
        """Return which incoming rows are added; call it after `survivors` is exhausted."""
        self.counts.inserts = int(np.count_nonzero(self._added))
        return self._added

    def _duplicate(self, keys: pa.Array) -> DuplicateKeyError:
        return DuplicateKeyError(
            f"The record key {keys[0].as_py()!r} is in {self._where} already.",  # one value, for the error
            "Write with the operation upsert, leave such rows out with hoodie.datasource.insert.dup.policy=drop, or "
            "keep both with hoodie.datasource.insert.dup.policy=none.",
        )
