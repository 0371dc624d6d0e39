"""Where new keys are written under an index that does not bind them: into small files first, then into new file groups.

A write counts its new rows by partition and assigns hash ranges to file groups once. A key's hash alone then decides
its file group, so that many tasks fill one small file together without talking to each other, and none overfills it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import CorruptInstantError, StorageError
from ..storage.threads import for_each
from ..table.files.names import PARQUET, bucket_by_name, new_file_id
from ..table.files.view import FileView
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from .base import Buckets
from .settings import FileSizes

logger = logging.getLogger(__name__)

_NEWEST = 5
_CLUSTERING = "CLUSTER"


def learned_record_bytes(timeline: Timeline, sizes: FileSizes) -> float:
    """Return how many bytes a row of a table takes in a base file, above 0.

    The newest large commits decide: in small files footers outweigh rows, and a clustering's sorted rows take less.
    """
    newest = timeline.writes[: -_NEWEST - 1 : -1]
    bytes_and_rows = for_each(timeline.files.storage, lambda instant: _bytes_and_rows(timeline, instant), newest)
    large_commits = [
        (written, rows) for written, rows in bytes_and_rows if rows and written > sizes.telling * max(sizes.small, 0)
    ]
    rows = sum(rows for _, rows in large_commits)
    return sum(written for written, _ in large_commits) / rows if rows else float(max(sizes.record_bytes, 1))


def _bytes_and_rows(timeline: Timeline, instant: Instant) -> tuple[int, int]:
    """Return the bytes and rows of the base files that a commit wrote.

    Zeros for a clustering or an unreadable commit.
    """
    try:
        body = timeline.files.read_commit(instant)
    except (StorageError, CorruptInstantError) as error:
        # The commit may have been archived since. The estimate can do without it.
        logger.info("%s tells no size of a row: %s", instant.requested_time, error)
        return 0, 0
    if body.operation_type == _CLUSTERING:
        return 0, 0
    stats = [
        stat
        for of_partition in body.partition_to_write_stats.values()
        for stat in of_partition
        if (stat.path or "").endswith(PARQUET) and stat.num_writes > 0
    ]
    return sum(stat.total_write_bytes or stat.file_size_in_bytes for stat in stats), sum(
        stat.num_writes for stat in stats
    )


Hashes = np.ndarray[Any, np.dtype[np.uint64]]

# Values of a 64-bit hash.
_HASHES = 1 << 64


@dataclass(frozen=True, slots=True, order=True)
class SmallFile:
    """A base file that new rows may join; files compare by their size in bytes."""

    size: int
    file_id: str


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """The file groups that new rows may join: small files by partition path, smallest first."""

    small: Mapping[str, tuple[SmallFile, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        view: FileView,
        partitions: Iterable[str],
        sizes: FileSizes,
        *,
        held: Collection[tuple[str, str]] = (),
        appends: bool = False,
    ) -> GroupSizes:
        """Return the small files of some partitions, which take new rows in; none if `FileSizes.small` is 0.

        ``view`` has the newest file slices, and ``sizes`` says which files are small. Excluded are slices with log
        files, with which new rows would have to be merged; file groups of `held`, whose pending compaction or
        clustering would lose the new rows; and buckets by name, where writers look for their own keys only. A write
        that `appends` rewrites at most `FileSizes.most_rewritten` files of a partition.
        """
        small_files: dict[str, tuple[SmallFile, ...]] = {}
        for path in partitions if sizes.small > 0 else ():
            files = sorted(
                SmallFile(file_slice.base.size, file_slice.file_id)
                for file_slice in view.slices(path).values()
                if file_slice.base is not None
                and not file_slice.logs
                and (path, file_slice.file_id) not in held
                and bucket_by_name(file_slice.file_id) is None
            )
            small = tuple(file for file in files if file.size < sizes.small)
            small_files[path] = small[: max(sizes.most_rewritten, 0)] if appends else small
        return cls(small_files)


@dataclass(frozen=True, slots=True)
class Share:
    """What one file group gets of a partition's new rows.

    Attributes:
        number: Counts the file groups that the write opens in the partition; None for a file group that exists.
        last: The greatest hash of its keys. The least is the previous share's `last` plus 1, or 0.
    """

    file_id: str
    number: int | None
    rows: int
    last: int

    @property
    def spelled(self) -> str:
        """The file id of a file group that exists, ``+n`` of a new file group: as the column of placed rows has it."""
        return self.file_id if self.number is None else f"+{self.number}"


@dataclass(frozen=True, slots=True)
class Shares:
    """How the new rows of one partition are dealt out, in order of hashes; each hash belongs to exactly one share."""

    shares: tuple[Share, ...]

    def take(self, hashes: Hashes) -> Buckets:
        """Return which share each key belongs to, by `hash64` or any other good hash that all tasks of a write use."""
        lasts = np.array([share.last for share in self.shares], np.uint64)
        return np.searchsorted(lasts, hashes, side="left").astype(np.int32)


def deal(
    new_rows: Mapping[str, int], groups: GroupSizes, sizes: FileSizes, record_bytes: float, instant_time: str
) -> dict[str, Shares]:
    """Return the shares of new rows by partition path: small files are filled up, smallest first, then new file groups.

    ``new_rows`` has the number of new rows by partition path, ``record_bytes`` is the size of a row. Shares are of
    hashes, so a file group's real number of rows varies about its quota.
    """
    rows_of_full_file = max(int(sizes.largest / record_bytes), 1)
    return {
        path: _shares_of_partition(
            path, rows, _free_rows(groups.small.get(path, ()), sizes, record_bytes), rows_of_full_file, instant_time
        )
        for path, rows in new_rows.items()
        if rows > 0
    }


def _free_rows(small: Iterable[SmallFile], sizes: FileSizes, record_bytes: float) -> dict[str, int]:
    """Return by file id how many more rows each small file takes, without those that take none."""
    rooms = {file.file_id: int((sizes.largest - file.size) / record_bytes) for file in small}
    return {file_id: room for file_id, room in rooms.items() if room > 0}


def _shares_of_partition(
    path: str, rows: int, rooms: Mapping[str, int], rows_of_full_file: int, instant_time: str
) -> Shares:
    """Return the shares of one partition's new rows: of the small files, then of new file groups for the rest.

    ``rooms`` has by file id how many more rows each small file takes; ``instant_time`` makes the ids of new groups.
    """
    quotas: list[tuple[str, int | None, int]] = []
    rows_left = rows
    for file_id, room in rooms.items():
        if not rows_left:
            break
        quotas.append((file_id, None, min(room, rows_left)))
        rows_left -= min(room, rows_left)
    for number in range(math.ceil(rows_left / rows_of_full_file)):
        quota = min(rows_of_full_file, rows_left - number * rows_of_full_file)
        quotas.append((new_file_id(instant_time, path, number), number, quota))
    shares: list[Share] = []
    dealt = 0
    for file_id, opened, quota in quotas:
        dealt += quota
        # Integer arithmetic, so that the last share ends exactly at the greatest hash.
        shares.append(Share(file_id, opened, quota, _HASHES * dealt // rows - 1))
    return Shares(tuple(shares))
