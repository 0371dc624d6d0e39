"""The parts of a rescale, on values alone: its instants, and the units that tasks execute side by side for each.

A key whose hash is h has the bucket h mod the number of buckets. So with the greatest common divisor d of the old and
the new number, rows of a bucket b go only to buckets b' with b' mod d = b mod d. Such a class of buckets is a unit: one
bucket becomes several, several become one, or several become several. Large classes of the last kind, such as those of
numbers without a common divisor, take two steps instead: tasks divide each file slice into spills in the table's store,
and then each new bucket takes its rows from the spills.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....errors import UnsupportedTableError
from ....storage.base import split
from ....table.files.file_group import FileSlice, data_file
from ....table.files.names import bucket_of

if TYPE_CHECKING:
    from ....table.arrow.spill import SpillFile

# The bytes that one instant reads, unless a single partition has more: some 25 s on two cores. Commits wait for 60 s.
_BYTES_OF_AN_INSTANT = 1 << 29
_PARTITIONS_OF_AN_INSTANT = 1_000
# A class with more old and more new buckets than this would be too much work for one task.
_FEW = 4


@dataclass(frozen=True, slots=True)
class BucketChange:
    """One partition's numbers of buckets, ``old`` and ``new``."""

    partition_path: str
    old: int
    new: int

    @property
    def classes(self) -> int:
        """How many classes of buckets share no rows: the greatest common divisor of both numbers."""
        return math.gcd(self.old, self.new)

    @property
    def shuffles(self) -> bool:
        """Whether each new bucket takes rows from many old buckets, and each old bucket gives rows to many new."""
        return min(self.old, self.new) // self.classes > _FEW

    def targets(self, remainder: int) -> range:
        """Return the new buckets of the class with a remainder."""
        return range(remainder, self.new, self.classes)


@dataclass(frozen=True, slots=True)
class RescaleUnit:
    """What one task does: it divides the rows of ``sources`` among the buckets ``targets``.

    Attributes:
        spills: If there are no ``sources``: the spills of other tasks, from which this task takes its bucket's rows.
    """

    change: BucketChange
    sources: tuple[FileSlice, ...]
    targets: tuple[int, ...]
    spills: tuple[SpillFile, ...] = ()

    @property
    def partition_path(self) -> str:
        return self.change.partition_path

    @property
    def size(self) -> int:
        """The bytes that the task reads; of spills, only its own bucket's share counts."""
        return sum(file.size for file in self.sources) or sum(file.size for file in self.spills) // max(
            self.change.new, 1
        )

    @property
    def remainder(self) -> int:
        """The class of the unit's buckets: all have this remainder."""
        return self.targets[0] % self.change.classes

    @property
    def divides(self) -> bool:
        """Whether the task leaves spills for the tasks of the new buckets."""
        return self.change.shuffles and bool(self.sources)


def partitions_by_instant(slices: Mapping[str, Sequence[FileSlice]]) -> list[tuple[str, ...]]:
    """Return the partitions of each instant, in order; a partition of more bytes than the bound has its own instant."""
    by_instant: list[list[str]] = []
    room_bytes = 0
    for path, partition_slices in slices.items():
        size = sum(file_slice.size for file_slice in partition_slices)
        if not by_instant or size > room_bytes or len(by_instant[-1]) == _PARTITIONS_OF_AN_INSTANT:
            by_instant.append([])
            room_bytes = _BYTES_OF_AN_INSTANT
        by_instant[-1].append(path)
        room_bytes -= size
    return [tuple(paths) for paths in by_instant]


def units_of(change: BucketChange, slices: Sequence[FileSlice], table: str) -> list[RescaleUnit]:
    """Return the units of one partition's slices; raises `UnsupportedTableError` if a file id names no bucket.

    A bucket is the hash of a key modulo the number of buckets. So old buckets with one remainder modulo
    `change.classes` give their rows to the same new buckets, and to no others: each such class is a unit. If the change
    shuffles, each slice is a unit instead. The path ``table`` names the table in the error.
    """
    by_class: dict[int, list[FileSlice]] = {}
    for file_slice in slices:
        bucket = bucket_of(file_slice.file_id)
        if bucket is None or bucket >= change.old:
            raise UnsupportedTableError(
                f"The {file_slice.group.words} of the table {table} is none of its partition's {change.old} buckets, "
                "as its file id shows.",
                "Run validate, which lists such file groups, and rewrite their partition with mode overwrite.",
            )
        by_class.setdefault(bucket % change.classes, []).append(file_slice)
    if change.shuffles:
        # Each task divides one slice into spills; `gathering_units` makes the units of the second step.
        return [
            RescaleUnit(change, (file_slice,), tuple(change.targets(remainder)))
            for remainder, members in sorted(by_class.items())
            for file_slice in members
        ]
    return [
        RescaleUnit(change, tuple(members), tuple(change.targets(remainder)))
        for remainder, members in sorted(by_class.items())
    ]


def gathering_units(divided: Sequence[tuple[RescaleUnit, SpillFile]]) -> list[RescaleUnit]:
    """Return the units of the second step: each takes the rows of one new bucket from the first step's spills."""
    spills: dict[tuple[BucketChange, int], list[SpillFile]] = {}
    for unit, spill in divided:
        for target in unit.targets:
            spills.setdefault((unit.change, target), []).append(spill)
    return [RescaleUnit(change, (), (target,), tuple(files)) for (change, target), files in spills.items()]


def finished_units(units: Sequence[RescaleUnit], paths: Sequence[str]) -> Sequence[RescaleUnit]:
    """Return the units to which some new data files belong."""
    new_files = [file for path in paths if (file := data_file(path)) is not None]
    buckets = {(split(file.path)[0], bucket_of(file.file_id)) for file in new_files}
    return [unit for unit in units if any((unit.partition_path, target) in buckets for target in unit.targets)]
