"""From a bucket of a partition to the file group that holds it, or the new one that will."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa

from ..errors import UnsupportedTableError
from ..index.registry import index_for
from ..storage.base import Storage
from ..table.base_file import RECORD_KEY, BaseFileReader
from ..table.names import bucket_of, new_bucket_file_id
from ..table.view import FileSlice, open_view
from ..timeline.timeline import Timeline
from ..writer.group_writer import GroupJob, check_bucket
from ..writer.rows import Group
from .operation import OVERWRITE_TABLE, REPLACING
from .plan import WritePlan

_FILES_LOOKED_INTO = 8


class JobPlanner:
    """Looks up file groups, listing each partition once and only those that rows belong to.

    Args:
        plan: The write.
        storage: Rooted at the table.
        timeline: As of the write's watermark.
    """

    def __init__(self, plan: WritePlan, storage: Storage, timeline: Timeline) -> None:
        self._plan = plan
        self._storage = storage
        self._view = None if plan.operation in REPLACING else open_view(storage, timeline)
        self._buckets: dict[str, dict[int, FileSlice]] = {}
        check_lesson(plan, storage, timeline)

    def job(self, group: Group) -> GroupJob:
        """Return what is to be written for one bucket of a partition.

        Raises:
            UnsupportedTableError: The partition holds file groups that no bucket index made.
        """
        known = self._known(group.partition_path).get(group.bucket)
        if known is not None:
            return GroupJob(group, known.file_id, known.base)
        file_id = new_bucket_file_id(self._plan.instant_time, group.partition_path, group.bucket)
        return GroupJob(group, file_id, None)

    def _known(self, partition_path: str) -> dict[int, FileSlice]:
        if self._view is None:
            return {}
        if partition_path not in self._buckets:
            buckets: dict[int, FileSlice] = {}
            for file_id, piece in self._view.slices(partition_path).items():
                bucket = bucket_of(file_id)
                if bucket is None or bucket >= (self._plan.config.bucket_count or 0) or bucket in buckets:
                    raise _misfit(self._plan, self._storage, piece)
                buckets[bucket] = piece
            self._buckets[partition_path] = buckets
        return self._buckets[partition_path]


def check_lesson(plan: WritePlan, storage: Storage, timeline: Timeline) -> None:
    """Hold the number of buckets, where the write teaches it to the table, against keys of some base files.

    Wherever they are: a number that is wrong must not be remembered because this write opens new partitions only. A
    write that replaces the whole table leaves no key that could contradict it.

    Raises:
        BucketMisfitError: A key is in another bucket.
        UnsupportedTableError: A file group has no bucket.
    """
    if not plan.config_changes or plan.operation == OVERWRITE_TABLE:
        return
    view = open_view(storage, timeline)
    pieces = (piece for partition in view.partitions() for piece in view.slices(partition).values())
    for piece in islice(pieces, _FILES_LOOKED_INTO):
        bucket = bucket_of(piece.file_id)
        if bucket is None:
            raise _misfit(plan, storage, piece)
        with BaseFileReader(storage, piece.base.path) as reader:
            for batch in islice(reader.batches(pa.schema([pa.field(RECORD_KEY, pa.string())])), 1):
                check_bucket(index_for(plan.config), batch.column(RECORD_KEY), bucket, piece.base)


def _misfit(plan: WritePlan, storage: Storage, piece: FileSlice) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"The file group {piece.file_id} of the table {storage.path} (file {piece.base.path}, instant "
        f"{piece.base.instant_time}) does not fit a bucket index with {plan.config.bucket_count} buckets.",
        "Check hoodie.bucket.index.num.buckets against the table's writers; a table of another index has to be "
        "rewritten with mode overwrite first.",
    )
