"""The plan of a read: which pieces of which files each task reads."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..table.files.file_group import FileSlice
from .skipping.footer_search import RowGroup

# Spark's estimate of opening a file (spark.sql.files.openCostInBytes): tiny files must not crowd a task.
OPEN_COST = 4 << 20
# Spark spreads a small table over its default parallelism, which a data source cannot learn.
LEAST_TASKS = 32


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a base file, or a whole slice with its logs.

    Attributes:
        path: The base file, or the first log file of a slice without one, relative to the table's root.
        row_groups: The file's row groups to read; None for all.
        stated: The base file's size as its completed instant states it; 0 where it states none.
    """

    path: str
    partition_path: str
    row_groups: tuple[int, ...] | None
    size: int
    merged: FileSlice | None = None
    stated: int = 0


@dataclass(frozen=True, slots=True)
class Split:
    pieces: tuple[Piece, ...]


def plan_splits(
    slices: Iterable[FileSlice],
    row_groups: Mapping[str, Sequence[RowGroup]],
    split_size: int,
    least_tasks: int = LEAST_TASKS,
) -> list[Split]:
    """Distribute slices evenly over tasks, each of which reads at most about ``split_size`` bytes.

    A small table goes to ``least_tasks`` tasks, unless it has fewer pieces. Slices with logs are not cut, as every part
    would read all logs, nor are files whose footer is unknown. The largest piece goes first, each to the task that has
    least so far (Graham's LPT rule).
    """
    pieces = [piece for file_slice in slices for piece in _pieces(file_slice, row_groups, split_size)]
    total = sum(piece.size + OPEN_COST for piece in pieces)
    count = min(len(pieces), max(least_tasks, -(-total // split_size)))
    tasks: list[list[Piece]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for piece in sorted(pieces, key=lambda piece: (-piece.size, piece.path, piece.row_groups or ())):
        cost = piece.size + OPEN_COST
        size, number = loads[0]
        if size and size + cost > split_size:
            heapq.heappush(loads, (cost, len(tasks)))
            tasks.append([piece])
        else:
            heapq.heapreplace(loads, (size + cost, number))
            tasks[number].append(piece)
    return [Split(tuple(task)) for task in tasks]


def whole(file_slice: FileSlice) -> Piece:
    stated = 0 if file_slice.base is None else file_slice.base.stated
    merged = file_slice if file_slice.logs else None
    return Piece(file_slice.files[0], file_slice.partition_path, None, file_slice.size, merged, stated)


def _pieces(file_slice: FileSlice, known: Mapping[str, Sequence[RowGroup]], split_size: int) -> list[Piece]:
    row_groups = None if file_slice.logs else known.get(file_slice.base_file.path)
    if row_groups is None:
        return [whole(file_slice)]
    base = file_slice.base_file
    pieces: list[Piece] = []
    numbers: list[int] = []
    size = 0
    for group in row_groups:
        if numbers and size + group.size > split_size:
            pieces.append(Piece(base.path, file_slice.partition_path, tuple(numbers), size, stated=base.stated))
            numbers, size = [], 0
        numbers.append(group.number)
        size += group.size
    if numbers:
        pieces.append(Piece(base.path, file_slice.partition_path, tuple(numbers), size, stated=base.stated))
    return pieces
