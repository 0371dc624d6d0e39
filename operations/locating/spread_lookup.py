"""A lookup by the tasks of an engine: each file slice is opened by one of them, once, or an index is asked by them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...index.base import NOT_FOUND, KeyedRows, LookupIndex, Positions, Tags
from ...index.lookup import TableLookup, Unit
from ...index.slice_keys import Hits, SliceKeys, WantedKeys
from ...table.arrow.arrays import plain
from ...table.arrow.batches import rechunk
from ...table.files.file_group import BaseFile, FileSlice
from ...table.files.key_footers import KeyRange, key_ranges
from ...table.files.names import FileGroupId
from ...table.seen_table import SeenTable
from ..indexing.query import ask
from ..services.service import Executor

# The keys that are looked for in each of some slices.
_Wanted = tuple[pa.StringArray, tuple[FileSlice, ...]]


def keys_in(seen: SeenTable, pieces: Iterable[FileSlice]) -> Iterator[tuple[FileSlice, pa.StringArray]]:
    """Yield all record keys of some slices, with the slice of each array.

    Raises:
        PyHudiError: A file cannot be read.
    """
    for file_slice in pieces:
        for found in SliceKeys(seen.storage, file_slice, seen.timeline.is_committed):
            yield file_slice, found


@dataclass(frozen=True, slots=True)
class LookTask:
    """What one task does with its slices.

    Attributes:
        table: The table.
        index: Looks keys up in a slice.
    """

    table: SeenTable
    index: TableLookup

    def __call__(self, share: Sequence[_Wanted]) -> list[Hits]:
        """Return which keys each slice of a share holds, in their order."""
        storage, sees = self.table.storage, self.table.timeline.is_committed
        found = []
        for keys, pieces in share:
            wanted = WantedKeys.of(keys)
            found += [self.index.look(SliceKeys(storage, file_slice, sees), wanted) for file_slice in pieces]
        return found


@dataclass(frozen=True, slots=True)
class RangesTask:
    """What one task does where the ranges of base files are asked for.

    Attributes:
        table: The table.
    """

    table: SeenTable

    def __call__(self, files: Sequence[BaseFile]) -> list[KeyRange | None]:
        """Return between which texts the keys of each file lie, None where that is not known."""
        return key_ranges(self.table.storage, files)


@dataclass(frozen=True, slots=True)
class AskTask:
    """Asks an index where keys are, as one that lives outside of the table can be asked by any task.

    Attributes:
        table: The table.
        index: Its index.
    """

    table: SeenTable
    index: LookupIndex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what `pairs_of` makes of the answers.

        Args:
            batches: Record key and partition path; no pair of them twice.

        Raises:
            PyHudiError: The index fails, or its answer cannot be of this table.
        """
        for rows in rechunk(iter(batches)):
            keyed = KeyedRows(text_column(rows, 0), text_column(rows, 1).dictionary_encode())
            yield pairs_of(keyed, ask(self.index, keyed, self.table))


@dataclass(frozen=True, slots=True)
class SpreadLookup:
    """Looks keys up in the files of a table by tasks.

    Attributes:
        table: The table as of the write's watermark.
        index: Its index.
        spread: Runs the tasks.
        most: Into how many tasks slices and footers are spread, unless one would test more keys than it should.
    """

    table: SeenTable
    index: TableLookup
    spread: Executor
    most: int

    def tag(self, rows: KeyedRows) -> Tags:
        """Return where each row's key is, as `TableLookup.tag` does.

        Raises:
            PyHudiError: A file cannot be read.
        """
        return self.index.tag_by(rows, self.table.view, self._look)

    def _look(self, units: Sequence[Unit]) -> list[Hits]:
        size = max(1, math.ceil(len(units) / self.most))
        shares = list(_shares(units, size, self.index.settings.keys_per_task))
        return [hits for found in self.spread(LookTask(self.table, self.index), shares) for hits in found]

    def overlapping(self, pieces: Sequence[FileSlice], spans: Mapping[str, tuple[str, str]]) -> list[FileSlice]:
        """Return the slices that may hold keys of some ranges, by what the footers of their base files say.

        Those are all of them where the table's index goes by no ranges.

        Args:
            pieces: Slices; those with log files stay, because nothing tells of their keys.
            spans: The least and the greatest wanted key of each partition, in the order of their bytes.

        Raises:
            PyHudiError: A footer cannot be read.
        """
        if not (self.index.reads_ranges and self.index.settings.prunes_by_ranges):
            return list(pieces)
        plain_ones = [file_slice for file_slice in pieces if not file_slice.logs]
        files = [file_slice.base_file for file_slice in plain_ones]
        size = max(1, math.ceil(len(files) / self.most))
        shares = [files[start : start + size] for start in range(0, len(files), size)]
        ranges = [one for found in self.spread(RangesTask(self.table), shares) for one in found]
        apart = {
            file_slice.group
            for file_slice, one in zip(plain_ones, ranges, strict=True)
            if one is not None and not _meet(one, spans[file_slice.partition_path])
        }
        return [file_slice for file_slice in pieces if file_slice.group not in apart]


def _meet(one: KeyRange, span: tuple[str, str]) -> bool:
    # The bounds of a file are such that all orders of texts agree on what lies beyond them.
    return one.least <= span[1] and span[0] <= one.greatest


def pairs_of(rows: KeyedRows, tags: Tags) -> pa.RecordBatch:
    """Return each row's key and partition path with partition and file id of each file group that holds the key.

    A key that the table lacks comes with nulls for the last two.
    """
    at = pa.array(np.append(np.arange(len(rows)), tags.copied))
    places = group_columns(tags.groups, np.append(tags.codes, tags.copy_codes))
    paths = rows.paths.take(at).dictionary_decode()
    return pa.RecordBatch.from_arrays(
        [rows.record_keys.take(at), paths, *places], names=["key", "path", "partition", "file_id"]
    )


def group_columns(groups: Sequence[FileGroupId], codes: Positions) -> tuple[pa.StringArray, pa.StringArray]:
    """Return partitions and file ids of the file groups of n rows, nulls for those that have none.

    Args:
        groups: The file groups.
        codes: The number of each row's among them, or `NOT_FOUND`.
    """
    at = pa.array(codes, pa.int64(), mask=np.asarray(codes) == NOT_FOUND)
    names = ([one.partition_path for one in groups], [one.file_id for one in groups])
    partitions, ids = (pa.array(name, pa.string()).take(at) for name in names)
    return partitions, ids


def text_column(rows: pa.RecordBatch, number: int) -> pa.StringArray:
    """Return a column of texts as one plain array."""
    return plain(rows.column(number)).cast(pa.string())


def _shares(units: Sequence[Unit], size: int, keys: int) -> Iterator[list[_Wanted]]:
    """Yield what each task is to do: up to so many slices, and so many pairs of a key and a slice, at least one."""
    share: list[_Wanted] = []
    last: pa.StringArray | None = None
    slices, pairs = 0, 0
    for wanted, file_slice in units:
        if share and (slices == size or pairs + len(wanted) > keys):
            yield share
            share, last, slices, pairs = [], None, 0, 0
        if wanted is last:
            share[-1] = (share[-1][0], (*share[-1][1], file_slice))
        else:
            share.append((wanted, (file_slice,)))
        last, slices, pairs = wanted, slices + 1, pairs + len(wanted)
    if share:
        yield share
