"""Restores a table to an earlier write: undoes all later writes, the newest first, under one instant.

The steps are those of Apache Hudi's ``BaseRestoreActionExecutor``: make the plan, make it inflight, undo each write
without an instant of its own, complete the restore, and then delete the completed rollbacks that are younger than the
restored write. From the plan on no other process may write. A second restore to the same write continues an
interrupted restore from any step.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from ...errors import ConcurrentWriteError
from ...storage.base import Storage
from ...table.files.file_group import data_file
from ...table.files.partitions import walk_partitions
from ...table.left_behind import remove_old_instants
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.metadata.models import InstantInfo, RestoreMetadata, RestorePlan, RollbackMetadata
from ...timeline.pending_undo import pending_restore
from ...timeline.timeline import Timeline
from ...timeline.writers.announcements import announced
from ...timeline.writers.long_work import LongWork
from ...timeline.writers.owner import Claim
from ...timeline.writers.patience import Patience
from ..meeting.concurrency import (
    ARCHIVING,
    RESTORE,
    WRITE,
    Asked,
    Meeting,
    Shared,
    Verdict,
    all_shared,
    judge,
    kind_of,
    known_of,
)
from ..result import ServiceResult
from ..rollback.pending import OtherWriters, restoring_error
from ..rollback.rollback import plan_of, result_of_plan, roll_back
from ..transaction.bucket_rules import delete_rule
from ..transaction.carried_out import opened_by
from ..transaction.commit_path import abandon, begin, complete
from ..transaction.instant_changes import hide, remove_pending, remove_rollbacks, start, take_off
from ..transaction.left_overs import by_maker, forget, forget_partitions
from ..transaction.outcome import Outcome
from ..transaction.undone_metadata import take_back_metadata, take_out_of_use
from .bucket_property import match_property_to_rules
from .preconditions import (
    archiving_error,
    completed_write,
    dead_writes,
    finish_rollbacks_first,
    open_for_service,
    refuse_savepoints,
    slices_at,
    try_again_error,
)
from .target_times import write_until

if TYPE_CHECKING:
    from ...timeline.metadata.models import RestorePlan


def undo_writes(table: Table, timeline: Timeline, restore: Instant, plan: RestorePlan) -> dict[str, list[str]]:
    """Undo the writes that a restore's plan names, and return the files that each write still had.

    A metadata table goes out of use before the first file changes.
    """
    start(table, restore.at(State.INFLIGHT))
    take_out_of_use(table, restore.action)
    victims = [Instant(info.commit_time, info.action, State.INFLIGHT) for info in plan.instants_to_rollback]
    paths = timeline.files.paths()
    files_by_maker = by_maker(table, timeline, chain.from_iterable(walk_partitions(table.storage).values()))
    times = (victim.requested_time for victim in victims)
    paths_by_write = {time: [info.path for info in files_by_maker.get(time, ())] for time in times}
    # One listing serves all victims, and no reader uses the metadata table any more.
    take_back_metadata(table, [victim.requested_time for victim in victims])
    for victim in victims:
        # No reader may see a completed write whose files are half gone, so its completed file goes first.
        hide(table, paths, victim)
        table.format.undo.take_back(table.storage, {victim.requested_time: paths_by_write[victim.requested_time]})
        delete_rule(table, victim)
        take_off(table, paths, victim)
    # A partition that an undone write was the first to write to, and that has no data file now, goes with the write.
    for folder, listed in walk_partitions(table.storage).items():
        if not any(data_file(info.path, changes=True) for info in listed):
            opener = opened_by(table.storage, folder)
            for victim in (instant for instant in victims if instant.requested_time == opener):
                forget_partitions(table, victim, [folder])
    return paths_by_write


logger = logging.getLogger("pyhudi")

_ACTION = "restore"
_PATIENT = Patience()


def restore(
    storage: Storage,
    to: str,
    *,
    patience: Patience = _PATIENT,
    dry_run: bool = False,
) -> ServiceResult:
    """Take a table back to one of its writes, with or without a savepoint; finish an interrupted restore to it.

    With `dry_run` the result says how many writes the call would undo. Raises `UndoError` if the write or its files
    are missing, or a younger savepoint keeps what this would undo, and `ConcurrentWriteError` if a write, or a restore
    to another write, is at work.
    """
    began = time.monotonic()
    table = open_for_service(storage)
    call = _Restore(OtherWriters(table, patience), write_until(table, to))
    result = call.dry_result() if dry_run else call.run()
    return replace(result, seconds=time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class _Restore:
    """One call of `restore`."""

    other_writers: OtherWriters
    to: str

    @property
    def table(self) -> Table:
        return self.other_writers.table

    def run(self) -> ServiceResult:
        """Decide on a restore unless it is decided, carry it out, and return what was undone.

        Raises `ConcurrentWriteError` if a restore to another write is pending.
        """
        began = time.monotonic()
        table, to = self.table, self.to
        timeline = table.timeline()
        if pending_restore(timeline) is None:
            timeline = self._decide(timeline)
        pending = pending_restore(timeline)
        if pending is None:
            # There is nothing to undo, or a process has completed the restore, maybe this process in an earlier try.
            _forget_rollbacks(table, timeline, to)
            _forget_owner(timeline)
            return ServiceResult(table.path, _ACTION, todo=match_property_to_rules(table))
        plan = timeline.files.read_restore_plan(pending)
        shared = all_shared({Shared.TARGET: plan is not None and plan.savepoint_to_restore_timestamp == to})
        if plan is None or judge(Meeting(RESTORE, RESTORE, shared=shared)) is not Verdict.FINISH:
            raise restoring_error(timeline, pending)
        self._take_back_if_archived(pending)
        with LongWork(table.storage, pending.requested_time, at_once=True):
            undone = undo_writes(table, timeline, pending, plan)
            seconds = time.monotonic() - began

            def outcome(now: Timeline) -> Outcome | None:
                """Return the outcome while the restore is pending; None if another process has completed it."""
                return None if pending_restore(now) is None else _outcome(table, pending, plan, undone, seconds)

            complete(table, pending, outcome)
        for victim in plan.instants_to_rollback:
            forget(table.storage, victim.commit_time)
        _forget_rollbacks(table, table.timeline(), to)
        logger.warning("table %s: restored to %s (%d writes undone)", table.path, to, len(undone))
        files, todo = sum(map(len, undone.values())), match_property_to_rules(table)
        return ServiceResult(table.path, _ACTION, pending.requested_time, files=files, instants=len(undone), todo=todo)

    def dry_result(self) -> ServiceResult:
        """Return what `run` would undo, without writing anything."""
        table = self.table
        timeline = table.timeline()
        pending = pending_restore(timeline)
        if pending is None:
            # This raises if a writer lives, or may live.
            dead_writes(RESTORE, self.other_writers, timeline, self.to)
            plan = self._plan(timeline, asked=Asked.BEFORE_PLAN)
        else:
            plan = timeline.files.read_restore_plan(pending)
            if plan is None or plan.savepoint_to_restore_timestamp != self.to:
                raise restoring_error(timeline, pending)
        undone = () if plan is None else plan.instants_to_rollback
        return ServiceResult(table.path, _ACTION, instants=len(undone), dry=True)

    def _decide(self, timeline: Timeline) -> Timeline:
        """Decide what the restore undoes, unless another process has, and return the timeline afterwards."""
        while True:
            try:
                self._undo_dead(timeline)
                begin(self.table, _ACTION, self._plan)
            except ConcurrentWriteError:
                # While another process undoes an instant, a listing may show the instant as pending: its completed
                # file goes first.
                now = timeline.reload()
                if now.instants == timeline.instants:
                    raise
                if pending_restore(now) is None:
                    timeline = now
                    continue
            return self.table.timeline()

    def _undo_dead(self, timeline: Timeline) -> None:
        """Finish interrupted rollbacks, and roll dead writes back; raises if a writer lives, or may live."""
        timeline = finish_rollbacks_first(RESTORE, self.other_writers, timeline)
        for dead in dead_writes(RESTORE, self.other_writers, timeline, self.to):
            roll_back(self.other_writers, dead)

    def _plan(self, now: Timeline, asked: Asked = Asked.SINCE_PLAN) -> RestorePlan | None:
        """Return the plan to undo everything after a write; None if there is nothing to undo, or a plan is decided.

        `asked` is BEFORE_PLAN for a dry run. In a round of the decision it is SINCE_PLAN: the dead writes that the call
        saw are undone by then, so another dead write or broken rollback began later, and the call has to begin again.
        """
        if pending_restore(now) is not None:
            return None
        table, to, what = self.table, self.to, f"The restore to {self.to}"
        completed_write(RESTORE, now, to)
        later_writes = [
            instant
            for instant in now.instants
            if instant.requested_time > to and instant.is_write and _is_undone(instant)
        ]
        # Later writes may have changed file groups that a planned clustering holds: undo the clustering first.
        planned_clusterings = [instant for instant in later_writes if instant.action != instant.group]
        completed_writes = [instant for instant in later_writes if instant.state == State.COMPLETED]
        if not planned_clusterings and not completed_writes:
            return None
        other_writers = self.other_writers
        if asked is Asked.SINCE_PLAN and (
            dead_writes(RESTORE, other_writers, now, to, asked)
            or other_writers.rollbacks_to_finish(now, RESTORE, asked)
        ):
            raise try_again_error(table, what)
        refuse_savepoints(RESTORE, now, to, what, itself=False)
        # This raises if a file that readers would need is gone, or a clean will delete it.
        slices_at(RESTORE, table, now, now.as_of_request(to), to, what)
        undone = [
            InstantInfo(commit_time=instant.requested_time, action=instant.action)
            for instant in (*planned_clusterings, *reversed(completed_writes))
        ]
        return RestorePlan(instants_to_rollback=undone, savepoint_to_restore_timestamp=to)

    def _take_back_if_archived(self, pending: Instant) -> None:
        """Give up a restore that has not begun if its target is being archived, and raise `UndoError`.

        This process cannot know whether the archiving process saw the restore on the timeline and will stop for it.
        """
        table = self.table
        if pending.state != State.REQUESTED or all(time < self.to for time in announced(table.storage)):
            return
        shared = frozenset({Shared.TARGET})
        if judge(Meeting(RESTORE, ARCHIVING, shared=shared, asked=Asked.SINCE_PLAN)) is Verdict.GO_ON:
            return
        # The decision comes first. Otherwise the process that decides next would request the restore again.
        abandon(table, lambda _: pending)
        remove_pending(table, pending)
        raise archiving_error(table.path, self.to)


def _is_undone(later: Instant) -> bool:
    """Return whether a restore undoes a later instant; `dead_writes` decides on writes at work."""
    if later.state != State.COMPLETED and later.action == later.group:
        return False
    meeting = Meeting(RESTORE, kind_of(later.action) or WRITE, known_of(later), frozenset({Shared.LATER}))
    return judge(meeting) is Verdict.UNDO


def _outcome(
    table: Table, restore: Instant, plan: RestorePlan, undone: dict[str, list[str]], seconds: float
) -> Outcome:
    """Return the outcome of a restore: one rollback's metadata for each undone write, and the deleted paths.

    Args:
        restore: The pending restore.
        plan: Its plan, which names the writes to undo.
        undone: The paths that were deleted for each of these writes, by its requested time.
        seconds: How long the restore has taken.
    """
    began = restore.requested_time
    parts: dict[str, list[RollbackMetadata]] = {}
    for info in plan.instants_to_rollback:
        victim = Instant(info.commit_time, info.action, State.INFLIGHT)
        parts[info.commit_time] = [result_of_plan(table, began, plan_of(table, victim, undone[info.commit_time]), 0.0)]
    body = RestoreMetadata(
        start_restore_time=began,
        time_taken_in_millis=int(seconds * 1000),
        instants_to_rollback=[info.commit_time for info in plan.instants_to_rollback],
        hoodie_restore_metadata=parts,
        restore_instant_info=plan.instants_to_rollback,
    )
    return Outcome(body, removed=[path for paths in undone.values() for path in paths])


def _forget_owner(timeline: Timeline) -> None:
    """Delete the note on the process that carried out the newest restore, which is complete."""
    restored = next((instant for instant in reversed(timeline.completed) if instant.action == _ACTION), None)
    storage = timeline.files.storage
    if restored is not None and Claim(storage, restored.requested_time).owner() is not None:
        forget(storage, restored.requested_time)


def _forget_rollbacks(table: Table, timeline: Timeline, to: str) -> None:
    """Delete the completed rollbacks between a write and the last restore to it; the writes that they name are gone.

    `to` is the requested time of that write. Without a completed restore to it on the timeline, nothing is deleted.
    """
    for restored in reversed([instant for instant in timeline.completed if instant.action == _ACTION]):
        plan = timeline.files.read_restore_plan(restored)
        if plan is None or plan.savepoint_to_restore_timestamp != to:
            continue
        gone_rollbacks = [
            instant
            for instant in timeline.completed
            if instant.action == "rollback" and to < instant.requested_time < restored.requested_time
        ]
        if gone_rollbacks:
            # Remove old files of an upgrade first. Without these rollbacks, the writes that they undid would count as
            # left behind.
            remove_old_instants(table)
            remove_rollbacks(table, gone_rollbacks)
        return
