"""How the ranges of record keys of base files overlap, by the footers of all base files or of a fixed sample."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

from ...errors import PyHudiError
from ...storage.parallel import for_each
from ...table.files.file_group import BaseFile
from ...table.files.key_footers import KeyRange, key_ranges
from ..inspect.walked_table import WalkedTable
from .figures import Overlap, OverlapBin

MOST_FOOTERS = 500


def find_overlap(walked: WalkedTable, *, deep: bool) -> Overlap:
    """Return with how many other base files of its partition each base file's range of keys overlaps."""
    by_partition = [
        [file_slice.base for file_slice in slices.values() if file_slice.base is not None]
        for slices in walked.slices_by_partition.values()
    ]
    chosen = by_partition if deep else sample(by_partition, MOST_FOOTERS)
    files = [file for part in chosen for file in part]
    storage = walked.table.storage

    def read(file: BaseFile) -> KeyRange | PyHudiError | None:
        try:
            return key_ranges(storage, [file])[0]
        except PyHudiError as error:
            return error

    read_ranges = iter(for_each(storage, read, files, computes=True))
    counts: Counter[int] = Counter()
    without = unreadable = 0
    for part in chosen:
        ranges = [next(read_ranges) for _ in part]
        without += sum(each is None for each in ranges)
        unreadable += sum(isinstance(each, PyHudiError) for each in ranges)
        counts.update(overlaps([each for each in ranges if isinstance(each, KeyRange)]))
    return Overlap(len(files), sum(map(len, by_partition)), without, unreadable, _bins(counts))


def sample(by_partition: Sequence[Sequence[BaseFile]], most: int) -> list[Sequence[BaseFile]]:
    """Return the base files of whole partitions at equal distances, at most ``most`` files.

    Files of one partition are comparable, so a sample of single files would show no overlap.
    """
    parts = [part for part in by_partition if part]
    total = sum(map(len, parts))
    if total <= most:
        return parts
    wanted = max(1, len(parts) * most // total)
    chosen: list[Sequence[BaseFile]] = []
    left = most
    for number in range(wanted):
        part = parts[number * len(parts) // wanted][:left]
        left -= len(part)
        if part:
            chosen.append(part)
    return chosen


def overlaps(ranges: Sequence[KeyRange]) -> list[int]:
    """Return with how many other ranges each range overlaps."""
    least, greatest = sorted(each.least for each in ranges), sorted(each.greatest for each in ranges)
    return [bisect_right(least, each.greatest) - bisect_left(greatest, each.least) - 1 for each in ranges]


def _bins(counts: Counter[int]) -> tuple[OverlapBin, ...]:
    """Return bins of 0, 1, 2 to 3, 4 to 7 and so on, up to the last that has files."""
    bins: list[OverlapBin] = []
    least, most = 0, 0
    while counts and least <= max(counts):
        bins.append(OverlapBin(least, most, sum(files for n, files in counts.items() if least <= n <= most)))
        least, most = most + 1, 2 * most + 1
    return tuple(bins)
