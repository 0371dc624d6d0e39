"""Whether somebody committed to the same file groups while this write was at work (optimistic concurrency).

Conflicts are judged by file group as in Apache Hudi's ``SimpleConcurrentFileWritesConflictResolutionStrategy``, and
by bucket too: two writers may each have opened a new file group for one bucket of a partition.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import CommitConflictError
from ..storage.base import Storage
from ..table.names import bucket_of
from ..timeline.codec import read_commit
from ..timeline.instants import WRITE_ACTIONS, Instant, State
from ..timeline.timeline import Timeline
from .plan import OVERWRITE, WritePlan

Touched = set[tuple[str, str]]


def check_conflicts(plan: WritePlan, storage: Storage, timeline: Timeline, touched: Iterable[tuple[str, str]]) -> None:
    """Refuse to commit on top of a change of the same file groups.

    Args:
        plan: The write.
        storage: Rooted at the table.
        timeline: As it is now.
        touched: (partition path, file id) of every file group this write made, changed or replaced.

    Raises:
        CommitConflictError: Another instant changed one of them, or this write's own instant is gone.
    """
    check_ownership(plan, timeline)
    ours = _with_buckets(touched)
    for instant in timeline.completed_since(plan.watermark):
        if instant.action not in WRITE_ACTIONS or instant.requested_time == plan.instant_time:
            continue
        theirs = _with_buckets(_file_groups(storage, timeline, instant))
        shared = sorted(ours & theirs)
        if plan.operation == OVERWRITE and theirs:
            shared = shared or sorted(theirs)
        if shared:
            partition, group = shared[0]
            raise CommitConflictError(
                f"The {instant.action} {instant.requested_time} completed on the table {plan.path} while this write "
                f"({plan.instant_time}) ran and changed the file group {group} of partition {partition!r} too.",
                "Nothing of this write is left; write again.",
            )


def check_ownership(plan: WritePlan, timeline: Timeline) -> None:
    """Refuse to go on with a write that another writer rolled back.

    Raises:
        CommitConflictError: This write's instant is not pending any more.
    """
    own = timeline.find(plan.instant_time)
    if own is None or own.state != State.INFLIGHT:
        raise CommitConflictError(
            f"The instant {plan.instant_time} of this write is no longer pending on the table {plan.path}: another "
            "writer rolled it back, taking its writer for dead.",
            "Nothing of this write is left; write again, with a longer heartbeat tolerance "
            "(hoodie.client.heartbeat.tolerable.misses) if its tasks pause for long.",
        )


def _file_groups(storage: Storage, timeline: Timeline, instant: Instant) -> Touched:
    metadata = read_commit(storage, timeline.layout, instant)
    written = {
        (partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
        if stat.file_id
    }
    return written | {(partition, one) for partition, ids in metadata.replaced.items() for one in ids}


def _with_buckets(touched: Iterable[tuple[str, str]]) -> Touched:
    both: Touched = set()
    for partition, file_id in touched:
        bucket = bucket_of(file_id)
        both |= {(partition, file_id)} if bucket is None else {(partition, file_id), (partition, f"bucket {bucket}")}
    return both
