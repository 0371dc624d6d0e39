"""Pending writes, pending table services, and decisions that no writer has carried out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import monotonic, sleep
from typing import Any

from ...errors import UnsupportedTableError
from ...storage.base import join, split
from ...table.config import is_replaced
from ...table.files.names import FileGroupId
from ...timeline import formats
from ...timeline.held import CLUSTERING, COMPACTING, says_what_it_holds
from ...timeline.instants import Instant, State
from ...timeline.writers import decisions, owner
from ...timeline.writers.decisions import Decision, DecisionKind
from ...timeline.writers.patience import Patience
from .bodies import read_record
from .check_catalogue import (
    CLAIMED_TWICE,
    CLEAN_TAKES_LIVE,
    DECISION_OPEN,
    DECISION_UNREADABLE,
    PENDING_RESTORE,
    PENDING_SERVICE,
    PENDING_WRITE,
    PLAN_REPLACED,
    ROLLBACK_UNFINISHED,
    SAVEPOINT_FILE_LOST,
    SAVEPOINT_WITHOUT_COMMIT,
    TORN_INSTANT,
)
from .subject import Subject, called

_POLL_S = 0.1
_WRITES = frozenset({"commit", "deltacommit", "replacecommit"})
# What a pending service holds up.
_IN_THE_WAY = {
    "clean": "the next clean carries it out before it plans its own",
    "rollback": "the next write of Apache Hudi carries it out, even if its victim is complete",
    "compaction": "until it is carried out, queries have to merge what it is to merge",
    "logcompaction": "until it is carried out, its file groups are not compacted",
    "clustering": "what would change its file groups is refused",
    "indexing": "Apache Hudi does not archive beyond it",
    "savepoint": "it keeps nothing",
}


def check_pending(subject: Subject) -> None:
    """Look for instants that broke off, and for plans that would do harm if an engine carried them out."""
    for instant in subject.timeline.pending:
        with subject.turning(TORN_INSTANT, instant):
            if subject.in_archive(instant):
                # `check_instants` reports it.
                continue
            if instant.action == "restore":
                what = f"The restore {instant.requested_time} is pending; every write is refused."
                subject.tell(PENDING_RESTORE, instant, what)
            elif instant.action in _WRITES and not _is_clustering(subject, instant):
                _check_write(subject, instant)
            elif subject.findings.is_old(_last_change(subject, instant)):
                action = CLUSTERING if instant.action in _WRITES else instant.action
                why = _IN_THE_WAY.get(action, "nothing waits for it")
                what = f"The {action} {instant.requested_time} is pending: {why}."
                subject.tell(PENDING_SERVICE, instant, what)
    _check_claims(subject)
    _check_cleans(subject)
    _check_rollbacks(subject)
    _check_savepoints(subject)
    _check_decision(subject)


def kept_by_savepoints(subject: Subject) -> dict[str, str]:
    """Return the paths of the files that completed savepoints keep, each with the savepoint's time."""
    savepoint_by_path: dict[str, str] = {}
    for instant in subject.timeline.completed:
        if instant.action == "savepoint":
            with subject.turning(TORN_INSTANT, instant):
                record = read_record(subject.timeline, instant)
                for partition, part in (record.get("partitionMetadata") or {}).items():
                    savepoint_by_path |= {
                        join(partition, name): instant.requested_time for name in part["savepointDataFile"]
                    }
    return savepoint_by_path


def _last_change(subject: Subject, instant: Instant) -> float | None:
    """Return when the newest file of a pending instant's states was changed; None if it has none any more."""
    times = [subject.storage.modified(subject.path(instant.at(state))) for state in (State.REQUESTED, State.INFLIGHT)]
    return max((time for time in times if time is not None), default=None)


def _is_clustering(subject: Subject, instant: Instant) -> bool:
    """Return whether a pending instant is a clustering, which version 6 calls a replacecommit."""
    return instant.replaces and says_what_it_holds(subject.timeline, instant)


