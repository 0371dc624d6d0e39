"""Where new keys go under an index that lets them go anywhere: into small files first, then into new file groups.

A write counts its new rows by partition and deals their places out once. Which of the places a key gets its hash alone
tells, so that many tasks fill one small file together without a word to each other, and none fills it twice.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..table.files.names import bucket_by_name, new_file_id
from ..table.files.view import FileView
from .base import Buckets
from .settings import FileSizes

Hashes = np.ndarray[Any, np.dtype[np.uint64]]

# As many as a 64-bit hash has values.
_HASHES = 1 << 64


@dataclass(frozen=True, slots=True, order=True)
class SmallFile:
    """A base file that new rows may join.

    Attributes:
        size: Its bytes.
        file_id: Its file group.
    """

    size: int
    file_id: str


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """The file groups that new rows may join.

    Attributes:
        small: Small files by partition path, smallest first.
    """

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
        """Return the small files of some partitions.

        A slice with log files is none, as rows that join it would have to be merged with them first. Nor is a slice
        that a pending compaction or clustering is going to read: what joins it then would be lost. What looks like a
        bucket is left to its keys, by which writers with a bucket index would look for it.

        Args:
            view: The table's file slices as of the write's watermark.
            partitions: Those that new rows belong to.
            sizes: What counts as small.
            held: File groups that pending compactions and clusterings hold, by partition path and file id.
            appends: Whether the write appends to file groups, which it does not do to those that new rows join.
        """
        found: dict[str, tuple[SmallFile, ...]] = {}
        for path in partitions if sizes.small > 0 else ():
            files = sorted(
                SmallFile(file_slice.base.size, file_slice.file_id)
                for file_slice in view.slices(path).values()
                if file_slice.base is not None
                and not file_slice.logs
                and (path, file_slice.file_id) not in held
                and bucket_by_name(file_slice.file_id) is None
            )
            small = tuple(one for one in files if one.size < sizes.small)
            found[path] = small[: max(sizes.most_rewritten, 0)] if appends else small
        return cls(found)


@dataclass(frozen=True, slots=True)
class Share:
    """What one file group gets of a partition's new rows.

    Attributes:
        file_id: The file group.
        number: Counts the file groups that the write opens in the partition; None for one that is there.
        rows: How many rows it is to get.
        last: The greatest hash of its keys. The least is one above the `last` of the share before it, or 0.
    """

    file_id: str
    number: int | None
    rows: int
    last: int

    @property
    def spelled(self) -> str:
        """The file id of a file group that is there, ``+n`` of one to be opened: as rows say that were placed."""
        return self.file_id if self.number is None else f"+{self.number}"


@dataclass(frozen=True, slots=True)
class Shares:
    """How the new rows of one partition are dealt out.

    Attributes:
        shares: In order of hashes; together they take every hash, none twice.
    """

    shares: tuple[Share, ...]

    def take(self, hashes: Hashes) -> Buckets:
        """Return which of the shares each key belongs to.

        Args:
            hashes: n hashes of record keys as `hash64` makes them. Any other good hash deals as well, if all tasks of
                a write take the same.
        """
        lasts = np.array([one.last for one in self.shares], np.uint64)
        return np.searchsorted(lasts, hashes, side="left").astype(np.int32)


def deal(
    new_rows: Mapping[str, int], groups: GroupSizes, sizes: FileSizes, record_bytes: float, instant_time: str
) -> dict[str, Shares]:
    """Deal the places of new rows out: small files are filled up, smallest first, and new file groups take the rest.

    A file group gets as many rows as its size has room for by the size of one row, and at least one where it is new.
    By hash it gets about as many: their number varies as that of heads does when coins are thrown.

    Args:
        new_rows: How many rows of new keys each partition gets; partitions of none are left out.
        groups: Which small files there are.
        sizes: Up to which size files are filled.
        record_bytes: Size of one row in a base file, above 0.
        instant_time: Of the write, which makes the file ids of new file groups.

    Returns:
        By partition path.
    """
    full = max(int(sizes.largest / record_bytes), 1)
    return {
        path: _deal(path, rows, _rooms(groups.small.get(path, ()), sizes, record_bytes), full, instant_time)
        for path, rows in new_rows.items()
        if rows > 0
    }


def _rooms(small: Iterable[SmallFile], sizes: FileSizes, record_bytes: float) -> dict[str, int]:
    """Return for how many rows each small file has room, of those that have any."""
    rooms = {one.file_id: int((sizes.largest - one.size) / record_bytes) for one in small}
    return {file_id: room for file_id, room in rooms.items() if room > 0}


def _deal(path: str, rows: int, rooms: Mapping[str, int], full: int, instant_time: str) -> Shares:
    quotas: list[tuple[str, int | None, int]] = []
    left = rows
    for file_id, room in rooms.items():
        if not left:
            break
        quotas.append((file_id, None, min(room, left)))
        left -= min(room, left)
    for number in range(math.ceil(left / full)):
        quota = min(full, left - number * full)
        quotas.append((new_file_id(instant_time, path, number), number, quota))
    shares: list[Share] = []
    dealt = 0
    for file_id, known, quota in quotas:
        dealt += quota
        # In whole numbers, so that the last one is exactly the greatest hash there is.
        shares.append(Share(file_id, known, quota, _HASHES * dealt // rows - 1))
    return Shares(tuple(shares))
