"""A lookup by the tasks of an engine: only one task opens each file slice, or each task queries an index."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...index.base import NOT_FOUND, KeyedRows, LookupIndex, Positions, Tags
from ...index.gathered_keys import GatheredKeys, Room
from ...index.lookup import TableLookup, Unit
from ...index.slice_keys import Hits, SliceKeys, WantedKeys
from ...table.arrow.arrays import plain
from ...table.arrow.batches import rechunk
from ...table.files.file_group import BaseFile, FileSlice
from ...table.files.key_footers import KeyRange, key_ranges
from ...table.files.names import FileGroupId
from ...table.seen_table import SeenTable
from ..indexing.known_keys import KeysOfWrite
from ..indexing.query import ask
from ..services.service import Executor

# Keys, and the slices in each of which they are sought.
_Wanted = tuple[pa.StringArray, tuple[FileSlice, ...]]


def keys_in(seen: SeenTable, slices: Iterable[FileSlice]) -> Iterator[tuple[FileSlice, pa.StringArray, bool]]:
    """Yield the record keys of slices in batches, each with its slice, and whether it is of the slice's log files."""
    for file_slice in slices:
        slice_keys = SliceKeys(seen.storage, file_slice, seen.timeline.is_committed)
        yield from ((file_slice, keys, False) for keys in slice_keys.of_base())
        yield from ((file_slice, keys, True) for keys in slice_keys.of_logs())


@dataclass(frozen=True, slots=True)
class LookTask:
    """Reads file slices; its results have all keys of the slices, up to ``room`` bytes of them."""

    table: SeenTable
    index: TableLookup
    room: int = 0

    def __call__(self, share: Sequence[_Wanted]) -> list[Hits]:
        """Return which of the keys each slice holds, for each pair of keys and slices, in order."""
        storage, sees = self.table.storage, self.table.timeline.is_committed
        hits, room = [], Room(self.room)
        for keys, slices in share:
            wanted_keys = WantedKeys.of(keys)
            for file_slice in slices:
                gathered = GatheredKeys(room) if self.room else None
                hits.append(self.index.hits(SliceKeys(storage, file_slice, sees, gathered), wanted_keys))
        return hits


@dataclass(frozen=True, slots=True)
class RangesTask:
    table: SeenTable

    def __call__(self, files: Sequence[BaseFile]) -> list[KeyRange | None]:
        """Return the range of the keys of each file, None if the file does not have it."""
        return key_ranges(self.table.storage, files)


