"""Whether other writers changed the same file groups while this write ran (optimistic concurrency).

A conflict is about a file group, as in Apache Hudi's ``SimpleConcurrentFileWritesConflictResolutionStrategy``, or about
what only one of two writers may open by the index: both may have made a file group for the same bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ...errors import CommitConflictError, MetInstant
from ...storage.base import split
from ...table.buckets.numbers import BucketNumbers, bucket_numbers
from ...table.files.file_group import DataFile, LogFile
from ...table.files.names import FileGroupId
from ...table.files.read_written import read_written
from ...table.files.view import FileView
from ...table.latest_schema import newest_schema
from ...table.schema.evolution import unheld
from ...timeline.held import clustered_groups, held_groups, pending_compactions, says_what_it_holds
from ...timeline.instants import Instant, State
from ...timeline.metadata.codec import WRITE_ID
from ...timeline.metadata.models import CommitMetadata
from ...timeline.rescales import pending_rescales, rescaling
from ...timeline.timeline import Timeline
from ..read_rows import ReadRows
from ..write_ids import is_generated
from .concurrency import (
    CLEAN,
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    RESCALE,
    RESTORE,
    ROLLBACK,
    WRITE,
    Asked,
    InstantKind,
    Known,
    Meeting,
    Shared,
    all_shared,
    asked_of,
    forbids,
    kind_of,
    known_of,
)
from .new_keys import NewKeys, find_twin
from .read_set import find_changed_read
from .since import InstantsSincePlan
from .transaction import Transaction

# Operation type of a completed log compaction.
LOG_COMPACT = "LOG_COMPACT"
_COMPACTIONS = frozenset({COMPACTION, LOG_COMPACTION})
_NOTHING: Mapping[Shared, object] = {}


@dataclass(frozen=True, slots=True)
class WriteChanges:
    """What an instant is about to change, to compare with what other instants changed.

    Attributes:
        file_groups: Each file group that it made, changed or replaced.
        replaced: The file groups that readers skip once the instant is complete.
        rewritten: The file groups whose rows, as this write saw them, it wrote into a new base file.
        bases: The files that it merged or appended to.
        merged_logs: The log files among them that it merged into a new base file.
        rival_key: Returns for a file group what only one of two writers may open in its partition.
        covers: Returns whether the write replaces all of a partition, by its path.
        columns: The columns of the table once the write is complete.
        new_keys: Where the write put keys that the index did not find; None if it looked up no keys.
        read: The rows of the table that decided what the write does, if its isolation level makes them count.
        numbers: The number of buckets by which the write placed its rows, by partition path.
    """

    file_groups: frozenset[FileGroupId]
    replaced: frozenset[FileGroupId]
    rewritten: frozenset[FileGroupId]
    bases: Sequence[DataFile]
    rival_key: Callable[[FileGroupId], Hashable]
    covers: Callable[[str], bool]
    columns: pa.Schema
    new_keys: NewKeys | None = None
    merged_logs: Sequence[LogFile] = ()
    read: tuple[ReadRows, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def reads_files(self) -> bool:
        """Whether a check for conflicts may have to read data files."""
        return bool(self.read) or (self.new_keys is not None and bool(self.new_keys.files))


@dataclass(slots=True)
class CheckedInstants:
    """The instants with which a write was compared already; the next check skips them.

    What an instant did in one state never changes, and neither does what this write changes.

    Attributes:
        instants: The instants, each in the state in which it was compared.
        changed_by_writes: The file groups that completed writes changed.
        compacted: The file groups that completed compactions changed.
    """

    instants: set[Instant] = field(default_factory=set)
    changed_by_writes: set[FileGroupId] = field(default_factory=set)
    compacted: set[FileGroupId] = field(default_factory=set)


def check_conflicts(work: Transaction, timeline: Timeline, changes: WriteChanges, checked: CheckedInstants) -> None:
    """Raise `CommitConflictError` if this write must not be committed on top of what other instants did.

    It compares the write with all instants since its plan, except for the ``checked`` instants, and adds them to those.
    ``work`` is the write with the moment of its plan, ``timeline`` is listed now, and ``changes`` is what the write is
    about to change.
    """
    since_plan = InstantsSincePlan.find(work, timeline, checked.instants)
    check_ownership(work, timeline, since_plan)
    _check_numbers(since_plan, changes.numbers)
    changed_by_writes: set[FileGroupId] = set()
    compacted: set[FileGroupId] = set()
    for instant in since_plan.writes:
        metadata = since_plan.read(instant)
        _check_replay(work, instant, metadata)
        their_groups = sorted(_file_groups(metadata))
        if metadata.operation_type == LOG_COMPACT or metadata.compacted:
            kind = LOG_COMPACTION if metadata.operation_type == LOG_COMPACT else COMPACTION
            _check_compaction(work, instant, kind, their_groups, changes)
            compacted.update(their_groups)
        else:
            _check_write(work, instant, metadata, their_groups, changes)
            _check_read(since_plan, instant, metadata, changes)
            changed_by_writes.update(their_groups)
    check_columns_since(since_plan, changes.columns)
    _check_pending(since_plan, changes)
    # The requested times of the instants that wrote the files which this write merged or appended to.
    bases = work.table.format.makers(changes.bases, timeline)
    _check_undone(since_plan, changes, bases)
    _check_times(work, timeline, bases, changes.merged_logs)
    for base in sorted(bases):
        if not timeline.is_committed(base) and _forbids(ROLLBACK, {Shared.BASIS: True}):
            raise _base_rolled_back_error(work, base)
    if changes.new_keys is not None:
        _check_cleaned(since_plan, changes.new_keys)
        # After a compaction, others take keys that log files delete for new, so these log files are searched, too.
        if changes.new_keys.logs.keys() & compacted:
            # The checks before did not look for keys of these log files in the file groups that others had changed.
            changed_by_writes |= checked.changed_by_writes
        _check_new_keys(
            since_plan, changes.new_keys.with_logs_of(checked.compacted | compacted), changed_by_writes, checked
        )
    checked.changed_by_writes |= changed_by_writes
    checked.compacted |= compacted
    checked.instants.update(since_plan.instants)


def _check_times(work: Transaction, timeline: Timeline, bases: Collection[str], logs: Iterable[LogFile]) -> None:
    """Raise if readers would skip rows that this write merged from a newer state of the table.

    ``bases`` are the requested times of the instants whose files it merged, ``logs`` the log files among these. Readers
    take the base file of the greatest requested time, and put a log file on top of each base file that was requested
    before the log file completed.
    """
    newest_base = max(bases, default="")
    newest_log = work.table.format.slices.reach(logs, timeline)
    if newest_base > work.instant_time:
        raise work.conflict(f"It merged files of the commit {newest_base}, which has a later time")
    if newest_log > work.instant_time:
        raise work.conflict(f"It merged log files that were completed at {newest_log}, after its own time")


def check_before_merge(work: Transaction, timeline: Timeline) -> InstantsSincePlan:
    """Return the instants since the plan of a write that has not read the table yet.

    Raises `CommitConflictError` if the write must not be merged with the table as it is now.
    """
    since_plan = InstantsSincePlan.of_unread(work, timeline)
    _check_restore(since_plan)
    # No replay can have an id that this write generated.
    for instant in () if is_generated(work.write_id) else since_plan.writes:
        _check_replay(work, instant, since_plan.read(instant))
    return since_plan


def _check_replay(work: Transaction, instant: Instant, metadata: CommitMetadata) -> None:
    """Raise if a completed write has the write id of this write, so that both are the same work."""
    if metadata.extra_metadata.get(WRITE_ID) == work.write_id:
        raise work.conflict(f"A replay of it completed meanwhile, as {instant.requested_time}")


def _forbids(
    their_kind: InstantKind,
    shared: Mapping[Shared, object] = _NOTHING,
    *,
    their_state: Known = Known.COMPLETED,
    asked: Asked = Asked.SINCE_PLAN,
) -> bool:
    """Return whether a meeting with another instant keeps this write from being committed.

    ``shared`` has what both may share, each with a truthy value if they do; ``asked`` says when the other instant was
    requested.
    """
    return forbids(Meeting(WRITE, their_kind, their_state, all_shared(shared), asked))


def _check_write(
    work: Transaction,
    instant: Instant,
    metadata: CommitMetadata,
    their_groups: Sequence[FileGroupId],
    changes: WriteChanges,
) -> None:
    """Raise if a completed write changed file groups or buckets of this write, or partitions that it replaces.

    ``work`` is this write. ``instant`` is the completed write, ``metadata`` the content of its completed file, and
    ``their_groups`` are the file groups that it wrote or replaced.
    """
    # Different file groups of a partition may have one rival key, if both writers opened a file group for one bucket.
    our_places = {(file_group.partition_path, changes.rival_key(file_group)) for file_group in changes.file_groups}
    shared_groups = [group for group in their_groups if (group.partition_path, changes.rival_key(group)) in our_places]
    # If this write replaces a whole partition, no other write may have added file groups to it.
    covered_groups = [group for group in their_groups if changes.covers(group.partition_path)]
    if _forbids(WRITE, _shared_with_other(shared_groups, covered_groups, changes)):
        what = f"{_name_of(instant, metadata)} completed meanwhile"
        for group in (shared_groups or covered_groups)[:1]:
            what += f" and changed the {group.words} too"
        raise work.conflict(what, met_at(instant.requested_time, WRITE, (shared_groups or covered_groups)[:1]))


def changed_meanwhile(
    work: Transaction, timeline: Timeline, changes: WriteChanges, checked: CheckedInstants
) -> frozenset[FileGroupId]:
    """Return the file groups of a write that other writes changed since, except for the ``checked`` writes.

    A write that rewrites rows in place leaves them out, and then conflicts with none of these writes.
    """
    since_plan = InstantsSincePlan.find(work, timeline, checked.instants)
    # A place is what only one of two writers may open: a file group, or a bucket for which both may have opened one.
    groups_by_place = {(group.partition_path, changes.rival_key(group)): group for group in changes.file_groups}
    their_groups = {group for instant in since_plan.writes for group in _file_groups(since_plan.read(instant))}
    their_places = {(group.partition_path, changes.rival_key(group)) for group in their_groups}
    return frozenset(group for place, group in groups_by_place.items() if place in their_places)


def _check_numbers(since_plan: InstantsSincePlan, numbers: Mapping[str, int]) -> None:
    """Raise if a partition no longer has the number of buckets by which this write placed rows there.

    A rescale may leave a bucket empty, so that file groups alone do not show the conflict.
    """
    for path, current in changed_numbers(since_plan, numbers).items():
        if _forbids(WRITE, {Shared.BUCKET_NUMBER: True}):
            instant = max(write.requested_time for write in since_plan.writes if write.replaces)
            raise since_plan.work.conflict(
                f"The replacecommit {instant} completed meanwhile, and the partition {path!r} has "
                f"{'an unknown number of' if current is None else current} buckets, but this write placed its rows by "
                f"{numbers[path]}",
                MetInstant(instant, WRITE.value, path),
            )


def changed_numbers(since_plan: InstantsSincePlan, numbers: Mapping[str, int]) -> dict[str, int | None]:
    """Return the numbers of buckets of now that differ from those by which a write placed rows; None for unknown.

    Only a replacecommit changes numbers. The rollback of a replacecommit that the write saw is a conflict by itself.
    """
    if not numbers or not any(write.replaces for write in since_plan.writes):
        return {}
    current_numbers = bucket_numbers(since_plan.work.table, since_plan.timeline)
    return {
        path: current for path, number in sorted(numbers.items()) if (current := current_numbers.of(path)) != number
    }


def _check_read(
    since_plan: InstantsSincePlan, instant: Instant, metadata: CommitMetadata, changes: WriteChanges
) -> None:
    """Raise if a completed write changed rows that decided what this write does.

    ``since_plan`` has this write and a timeline of now. ``instant`` is the completed write, and ``metadata`` the
    content of its completed file.
    """
    work = since_plan.work

    def numbers() -> BucketNumbers:
        """Return how many buckets each partition had when the other write completed; few comparisons need that."""
        return bucket_numbers(work.table, since_plan.timeline.as_of_completion(instant.visible_since))

    changed_place = find_changed_read(work, changes.read, changes.columns, instant, metadata, numbers)
    if changed_place is not None and _forbids(WRITE, {Shared.READ: True}):
        raise work.conflict(
            f"{_name_of(instant, metadata)} completed meanwhile and changed rows that decided what this write does "
            f"({changed_place})",
            met_at(instant.requested_time, WRITE),
        )


def _name_of(instant: Instant, metadata: CommitMetadata) -> str:
    """Return the name of a completed write, with its write id, the only trace of its process."""
    write_id = metadata.extra_metadata.get(WRITE_ID)
    return f"The {instant.action} {instant.requested_time}" + (f" (write id {write_id})" if write_id else "")


def _shared_with_other(
    groups: Collection[FileGroupId], covered: Collection[FileGroupId], changes: WriteChanges
) -> dict[Shared, object]:
    """Return what this write shares with another, as `_forbids` takes it, by file groups of the other.

    ``groups`` are those that meet a file group or bucket of this write, ``covered`` are in a partition that it
    replaces.
    """
    return {
        Shared.FILE_GROUP: changes.file_groups.intersection(groups),
        Shared.BUCKET: not changes.file_groups.issuperset(groups),
        Shared.PARTITION: covered,
    }


def _check_pending(since_plan: InstantsSincePlan, changes: WriteChanges) -> None:
    """Raise if a pending instant keeps this write out, such as a clustering of file groups that the write changed.

    ``since_plan`` has this write and the instants that are pending now, also those from before its plan.
    """
    work = since_plan.work
    timeline = Timeline(since_plan.pending, since_plan.timeline.files)
    clustered = clustered_groups(timeline, own=work.instant_time)
    reads_plans = False
    for instant in since_plan.pending:
        kind = kind_of(instant.action)
        if kind is None or instant.requested_time == work.instant_time:
            # No rule is about instants of other actions, such as an indexing, or about this write itself.
            continue
        # Whether a clustering does not say in its plan which file groups it holds.
        untold = kind is CLUSTERING and not says_what_it_holds(timeline, instant)
        asked = asked_of(work.instant_time, instant)
        if kind in _COMPACTIONS:
            # Appends may run beside any compaction, so their commit need not read its plan.
            if changes.rewritten or _forbids(kind, {Shared.FILE_GROUP: True}, their_state=Known.PENDING, asked=asked):
                reads_plans = True
        elif kind is not CLUSTERING:
            # At a commit the rules ask only for compactions and clusterings when theirs was requested.
            asked = Asked.SINCE_PLAN
        if _forbids(kind, {Shared.UNTOLD: untold}, their_state=Known.PENDING, asked=asked):
            what = f"The {instant.action} {instant.requested_time} was requested meanwhile"
            raise work.conflict(what, met_at(instant.requested_time, kind))
    check_rescales(work, timeline, {file_group.partition_path for file_group in changes.file_groups})
    for (partition, file_id), instant in clustered.items():
        group = FileGroupId(partition, file_id)
        shared = {Shared.FILE_GROUP: group in changes.file_groups, Shared.PARTITION: changes.covers(partition)}
        if _forbids(CLUSTERING, shared, their_state=Known.PENDING, asked=asked_of(work.instant_time, instant)):
            raise work.conflict(
                f"The clustering {instant.requested_time} was requested meanwhile for the {group.words}, which this "
                "write changed",
                met_at(instant.requested_time, CLUSTERING, [group]),
            )
    for place, instant in (held_groups(pending_compactions(timeline)) if reads_plans else {}).items():
        _check_compaction(work, instant, kind_of(instant.action) or COMPACTION, [FileGroupId(*place)], changes)


def check_rescales(work: Transaction, timeline: Timeline, partitions: Collection[str]) -> None:
    """Raise `CommitConflictError` if a rescale of these partitions reads them already, or is older than the write.

    A younger rescale that has not begun to read waits for the write.
    """
    for instant, rescale in pending_rescales(timeline, own=work.instant_time).items():
        comes_first = instant.state == State.INFLIGHT or instant.requested_time < work.instant_time
        held_partition = rescale.first_held(partitions) if comes_first else None
        if _forbids(RESCALE, {Shared.PARTITION: held_partition is not None}, their_state=Known.PENDING):
            raise work.conflict(
                rescaling(instant, held_partition), MetInstant(instant.requested_time, RESCALE.value, held_partition)
            )


def check_restores(work: Transaction, timeline: Timeline) -> None:
    """Raise `CommitConflictError` if a restore is at work, because it undoes what begins after it."""
    restore = next((instant for instant in timeline.pending if kind_of(instant.action) is RESTORE), None)
    if restore is not None and _forbids(RESTORE, their_state=Known.PENDING):
        what = f"The restore {restore.requested_time} is at work on the table"
        raise work.conflict(what, met_at(restore.requested_time, RESTORE))


def _check_new_keys(
    since_plan: InstantsSincePlan,
    our_keys: NewKeys,
    their_groups: Collection[FileGroupId],
    checked: CheckedInstants,
) -> None:
    """Raise if another write added a key that this write adds, too, to another file group.

    ``our_keys`` says into which files this write put keys that it had not found. ``their_groups`` are the file groups
    that other writes changed, and ``checked`` has the instants of earlier checks, because some of the groups may be of
    these.
    """
    if not our_keys.files or not their_groups:
        return
    work = since_plan.work
    times = {instant.requested_time for instant in (*since_plan.writes, *checked.instants) if instant.is_write}
    twin = find_twin(work.storage, since_plan.timeline, our_keys, work.instant_time, their_groups, times)
    if twin is not None and _forbids(WRITE, {Shared.NEW_KEY: True}):
        name, time = next(
            (
                (_name_of(write, metadata), write.requested_time)
                for write in since_plan.writes
                if twin.group in _file_groups(metadata := since_plan.read(write))
            ),
            # An earlier check has compared the other write, and skipped the keys of these log files.
            ("Another write", ""),
        )
        raise work.conflict(
            f"{name} completed meanwhile and added the record key {twin.record_key!r}, which "
            f"this one adds to partition {twin.partition_path!r}, to the {twin.group.words}",
            met_at(time, WRITE, [twin.group]),
        )


def _check_compaction(
    work: Transaction, instant: Instant, kind: InstantKind, groups: Collection[FileGroupId], changes: WriteChanges
) -> None:
    """Raise if a compaction or log compaction of some file groups does not fit with the files of this write there.

    ``kind`` says which of the two it is.
    """
    their_state, asked = known_of(instant), asked_of(work.instant_time, instant)
    rewritten_groups = sorted(changes.rewritten.intersection(groups))
    changed_groups = sorted(changes.file_groups.intersection(groups) - changes.rewritten)
    if not _forbids(
        kind,
        {Shared.BASE_FILE: rewritten_groups, Shared.FILE_GROUP: changed_groups},
        their_state=their_state,
        asked=asked,
    ):
        return
    name = f"The {'compaction' if their_state is Known.PENDING else kind.value} {instant.requested_time}"
    group = "".join(f"the {touched.words}" for touched in (rewritten_groups or changed_groups)[:1])
    if kind is LOG_COMPACTION and their_state is Known.COMPLETED:
        what = f"{name} completed meanwhile and joined the log files of {group}, which this write changed"
    else:
        what = f"{name} was requested meanwhile for {group}, of which this write made a new base file"
    raise work.conflict(what, met_at(instant.requested_time, kind, (rewritten_groups or changed_groups)[:1]))


def _check_restore(since_plan: InstantsSincePlan) -> None:
    """Raise if a restore completed since the plan, or is pending."""
    if since_plan.restore is not None and _forbids(RESTORE, their_state=known_of(since_plan.restore)):
        raise since_plan.work.conflict(
            f"The restore {since_plan.restore.requested_time} took the table back to an earlier moment",
            met_at(since_plan.restore.requested_time, RESTORE),
        )


def _base_rolled_back_error(work: Transaction, base: str) -> CommitConflictError:
    """Return the error of a write whose basis, the commit of files that it merged, was rolled back."""
    what = f"The commit {base}, whose rows this write kept, was rolled back meanwhile"
    return work.conflict(what, met_at(base, ROLLBACK))


def _check_undone(since_plan: InstantsSincePlan, changes: WriteChanges, bases: Collection[str]) -> None:
    """Raise if a restore, or a rollback of what this write merged or saw in the same places, undid data meanwhile.

    ``since_plan`` has the rollbacks and restores to look at, and ``changes`` what this write is about to change.
    ``bases`` are the requested times of the instants whose files this write merged or appended to.
    """
    _check_restore(since_plan)
    our_places = {(file_group.partition_path, changes.rival_key(file_group)) for file_group in changes.file_groups}
    for undo in since_plan.undone_writes():
        if undo.instant_time in bases and _forbids(ROLLBACK, {Shared.BASIS: True}, their_state=undo.state):
            raise _base_rolled_back_error(since_plan.work, undo.instant_time)
        shared: dict[Shared, object] = {}
        # A write that was not complete at this write's plan did not influence it.
        if since_plan.seen.saw_write(undo.instant_time):
            groups = [
                group for group in undo.file_groups if (group.partition_path, changes.rival_key(group)) in our_places
            ]
            shared = _shared_with_other(
                groups, [group for group in undo.file_groups if changes.covers(group.partition_path)], changes
            )
            # File groups that it had replaced come back. Only its completed file, which is deleted, named them.
            shared[Shared.REPLACED] = undo.group not in {"commit", "deltacommit"}
            # A missing key may be back, or a found key gone; no file group of this write shows that.
            shared[Shared.LOOKED_UP] = changes.new_keys is not None
            shared[Shared.READ] = changes.read
        if _forbids(ROLLBACK, shared, their_state=undo.state):
            raise since_plan.work.conflict(
                f"The write {undo.instant_time}, which this one had seen, was rolled back meanwhile",
                met_at(undo.instant_time, ROLLBACK),
            )


def _check_cleaned(since_plan: InstantsSincePlan, new_keys: NewKeys) -> None:
    """Raise if a clean deleted files that this write saw, so that its lookup may have missed keys.

    A lookup notices that a file is gone if an instant on the timeline names it, but not if that instant was archived.
    """
    cleaned_files, their_state = since_plan.cleaned(), since_plan.state_of_cleans
    # Only partitions in which keys were looked up count: all, if keys are unique in the whole table.
    partitions = sorted(cleaned_files if new_keys.anywhere else new_keys.partitions.intersection(cleaned_files))
    if not cleaned_files:
        return
    seen_timeline = since_plan.timeline.as_of(since_plan.seen)
    view = FileView(seen_timeline, read_written(seen_timeline), cleaned=cleaned_files)
    lost_files = [file for partition in partitions for file in view.lost(partition)]
    if _forbids(CLEAN, {Shared.LOOKED_UP: lost_files}, their_state=their_state):
        what = "".join(f" the {file.kind} {file.path} meanwhile, which a newer one replaced" for file in lost_files[:1])
        groups = [FileGroupId(split(file.path)[0], file.file_id) for file in lost_files[:1]]
        raise since_plan.work.conflict(f"A clean took{what or ' files meanwhile'}", met_at("", CLEAN, groups))


def check_columns_since(since_plan: InstantsSincePlan, columns: pa.Schema, *, merges: bool = False) -> None:
    """Raise if either this write or a write that completed meanwhile drops columns of the other.

    Readers take the columns of the write with the greatest requested time, whichever completed last. A write that still
    ``merges`` stored rows must not have narrower columns than the other write, either.
    """
    newest_columns = newest_schema(since_plan.timeline) if since_plan.writes else None
    if newest_columns is None:
        return
    instant, their_columns = newest_columns
    later_columns, earlier_columns = (
        (their_columns, columns) if instant.requested_time > since_plan.work.instant_time else (columns, their_columns)
    )
    lost_columns = unheld(list(later_columns), list(earlier_columns))
    if merges:
        shared_columns = [field for field in their_columns if field.name in columns.names]
        lost_columns += unheld([columns.field(field.name) for field in shared_columns], shared_columns)
    if lost_columns and _forbids(WRITE, {Shared.COLUMNS: True}):
        raise since_plan.work.conflict(
            f"The {instant.action} {instant.requested_time} completed meanwhile and changed the table's columns "
            f"({', '.join(map(repr, dict.fromkeys(lost_columns)))})",
            met_at(instant.requested_time, WRITE),
        )


def check_ownership(work: Transaction, timeline: Timeline, since_plan: InstantsSincePlan | None = None) -> None:
    """Raise if another writer rolled this write back, even if a late task put its instant on the timeline again.

    ``since_plan`` saves its computation if the caller has it already.
    """
    since_plan = since_plan or InstantsSincePlan.find(work, timeline)
    own_instant = timeline.find(work.instant_time)
    own_kind, itself = kind_of(work.action) or WRITE, frozenset({Shared.ITSELF})
    undone_by = [
        f" (the rollback {undo.rollback_time})"
        for undo in since_plan.rollbacks_of(work.instant_time)
        if forbids(Meeting(own_kind, ROLLBACK, undo.state, itself, Asked.SINCE_PLAN))
    ]
    if own_instant is None or own_instant.state != State.INFLIGHT or undone_by:
        raise CommitConflictError(
            f"The instant {work.instant_time} of this write is no longer pending on the table {work.path}: another "
            f"writer rolled it back{''.join(undone_by[:1])}, taking its writer for dead.",
            "This write left nothing behind; write again, with a longer heartbeat tolerance "
            "(hoodie.client.heartbeat.tolerable.misses) if its tasks pause for long.",
        )


def met_at(instant_time: str, kind: InstantKind, groups: Sequence[FileGroupId] = ()) -> MetInstant:
    """Return the instant that a write met, with the first of the file groups at which they met."""
    if not groups:
        return MetInstant(instant_time, kind.value)
    return MetInstant(instant_time, kind.value, groups[0].partition_path, groups[0].file_id)


def _file_groups(metadata: CommitMetadata) -> set[FileGroupId]:
    """Return the file groups that a completed instant wrote or replaced."""
    written_groups = {
        FileGroupId(partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
        if stat.file_id
    }
    return written_groups | {
        FileGroupId(partition, file_id) for partition, ids in metadata.replaced.items() for file_id in ids
    }
