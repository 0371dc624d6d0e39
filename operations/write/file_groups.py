"""From the route of a row to the file group that it leads to, or the new one that will be opened."""

from __future__ import annotations

from ...index.registry import computed_index_for
from ...storage.base import Storage
from ...table.files.file_group import FileSlice
from ...table.files.lost import open_view
from ...timeline.timeline import Timeline
from ...writer.group_writer import GroupJob
from ...writer.routes import Route
from ..planning.operation import DELETE, REPLACING
from ..planning.plan import WritePlan
from .adoption import check_lesson, misfit


class JobPlanner:
    """Looks up file groups, listing each partition once and only those that rows belong to.

    Args:
        plan: The write.
        storage: Rooted at the table.
        timeline: As of the write's watermark.

    Attributes:
        timeline: As it was given.
        known_partitions: Those of the jobs' partitions that have their metafile already.
    """

    def __init__(self, plan: WritePlan, storage: Storage, timeline: Timeline) -> None:
        self._plan = plan
        self._storage = storage
        self.timeline = timeline
        self._index = computed_index_for(plan.config)
        # What an insert without keys opens is new.
        adds = plan.operation in REPLACING or (plan.config.generates_keys and plan.operation != DELETE)
        self._view = None if adds else open_view(storage, timeline)
        self._buckets: dict[str, dict[int, FileSlice]] = {}
        self.known_partitions: set[str] = set()
        check_lesson(plan, storage, timeline)

    def job(self, route: Route) -> GroupJob:
        """Return what is to be written for the rows of one route.

        Raises:
            UnsupportedTableError: The partition holds file groups that no bucket index made.
        """
        path, number = route
        known = self._known(path).get(number)
        if known is not None:
            return GroupJob(known.group, known)
        return GroupJob(self._index.place(self._plan.instant_time, path, number), None)

    def file_ids(self, partition_path: str) -> list[str]:
        """Return the file ids that a partition has, in the order of the numbers that `job` takes."""
        return [piece.file_id for piece in self._known(partition_path).values()]

    def _known(self, partition_path: str) -> dict[int, FileSlice]:
        if self._view is None:
            return {}
        if self._plan.config.generates_keys and partition_path not in self._buckets:
            self._buckets[partition_path] = dict(enumerate(self._view.slices(partition_path).values()))
        if partition_path not in self._buckets:
            buckets: dict[int, FileSlice] = {}
            for piece in self._view.slices(partition_path).values():
                bucket = self._index.number_of(piece.group)
                if bucket is None or bucket >= (self._plan.config.bucket_count or 0) or bucket in buckets:
                    raise misfit(self._plan, piece)
                buckets[bucket] = piece
            self._buckets[partition_path] = buckets
            if self._view.is_partition(partition_path):
                self.known_partitions.add(partition_path)
        return self._buckets[partition_path]
