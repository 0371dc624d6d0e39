"""The way from a row of a write to its file group.

The function `routing_of` chooses once how the rows of a write find their file groups:

    Bucketed    the hash of a row's key gives its bucket, which is one file group of its partition; the plan fixed the
                number of buckets of each partition
    Generated   each task opens file groups of its own, without a lookup
    Located     rows name their file group, from which they were read or which a lookup chose
    Unlocated   the commit looks keys up in the index; tasks split their rows by key for it
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import ClassVar

from ...errors import CommitConflictError, PlacementError
from ...index.base import ANY_NUMBER
from ...index.registry import computed_index_for
from ...table.files.file_group import FileSlice, base_file
from ...table.files.names import FileGroupId, new_file_id
from ...table.keys.generator import GeneratedKeys, KeyGenerator
from ...table.schema.columns import FILE_GROUP, NEW_GROUP
from ...table.seen_table import SeenTable
from ...timeline.held import clustered_groups
from ...timeline.instants import Instant
from ...writer.group_writer import FileGroupWrite
from ...writer.routes import BinRouter, KeyRouter, LocationRouter, OwnRouter, PlacedRouter, Route, Router
from ..planning.operation import REPLACING
from ..planning.plan import WritePlan
from .adoption import check_new_properties, misfit_error
from .file_group_writes import refuse_clustered

# The numbers of new file groups begin here. An existing file group has its position in the partition, which is smaller.
_FIRST_NEW = ANY_NUMBER
_NUMBER = re.compile(r"[0-9]{1,9}")


class Routing(ABC):
    """How the rows of a write find their file groups, in one task or in the commit.

    Args:
        see: Returns the table as of the watermark of the write; called for the first file group alone.
    """

    def __init__(self, plan: WritePlan, see: Callable[[], SeenTable]) -> None:
        self._plan = plan
        self._see = see

    @property
    def _keys(self) -> KeyGenerator:
        """What makes the record keys and partition paths of rows."""
        return KeyGenerator(self._plan.config, self._plan.schema)

    @abstractmethod
    def router(self, partition: int) -> Router:
        """Return what computes keys and routes of rows, in the task of a Spark partition."""


class Unlocated(Routing):
    """Routes rows to shares of the keys of a partition, whatever their file groups."""

    def router(self, partition: int) -> Router:
        return BinRouter(self._keys)


class FileGroups(Routing):
    """Routes rows to file groups; lists each partition of rows once.

    Attributes:
        known_partitions: The partitions of jobs that have their metafile already.
    """

    opens: ClassVar[bool] = False
    """Whether all file groups are new."""

    def __init__(self, plan: WritePlan, see: Callable[[], SeenTable]) -> None:
        super().__init__(plan, see)
        self._slices: dict[str, tuple[FileSlice, ...]] = {}
        self._jobs: dict[Route, FileGroupWrite] = {}
        # A write looks for no file group in what it replaces.
        self._looks = not self.opens and plan.operation not in REPLACING
        self.known_partitions: set[str] = set()

    @property
    @abstractmethod
    def alone(self) -> bool:
        """Whether no other task has rows for the same file groups."""

    @cached_property
    def seen(self) -> SeenTable:
        """The table as of the watermark, opened when the first file group needs it, and checked for new properties."""
        seen = self._see()
        check_new_properties(self._plan, seen)
        return seen

    @cached_property
    def _clustered(self) -> Mapping[tuple[str, str], Instant]:
        return clustered_groups(self.seen.timeline)

    def job(self, route: Route) -> FileGroupWrite:
        """Return the work for the rows of one route. Raises if a pending clustering holds the file group."""
        if route not in self._jobs:
            job = self._jobs[route] = self._find(route)
            if job.file_slice is not None:
                refuse_clustered(self._plan, self._clustered, job.group)
        return self._jobs[route]

    @abstractmethod
    def _find(self, route: Route) -> FileGroupWrite:
        """Return the work for the rows of one route, whose file group may be new; `job` remembers it."""

    def _slices_of(self, partition_path: str) -> tuple[FileSlice, ...]:
        """Return the newest slices of a partition, in the order of their file ids; none if all file groups are new."""
        if not self._looks:
            return ()
        if partition_path not in self._slices:
            view = self.seen.view
            self._slices[partition_path] = tuple(view.slices(partition_path).values())
            if view.is_partition(partition_path):
                self.known_partitions.add(partition_path)
        return self._slices[partition_path]

    def _new_group(self, partition_path: str, number: int) -> FileGroupId:
        """Return the id of a new file group; the same instant, partition and number give the same id in any attempt."""
        return FileGroupId(partition_path, new_file_id(self._plan.instant_time, partition_path, number))


class Bucketed(FileGroups):
    """The hash of a key gives its bucket, and each bucket is one file group of its partition."""

    def __init__(self, plan: WritePlan, see: Callable[[], SeenTable]) -> None:
        super().__init__(plan, see)
        self._index = computed_index_for(plan.config, plan.numbers)
        self._numbered: dict[str, dict[int, FileSlice]] = {}

    @property
    def alone(self) -> bool:
        """Whether the caller brought all rows of each file group into one task."""
        return self._plan.settings.colocated

    def router(self, partition: int) -> Router:
        return KeyRouter(self._keys, self._index)

    def _find(self, route: Route) -> FileGroupWrite:
        """Return the work for the rows of a bucket, in a new file group if the bucket has none.

        Raises UnsupportedTableError if a file group of the partition fits no bucket.
        """
        path, number = route
        file_slice = self._slice_by_bucket(path).get(number)
        if file_slice is not None:
            return FileGroupWrite(file_slice.group, file_slice)
        return FileGroupWrite(self._index.place(self._plan.instant_time, path, number), None)

    def _slice_by_bucket(self, partition_path: str) -> dict[int, FileSlice]:
        """Return the newest slice of each bucket of a partition; a bucket without rows is missing.

        Raises UnsupportedTableError if a file group is of no bucket, or a bucket has two file groups.
        """
        if partition_path not in self._numbered:
            buckets: dict[int, FileSlice] = {}
            # If the number is unknown, no file group of the partition is a bucket.
            count = self._index.count_of(partition_path) or 0
            for file_slice in self._slices_of(partition_path):
                bucket = self._index.number_of(file_slice.group)
                if bucket is None or bucket >= count or bucket in buckets:
                    raise misfit_error(self._plan, file_slice)
                buckets[bucket] = file_slice
            self._numbered[partition_path] = buckets
        return self._numbered[partition_path]


class Generated(FileGroups):
    """Each task opens file groups of its own, with generated keys if the table has no record key."""

    opens = True
    alone = True

    def router(self, partition: int) -> Router:
        generates = self._plan.config.generates_keys
        return OwnRouter(
            self._keys, partition, GeneratedKeys(self._plan.instant_time, partition) if generates else None
        )

    def _find(self, route: Route) -> FileGroupWrite:
        return FileGroupWrite(self._new_group(*route), None, rolls=True)


class Located(FileGroups):
    """Rows name their file group: the file group of their file, or the file group that a lookup chose."""

    def __init__(self, plan: WritePlan, see: Callable[[], SeenTable]) -> None:
        super().__init__(plan, see)
        self._positions: dict[str, dict[str, int]] = {}
        self._rewritten: dict[Route, bool] = {}

    @property
    def alone(self) -> bool:
        """Whether a lookup placed the rows; rows read from files may come in any task."""
        return self._plan.located

    def router(self, partition: int) -> Router:
        if self._plan.located:
            return PlacedRouter(self._keys, self.number_of, self._plan.path)
        return LocationRouter(self._number_of_file, self._plan.path)

    def number_of(self, partition_path: str, name: str) -> int:
        """Return the number of a file group by its name in placed rows of the partition.

        The name is a file id. `NEW_GROUP` before it says that the group takes new keys, too, and so is rewritten;
        `NEW_GROUP` and a number name a new file group.

        Raises `PlacementError` if rows of one file group contradict each other, and `CommitConflictError` if the table
        has no such file group.
        """
        without_prefix = name.removeprefix(NEW_GROUP)
        takes_new_keys = without_prefix != name
        if takes_new_keys and _NUMBER.fullmatch(without_prefix):
            return _FIRST_NEW + int(without_prefix)
        position = self._position_by_file_id(partition_path).get(without_prefix)
        if position is None:
            raise CommitConflictError(
                f"Rows for the table {self._plan.path} were placed for the file group {name!r} of partition "
                f"{partition_path!r}, which the table does not have.",
                "This write changed nothing; write again, which repeats the lookup.",
            )
        if self._rewritten.setdefault(Route(partition_path, position), takes_new_keys) != takes_new_keys:
            raise PlacementError(
                f"Some rows for the file group {without_prefix} of the table {self._plan.path} say in {FILE_GROUP} "
                "that it takes new keys in, and others do not.",
                "Write rows as pyhudi placed them, or leave hoodie.pyhudi.colocated out.",
            )
        return position

    def _number_of_file(self, partition_path: str, name: str) -> int:
        """Return the number of a file group by the name of the file from which rows were read."""
        file = base_file(name)
        # Rows of log files have the file id in place of a file's name.
        file_id = name if file is None else file.file_id
        position = self._position_by_file_id(partition_path).get(file_id)
        if position is None:
            raise CommitConflictError(
                f"Rows to be deleted from the table {self._plan.path} were read from the file group {file_id} of "
                f"partition {partition_path!r}, which the table has no longer.",
                "Read the rows again, and delete those.",
            )
        return position

    def _find(self, route: Route) -> FileGroupWrite:
        """Return the work for a route: a new file group, or the existing file group at the route's position."""
        path, number = route
        if number >= _FIRST_NEW:
            return FileGroupWrite(self._new_group(path, number - _FIRST_NEW), None)
        file_slice = self._slices_of(path)[number]
        return FileGroupWrite(file_slice.group, file_slice, rewrites=self._rewritten.get(route, False))

    def _position_by_file_id(self, partition_path: str) -> dict[str, int]:
        """Return the position of each file group of a partition, by file id."""
        if partition_path not in self._positions:
            slices = self._slices_of(partition_path)
            self._positions[partition_path] = {file_slice.file_id: number for number, file_slice in enumerate(slices)}
        return self._positions[partition_path]


def routing_of(plan: WritePlan, see: Callable[[], SeenTable]) -> Routing:
    """Return how the rows of a write find their file groups, by the table's index and where the rows come from."""
    if plan.opens_alone:
        return Generated(plan, see)
    if plan.names_places:
        return Located(plan, see)
    return Unlocated(plan, see) if plan.looks_up else Bucketed(plan, see)
