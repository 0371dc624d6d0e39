"""The tasks that place rows whose keys are unique in the whole table; each task sees all rows of some keys.

Between the steps (`tagger`) an engine groups the rows: first by key, for the fold; then the winners with the places of
their keys by file group, for the comparison with stored rows; last by key again, with the results for all places.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...index.base import NOT_FOUND, Buckets, KeyedRows, Positions, Tags
from ...storage import open_storage
from ...table.arrow.arrays import Mask, mask, plain
from ...table.arrow.batches import concat, rechunk
from ...table.files.names import FileGroupId
from ...table.merging.row_spec import RowSpec
from ...table.schema.columns import POSITION, RECORD_KEY
from ...writer.moved_rows import PairState
from ...writer.rows import judged
from .spread_lookup import group_columns, text_column
from .tagger import Tagger


@dataclass(frozen=True, slots=True)
class FoldTask:
    """Finds the winning rows of each key."""

    tagger: Tagger

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row of each key and partition path, with whether it counts (``goes``) and whether it is a delete.

        If no row of a key and partition path counts, it yields the first, so that the write learns that these rows go
        nowhere: it refuses rows of which it learns nothing. The batches have record key, partition path and the
        deciding columns, sorted by the first two.
        """
        tagger = self.tagger
        # A fold needs all rows of a key at once.
        for rows in whole_runs(batches, 1):
            deciding, deletes = _deciding(tagger.spec, rows, text_column(rows, 0))
            starts = _run_starts(rows, 2)
            goes = np.zeros(rows.num_rows, np.bool_)
            # Without a fold, all rows of one key and partition path have the same places.
            goes[tagger.fold(deciding) if tagger.plan.folds else np.flatnonzero(starts)] = True
            run_numbers = np.cumsum(starts) - 1
            is_yielded = goes | (
                starts & (np.bincount(run_numbers[goes], minlength=run_numbers[-1] + 1) == 0)[run_numbers]
            )
            columns = [*rows.columns, pa.array(goes), pa.array(deletes & tagger.deletes)]
            names = [*rows.schema.names, "goes", "deleted"]
            yield pa.RecordBatch.from_arrays(columns, names=names).filter(pa.array(is_yielded))


