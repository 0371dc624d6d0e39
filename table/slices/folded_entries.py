"""The entries of log files folded by key, without the base file; deletes are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...errors import UnsupportedTableError
from ..arrow.arrays import Mask, mask
from ..files.logs.delete_block import Deletes
from ..merging.merger import MergeCounts
from ..merging.overlay import Given, merged_partially
from ..schema.columns import RECORD_KEY
from .log_rows import RESET, ROW, LogSpec, kinds


@dataclass(frozen=True, slots=True)
class KeptEntries(LogSpec):
    """Entries of logs of which none counts as deleted, so that deletes stay among them."""

    def deleted(self, rows: pa.RecordBatch) -> Mask:
        return np.zeros(rows.num_rows, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class LaidEntries:
    """Entries with some of their columns only, merged by key, for a slice without base rows."""

    rows: pa.RecordBatch

    @classmethod
    def of(cls, spec: LogSpec, entries: pa.RecordBatch, given: Given) -> LaidEntries:
        return cls(merged_partially(spec, entries, given))

    def survivors(self, base: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yield the base rows, of which there are none, as they were."""
        yield from ((batch, False) for batch in base)

    def arrivals(self) -> pa.RecordBatch:
        return self.rows

    @property
    def counts(self) -> MergeCounts:
        return MergeCounts(inserts=self.rows.num_rows, keys=self.rows.num_rows)


def parted(entries: pa.RecordBatch, ordering: tuple[str, ...], partition_path: str) -> tuple[pa.RecordBatch, Deletes]:
    """Return the rows among folded entries, and the deletes, marked rows included, as a delete block has them."""
    kind = kinds(entries)
    gone = kind != ROW
    rows, deleted = (entries.filter(pa.array(chosen)) for chosen in (~gone, gone))
    default = kind[gone] == RESET if ordering else np.ones(deleted.num_rows, dtype=np.bool_)
    values = tuple(deleted.column(name) for name in ordering)
    if any(mask(value.is_null())[~default].any() for value in values):
        raise UnsupportedTableError(
            f"A delete in the log files of partition {partition_path!r} has no value in one of the ordering fields "
            f"({', '.join(ordering)}), and no delete block has a place for that.",
            "Compact the table instead (HudiTable.compact).",
        )
    paths = pa.repeat(pa.scalar(partition_path, pa.string()), deleted.num_rows)
    return rows, Deletes(deleted.column(RECORD_KEY), paths, values, pa.array(default))
