"""The rows of one file in the order of some of its columns, within a bound of memory (an external merge sort).

Rows are sorted in runs that fit into memory and spilled; then the runs are merged block by block. Among the blocks in
memory, all rows up to the least of the blocks' last rows are in their final order, because no later block has a lesser
row. The sorter yields these rows and loads the next blocks in place of those that are used up.

Along a curve a row's position depends on the values of all rows. If these do not fit into memory, they are spilled as
they come, and a sample of them says where the rows of each run belong; the runs are read once more then, and sorted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import MissingColumnError, UnsupportedTypeError
from ..storage import open_storage
from ..storage.base import Storage
from ..table.arrow.arrays import plain
from ..table.arrow.batches import concat
from ..table.arrow.curves import BITS, CURVES, WORD_BITS, coordinates
from ..table.arrow.spill import SpillReader, SpillWriter, local_spills
from ..table.config.sort_order import SortOrder


def check_sortable(columns: Sequence[str], schema: pa.Schema, path: str, option: str) -> None:
    """Raise if rows cannot be sorted by columns that an option names for the table at a path."""
    for name in columns:
        if name not in schema.names:
            raise MissingColumnError(
                f"The rows of a file cannot be sorted by {name!r}, which is no column of the table {path} "
                f"({', '.join(schema.names)}).",
                f"Correct {option}.",
            )
        if pa.types.is_nested(schema.field(name).type):
            raise UnsupportedTypeError(
                f"The rows of a file cannot be sorted by the column {name!r} of type {schema.field(name).type}.",
                f"Name columns of simple types in {option}.",
            )


Ends = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(slots=True)
class CellsOfCurve:
    """Finds where rows that lie along a curve enter another cell; sees them in their order, batch by batch.

    Attributes:
        first_word: The column with the first word of the rows' positions on the curve.
        lower: How many lower bits of that word tell positions within a cell.
    """

    first_word: str
    lower: int
    _last: int = -1

    def ends(self, batch: pa.RecordBatch) -> Ends:
        """Return the positions at which a cell begins in a batch, which has at least one row."""
        cells = (batch.column(self.first_word).to_numpy() >> np.uint64(self.lower)).astype(np.int64)
        cell_starts = np.flatnonzero(np.diff(cells, prepend=self._last))
        self._last = int(cells[-1])
        return cell_starts


def cut_parts(
    batches: Iterable[pa.RecordBatch], rows: int, count: int, cells: CellsOfCurve | None
) -> Iterator[list[pa.RecordBatch]]:
    """Yield the rows of batches in parts; ``rows`` is the number of all rows.

    Without ``cells`` there are ``count`` parts, which differ by one row at most. With them there are about as many, and
    a part ends at the end of a cell if a cell ends within half a part of where the part would end otherwise.
    """
    count = max(min(count, rows), 1)
    share, part, number, part_start, rows_before = rows // count, [], 1, 0, 0
    for batch in batches:
        cell_ends = None if cells is None or not batch.num_rows else cells.ends(batch) + rows_before
        start = 0
        while start < batch.num_rows:
            if cell_ends is None:
                part_end = rows * number // count
            elif rows - part_start <= share + share // 2:
                # The last part takes what would be too little for a part of its own.
                part_end = rows
            else:
                later_ends = cell_ends[cell_ends > part_start]
                part_end = _end_of_cell(
                    part_start + share, later_ends, rows_before + start, rows_before + batch.num_rows, share // 2
                )
            cut_rows = batch.slice(start, part_end - rows_before - start)
            start += cut_rows.num_rows
            part.append(cut_rows)
            if rows_before + start == part_end:
                yield part
                part, number, part_start = [], number + 1, part_end
        rows_before += batch.num_rows


def _end_of_cell(wanted: int, ends: Ends, after: int, known_until: int, slack: int) -> int:
    """Return the row before which a part ends: the end of a cell near the wanted row, or that row, or a later row.

    Rows count from the first of the file. ``ends`` has the ends of cells up to the row ``known_until``. The rows before
    ``after`` are in the part already. ``slack`` is the greatest distance of the end from the row ``wanted``.
    """
    near_ends = ends[(ends >= after) & (np.abs(ends - wanted) <= slack)]
    if len(near_ends):
        return int(near_ends[np.argmin(np.abs(near_ends - wanted))])
    # If a later row near ``wanted`` may begin a cell, the part is as long as slack allows; the caller asks again.
    return wanted if after < wanted and wanted + slack <= known_until else wanted + slack


# Sorting a run holds its rows twice, besides the memory of the file group's merge.
_RUN_SHARE = 4
_BLOCKS = 64
# Rows of the first run in the sample; of further runs the sample has as many for their size.
_SAMPLE = 1 << 14


class RowSorter:
    """Takes rows in any order and yields them sorted, nulls first; equal rows keep their order.

    It spills into a folder of its own, which is gone once all rows are yielded, or after `discard`.
    """

    def __init__(self, order: SortOrder, memory: int) -> None:
        self._order = order
        self._run_bytes = max(memory // _RUN_SHARE, 1)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._runs = _Runs()
        self._sample: list[pa.RecordBatch] = []
        self._step = 1
        self._with_nan: set[str] = set()
        self.rows = self.nbytes = 0

    @property
    def bounded(self) -> frozenset[str]:
        """The sort columns without NaN, which may have bounds whatever their type."""
        return frozenset(self._order.columns) - self._with_nan

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows; spill all waiting rows as a run if they are too many for memory."""
        if batch.num_rows == 0:
            return
        # A column with NaN is none of those that `bounded` returns.
        self._with_nan.update(name for name in self._order.columns if _has_nan(batch.column(name)))
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        self.rows += batch.num_rows
        self.nbytes += batch.nbytes
        if self._waiting_bytes > self._run_bytes:
            self._flush()

    def batches(self) -> Generator[pa.RecordBatch]:
        """Yield the rows in order."""
        with closing(self._sorted()) as ordered:
            yield from map(self._without_words, ordered)

    def parts(self, count: int) -> Iterator[list[pa.RecordBatch]]:
        """Yield the rows in order, in about ``count`` parts of like size; ``count`` is a power of two.

        Along a curve a part ends at the end of a cell of the cube, if there is one near, so that the part has a narrow
        range of each column.
        """
        if self._order.is_linear:
            return cut_parts(self._sorted(), self.rows, count, None)
        # All words of a position but the first are full.
        bits = len(self._order.columns) * BITS - WORD_BITS * (len(self._words) - 1)
        # The highest bits of a position tell in which of ``count`` cells it is.
        cells = CellsOfCurve(self._words[0], max(bits - (count.bit_length() - 1), 0))
        parts = cut_parts(self._sorted(), self.rows, count, cells)
        return ([self._without_words(batch) for batch in part] for part in parts)

    def _sorted(self) -> Generator[pa.RecordBatch]:
        """Yield the rows in order, for a curve with the words of their positions behind the other columns."""
        if not self._runs.count:
            if self._waiting:
                rows = self._take_waiting()
                # These are all rows, so that no sample of others tells their positions on the curve.
                rows = rows if self._order.is_linear else self._with_words(rows, None)
                yield rows.take(_sorted_positions(rows, self._ordered_by))
            return
        try:
            if self._waiting:
                self._flush()
            if not self._order.is_linear:
                # A run got no words before: positions on a curve go by a sample of all rows.
                self._sort_runs()
            yield from _merged_runs(self._runs.blocks(), self._ordered_by)
        finally:
            self.discard()

    def _without_words(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows without the words of their positions on a curve."""
        return rows if self._order.is_linear else rows.select(rows.schema.names[: -len(self._words)])

    def discard(self) -> None:
        """Delete the runs on disk, and forget the waiting rows."""
        self._waiting = []
        self._runs.discard()

    def _take_waiting(self) -> pa.RecordBatch:
        """Return the waiting rows as one batch, and forget them."""
        rows = concat(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        return rows

    def _flush(self) -> None:
        """Spill the rows in memory: as a sorted run, or for a curve unsorted, adding some rows to the sample."""
        rows = self._take_waiting()
        if self._order.is_linear:
            self._runs.add(rows.take(_sorted_positions(rows, self._ordered_by)))
            return
        if not self._runs.count:
            self._step = max(rows.num_rows // _SAMPLE, 1)
        columns = [plain(rows.column(name)) for name in self._order.columns]
        sampled = pa.array(np.arange(0, rows.num_rows, self._step))
        self._sample.append(pa.record_batch([column.take(sampled) for column in columns], names=[*self._order.columns]))
        self._runs.add(rows)

    def _sort_runs(self) -> None:
        """Replace the runs by sorted runs whose rows have their positions on the curve behind the other columns."""
        sample, sorted_runs = concat(self._sample), _Runs()
        try:
            for blocks in self._runs.blocks():
                rows = self._with_words(concat(list(blocks)), sample)
                sorted_runs.add(rows.take(_sorted_positions(rows, self._words)))
        except BaseException:
            sorted_runs.discard()
            raise
        self._runs.discard()
        self._runs, self._sample = sorted_runs, []

    @property
    def _ordered_by(self) -> Sequence[str]:
        return self._order.columns if self._order.is_linear else self._words

    @property
    def _words(self) -> list[str]:
        """The names of the columns of positions on the curve, whose bits take several words, the highest first."""
        words = -(-len(self._order.columns) * BITS // WORD_BITS)
        return [f"_pyhudi_place_{number}" for number in range(words)]

    def _with_words(self, rows: pa.RecordBatch, sample: pa.RecordBatch | None) -> pa.RecordBatch:
        """Return rows with the words of their positions on the curve behind their columns.

        Positions go by the sample of all rows; without a sample the given rows are all.
        """
        axes = [
            coordinates(plain(rows.column(name)), None if sample is None else sample.column(name))
            for name in self._order.columns
        ]
        words = map(pa.array, CURVES[self._order.curve](axes))
        schema = pa.schema([*rows.schema, *((name, pa.uint64()) for name in self._words)])
        return pa.RecordBatch.from_arrays([*rows.columns, *words], schema=schema)


class _Runs:
    """Runs of rows on disk, each in blocks so small that memory can hold one block of each run."""

    def __init__(self) -> None:
        self.count = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._spill: SpillWriter | None = None
        self._storage: Storage | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        """Write rows as one more run."""
        if self._spill is None:
            self._folder = tempfile.TemporaryDirectory(prefix="pyhudi-")
            self._spill, self._storage = local_spills(open_storage(self._folder.name, durable=False))()
        size = max(rows.num_rows // _BLOCKS, 1)
        for start in range(0, rows.num_rows, size):
            self._spill.append({self.count: [rows.slice(start, size)]})
        self.count += 1

    def blocks(self) -> list[Iterator[pa.RecordBatch]]:
        """Return the blocks of each run; no run can be added any more."""
        if self._spill is None or self._storage is None:
            return []
        reader = SpillReader(self._storage, self._spill.publish().path)
        return [_blocks_of_run(reader, run) for run in range(self.count)]

    def discard(self) -> None:
        """Delete the runs on disk."""
        if self._spill is not None:
            self._spill.discard()
        if self._folder is not None:
            self._folder.cleanup()
        self.count, self._folder, self._spill, self._storage = 0, None, None, None


def _has_nan(values: pa.Array) -> bool:
    """Return whether a column of floats has NaN; False for other columns."""
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())  # one value


def _sorted_positions(rows: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    """Return the positions of the rows in order; NaN counts as greater than every number, as in Spark."""
    keys: dict[str, pa.Array] = {}
    for number, name in enumerate(columns):
        column = plain(rows.column(name))
        if column.null_count:
            # Nulls come first, as False is less than True.
            keys[f"valid{number}"] = column.is_valid()
        keys[f"value{number}"] = column
    return pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])


def _blocks_of_run(reader: SpillReader, run: int) -> Iterator[pa.RecordBatch]:
    """Yield the blocks of one run, as they were spilled."""
    for piece in reader.pieces:
        if piece.key == run:
            yield from reader.batches(piece)


def _merged_runs(runs: Sequence[Iterator[pa.RecordBatch]], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sorted runs in order, given the blocks of each run."""
    heads = {number: head for number, run in enumerate(runs) if (head := next(run, None)) is not None}
    while heads:
        rows = concat(list(heads.values()))
        order = _sorted_positions(rows, columns).to_numpy()
        ends = np.cumsum([head.num_rows for head in heads.values()])
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        # No later block has a row before the least of the last rows of these blocks.
        final = order[: rank[ends - 1].min() + 1]
        yield rows.take(pa.array(final))
        # The sort is stable, so the rows taken of a block are its first rows.
        rows_taken = np.bincount(np.searchsorted(ends, final, side="right"), minlength=len(heads))
        for number, count in zip(list(heads), rows_taken.tolist(), strict=True):
            head = heads[number].slice(count)
            next_block = head if head.num_rows else next(runs[number], None)
            if next_block is None:
                del heads[number]
            else:
                heads[number] = next_block
