"""Incoming rows of one file group merged with its previous base file, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..table.base_file import RECORD_KEY
from ..table.merging import KeyProbe, base_wins, fold
from .rows import RowSpec


@dataclass(slots=True)
class MergeCounts:
    """What one merge did, in rows."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    not_found: int = 0

    @property
    def changed(self) -> bool:
        """Whether the file group differs from what it was."""
        return bool(self.inserts or self.updates or self.deletes)

    def add(self, other: MergeCounts) -> None:
        """Add another merge's counts to these."""
        self.inserts += other.inserts
        self.updates += other.updates
        self.deletes += other.deletes
        self.not_found += other.not_found


class Merger:
    """Merges one set of incoming rows, small enough for memory, with the base rows of the same keys.

    Args:
        spec: What the incoming rows hold.
        incoming: Keyed rows, later ones further down.
        combine: Whether rows of one key are folded into one; always so where there is a base.
    """

    def __init__(self, spec: RowSpec, incoming: pa.RecordBatch, *, combine: bool) -> None:
        self._spec = spec
        self.counts = MergeCounts()
        deleted = spec.deleted(incoming)
        unordered = spec.unordered(incoming, deleted)
        if combine:
            winners = fold(incoming.column(RECORD_KEY), spec.ordering(incoming), unordered)
            if len(winners) < incoming.num_rows:
                incoming, deleted = incoming.take(pa.array(winners)), deleted[winners]
                unordered = None if unordered is None else unordered[winners]
        self._incoming = incoming
        self._deleted = deleted
        self._unordered = unordered
        self._matched = np.zeros(incoming.num_rows, dtype=np.bool_)
        self._lost = np.zeros(incoming.num_rows, dtype=np.bool_)

    def survivors(self, base: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the base rows that no incoming row replaces or deletes."""
        probe = KeyProbe.over(self._incoming.column(RECORD_KEY))
        ordering = self._spec.ordering(self._incoming)
        for batch in base:
            found = probe.find(batch.column(RECORD_KEY))
            rows = np.flatnonzero(found >= 0)
            if not len(rows):
                yield batch
                continue
            hits = found[rows]
            if ordering:
                older = [batch.column(name).take(pa.array(rows)) for name in self._spec.ordering_fields]
                keeps = base_wins(older, [values.take(pa.array(hits)) for values in ordering])
                if self._unordered is not None:
                    keeps &= ~self._unordered[hits]
                self._lost[hits[keeps]] = True
                rows = rows[~keeps]
            self._matched[hits] = True
            stays = np.ones(batch.num_rows, dtype=np.bool_)
            stays[rows] = False
            yield batch.filter(pa.array(stays))

    def arrivals(self) -> pa.RecordBatch:
        """Return the incoming rows that belong in the new file; call it after `survivors` is exhausted."""
        live = ~self._deleted & ~self._lost
        updates = int(np.count_nonzero(live & self._matched))
        self.counts = MergeCounts(
            inserts=int(np.count_nonzero(live)) - updates,
            updates=updates,
            deletes=int(np.count_nonzero(self._deleted & self._matched & ~self._lost)),
            not_found=int(np.count_nonzero(self._deleted & ~self._matched)),
        )
        return self._incoming if live.all() else self._incoming.filter(pa.array(live))
