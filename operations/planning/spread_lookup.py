"""A lookup whose files are opened by the tasks of an executor: each file slice by one of them, once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...index.base import KeyedRows, Tags
from ...index.lookup import TableLookup, Unit
from ...index.slice_keys import Hits, WantedKeys, keys_of
from ...storage.base import Storage
from ...table.files.file_group import BaseFile, FileSlice
from ...table.files.key_footers import KeyRange, key_ranges
from ...table.files.view import FileView
from ...table.seen_table import SeenTable
from ..services.service import Executor

# The keys that are looked for in each of some slices.
_Wanted = tuple[pa.StringArray, tuple[FileSlice, ...]]


def keys_in(seen: SeenTable, pieces: Iterable[FileSlice]) -> Iterator[tuple[FileSlice, pa.StringArray]]:
    """Yield all record keys of some slices, with the slice of each array.

    Raises:
        PyHudiError: A file cannot be read.
    """
    for piece in pieces:
        for found in keys_of(seen.storage, piece, seen.timeline.is_committed):
            yield piece, found


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
            found += [self.index.look(storage, piece, wanted, sees) for piece in pieces]
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
        storage = self.table.storage
        return key_ranges(storage, files)


def overlapping(
    task: LookTask, pieces: Sequence[FileSlice], spans: Mapping[str, tuple[str, str]], spread: Executor, most: int
) -> list[FileSlice]:
    """Return the slices that may hold keys of some ranges, by what the footers of their base files say.

    Those are all of them where the table's index goes by no ranges.

    Args:
        task: What is done with the slices.
        pieces: Slices; those with log files stay, because nothing tells of their keys.
        spans: The least and the greatest wanted key of each partition, in the order of their bytes.
        spread: Runs the tasks that read footers.
        most: Into how many tasks footers are spread.

    Raises:
        PyHudiError: A footer cannot be read.
    """
    if not (task.index.reads_ranges and task.index.settings.prunes_by_ranges):
        return list(pieces)
    plain = [piece for piece in pieces if not piece.logs]
    files = [piece.base_file for piece in plain]
    size = max(1, math.ceil(len(files) / most))
    shares = [files[start : start + size] for start in range(0, len(files), size)]
    ranges = [one for found in spread(RangesTask(task.table), shares) for one in found]
    apart = {
        piece.group
        for piece, one in zip(plain, ranges, strict=True)
        if one is not None and not _meet(one, spans[piece.partition_path])
    }
    return [piece for piece in pieces if piece.group not in apart]


def _meet(one: KeyRange, span: tuple[str, str]) -> bool:
    # The bounds of a file are such that all orders of texts agree on what lies beyond them.
    return one.least <= span[1] and span[0] <= one.greatest


def tag_spread(task: LookTask, rows: KeyedRows, view: FileView, storage: Storage, spread: Executor, most: int) -> Tags:
    """Return where each row's key is, as `TableLookup.tag` does.

    Args:
        task: What is done with the slices.
        rows: The rows.
        view: The table's file slices as of the write's watermark.
        storage: Rooted at the table.
        spread: Runs the tasks.
        most: Into how many tasks slices are spread, unless one would test more keys than it should.

    Raises:
        PyHudiError: A file cannot be read.
    """

    def look(units: Sequence[Unit]) -> list[Hits]:
        size = max(1, math.ceil(len(units) / most))
        shares = list(_shares(units, size, task.index.settings.keys_per_task))
        return [hits for found in spread(task, shares) for hits in found]

    return task.index.tag_by(rows, view, storage, look)


def _shares(units: Sequence[Unit], size: int, keys: int) -> Iterator[list[_Wanted]]:
    """Yield what each task is to do: up to so many slices, and so many pairs of a key and a slice, at least one."""
    share: list[_Wanted] = []
    last: pa.StringArray | None = None
    slices, pairs = 0, 0
    for wanted, piece in units:
        if share and (slices == size or pairs + len(wanted) > keys):
            yield share
            share, last, slices, pairs = [], None, 0, 0
        if wanted is last:
            share[-1] = (share[-1][0], (*share[-1][1], piece))
        else:
            share.append((wanted, (piece,)))
        last, slices, pairs = wanted, slices + 1, pairs + len(wanted)
    if share:
        yield share
