"""Whether somebody committed to the same file groups while this write was at work (optimistic concurrency).

Conflicts are judged by file group as in Apache Hudi's ``SimpleConcurrentFileWritesConflictResolutionStrategy``, and
by bucket too: two writers may each have opened a new file group for one bucket of a partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import CommitConflictError
from ...storage.base import Storage
from ...table.files.names import bucket_of
from ...table.latest_schema import newest_schema
from ...table.schema.evolution import unheld
from ...timeline.instants import State
from ...timeline.metadata.models import CommitMetadata
from ...timeline.timeline import Timeline
from ...writer.group_writer import GroupOutcome
from ..planning.plan import WritePlan
from ..rollback.pending import BLOCKING
from ..write.replacement import Replacement
from .since import Since, conflict

Touched = set[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Changes:
    """What a write is about to change, for holding it against what others changed.

    Attributes:
        file_groups: (partition path, file id) of every file group made, changed or replaced.
        bases: Requested times of the instants whose base files were merged.
        replacement: Tells which partitions are replaced as a whole.
    """

    file_groups: frozenset[tuple[str, str]]
    bases: frozenset[str]
    replacement: Replacement

    @classmethod
    def of(
        cls, outcomes: Iterable[GroupOutcome], replaced: Mapping[str, Sequence[str]], replacement: Replacement
    ) -> Changes:
        """Return the changes of finished file groups and of those that are replaced."""
        groups = {(partition, file_id) for partition, ids in replaced.items() for file_id in ids}
        bases = set()
        for outcome in outcomes:
            groups.add((outcome.group.partition_path, outcome.file_id))
            if outcome.previous is not None:
                bases.add(outcome.previous.instant_time)
        return cls(frozenset(groups), frozenset(bases), replacement)


def check_conflicts(plan: WritePlan, storage: Storage, timeline: Timeline, changes: Changes) -> None:
    """Refuse to commit on top of a change of the same file groups.

    Args:
        plan: The write.
        storage: Rooted at the table.
        timeline: As it is now.
        changes: What this write changes.

    Raises:
        CommitConflictError: Another instant changed the same, or holds it; a commit that this write was built on is
            gone; or this write's own instant is; or history does not tell.
    """
    since = Since.find(plan, storage, timeline)
    check_ownership(plan, storage, timeline, since)
    ours = _with_buckets(changes.file_groups)
    for instant in since.writes:
        theirs = _with_buckets(_file_groups(since.read(instant)))
        shared = sorted(ours & theirs)
        # What goes as a whole must be what this write saw, new file groups included.
        shared = shared or sorted(one for one in theirs if changes.replacement.covers(one[0]))
        if shared:
            partition, group = shared[0]
            raise conflict(
                plan,
                f"The {instant.action} {instant.requested_time} completed meanwhile and changed the file group {group} "
                f"of partition {partition!r} too",
            )
    _check_schema(plan, storage, since)
    for instant in timeline.pending:
        if instant.action in BLOCKING:
            raise conflict(plan, f"The {instant.action} {instant.requested_time} was requested meanwhile")
    for base in sorted(changes.bases):
        if not timeline.is_committed(base):
            raise conflict(plan, f"The commit {base}, whose rows this write kept, was rolled back meanwhile")


def _check_schema(plan: WritePlan, storage: Storage, since: Since) -> None:
    """Refuse to commit where this write or one that completed meanwhile would take columns of the other away.

    Readers take the columns of the write with the greatest requested time, whichever completed last.
    """
    found = newest_schema(storage, since.timeline) if since.writes else None
    if found is None:
        return
    instant, theirs = found
    last, first = (theirs, plan.schema) if instant.requested_time > plan.instant_time else (plan.schema, theirs)
    lost = unheld(list(last), list(first))
    if lost:
        raise conflict(
            plan,
            f"The {instant.action} {instant.requested_time} completed meanwhile and changed the table's columns "
            f"({', '.join(map(repr, lost))})",
        )


def check_ownership(plan: WritePlan, storage: Storage, timeline: Timeline, since: Since | None = None) -> None:
    """Refuse to go on with a write that another writer rolled back.

    Args:
        plan: The write.
        storage: Rooted at the table.
        timeline: As it is now.
        since: What completed since the write was planned, where that is known already.

    Raises:
        CommitConflictError: This write's instant is not pending any more, or a late task put it back after a rollback.
    """
    since = since or Since.find(plan, storage, timeline)
    own = timeline.find(plan.instant_time)
    if own is None or own.state != State.INFLIGHT or since.rolls_back(plan.instant_time):
        raise CommitConflictError(
            f"The instant {plan.instant_time} of this write is no longer pending on the table {plan.path}: another "
            "writer rolled it back, taking its writer for dead.",
            "Nothing of this write is left; write again, with a longer heartbeat tolerance "
            "(hoodie.client.heartbeat.tolerable.misses) if its tasks pause for long.",
        )


def _file_groups(metadata: CommitMetadata) -> Touched:
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