def _check_write(subject: Subject, instant: Instant) -> None:
    """Report a pending write whose writer is dead, or has given no sign of life for long.

    A check does not wait to see whether an overdue heartbeat comes after all.
    """
    try:
        suspect = owner.Suspect(
            subject.timeline.files, instant, Patience(), subject.storage.now(), subject.config.timezone
        )
        liveness = suspect.judge(may_wait=False)
    except UnsupportedTableError:
        # Only a newer release can tell whether its writer lives.
        return
    # A write that lives is a finding only if its last sign of life is old.
    if liveness.alive and not subject.findings.is_old(
        _last_change(subject, instant) if liveness.beat is None else liveness.beat
    ):
        return
    verdict = "its writer may live" if liveness.alive else "its writer is dead"
    what = f"The {called(instant)} is pending, and {verdict} ({liveness.reason})."
    subject.tell(PENDING_WRITE, instant, what)


def _check_claims(subject: Subject) -> None:
    """Look for file groups that two pending services want, and for replaced file groups in a clustering's plan."""
    replaced = subject.statements.written.replaced
    claim_by_group: dict[FileGroupId, Instant] = {}
    for instant in subject.timeline.pending:
        clusters = False
        with subject.turning(TORN_INSTANT, instant.at(State.REQUESTED)):
            clusters = _is_clustering(subject, instant)
        if not clusters and instant.action not in COMPACTING:
            continue
        record: Mapping[str, Any] = {}
        with subject.turning(TORN_INSTANT, instant.at(State.REQUESTED)):
            record = read_record(subject.timeline, instant.at(State.REQUESTED))
        for group in _claimed_groups(record):
            other = claim_by_group.setdefault(group, instant)
            group_in_words = f"the file group {group.file_id} of the partition {group.partition_path!r}"
            if other is not instant:
                what = f"The {called(instant)} and the {called(other)} both want {group_in_words}."
                subject.tell(CLAIMED_TWICE, instant, what)
            if clusters and (group.partition_path, group.file_id) in replaced:
                what = f"The clustering {instant.requested_time} wants {group_in_words}, which is replaced."
                subject.tell(PLAN_REPLACED, instant, what)


def _claimed_groups(record: Mapping[str, Any]) -> Iterator[FileGroupId]:
    """Yield the file groups that the plan of a compaction, a log compaction or a clustering names."""
    operations = record.get("operations") or ()
    groups = (record.get("clusteringPlan") or {}).get("inputGroups") or ()
    for operation in [*operations, *(file_slice for group in groups for file_slice in group.get("slices") or ())]:
        yield FileGroupId(operation.get("partitionPath") or "", operation.get("fileId") or "")


def _check_cleans(subject: Subject) -> None:
    """Check pending cleans, which other engines carry out as planned, without looking at the table again."""
    cleans = [instant for instant in subject.timeline.pending if instant.action == "clean"]
    if not cleans:
        return
    # Why a clean must not delete a file, by path, as the end of the finding's sentence.
    needed = {path: "which readers see" for group in subject.live for path in group.newest.files}
    needed |= {path: f"which the savepoint {time} keeps" for path, time in kept_by_savepoints(subject).items()}
    for instant in cleans:
        with subject.turning(TORN_INSTANT, instant.at(State.REQUESTED)):
            record = read_record(subject.timeline, instant.at(State.REQUESTED))
            for partition, files in (record.get("filePathsToBeDeletedPerPartition") or {}).items():
                for file in files:
                    name = split(file.get("filePath") or "")[1]
                    deleted_path = join(partition, name)
                    if deleted_path in needed:
                        what = f"The clean {instant.requested_time} is going to delete {deleted_path}, "
                        what += f"{needed[deleted_path]}."
                        subject.findings.add(CLEAN_TAKES_LIVE, what, file=deleted_path, instant=instant.requested_time)