@dataclass(frozen=True, slots=True)
class AskTask:
    """Queries an index that another package keeps outside of the table, which any task can do."""

    table: SeenTable
    index: LookupIndex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the answers as `pairs_of` returns them, for unique pairs of record key and partition path."""
        for rows in rechunk(iter(batches)):
            keyed = KeyedRows(text_column(rows, 0), text_column(rows, 1).dictionary_encode())
            yield pairs_of(keyed, ask(self.index, keyed, self.table))


@dataclass(frozen=True, slots=True)
class SpreadLookup:
    """Looks keys up in the files of a table by tasks.

    Attributes:
        spread: Runs the tasks.
        most: The largest number of tasks, unless a task would test more keys than the settings allow.
        known_keys: The table's keys that this process knows, so that tasks need not read them; None for none.
    """

    table: SeenTable
    index: TableLookup
    spread: Executor
    most: int
    known_keys: KeysOfWrite | None = None

    def tag(self, rows: KeyedRows) -> Tags:
        """Return the file groups of each row's key."""
        return self.index.tag_by(rows, self.table.view, self.look)

    def look(self, units: Sequence[Unit]) -> list[Hits]:
        """Return the hits of each unit, in order; tasks read only slices whose keys this process does not know."""
        known_keys = self.known_keys
        if known_keys is None:
            return self._look_by_tasks(units)
        hits = known_keys.hits(units)
        rest = [number for number in range(len(units)) if number not in hits]
        room = known_keys.room.free if known_keys.fills else 0
        read_hits = self._look_by_tasks([units[number] for number in rest], room)
        for number, of_slice in zip(rest, read_hits, strict=True):
            known_keys.add_read(units[number][1], of_slice)
            hits[number] = of_slice
        return [hits[number] for number in range(len(units))]

    def _look_by_tasks(self, units: Sequence[Unit], room: int = 0) -> list[Hits]:
        """Return the hits of each unit, in order; they have all keys of the slices, up to ``room`` bytes of them."""
        size = max(1, math.ceil(len(units) / self.most))
        shares = list(_shares(units, size, self.index.settings.keys_per_task))
        task = LookTask(self.table, self.index, room // max(len(shares), 1))
        return [hits for of_share in self.spread(task, shares) for hits in of_share] if shares else []

    def overlapping(self, slices: Sequence[FileSlice], spans: Mapping[str, tuple[str, str]]) -> list[FileSlice]:
        """Return the slices that may hold keys of some ranges, by the footers of their base files.

        Slices with log files stay, because no footer covers their keys; all slices stay where the index reads no
        ranges. ``spans`` are the least and the greatest wanted key of each partition, in the order of their bytes.
        """
        if not (self.index.reads_ranges and self.index.settings.prunes_by_ranges):
            return list(slices)
        logless = [file_slice for file_slice in slices if not file_slice.logs]
        files = [file_slice.base_file for file_slice in logless]
        size = max(1, math.ceil(len(files) / self.most))
        shares = [files[start : start + size] for start in range(0, len(files), size)]
        ranges = [key_range for of_share in self.spread(RangesTask(self.table), shares) for key_range in of_share]
        groups_without = {
            file_slice.group
            for file_slice, key_range in zip(logless, ranges, strict=True)
            if key_range is not None and not _may_hold(key_range, spans[file_slice.partition_path])
        }
        return [file_slice for file_slice in slices if file_slice.group not in groups_without]


def _may_hold(key_range: KeyRange, span: tuple[str, str]) -> bool:
    """Return whether a file with a range of keys may hold a key from the least to the greatest wanted key."""
    # Every order of texts agrees on which keys lie beyond these bounds of a file.
    return key_range.least <= span[1] and span[0] <= key_range.greatest


def pairs_of(rows: KeyedRows, tags: Tags) -> pa.RecordBatch:
    """Return the columns key, path, partition and file id, with a row for each file group that holds a key.

    A key that the table lacks has one row, with nulls in the last two columns.
    """
    at = pa.array(np.append(np.arange(len(rows)), tags.copied))
    places = group_columns(tags.groups, np.append(tags.codes, tags.copy_codes))
    paths = rows.paths.take(at).dictionary_decode()
    return pa.RecordBatch.from_arrays(
        [rows.record_keys.take(at), paths, *places], names=["key", "path", "partition", "file_id"]
    )


def group_columns(groups: Sequence[FileGroupId], codes: Positions) -> tuple[pa.StringArray, pa.StringArray]:
    """Return the partitions and file ids of file groups by their codes; nulls for the code `NOT_FOUND`."""
    at = pa.array(codes, pa.int64(), mask=np.asarray(codes) == NOT_FOUND)
    names = ([group.partition_path for group in groups], [group.file_id for group in groups])
    partitions, ids = (pa.array(name, pa.string()).take(at) for name in names)
    return partitions, ids


def text_column(rows: pa.RecordBatch, number: int) -> pa.StringArray:
    """Return a column of rows as texts without a dictionary."""
    return plain(rows.column(number)).cast(pa.string())


def _shares(units: Sequence[Unit], size: int, keys: int) -> Iterator[list[_Wanted]]:
    """Yield the work of each task: at most ``size`` slices and ``keys`` pairs of a key and a slice.

    A single slice is never split, however many keys are sought in it.
    """
    share: list[_Wanted] = []
    last_wanted: pa.StringArray | None = None
    slices, pairs = 0, 0
    for wanted_keys, file_slice in units:
        if share and (slices == size or pairs + len(wanted_keys) > keys):
            yield share
            share, last_wanted, slices, pairs = [], None, 0, 0
        # The units of one search share their array of keys and come together, so that a task gets the array once.
        if wanted_keys is last_wanted:
            share[-1] = (share[-1][0], (*share[-1][1], file_slice))
        else:
            share.append((wanted_keys, (file_slice,)))
        last_wanted, slices, pairs = wanted_keys, slices + 1, pairs + len(wanted_keys)
    if share:
        yield share
