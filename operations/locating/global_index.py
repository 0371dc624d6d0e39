"""Rows whose keys are unique in the whole table, settled by tasks of which each sees all rows of some keys.

Between the steps (`tagger`) an engine brings together what belongs together: the rows of one key, of which one goes on;
that row with the places where its key is; the rows that may have to be held against those of one file group; and, last,
the row with what was found out of its places.
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
    """Tells which rows go on, of those of each key.

    Attributes:
        tagger: The write.
    """

    tagger: Tagger

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row of each key and partition path, with whether it goes on, and whether it is a delete.

        It is the one that goes on, where one of theirs does.

        Args:
            batches: Record key, partition path and what decides, in the order of the first two.

        Raises:
            NullOrderingError: An ordering value is null.
        """
        tagger = self.tagger
        for rows in whole_runs(batches, 1):
            deciding, deletes = _deciding(tagger.spec, rows, text_column(rows, 0))
            starts = _starts(rows, 2)
            goes = np.zeros(rows.num_rows, np.bool_)
            # Of rows that are not folded those of one key and partition path have the same places.
            goes[tagger.fold(deciding) if tagger.plan.folds else np.flatnonzero(starts)] = True
            place = np.cumsum(starts) - 1
            kept = goes | (starts & (np.bincount(place[goes], minlength=place[-1] + 1) == 0)[place])
            columns = [*rows.columns, pa.array(goes), pa.array(deletes & tagger.deletes)]
            names = [*rows.schema.names, "goes", "deleted"]
            yield pa.RecordBatch.from_arrays(columns, names=names).filter(pa.array(kept))


