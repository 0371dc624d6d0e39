"""Groups of buckets, so that rows with equal hashes are in one group, whatever the numbers of buckets."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import OptionConflictError, UnsupportedTableError
from ...index.registry import placing_index_for
from ...table.buckets.numbers import bucket_numbers
from ...table.config import TableConfig
from ...table.config import property_keys as key
from ...table.files.file_group import FileSlice
from ...table.files.names import bucket_of
from ...table.table import Table
from ...timeline.timeline import Timeline
from .hashed_columns import ADVICE


def numbers_of_buckets(table: Table, timeline: Timeline) -> Callable[[str], int]:
    """Return a function that gives the number of buckets of a partition, at the moment that the timeline shows.

    Raises OptionConflictError for a table whose rows have no computed buckets, UnsupportedTableError if their number
    is unknown; so does the function for a partition.
    """
    config, path = table.config, table.path
    reason = _why_unindexed(config)
    if reason:
        raise OptionConflictError(f"The table {path} {reason}, so that its rows are in no particular buckets.", ADVICE)
    # Refuses properties that contradict each other.
    placing_index_for(config)
    numbers = bucket_numbers(table, timeline)
    if numbers.unknown:
        raise UnsupportedTableError(
            f"{numbers.unknown} So it is unknown which buckets of the table {path} belong together.",
            f"See what HudiTable.validate() finds; a write with the option {key.BUCKET_COUNT} notes a number that no "
            f"property has. {ADVICE}",
        )

    def number_of(partition_path: str) -> int:
        """Return the number of buckets of a partition; UnsupportedTableError if it is unknown."""
        number = numbers.of(partition_path)
        if number is None:
            raise UnsupportedTableError(
                f"Java and Python may read a rule of buckets of the table {path} differently for its partition "
                f"{partition_path!r}, so the number of buckets there is unknown.",
                ADVICE,
            )
        return number

    return number_of


def _why_unindexed(config: TableConfig) -> str:
    """Return what keeps the rows of a table out of computed buckets, for an error; empty if the table has buckets."""
    if config.generates_keys:
        return "generates its record keys"
    if config.index_type not in {None, key.BUCKET}:
        return f"has the index {config.index_type}"
    engine = config.properties.get(key.BUCKET_ENGINE, "")
    return f"has {key.BUCKET_ENGINE}={engine}" if engine.upper() not in {"", "SIMPLE"} else ""


_SHOWN = 5


@dataclass(frozen=True, slots=True)
class BucketChoice:
    """Some buckets of every partition, by their remainders on division; small, and travels as text."""

    divisor: int
    remainders: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.divisor < 1:
            raise ValueError(f"nothing is divided by {self.divisor}")

    def holds(self, file_id: str) -> bool:
        """Return whether a file group is one of these buckets; False for an id without a bucket."""
        bucket = bucket_of(file_id)
        return bucket is not None and bucket % self.divisor in self.remainders


@dataclass(frozen=True, slots=True)
class BucketedSlices:
    """The slices of one side to read.

    Attributes:
        buckets: The bucket of each slice.
        numbers: The number of buckets of each partition with a slice.
    """

    path: str
    slices: tuple[FileSlice, ...]
    buckets: tuple[int, ...]
    numbers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class BucketGroup:
    """Buckets whose rows meet no row of other groups.

    Attributes:
        slices: The file slices of each side.
    """

    choice: BucketChoice
    slices: tuple[tuple[FileSlice, ...], ...]


def bucketed(path: str, slices: Iterable[FileSlice], number_of: Callable[[str], int]) -> BucketedSlices:
    """Return slices by bucket; ``number_of`` gives the number of buckets of a partition.

    Raises UnsupportedTableError for a file group that is none of its partition's buckets.
    """
    all_slices = tuple(slices)
    partitions = dict.fromkeys(file_slice.partition_path for file_slice in all_slices)
    numbers = {partition: number_of(partition) for partition in partitions}
    buckets: list[int] = []
    for file_slice in all_slices:
        bucket, number = bucket_of(file_slice.file_id), numbers[file_slice.partition_path]
        if bucket is None or bucket >= number:
            raise UnsupportedTableError(
                f"The table {path} has the {file_slice.group.words}, which is none of the {number} buckets there, so "
                "that its rows may be of any bucket.",
                "Look at the table with HudiTable.validate(), and read it with to_df() until it is repaired.",
            )
        buckets.append(bucket)
    return BucketedSlices(path, all_slices, tuple(buckets), numbers)


def group_buckets(sides: Sequence[BucketedSlices], most: int) -> list[BucketGroup]:
    """Return at most ``most`` groups of about the same bytes; none if no side has a slice.

    Rows with equal hashes have equal remainders on division by what divides all numbers of buckets. Raises
    OptionConflictError if that is 1 although there are more buckets.
    """
    divisor = _common_divisor(sides)
    by_remainder: dict[int, list[list[FileSlice]]] = {}
    for place, side in enumerate(sides):
        for file_slice, bucket in zip(side.slices, side.buckets, strict=True):
            by_remainder.setdefault(bucket % divisor, [[] for _ in sides])[place].append(file_slice)
    sizes = {
        remainder: sum(file_slice.size for slices in of_sides for file_slice in slices)
        for remainder, of_sides in by_remainder.items()
    }
    groups = []
    for remainders in spread(sizes, most):
        slices = [
            tuple(file_slice for remainder in remainders for file_slice in by_remainder[remainder][place])
            for place in range(len(sides))
        ]
        groups.append(BucketGroup(BucketChoice(divisor, remainders), tuple(slices)))
    return groups


def spread(sizes: Mapping[int, int], most: int) -> list[tuple[int, ...]]:
    """Return the numbers of ``sizes`` in at most ``most`` groups of about equal sums of sizes.

    The number with the largest size goes first, each to the group with the smallest sum.
    """
    groups: list[list[int]] = [[] for _ in range(min(most, len(sizes)))]
    # A heap of the groups by size, then by how many numbers they have.
    smallest = [(0, 0, place) for place in range(len(groups))]
    for number in sorted(sizes, key=lambda number: (-sizes[number], number)):
        size, count, place = heapq.heappop(smallest)
        groups[place].append(number)
        # By the count, numbers of size 0 are distributed too.
        heapq.heappush(smallest, (size + sizes[number], count + 1, place))
    return [tuple(sorted(group)) for group in groups]


def _common_divisor(sides: Sequence[BucketedSlices]) -> int:
    """Return the greatest number that divides all numbers of buckets.

    Raises OptionConflictError if that is 1 although a partition has more buckets.
    """
    numbers = sorted({number for side in sides for number in side.numbers.values()})
    divisor = math.gcd(*numbers) or 1
    if divisor == 1 and numbers and numbers[-1] > 1:
        paths = " and ".join(dict.fromkeys(side.path for side in sides))
        shown = ", ".join(map(str, numbers[:_SHOWN])) + (", …" if len(numbers) > _SHOWN else "")
        raise OptionConflictError(
            f"The partitions of {paths} that are to be read have {shown} buckets. Only 1 divides all of these, so each "
            "bucket would meet every other.",
            ADVICE,
        )
    return divisor
