"""The bytes and rows of a table's files: over time, by size, by partition and bucket, and in log files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...table.config.property_keys import BUCKET
from ...table.files.file_group import DataFile, FileGroup, FileSlice, data_file, file_id_and_time, is_change_data
from ..inspect.walked_table import WalkedTable
from .figures import DebtOfGroup, HeatCell, HeatMap, SizeBin, SpacePoint
from .time_bars import InstantClock

MOST_ROWS, MOST_COLUMNS = 48, 64
MOST_POINTS = 300
MOST_DEBT = 20
# Greater than every time.
_NEVER = "~"
Counts = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Debt:
    """The file groups with most bytes of log files, and how many have any."""

    groups: tuple[DebtOfGroup, ...]
    count: int
    bytes: int


def space_over_time(walked: WalkedTable) -> tuple[SpacePoint, ...]:
    """Return the live and dead bytes after each of the newest writes, of the files that exist now.

    A file is live from the completion of its write until a write completes that begins the next slice or replaces the
    file group. Files that a clean has deleted do not count.
    """
    clock, writes = InstantClock(walked.table.config.timezone), walked.timeline.writes
    moments = sorted({write.visible_since: write.requested_time for write in writes}.items())[-MOST_POINTS:]
    if not moments:
        return ()
    times = [moment for moment, _ in moments]
    lives = tuple(_lives(walked))
    sizes = np.array([size for size, _, _ in lives], np.int64)
    born = np.searchsorted(times, np.array([born for _, born, _ in lives], str)) if lives else sizes
    died = np.searchsorted(times, np.array([died for _, _, died in lives], str)) if lives else sizes
    born_bytes = _bytes_until(born, sizes, len(times))
    # A file whose slice ended before the file was complete was never live.
    dead_bytes = _bytes_until(np.maximum(born, died), sizes, len(times))
    return tuple(
        SpacePoint(instant, at, int(born_bytes[number] - dead_bytes[number]), int(dead_bytes[number]))
        for number, (moment, instant) in enumerate(moments)
        if (at := clock.ms(moment)) is not None
    )


def _bytes_until(at: Counts, sizes: Counts, count: int) -> Counts:
    """Return for each of ``count`` moments the bytes of all files that were born, or died, until then.

    ``at`` has for each file the number of the moment at which it was born, or died; ``count`` for never.
    """
    bytes_at = np.zeros(count + 1, np.int64)
    np.add.at(bytes_at, at, sizes)
    return np.cumsum(bytes_at)[:count]


def _lives(walked: WalkedTable) -> Iterator[tuple[int, str, str]]:
    """Yield the size of each file of a completed write, and the completion times at which it was born and died.

    Change data lives as long as the slice whose files it lies beside; other files that no slice has were never live.
    """
    view, visible_since = walked.view, {write.requested_time: write.visible_since for write in walked.timeline.writes}
    replaced = walked.replaced_since

    def made_at(file: DataFile) -> str:
        return min(
            (visible_since.get(maker, "") for maker in walked.table.format.makers([file], walked.timeline)), default=""
        )

    for path in walked.partitions:
        files: dict[str, tuple[str, str]] = {}
        of_slices: dict[tuple[str, str], tuple[str, str]] = {}
        groups: list[FileGroup] = [*view.groups(path).values()]
        groups += view.replaced_groups(path).values() if any(partition == path for partition, _ in replaced) else []
        for group in groups:
            last = replaced.get((path, group.id.file_id), _NEVER)
            # An archived write, whose time is missing here, counts as complete before all moments.
            ends = [*(visible_since.get(each.base_time, "") for each in group.slices[1:]), last]
            for file_slice, slice_end in zip(group.slices, ends, strict=True):
                for file in file_slice.data_files:
                    files[file.path] = of_slices[file_id_and_time(file)] = made_at(file), min(slice_end, last)
        for info in walked.listings[path]:
            life = files.get(info.path)
            unlisted_file = None if life else data_file(info.path, changes=True)
            if life is not None:
                yield info.size, *life
            elif unlisted_file is not None and view.shows(unlisted_file):
                of_slice = of_slices.get(file_id_and_time(unlisted_file)) if is_change_data(unlisted_file) else None
                yield info.size, *(of_slice or (made_at(unlisted_file), made_at(unlisted_file)))


def size_bins(walked: WalkedTable) -> tuple[SizeBin, ...]:
    """Return the base files of the newest slices by size; each bin reaches to twice the bytes of the bin before."""
    sizes = np.array([file_slice.base.size for file_slice in walked.slices if file_slice.base is not None], np.int64)
    if not sizes.size:
        return ()
    # frexp gives the exact power of two; a logarithm may round.
    powers = np.maximum(np.frexp(sizes.astype(float))[1] - 1, 0)
    first_power, last_power = int(powers.min()), int(powers.max())
    return tuple(
        SizeBin(0 if power == 0 else 1 << power, 2 << power, int(chosen.sum()), int(sizes[chosen].sum()))
        for power in range(first_power, last_power + 1)
        for chosen in [powers == power]
    )


def heat_map(walked: WalkedTable, rows: Mapping[str, int]) -> tuple[HeatMap, int]:
    """Return bytes and rows by partition and bucket, and the number of file groups whose rows are unknown.

    ``walked`` is the table with one listing of its files. ``rows`` has the rows of base files by file name, as far as
    the opened writes state them. Without a bucket index, a file group's column is its number within its partition. If
    there are too many partitions or columns, neighbours share a cell.
    """
    of_buckets = walked.index == BUCKET
    numbered: list[tuple[int, int, FileSlice]] = []
    paths = [path for path, slices in walked.slices_by_partition.items() if slices]
    for at, path in enumerate(paths):
        for number, file_slice in enumerate(walked.slices_by_partition[path].values()):
            # A file id that names no bucket, by another writer, is shown in the first column.
            bucket = walked.bucket_of(file_slice.file_id) if of_buckets else number
            numbered.append((at, 0 if bucket is None else bucket, file_slice))
    numbers = max((number for _, number, _ in numbered), default=-1) + 1
    row_steps, column_steps = _group_starts(len(paths), MOST_ROWS), _group_starts(numbers, MOST_COLUMNS)
    sums_by_cell: dict[tuple[int, int], list[int]] = {}
    unknown: dict[tuple[int, int], bool] = {}
    lacking = 0
    for at, number, file_slice in numbered:
        key = int(np.searchsorted(row_steps, at, "right")) - 1, int(np.searchsorted(column_steps, number, "right")) - 1
        # Without log files, the rows of the base file by its commit are the rows of the group.
        stated = None if file_slice.logs or file_slice.base is None else rows.get(file_slice.base.name)
        sums = sums_by_cell.setdefault(key, [0, 0, 0])
        sums[0], sums[1], sums[2] = sums[0] + 1, sums[1] + file_slice.size, sums[2] + (stated or 0)
        lacking += stated is None
        unknown[key] = unknown.get(key, False) or stated is None
    cells = tuple(
        HeatCell(*key, groups, size, None if unknown[key] else count)
        for key, (groups, size, count) in sorted(sums_by_cell.items())
    )
    # A table without file groups has neither rows nor columns.
    ends = [*row_steps, len(paths)][1:], [*column_steps, numbers][1:]
    heat = HeatMap(
        rows=tuple(
            paths[start] if end == start + 1 else f"{paths[start]} … {paths[end - 1]}"
            for start, end in zip(row_steps, ends[0], strict=True)
        ),
        columns=tuple(
            f"{start}" if end == start + 1 else f"{start}–{end - 1}"
            for start, end in zip(column_steps, ends[1], strict=True)
        ),
        cells=cells,
        partitions=len(paths),
        numbers=numbers,
        of_buckets=of_buckets,
    )
    return heat, lacking


def _group_starts(count: int, most: int) -> Sequence[int]:
    """Return the number of the first item of each group, for ``count`` items in at most ``most`` equal groups."""
    groups = min(count, most)
    return [number * count // groups for number in range(groups)]


def debt_of(walked: WalkedTable) -> Debt:
    """Return the file groups with log files, those with most bytes first."""
    logged = sorted(
        (file_slice for file_slice in walked.slices if file_slice.logs),
        key=lambda file_slice: (-file_slice.log_bytes, file_slice.group),
    )
    groups = tuple(
        DebtOfGroup(each.partition_path, each.file_id, each.size - each.log_bytes, each.log_bytes, len(each.logs))
        for each in logged[:MOST_DEBT]
    )
    return Debt(groups, len(logged), sum(each.log_bytes for each in logged))
