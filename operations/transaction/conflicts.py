"""Whether somebody committed to the same file groups while this write was at work (optimistic concurrency).

Conflicts are judged by file group as in Apache Hudi's ``SimpleConcurrentFileWritesConflictResolutionStrategy``, and
by what the index says that two writers may not both open: each may have made a file group for one bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass

import pyarrow as pa

from ...errors import CommitConflictError
from ...table.files.names import FileGroupId
from ...table.files.view import FileView
from ...table.files.written import read_written
from ...table.latest_schema import newest_schema
from ...table.schema.evolution import unheld
from ...timeline.held import (
    CLUSTERING,
    LOG_COMPACTION,
    clustered_groups,
    held_groups,
    pending_compactions,
    says_what_it_holds,
)
from ...timeline.instants import Instant, State
from ...timeline.metadata.models import CommitMetadata
from ...timeline.timeline import Timeline
from .new_keys import NewKeys, find_twin
from .since import Since, conflict
from .transaction import Transaction

# What a completed log compaction calls itself.
LOG_COMPACT = "LOG_COMPACT"


@dataclass(frozen=True, slots=True)
class Changes:
    """What an instant is about to change, for holding it against what others changed.

    Attributes:
        file_groups: Every file group made, changed or replaced.
        replaced: Those of them that readers pass over once this is complete.
        rewritten: Those of them whose rows, as this write saw them, are in a new base file.
        bases: Requested times of the instants whose files were merged or appended to.
        rival_key: Of a file group, what only one of two writers may have opened in its partition.
        covers: Tells of a partition path whether all of the partition is replaced.
        columns: The table's data columns afterwards.
        new_keys: Where keys went that were looked for and not found; None where nobody looked.
    """

    file_groups: frozenset[FileGroupId]
    replaced: frozenset[FileGroupId]
    rewritten: frozenset[FileGroupId]
    bases: frozenset[str]
    rival_key: Callable[[FileGroupId], Hashable]
    covers: Callable[[str], bool]
    columns: pa.Schema
    new_keys: NewKeys | None = None


def check_conflicts(work: Transaction, timeline: Timeline, changes: Changes) -> None:
    """Refuse to commit on top of a change of the same file groups.

    Args:
        work: The instant in the making.
        timeline: As it is now.
        changes: What this write changes.

    Raises:
        CommitConflictError: Another instant changed the same, or holds it; a commit that this write was built on is
            gone; or this write's own instant is; or history does not tell.
    """
    since = Since.find(work, timeline)
    check_ownership(work, timeline, since)
    others: set[FileGroupId] = set()
    compacted: set[FileGroupId] = set()
    ours = {(one.partition_path, changes.rival_key(one)) for one in changes.file_groups}
    for instant in since.writes:
        done = since.read(instant)
        theirs = sorted(_file_groups(done))
        if done.operation_type == LOG_COMPACT or done.compacted:
            check = _check_log_compaction if done.operation_type == LOG_COMPACT else _check_compaction
            check(work, instant, theirs, changes)
            compacted.update(theirs)
            continue
        shared = [one for one in theirs if (one.partition_path, changes.rival_key(one)) in ours]
        # What goes as a whole must be what this write saw, new file groups included.
        shared = shared or [one for one in theirs if changes.covers(one.partition_path)]
        if shared:
            raise conflict(
                work,
                f"The {instant.action} {instant.requested_time} completed meanwhile and changed the file group "
                f"{shared[0].file_id} of partition {shared[0].partition_path!r} too",
            )
        others.update(theirs)
    _check_schema(work, changes.columns, since)
    _check_pending(work, timeline, changes)
    # Appends go on whatever is pending, and open no plan.
    held = held_groups(pending_compactions(timeline)) if changes.rewritten else {}
    for group, instant in held.items():
        _check_compaction(work, instant, {FileGroupId(*group)}, changes)
    _check_undone(work, since, changes)
    if changes.new_keys is not None:
        _check_cleaned(work, since, changes.new_keys)
    for base in sorted(changes.bases):
        if not timeline.is_committed(base):
            raise _base_gone(work, base)
    new_keys = None if changes.new_keys is None else changes.new_keys.beside(compacted)
    if new_keys is not None and new_keys.files and others:
        _check_new_keys(work, timeline, new_keys, others, since)


def _check_pending(work: Transaction, timeline: Timeline, changes: Changes) -> None:
    """Refuse to commit while the table is taken back, or what a clustering is going to replace as it was."""
    for instant in timeline.pending:
        unknown = instant.action == CLUSTERING and not says_what_it_holds(timeline, instant)
        if unknown or instant.action == "restore":
            raise conflict(work, f"The {instant.action} {instant.requested_time} was requested meanwhile")
    for (partition, file_id), instant in clustered_groups(timeline, own=work.instant_time).items():
        if FileGroupId(partition, file_id) in changes.file_groups or changes.covers(partition):
            raise conflict(
                work,
                f"The clustering {instant.requested_time} was requested meanwhile for the file group {file_id} of "
                f"partition {partition!r}, which this write changed",
            )


def _check_new_keys(
    work: Transaction,
    timeline: Timeline,
    ours: NewKeys,
    theirs: Collection[FileGroupId],
    since: Since,
) -> None:
    """Refuse to add a key that somebody else added meanwhile, to a file group that this write could not know of."""
    times = [one.requested_time for one in since.writes]
    twin = find_twin(work.storage, timeline, ours, work.instant_time, theirs, times)
    if twin is not None:
        raise conflict(
            work,
            f"Another write that completed meanwhile added the record key {twin.record_key!r}, which this one adds to "
            f"partition {twin.partition_path!r}, to the file group {twin.group.file_id} of partition "
            f"{twin.group.partition_path!r}",
        )


def _check_compaction(work: Transaction, instant: Instant, groups: Collection[FileGroupId], changes: Changes) -> None:
    """Refuse to commit a new base file that a compaction of the same file group would hide.

    What it compacts was complete when it was requested. Log files that complete later are read beside its base file,
    whichever of the two comes first. A base file is read in place of those of earlier instants, not of later ones.
    """
    hidden = sorted(changes.rewritten.intersection(groups))
    if hidden and (instant.action == LOG_COMPACTION or instant.requested_time > work.instant_time):
        raise conflict(
            work,
            f"The compaction {instant.requested_time} was requested meanwhile for the file group "
            f"{hidden[0].file_id} of partition {hidden[0].partition_path!r}, of which this write made a new base file",
        )


def _check_log_compaction(
    work: Transaction, instant: Instant, groups: Collection[FileGroupId], changes: Changes
) -> None:
    """Refuse to commit where a log compaction of the same file groups completed that this write did not see.

    A new base file was made of the log files that it joined. And of a write that was asked for before it the log files
    come before the joined one, which readers that do not know what it replaces read after them.
    """
    met = sorted(changes.rewritten.intersection(groups))
    if instant.requested_time > work.instant_time:
        met = met or sorted(changes.file_groups.intersection(groups))
    if met:
        raise conflict(
            work,
            f"The log compaction {instant.requested_time} completed meanwhile and joined the log files of the file "
            f"group {met[0].file_id} of partition {met[0].partition_path!r}, which this write changed",
        )


def _base_gone(work: Transaction, base: str) -> CommitConflictError:
    return conflict(work, f"The commit {base}, whose rows this write kept, was rolled back meanwhile")


def _check_undone(work: Transaction, since: Since, changes: Changes) -> None:
    """Refuse to commit on top of what was undone meanwhile, or is going to be, though it may still be there."""
    if since.restore is not None:
        raise conflict(work, f"The restore {since.restore.requested_time} took the table back to an earlier moment")
    ours = {(one.partition_path, changes.rival_key(one)) for one in changes.file_groups}
    for one in since.undone():
        if one.instant_time in changes.bases:
            raise _base_gone(work, one.instant_time)
        if not since.seen.saw_write(one.instant_time):
            continue
        # What it had replaced comes back, and only its completed file, which goes, said which file groups these are.
        back = one.group not in {"commit", "deltacommit"}
        # A key may be there again that was not found, or be gone that was, and no file group of this write tells.
        looked = changes.new_keys is not None
        met = any(
            (group.partition_path, changes.rival_key(group)) in ours or changes.covers(group.partition_path)
            for group in one.file_groups
        )
        if back or looked or met:
            raise conflict(work, f"The write {one.instant_time}, which this one had seen, was rolled back meanwhile")


def _check_cleaned(work: Transaction, since: Since, looked: NewKeys) -> None:
    """Refuse to commit where a clean took files of what this write saw, in which its keys may not have been found.

    Who looks misses them where an instant on the timeline names them, but not where that was archived.
    """
    cleaned = since.cleaned()
    partitions = sorted(cleaned if looked.anywhere else looked.partitions.intersection(cleaned))
    if not partitions:
        return
    seen = since.timeline.as_of(since.seen)
    view = FileView(seen, read_written(seen), cleaned=cleaned)
    lost = [file for partition in partitions for file in view.lost(partition)]
    if lost:
        raise conflict(work, f"A clean took the {lost[0].kind} {lost[0].path} meanwhile, which a newer one replaced")


def _check_schema(work: Transaction, columns: pa.Schema, since: Since) -> None:
    """Refuse to commit where this write or one that completed meanwhile would take columns of the other away.

    Readers take the columns of the write with the greatest requested time, whichever completed last.
    """
    found = newest_schema(since.timeline) if since.writes else None
    if found is None:
        return
    instant, theirs = found
    last, first = (theirs, columns) if instant.requested_time > work.instant_time else (columns, theirs)
    lost = unheld(list(last), list(first))
    if lost:
        raise conflict(
            work,
            f"The {instant.action} {instant.requested_time} completed meanwhile and changed the table's columns "
            f"({', '.join(map(repr, lost))})",
        )


def check_ownership(work: Transaction, timeline: Timeline, since: Since | None = None) -> None:
    """Refuse to go on with a write that another writer rolled back.

    Args:
        work: The instant in the making.
        timeline: As it is now.
        since: What completed since the write was planned, where that is known already.

    Raises:
        CommitConflictError: This write's instant is not pending any more, or a late task put it back after a rollback.
    """
    since = since or Since.find(work, timeline)
    own = timeline.find(work.instant_time)
    if own is None or own.state != State.INFLIGHT or since.rolls_back(work.instant_time):
        raise CommitConflictError(
            f"The instant {work.instant_time} of this write is no longer pending on the table {work.path}: another "
            "writer rolled it back, taking its writer for dead.",
            "Nothing of this write is left; write again, with a longer heartbeat tolerance "
            "(hoodie.client.heartbeat.tolerable.misses) if its tasks pause for long.",
        )


def _file_groups(metadata: CommitMetadata) -> set[FileGroupId]:
    written = {
        FileGroupId(partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
        if stat.file_id
    }
    return written | {FileGroupId(partition, one) for partition, ids in metadata.replaced.items() for one in ids}