def _check_rollbacks(subject: Subject) -> None:
    """Report instants that a completed rollback names and that are still on the timeline.

    An instant that completed after the rollback is no finding: a plan may be carried out again.
    """
    for instant in subject.timeline.completed:
        if instant.action != "rollback":
            continue
        with subject.turning(TORN_INSTANT, instant):
            record = read_record(subject.timeline, instant)
            # A rolled-back compaction or clustering may be complete after a second request; version 6 lacks the times
            # that would show it.
            plans = {
                info.get("commitTime")
                for info in record.get("instantsRollback") or ()
                if info.get("action") in COMPACTING | {CLUSTERING}
            }
            for victim_time in record.get("commitsRollback") or ():
                victim = subject.timeline.find(victim_time)
                is_repeated = victim is not None and (
                    victim.visible_since > instant.visible_since or victim_time in plans
                )
                if (
                    victim is not None
                    and not is_repeated
                    and (victim.state == State.COMPLETED or victim.action in _WRITES)
                ):
                    what = f"The {called(instant)} is complete, and the {called(victim)} is still on the timeline."
                    subject.tell(ROLLBACK_UNFINISHED, victim, what)


def _check_savepoints(subject: Subject) -> None:
    """Report savepoints whose files are gone, and savepoints of writes that no timeline and no archive has."""
    for path, time in sorted(kept_by_savepoints(subject).items()):
        if not subject.is_there(path):
            subject.findings.add(
                SAVEPOINT_FILE_LOST, f"{path} is gone, which the savepoint {time} keeps.", file=path, instant=time
            )
    for instant in subject.timeline.completed:
        if instant.action == "savepoint" and not subject.is_complete(instant.requested_time):
            what = (
                f"The savepoint {instant.requested_time} keeps an instant that is neither on the timeline nor archived."
            )
            subject.tell(SAVEPOINT_WITHOUT_COMMIT, instant, what)


def _check_decision(subject: Subject) -> None:
    """Report the newest decision if it cannot be read, or no writer has carried it out for long.

    A decision is the file by which writers agree on the table's next step; the next writer carries it out.
    """
    numbers = decisions.numbers(subject.storage)
    if not numbers:
        return
    path = decisions.path_of(numbers[-1])
    with subject.findings.turning(DECISION_UNREADABLE, file=path):
        decision = _whole_decision(subject, path)
        if (
            decision is not None
            and _is_open(subject, decision)
            and subject.findings.is_old(subject.storage.modified(path))
        ):
            what = f"The {decision.instant.action} {decision.instant.requested_time} was decided, and is not complete."
            subject.findings.add(DECISION_OPEN, what, file=path, instant=decision.instant.requested_time)


def _is_open(subject: Subject, decision: Decision) -> bool:
    """Return whether a decision that completes an instant, or changes properties, is not carried out yet."""
    if decision.kind == DecisionKind.SET_PROPERTIES:
        return not is_replaced(subject.storage, decision.replaces)
    if decision.kind != DecisionKind.MAKE or decision.instant.state != State.COMPLETED:
        return False
    group = (decision.instant.requested_time, decision.instant.group)
    return any((instant.requested_time, instant.group) == group for instant in subject.timeline.pending)


def _whole_decision(subject: Subject, path: str) -> Decision | None:
    """Return a decision; None, with a finding, if it is still half-made after the time for which writers wait.

    ``path`` is its file. None without a finding is for a file that is gone, or that a newer release wrote.
    """
    until_s = monotonic() + min(decisions.HALF_MADE_S, max(subject.findings.stale_s, 0.0))
    while True:
        try:
            data = subject.storage.read(path)
        except FileNotFoundError:
            return None  # old decisions go when newer decisions are made
        if decisions.format_of(data) > formats.DECISION:
            # Only a newer release can tell whether this decision is carried out.
            return None
        decision = Decision.parse(data)
        if decision is not None:
            return decision
        if monotonic() >= until_s:
            subject.findings.add(DECISION_UNREADABLE, f"{path} is not whole, so that no writer follows it.", file=path)
            return None
        sleep(_POLL_S)
