"""Undoes a write: deletes its files, takes its instant off the timeline, and records that in a rollback instant.

The steps have the order of Apache Hudi's ``BaseRollbackActionExecutor``: plan, inflight, the victim's completed file,
its data files, what it wrote to the metadata table, its inflight and requested files, the completed rollback, the
victim's markers. Several processes may take each step, at once or again, and the steps are the same whichever engine
made the plan. If the metadata table cannot forget the victim, the metadata table goes out of use first.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from ...errors import CorruptInstantError
from ...table.files.marked_files import is_data_file_of
from ...table.table import Table
from ...timeline.held import COMPACTING
from ...timeline.instants import Instant, State
from ...timeline.pending_undo import pending_rollbacks
from ...timeline.timeline import Timeline
from ...timeline.writers import owner
from ...timeline.writers.long_work import LongWork
from ..meeting.concurrency import ROLLBACK, WRITE, Known, Meeting, Verdict, judge
from ..transaction.bucket_rules import delete_rule
from ..transaction.commit_path import begin, complete
from ..transaction.instant_changes import hide, remove_file, start, take_off
from ..transaction.left_overs import by_partition, files_of, forget, forget_partitions
from ..transaction.outcome import Outcome
from ..transaction.undone_metadata import prepare_undo, take_back_metadata
from .pending import OtherWriters, PlannedRollback

if TYPE_CHECKING:
    from ...timeline.metadata.models import RollbackMetadata, RollbackPlan

logger = logging.getLogger("pyhudi")

# A rollback whose victim is off the timeline needs only moments to complete, in any process.
GIVEN_UP_S = 3600.0


def roll_back(other_writers: OtherWriters, planned: PlannedRollback) -> None:
    """Undo a dead write or the victim of a pending rollback, unless it is completed or gone, or its writer lives.

    Nor does this process take the steps of a rollback at which another process shows that it is at work.
    """
    # A commit looks for rollbacks that name it. So the victim cannot complete after this decision, however long it
    # stalled, and before the decision the rollback deletes none of its files.
    table = other_writers.table
    begun = begin(table, "rollback", partial(_plan_unless_over, other_writers, planned))
    rollbacks = pending_rollbacks(begun.timeline).get(planned.victim.requested_time, ())
    rollback = rollbacks[0] if rollbacks else begun.instant
    is_ours = begun.instant is not None or planned.certain
    if rollback is not None and (is_ours or other_writers.state_of_maker(rollback) is Known.PENDING):
        carry_out_rollback(table, begun.timeline, rollback.requested_time)


def carry_out_rollback(table: Table, timeline: Timeline, at: str) -> None:
    """Take all steps of the rollback that was requested at `at`; other processes may have taken some before.

    `timeline` shows the rollback, and the write to undo (the victim) unless its files are gone from there already.
    """
    began, files = time.monotonic(), timeline.files
    plan = files.read_rollback_plan(Instant(at, "rollback", State.REQUESTED))
    if plan is None or plan.instant_to_rollback is None:
        # An empty plan names no write, so there is nothing to undo.
        return
    start(table, Instant(at, "rollback", State.INFLIGHT))
    info = plan.instant_to_rollback
    victim, paths = timeline.write_at(info.commit_time), planned_files(table, plan, info.commit_time)
    # Several processes may execute a compaction's plan, under the same time.
    is_compaction = info.action in COMPACTING
    if victim is not None and is_compaction:
        if not _undo_execution(table, timeline.reload(), at, victim, paths):
            return
    elif victim is not None:
        with LongWork(table.storage, at):
            # A dead write may have made files after the plan. The plan for a completed write names all files.
            paths = sorted({*paths, *files_of(table, timeline, victim.requested_time)})
            prepare_undo(table, timeline, info.commit_time, paths)
            files_of_instants = files.paths()
            hide(table, files_of_instants, victim)
            table.format.undo.take_back(table.storage, {info.commit_time: paths})
            forget_partitions(table, victim, by_partition(paths))
            delete_rule(table, victim)
            take_back_metadata(table, [info.commit_time])
            take_off(table, files_of_instants, victim)
        # The completed rollback also names the files that were made after the plan.
        plan = plan_of(table, Instant(info.commit_time, info.action, State.INFLIGHT), paths)
    else:
        # Another engine may have died before it undid the victim in the metadata table.
        prepare_undo(table, timeline, info.commit_time, ())
        take_back_metadata(table, [info.commit_time])
        forget_partitions(table, Instant(info.commit_time, info.action, State.INFLIGHT), by_partition(paths))
    # Other pending rollbacks of the same victim are complete with this one's steps.
    for rollback_time in (
        at,
        *(other.requested_time for other in pending_rollbacks(timeline).get(info.commit_time, ())),
    ):
        _complete_rollback(table, rollback_time, plan, time.monotonic() - began)
    if not is_compaction:
        # Another process may execute a compaction's plan again, with the same working folder.
        forget(table.storage, info.commit_time)
    logger.warning("table %s: rolled back the %s %s (%d files)", table.path, info.action, info.commit_time, len(paths))


def _undo_execution(table: Table, timeline: Timeline, at: str, victim: Instant, paths: list[str]) -> bool:
    """Undo an execution of a compaction's plan; the plan stays unless the user took it back.

    A process may execute the plan again under the same time. So this deletes only the files that the rollback names,
    and only while the rollback is pending. Return whether it was pending.
    """
    if not _has_rollback(timeline, at, (State.REQUESTED, State.INFLIGHT)):
        return False
    prepare_undo(table, timeline, victim.requested_time, paths)
    table.format.undo.take_back(table.storage, {victim.requested_time: paths})
    take_back_metadata(table, [victim.requested_time])
    remove_file(table, victim.at(State.INFLIGHT))
    if owner.Seal(table.storage, victim.requested_time).is_given_up():
        remove_file(table, victim.at(State.REQUESTED))
    forget(table.storage, victim.requested_time)
    return True


def _plan_unless_over(other_writers: OtherWriters, planned: PlannedRollback, timeline: Timeline) -> RollbackPlan | None:
    """Return the plan to roll a dead write back; None if the write is over, or a rollback names it already.

    `planned` names the write (the victim) and the heartbeat by which its writer counts as dead, `other_writers` has the
    table, and `timeline` is that of the decision to begin the rollback. Raises `ConcurrentWriteError` if the writer
    lives after all, unless it counts as dead for certain.
    """
    victim = timeline.write_at(planned.victim.requested_time)
    if victim is None or victim.state == State.COMPLETED or victim.requested_time in pending_rollbacks(timeline):
        return None
    if victim.action in COMPACTING:
        # One execution was rolled back already: another process may have begun to execute the plan again.
        return None
    if not planned.certain and not other_writers.refuse_living(victim, known_beat=planned.beat, may_wait=False):
        return None
    table, storage = other_writers.table, other_writers.table.storage
    if storage.has_files(owner.Claim(storage, victim.requested_time).folder):
        # Tasks of pyhudi may outlive their driver, or the driver may only have seemed dead. After the seal no task
        # publishes a file, so the listing below finds all of them.
        writer = owner.Claim(storage, victim.requested_time).owner()
        owner.Seal(storage, victim.requested_time).set_for_good("" if writer is None else writer.key)
    return plan_of(table, victim, files_of(table, timeline, victim.requested_time))


def _has_rollback(timeline: Timeline, at: str, states: Iterable[State] = State) -> bool:
    """Return whether a rollback is on the timeline, in one of some states."""
    return any(
        (instant.requested_time, instant.action) == (at, "rollback") and instant.state in states
        for instant in timeline.instants
    )


def finish_rollbacks(table: Table, timeline: Timeline, age_s: float) -> None:
    """Complete rollbacks that broke off after their victim left the timeline, once they are `age_s` seconds old.

    The next write finishes a rollback whose victim is still on the timeline.
    """
    for instant in timeline.pending:
        if instant.action != "rollback":
            continue
        changed = table.storage.modified(timeline.files.path(instant))
        if changed is None or table.storage.file_time() - changed <= age_s:
            continue
        if judge(Meeting(WRITE, ROLLBACK, Known.DEAD)) is not Verdict.FINISH:
            continue
        _finish_without_victim(table, timeline, instant)


def _finish_without_victim(table: Table, timeline: Timeline, rollback: Instant) -> None:
    """Complete a rollback whose victim is gone; it stays pending if its plan cannot be read."""
    try:
        plan = timeline.files.read_rollback_plan(rollback)
    except CorruptInstantError as error:
        # Apache Hudi ignores such a rollback, too, and this write does not depend on it.
        logger.warning("table %s: the rollback %s stays pending: %s", table.path, rollback.requested_time, error)
        return
    victim = None if plan is None else plan.instant_to_rollback
    if victim is None or timeline.write_at(victim.commit_time) is not None:
        return
    carry_out_rollback(table, timeline, rollback.requested_time)


def _complete_rollback(table: Table, at: str, plan: RollbackPlan, seconds: float) -> None:
    """Complete the rollback that was requested at `at`, unless another process has completed it.

    ``seconds`` is how long its steps took.
    """
    rollback = Instant(at, "rollback", State.INFLIGHT)

    def outcome(timeline: Timeline) -> Outcome | None:
        """Return the outcome while the rollback is pending; None if it is complete."""
        if not _has_rollback(timeline, at, (State.REQUESTED, State.INFLIGHT)):
            return None
        victim = plan.instant_to_rollback
        removed_paths = [] if victim is None else planned_files(table, plan, victim.commit_time)
        return Outcome(result_of_plan(table, at, plan, seconds), removed=removed_paths)

    complete(table, rollback, outcome, starts=True)


def planned_files(table: Table, plan: RollbackPlan, victim: str) -> list[str]:
    """Return the paths of a victim's data files that a rollback's plan names; other writes' files stay."""
    named_paths = table.format.undo.planned(plan)
    return sorted({path for path in named_paths if is_data_file_of(table.format.slices, victim, path)})


def plan_of(table: Table, victim: Instant, paths: list[str]) -> RollbackPlan:
    """Return the plan of a rollback of a victim, which names the data files to delete."""
    from ...timeline.metadata.models import InstantInfo, RollbackPlan  # noqa: PLC0415 (see timeline/instant_files.py)

    info = InstantInfo(commit_time=victim.requested_time, action=victim.action)
    return RollbackPlan(instant_to_rollback=info, RollbackRequests=table.format.undo.requests(table.storage, paths))


def result_of_plan(table: Table, at: str, plan: RollbackPlan, seconds: float) -> RollbackMetadata:
    """Return the body of the completed rollback that was requested at `at` and took some ``seconds``.

    It counts all files of the plan as deleted.
    """
    from ...timeline.metadata.models import RollbackMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

    victims = [] if plan.instant_to_rollback is None else [plan.instant_to_rollback]
    parts = table.format.undo.results(plan)
    return RollbackMetadata(
        start_rollback_time=at,
        time_taken_in_millis=int(seconds * 1000),
        total_files_deleted=sum(len(part.success_delete_files) for part in parts.values()),
        commits_rollback=[victim.commit_time for victim in victims],
        partition_metadata=parts,
        instants_rollback=victims,
    )