@dataclass(frozen=True, slots=True)
class PairStateTask:
    """Compares incoming rows with the stored rows of their keys."""

    tagger: Tagger

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield for each pair of a file group and a key whether a stored row is live, whether it wins, and since when.

        The batches have partition and file id of a file group, record key and the deciding columns, sorted by the first
        two, and each pair once.
        """
        with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
            old_rows = self.tagger.old_rows(open_storage(folder, durable=False))
            for rows in whole_runs(batches, 2):
                groups, codes = _groups(rows, 0, 1)
                deciding, _ = _deciding(self.tagger.spec, rows, text_column(rows, 2))
                states = old_rows.look(deciding, groups)(np.arange(rows.num_rows), codes)
                columns = [*rows.columns[:3], *map(pa.array, (states.live, states.wins, states.since))]
                names = ["partition", "file_id", "key", "live", "wins", "since"]
                yield pa.RecordBatch.from_arrays(columns, names=names)


@dataclass(frozen=True, slots=True)
class ResolveTask:
    """Finds the file groups of rows by the results for all places of their keys."""

    tagger: Tagger

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield for each key and partition path the places of its row, and whether the row leaves each place.

        A null file id is a new place in the partition; if the partition is null, too, the row goes nowhere. The batches
        have record key, partition path, the delete flag, partition and file id of a file group that holds the key,
        sorted by these; then whether a stored row is live, whether it wins, and since when the slice exists. A key that
        the table lacks comes once, with nulls.
        """
        for rows in whole_runs(batches, 2):
            yield self._resolved(rows)

    def _resolved(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the places of the rows of whole keys, as `__call__` yields them.

        The parts are in this order: rows for places that hold their key, rows for new places, deletes of keys in places
        that they leave, and rows that go nowhere.
        """
        is_first = _run_starts(rows, 2)
        key_numbers, at = np.cumsum(is_first) - 1, pa.array(np.flatnonzero(is_first))
        keys, paths = text_column(rows, 0).take(at), text_column(rows, 1).take(at)
        with_group = np.flatnonzero(~mask(pc.is_null(rows.column(4))))
        groups, codes = _groups(rows.take(pa.array(with_group)), 3, 4)
        tags = _tags(len(keys), groups, key_numbers[with_group], codes)
        live, wins, slice_times = (rows.column(column).take(pa.array(with_group)) for column in (5, 6, 7))
        states = PairState(mask(live), mask(wins), plain(slice_times).to_numpy())
        pairs = _Pairs(key_numbers[with_group], codes, len(groups), states)
        deletes = mask(rows.column(2))[np.flatnonzero(is_first)]
        resolved = self.tagger.resolve(KeyedRows(keys, paths.dictionary_encode()), tags, deletes, pairs.look)
        goes_nowhere = np.ones(len(keys), np.bool_)
        goes_nowhere[np.concatenate([resolved.rows, resolved.new, resolved.leaving])] = False
        nowhere = np.flatnonzero(goes_nowhere)
        parts = (resolved.rows, resolved.new, resolved.leaving, nowhere)
        part_numbers = np.repeat(np.arange(4), [len(part) for part in parts])
        places = np.full(len(part_numbers), NOT_FOUND, np.int64)
        places[part_numbers == 0], places[part_numbers == 2] = resolved.codes, resolved.left
        of_row = pa.array(np.concatenate(parts))
        own_paths = paths.take(of_row)
        partitions, ids = group_columns(groups, places)
        columns = [
            keys.take(of_row),
            own_paths,
            pc.if_else(pa.array(part_numbers == 1), own_paths, partitions),
            ids,
            pa.array(part_numbers == 2),
        ]
        return pa.RecordBatch.from_arrays(columns, names=["key", "path", "partition", "file_id", "leaves"])


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The states of pairs of a row and a file group that holds its key; ``codes`` are numbers below ``width``."""

    rows: Positions
    codes: Buckets
    width: int
    states: PairState

    def look(self, rows: Positions, codes: Buckets) -> PairState:
        """Return the state of each wanted pair of a row and a file group, which must be among the pairs."""
        # Each pair has one number, so that numpy can sort and search the pairs.
        pairs = self.rows * self.width + self.codes
        order = np.argsort(pairs, kind="stable")
        at = order[np.searchsorted(pairs[order], rows * self.width + codes)]
        seen = self.states
        return PairState(seen.live[at], seen.wins[at], seen.since[at])


def whole_runs(batches: Iterable[pa.RecordBatch], columns: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches that end only where the value of one of the first, sorted columns changes."""
    open_run: list[pa.RecordBatch] = []
    for batch in rechunk(iter(batches)):
        if open_run and not _continues_run(open_run[-1], batch, columns):
            yield concat(open_run)
            open_run = []
        last = int(np.flatnonzero(_run_starts(batch, columns))[-1])
        if last:
            yield concat([*open_run, batch.slice(0, last)])
            open_run = []
        open_run.append(batch.slice(last))
    if open_run:
        yield concat(open_run)


def _continues_run(before: pa.RecordBatch, after: pa.RecordBatch, columns: int) -> bool:
    """Return whether the first row of a batch has the values of the last row before it in the first columns."""
    ends = (before.column(number)[-1].as_py() for number in range(columns))  # one value a batch
    return all(end == after.column(number)[0].as_py() for number, end in enumerate(ends))  # one value a batch


def _run_starts(rows: pa.RecordBatch, columns: int) -> Mask:
    """Return which rows begin a run: a row whose first columns differ from those of the row before it."""
    starts = np.ones(rows.num_rows, np.bool_)
    starts[1:] = False
    for number in range(columns):
        texts = text_column(rows, number)
        starts[1:] |= mask(pc.not_equal(texts[1:], texts[:-1]))
    return starts


def _deciding(spec: RowSpec, rows: pa.RecordBatch, keys: pa.StringArray) -> tuple[pa.RecordBatch, Mask]:
    """Return the columns that decide which row of a key wins, after the record key, and which rows are deletes."""
    judges, deletes = judged(spec, rows, keys)
    names = [RECORD_KEY, *judges.schema.names]
    columns = [keys, *judges.columns]
    if POSITION in spec.columns.names:
        names.append(POSITION)
        columns.append(plain(rows.column(POSITION)))
    return pa.RecordBatch.from_arrays(columns, names=names), deletes


def _groups(rows: pa.RecordBatch, partition: int, file_id: int) -> tuple[tuple[FileGroupId, ...], Buckets]:
    """Return the file groups that two columns name, sorted, and the position of each row's group among them."""
    partitions, ids = (text_column(rows, number).dictionary_encode() for number in (partition, file_id))
    paths, names = partitions.dictionary.to_pylist(), ids.dictionary.to_pylist()  # O(file groups)
    combined = partitions.indices.to_numpy().astype(np.int64) * max(len(names), 1) + ids.indices.to_numpy()
    pairs, codes = np.unique(combined, return_inverse=True)
    distinct_groups = [FileGroupId(paths[pair // len(names)], names[pair % len(names)]) for pair in pairs.tolist()]
    order = sorted(range(len(distinct_groups)), key=distinct_groups.__getitem__)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return tuple(distinct_groups[number] for number in order), rank[codes]


def _tags(count: int, groups: tuple[FileGroupId, ...], rows: Positions, codes: Buckets) -> Tags:
    """Return the file groups of keys by their sorted positions: the first group of each, then its further groups.

    A key without any group has the code `NOT_FOUND`.
    """
    first_pairs = np.unique(rows, return_index=True)[1]
    home: Buckets = np.full(count, NOT_FOUND, np.int32)
    home[rows[first_pairs]] = codes[first_pairs]
    return Tags(groups, home, copied=np.delete(rows, first_pairs), copy_codes=np.delete(codes, first_pairs))
