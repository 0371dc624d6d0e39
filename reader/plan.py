"""The plan of a read: which parts of which files each task reads."""

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
class SlicePart:
    """Part of a base file, or a whole slice with its logs.

    Attributes:
        path: The base file, or the first log file of a slice without one, relative to the table's root.
        row_groups: The file's row groups to read; None for all.
        stated: The base file's size as its completed instant states it; 0 if it states none.
    """

    path: str
    partition_path: str
    row_groups: tuple[int, ...] | None
    size: int
    merged: FileSlice | None = None
    stated: int = 0


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of files that one task reads."""

    parts: tuple[SlicePart, ...]


def plan_splits(
    slices: Iterable[FileSlice],
    row_groups: Mapping[str, Sequence[RowGroup]],
    split_size: int,
    least_tasks: int = LEAST_TASKS,
) -> list[Split]:
    """Return a split for each task: slices are spread evenly, and a task reads at most about ``split_size`` bytes.

    ``row_groups`` has those of base files by path, for files that may be cut. A small table goes to ``least_tasks``
    tasks, unless it has fewer parts. Slices with logs are not cut, as every part would read all logs, nor are files
    whose footer is unknown. The largest part goes first, each to the task that has least so far (Graham's LPT rule).
    """
    parts = [part for file_slice in slices for part in _parts_of_slice(file_slice, row_groups, split_size)]
    total = sum(part.size + OPEN_COST for part in parts)
    count = min(len(parts), max(least_tasks, -(-total // split_size)))
    tasks: list[list[SlicePart]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for part in sorted(parts, key=lambda part: (-part.size, part.path, part.row_groups or ())):
        cost = part.size + OPEN_COST
        load, task = loads[0]
        # A task without a part takes any part, however large.
        if load and load + cost > split_size:
            # Even the task that has least has no room left.
            heapq.heappush(loads, (cost, len(tasks)))
            tasks.append([part])
        else:
            heapq.heapreplace(loads, (load + cost, task))
            tasks[task].append(part)
    return [Split(tuple(parts_of_task)) for parts_of_task in tasks]


def whole(file_slice: FileSlice) -> SlicePart:
    """Return a slice as one part, to be read by a single task."""
    stated = 0 if file_slice.base is None else file_slice.base.stated
    merged = file_slice if file_slice.logs else None
    return SlicePart(file_slice.files[0], file_slice.partition_path, None, file_slice.size, merged, stated)


def _parts_of_slice(
    file_slice: FileSlice, groups_by_path: Mapping[str, Sequence[RowGroup]], split_size: int
) -> list[SlicePart]:
    """Return the parts of a slice: groups of row groups of at most ``split_size`` bytes, or the slice as a whole.

    ``groups_by_path`` has the row groups to read of each base file that may be cut. A single row group may be larger.
    """
    # A slice with logs stays whole, as every part would have to read all its logs.
    row_groups = None if file_slice.logs else groups_by_path.get(file_slice.base_file.path)
    if row_groups is None:
        return [whole(file_slice)]
    base = file_slice.base_file
    parts: list[SlicePart] = []
    numbers: list[int] = []
    size = 0
    for group in row_groups:
        if numbers and size + group.size > split_size:
            parts.append(SlicePart(base.path, file_slice.partition_path, tuple(numbers), size, stated=base.stated))
            numbers, size = [], 0
        numbers.append(group.number)
        size += group.size
    if numbers:
        parts.append(SlicePart(base.path, file_slice.partition_path, tuple(numbers), size, stated=base.stated))
    return parts