@dataclass(frozen=True, slots=True)
class PairStateTask:
    """Holds rows against those of the table that they meet.

    Attributes:
        tagger: The write.
    """

    tagger: Tagger

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield for each pair of a key and a file group whether its row is there, whether it wins, and since when.

        Args:
            batches: Partition and file id of a file group, record key, and what decides, in the order of the first two;
                no key of a file group twice.

        Raises:
            CorruptFileError: A file cannot be read.
        """
        with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
            old = self.tagger.old_rows(open_storage(folder, durable=False))
            for rows in whole_runs(batches, 2):
                groups, codes = _groups(rows, 0, 1)
                deciding, _ = _deciding(self.tagger.spec, rows, text_column(rows, 2))
                states = old.look(deciding, groups)(np.arange(rows.num_rows), codes)
                columns = [*rows.columns[:3], *map(pa.array, (states.live, states.wins, states.since))]
                names = ["partition", "file_id", "key", "live", "wins", "since"]
                yield pa.RecordBatch.from_arrays(columns, names=names)


@dataclass(frozen=True, slots=True)
class SettleTask:
    """Tells where rows go, given what was found out of the places of their keys.

    Attributes:
        tagger: The write.
    """

    tagger: Tagger

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield for each key and partition path where its row goes, once for each place, and whether it leaves it.

        It goes to a partition, and there to a file group, or to a new place where that is null; where both are null it
        goes nowhere.

        Args:
            batches: Record key, partition path, whether the row is a delete, partition and file id of a file group that
                holds the key; in the order of all these; then whether a row of it is there, whether that one wins, and
                since when the file group's slice is. A key that the table lacks comes once, with nulls.
        """
        for rows in whole_runs(batches, 2):
            yield self._settled(rows)

    def _settled(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        first = _starts(rows, 2)
        number, at = np.cumsum(first) - 1, pa.array(np.flatnonzero(first))
        keys, paths = text_column(rows, 0).take(at), text_column(rows, 1).take(at)
        there = np.flatnonzero(~mask(pc.is_null(rows.column(4))))
        groups, codes = _groups(rows.take(pa.array(there)), 3, 4)
        tags = _tags(len(keys), groups, number[there], codes)
        live, wins, since = (rows.column(place).take(pa.array(there)) for place in (5, 6, 7))
        states = PairState(mask(live), mask(wins), plain(since).to_numpy())
        pairs = _Pairs(number[there], codes, len(groups), states)
        deletes = mask(rows.column(2))[np.flatnonzero(first)]
        settled = self.tagger.settle(KeyedRows(keys, paths.dictionary_encode()), tags, deletes, pairs.look)
        lost = np.ones(len(keys), np.bool_)
        lost[np.concatenate([settled.rows, settled.new, settled.leaving])] = False
        nowhere = np.flatnonzero(lost)
        parts = (settled.rows, settled.new, settled.leaving, nowhere)
        kind = np.repeat(np.arange(4), [len(part) for part in parts])
        places = np.full(len(kind), NOT_FOUND, np.int64)
        places[kind == 0], places[kind == 2] = settled.codes, settled.left
        of_row = pa.array(np.concatenate(parts))
        own = paths.take(of_row)
        partitions, ids = group_columns(groups, places)
        columns = [keys.take(of_row), own, pc.if_else(pa.array(kind == 1), own, partitions), ids, pa.array(kind == 2)]
        return pa.RecordBatch.from_arrays(columns, names=["key", "path", "partition", "file_id", "leaves"])


@dataclass(frozen=True, slots=True)
class _Pairs:
    """What was found out of pairs of a row and a place of its key.

    Attributes:
        rows: The row of each of n pairs.
        codes: Its place, a number below `width`.
        width: How many places there are.
        states: Their states.
    """

    rows: Positions
    codes: Buckets
    width: int
    states: PairState

    def look(self, rows: Positions, codes: Buckets) -> PairState:
        """Return the states of some of the pairs."""
        known = self.rows * self.width + self.codes
        order = np.argsort(known, kind="stable")
        at = order[np.searchsorted(known[order], rows * self.width + codes)]
        seen = self.states
        return PairState(seen.live[at], seen.wins[at], seen.since[at])


def whole_runs(batches: Iterable[pa.RecordBatch], columns: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows, cut only where the first columns change.

    Args:
        batches: Rows in the order of their first columns.
        columns: How many columns, of texts, make a run.
    """
    held: list[pa.RecordBatch] = []
    for batch in rechunk(iter(batches)):
        if held and not _goes_on(held[-1], batch, columns):
            yield concat(held)
            held = []
        last = int(np.flatnonzero(_starts(batch, columns))[-1])
        if last:
            yield concat([*held, batch.slice(0, last)])
            held = []
        held.append(batch.slice(last))
    if held:
        yield concat(held)


def _goes_on(before: pa.RecordBatch, after: pa.RecordBatch, columns: int) -> bool:
    ends = (before.column(number)[-1].as_py() for number in range(columns))  # one value a batch
    return all(end == after.column(number)[0].as_py() for number, end in enumerate(ends))  # one value a batch


def _starts(rows: pa.RecordBatch, columns: int) -> Mask:
    """Return which rows differ from the one before in one of the first columns."""
    starts = np.ones(rows.num_rows, np.bool_)
    starts[1:] = False
    for number in range(columns):
        texts = text_column(rows, number)
        starts[1:] |= mask(pc.not_equal(texts[1:], texts[:-1]))
    return starts


def _deciding(spec: RowSpec, rows: pa.RecordBatch, keys: pa.StringArray) -> tuple[pa.RecordBatch, Mask]:
    """Return what decides between rows, as the write itself holds it, and which of them are deletes."""
    judges, deletes = judged(spec, rows, keys)
    names = [RECORD_KEY, *judges.schema.names]
    columns = [keys, *judges.columns]
    if POSITION in spec.columns.names:
        names.append(POSITION)
        columns.append(plain(rows.column(POSITION)))
    return pa.RecordBatch.from_arrays(columns, names=names), deletes


def _groups(rows: pa.RecordBatch, partition: int, file_id: int) -> tuple[tuple[FileGroupId, ...], Buckets]:
    """Return the file groups that rows name in two columns, in their order, and the place among them of each row's."""
    partitions, ids = (text_column(rows, number).dictionary_encode() for number in (partition, file_id))
    paths, names = partitions.dictionary.to_pylist(), ids.dictionary.to_pylist()  # O(file groups)
    both = partitions.indices.to_numpy().astype(np.int64) * max(len(names), 1) + ids.indices.to_numpy()
    pairs, codes = np.unique(both, return_inverse=True)
    named = [FileGroupId(paths[pair // len(names)], names[pair % len(names)]) for pair in pairs.tolist()]
    order = sorted(range(len(named)), key=named.__getitem__)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return tuple(named[number] for number in order), place[codes]


def _tags(count: int, groups: tuple[FileGroupId, ...], rows: Positions, codes: Buckets) -> Tags:
    """Return where n rows are, given pairs of a row and a place, in the order of the rows."""
    first = np.unique(rows, return_index=True)[1]
    home: Buckets = np.full(count, NOT_FOUND, np.int32)
    home[rows[first]] = codes[first]
    return Tags(groups, home, copied=np.delete(rows, first), copy_codes=np.delete(codes, first))
