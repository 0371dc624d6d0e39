"""The rows of one file in the order of some of its columns, within a bound of memory (an external merge sort).

Rows are sorted in runs that fit into memory and spilled; then the runs are merged block by block. Among the blocks in
memory, all rows up to the least of the blocks' last rows have their final place, because no later block holds a lesser
row. The sorter yields these rows and loads the next blocks in place of those that are used up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..storage.base import Storage
from ..table.arrow.arrays import plain
from ..table.arrow.batches import concat
from ..table.arrow.spill import SpillReader, SpillWriter

# Sorting a run holds its rows twice, besides the memory of the file group's merge.
_RUN_SHARE = 4
_BLOCKS = 64


class RowSorter:
    """Takes rows in any order and yields them sorted, nulls first; equal rows keep their order."""

    def __init__(
        self, columns: Sequence[str], memory: int, open_spill: Callable[[], tuple[SpillWriter, Storage]]
    ) -> None:
        self._columns = list(columns)
        self._run_bytes = max(memory // _RUN_SHARE, 1)
        self._open_spill = open_spill
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._runs = 0
        self._spill: SpillWriter | None = None
        self._storage: Storage | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes > self._run_bytes:
            self._flush()

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self._spill is None or self._storage is None:
            if self._waiting:
                yield self._sorted()
            return
        if self._waiting:
            self._flush()
        reader = SpillReader(self._storage, self._spill.publish().path)
        try:
            yield from _merge([_blocks(reader, run) for run in range(self._runs)], self._columns)
        finally:
            reader.delete()

    def discard(self) -> None:
        self._waiting = []
        if self._spill is not None:
            self._spill.discard()

    def _flush(self) -> None:
        """Spill the rows in memory as one run, in blocks so small that memory can hold one block of each run."""
        if self._spill is None:
            self._spill, self._storage = self._open_spill()
        run = self._sorted()
        rows = max(run.num_rows // _BLOCKS, 1)
        for start in range(0, run.num_rows, rows):
            self._spill.append({self._runs: [run.slice(start, rows)]})
        self._runs += 1

    def _sorted(self) -> pa.RecordBatch:
        rows = concat(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        return rows.take(_order(rows, self._columns))


def _order(rows: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    """Return the positions of the rows in order; NaN counts as greater than every number, as in Spark."""
    keys: dict[str, pa.Array] = {}
    for number, name in enumerate(columns):
        column = plain(rows.column(name))
        keys |= {f"valid{number}": column.is_valid(), f"value{number}": column}
    return pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])


def _blocks(reader: SpillReader, run: int) -> Iterator[pa.RecordBatch]:
    for piece in reader.pieces:
        if piece.key == run:
            yield from reader.batches(piece)


def _merge(runs: Sequence[Iterator[pa.RecordBatch]], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    heads = {number: head for number, run in enumerate(runs) if (head := next(run, None)) is not None}
    while heads:
        joined = concat(list(heads.values()))
        order = _order(joined, columns).to_numpy()
        ends = np.cumsum([head.num_rows for head in heads.values()])
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        final = order[: place[ends - 1].min() + 1]
        yield joined.take(pa.array(final))
        # The sort is stable, so the rows taken of a block are its first rows.
        taken = np.bincount(np.searchsorted(ends, final, side="right"), minlength=len(heads))
        for number, count in zip(list(heads), taken.tolist(), strict=True):
            head = heads[number].slice(count)
            following = head if head.num_rows else next(runs[number], None)
            if following is None:
                del heads[number]
            else:
                heads[number] = following
