"""From the route of a row to the file group that it leads to, or the new one that will be opened.

Routes are told by keys, or by what rows say that were looked up and placed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...errors import CommitConflictError, PlacementError
from ...index.append import AppendIndex
from ...index.registry import computed_index_for
from ...table.files.file_group import FileSlice
from ...table.files.names import FileGroupId, new_file_id
from ...table.schema.columns import FILE_GROUP, NEW_GROUP
from ...table.seen_table import SeenTable
from ...timeline.held import clustered_groups
from ...writer.group_writer import GroupJob
from ...writer.routes import Route
from ..planning.operation import REPLACING
from ..planning.plan import WritePlan
from .adoption import check_lesson, misfit
from .group_jobs import refuse_clustered

# The numbers of file groups that are there, their places in the partition, stay below; those of new ones begin here.
_FIRST_NEW = 1 << 32
_NUMBER = re.compile(r"[0-9]{1,9}")


class _Groups:
    """The file groups that a write may meet: each partition is listed once, and those alone that rows belong to.

    Args:
        plan: The write.
        seen: The table as of the write's watermark.
        opens: Whether the write opens all its file groups, and looks for none that is there.

    Attributes:
        seen: As it was given.
        known_partitions: Those of the jobs' partitions that have their metafile already.
    """

    def __init__(self, plan: WritePlan, seen: SeenTable, *, opens: bool = False) -> None:
        self._plan = plan
        self.seen = seen
        # Of a table, or of partitions, that the write replaces nothing is looked for.
        self._view = None if opens or plan.operation in REPLACING else seen.view
        self._clustered = {} if self._view is None else clustered_groups(seen.timeline)
        self._slices: dict[str, tuple[FileSlice, ...]] = {}
        self.known_partitions: set[str] = set()
        check_lesson(plan, seen)

    def _pieces(self, partition_path: str) -> tuple[FileSlice, ...]:
        """Return the newest slices of a partition, in the order of their file ids."""
        if self._view is None:
            return ()
        if partition_path not in self._slices:
            self._slices[partition_path] = tuple(self._view.slices(partition_path).values())
            if self._view.is_partition(partition_path):
                self.known_partitions.add(partition_path)
        return self._slices[partition_path]


class JobPlanner(_Groups):
    """Finds the file groups of rows by what their keys tell.

    Args:
        plan: The write.
        seen: The table as of the write's watermark.
    """

    def __init__(self, plan: WritePlan, seen: SeenTable) -> None:
        super().__init__(plan, seen, opens=plan.opens_alone)
        self._alone = plan.opens_alone
        self._index = AppendIndex() if self._alone else computed_index_for(plan.config)
        self._numbered: dict[str, dict[int, FileSlice]] = {}

    def job(self, route: Route) -> GroupJob:
        """Return what is to be written for the rows of one route.

        Raises:
            ConcurrentWriteError: A pending clustering holds the file group.
            UnsupportedTableError: The partition holds file groups that no bucket index made.
        """
        path, number = route
        if self._alone:
            return GroupJob(self._index.place(self._plan.instant_time, path, number), None, rolls=True)
        known = self._known(path).get(number)
        if known is not None:
            refuse_clustered(self._plan, self._clustered, known.group)
            return GroupJob(known.group, known)
        return GroupJob(self._index.place(self._plan.instant_time, path, number), None)

    def file_ids(self, partition_path: str) -> list[str]:
        """Return the file ids that a partition has, in the order of the numbers that `job` takes."""
        return [piece.file_id for piece in self._pieces(partition_path)]

    def _known(self, partition_path: str) -> dict[int, FileSlice]:
        if partition_path not in self._numbered:
            pieces = self._pieces(partition_path)
            self._numbered[partition_path] = (
                dict(enumerate(pieces)) if self._plan.config.generates_keys else self._buckets(pieces)
            )
        return self._numbered[partition_path]

    def _buckets(self, pieces: Iterable[FileSlice]) -> dict[int, FileSlice]:
        buckets: dict[int, FileSlice] = {}
        for piece in pieces:
            bucket = self._index.number_of(piece.group)
            if bucket is None or bucket >= (self._plan.config.bucket_count or 0) or bucket in buckets:
                raise misfit(self._plan, piece)
            buckets[bucket] = piece
        return buckets


class PlacedGroups(_Groups):
    """Finds the file groups of rows that say where they go.

    Args:
        plan: The write.
        seen: The table as of the write's watermark.
    """

    def __init__(self, plan: WritePlan, seen: SeenTable) -> None:
        super().__init__(plan, seen)
        self._places: dict[str, dict[str, int]] = {}
        self._rewritten: dict[Route, bool] = {}

    def number_of(self, partition_path: str, said: str) -> int:
        """Return the number of a file group, given how rows of the partition call it.

        Raises:
            PlacementError: It makes no sense, or rows of one file group say different things.
            CommitConflictError: The table has no such file group.
        """
        rest = said.removeprefix(NEW_GROUP)
        is_new = rest != said
        if is_new and _NUMBER.fullmatch(rest):
            return _FIRST_NEW + int(rest)
        place = self._known(partition_path).get(rest)
        if place is None:
            raise CommitConflictError(
                f"Rows for the table {self._plan.path} were placed for the file group {said!r} of partition "
                f"{partition_path!r}, which the table has not.",
                "Nothing of this write is left; write again, which looks the keys up anew.",
            )
        if self._rewritten.setdefault(Route(partition_path, place), is_new) != is_new:
            raise PlacementError(
                f"Some rows for the file group {rest} of the table {self._plan.path} say in {FILE_GROUP} that it takes "
                "new keys in, and others do not.",
                "Write rows as pyhudi placed them, or leave hoodie.pyhudi.colocated out.",
            )
        return place

    def job(self, route: Route) -> GroupJob:
        """Return what is to be written for the rows of one route.

        Raises:
            ConcurrentWriteError: A pending clustering holds the file group.
        """
        path, number = route
        pieces = self._pieces(path)
        if number >= _FIRST_NEW:
            file_id = new_file_id(self._plan.instant_time, path, number - _FIRST_NEW)
            return GroupJob(FileGroupId(path, file_id), None)
        refuse_clustered(self._plan, self._clustered, pieces[number].group)
        return GroupJob(pieces[number].group, pieces[number], rewrites=self._rewritten[route])

    def _known(self, partition_path: str) -> dict[str, int]:
        """Return the place of each file group that a partition has, by its id."""
        if partition_path not in self._places:
            pieces = self._pieces(partition_path)
            self._places[partition_path] = {piece.file_id: place for place, piece in enumerate(pieces)}
        return self._places[partition_path]
