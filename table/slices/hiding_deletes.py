"""The deletes in the log files of a slice that outdo later rows of their keys, found without reading other rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..arrow.arrays import Mask
from ..arrow.batches import concat
from ..files.logs.log_blocks import LogBlock
from ..merging.key_probe import KeyProbe
from ..merging.merger import folded
from ..merging.winners import base_wins
from ..schema.columns import RECORD_KEY
from .log_rows import RESET, LogRows, LogSpec, kinds


@dataclass(frozen=True, slots=True)
class HidingDeletes:
    """The deletes with an ordering value among the entries of some log blocks."""

    entries: LogRows

    def outdone(self, rows: pa.RecordBatch) -> Mask:
        """Return which of some rows, no two of one key, have a lesser ordering value than the delete of their key.

        No other entry may be the winner of such a key: the table shows no row of it.
        """
        spec = LogSpec(self.entries.ordering_fields)
        is_outdone = np.zeros(rows.num_rows, dtype=np.bool_)
        if not spec.ordering_fields or not rows.num_rows:
            return is_outdone
        probe = KeyProbe(rows.column(RECORD_KEY))
        blocks = [block for block in self.entries.blocks if self.entries.may_delete(block)]
        deletes = list(self._entries_in(probe, blocks))
        if not deletes:
            return is_outdone
        entries = concat(deletes)
        # Blocks without deletes are read only if what a delete means depends on their rows.
        if len(blocks) < len(self.entries.blocks) and self._needs_rows(probe, entries):
            entries = concat(list(self._entries_in(probe, self.entries.blocks)))
        entries = entries.take(pa.array(folded(spec, entries)))
        entries = entries.filter(pa.array(spec.deleted(entries) & (kinds(entries) != RESET)))
        positions = probe.find(entries.column(RECORD_KEY))
        # The deletes take the part of base rows: they win if their ordering value is greater.
        mine = [rows.column(name).take(pa.array(positions)) for name in spec.ordering_fields]
        is_outdone[positions[base_wins(spec.ordering(entries), mine)]] = True
        return is_outdone

    def _entries_in(self, probe: KeyProbe, blocks: Sequence[LogBlock]) -> Iterator[pa.RecordBatch]:
        """Yield the entries of some blocks whose keys the probe has."""
        spec = LogSpec(self.entries.ordering_fields)
        for batch in replace(self.entries, blocks=blocks).batches(spec.deciding):
            hits = probe.find(batch.column(RECORD_KEY)) >= 0
            if hits.any():
                yield batch.filter(pa.array(hits))

    def _needs_rows(self, probe: KeyProbe, entries: pa.RecordBatch) -> bool:
        """Return whether a key has deletes with and without a value: rows between the two decide what they mean."""
        keys, kind = probe.find(entries.column(RECORD_KEY)), kinds(entries)
        return bool(np.intersect1d(keys[kind == RESET], keys[kind != RESET]).size)
