"""Rolls a write back by its time: the newest completed write, or a pending write that the user declares dead."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...errors import UndoError
from ...storage.base import Storage
from ...table.files.file_group import log_file
from ...table.table import Table
from ...timeline.held import COMPACTING
from ...timeline.instants import Instant, State
from ...timeline.metadata.models import CommitMetadata, RollbackPlan
from ...timeline.pending_undo import pending_rollbacks
from ...timeline.rescales import REPLACE_COMMIT
from ...timeline.timeline import Timeline
from ...timeline.writers.patience import Patience
from ..meeting.concurrency import ROLLBACK, WRITE, Asked, Meeting, Shared, Verdict, forbids, judge, kind_of, known_of
from ..meeting.taken import was_removed, with_retries
from ..result import ServiceResult
from ..rollback.pending import OtherWriters, PlannedRollback
from ..rollback.rollback import carry_out_rollback, plan_of, roll_back
from ..transaction.commit_path import begin
from ..transaction.left_overs import files_of
from .bucket_property import match_property_to_rules
from .execution import take_back
from .preconditions import (
    announced_until,
    completed_write,
    dead_writes,
    finish_rollbacks_first,
    instants_in_words,
    open_for_service,
    refuse_restoring,
    refuse_savepoints,
    slices_at,
    try_again_error,
)
from .target_times import write_at

_PATIENT = Patience()


def rollback(
    storage: Storage,
    instant_time: str,
    *,
    patience: Patience = _PATIENT,
    dry_run: bool = False,
) -> ServiceResult:
    """Roll back a write: the newest completed write, or a pending write, whose writer then counts as dead.

    With `dry_run` the result says how many files the call would delete. Raises `UndoError` if there is no such write,
    later writes depend on it, a savepoint keeps it, or a clean deleted what it replaced, and `ConcurrentWriteError` if
    a later write is at work.
    """
    began = time.monotonic()
    table = open_for_service(storage)
    call = _Rollback(OtherWriters(table, patience), write_at(table, instant_time))
    # Another process may undo the write after it was listed, and before it is read.
    result = with_retries(call.dry_result if dry_run else call.run, was_removed)
    return replace(result, path=storage.path, seconds=time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class _Rollback:
    """One call of `rollback`."""

    other_writers: OtherWriters
    instant_time: str

    @property
    def table(self) -> Table:
        return self.other_writers.table

    def run(self) -> ServiceResult:
        """Undo the write, whether completed or pending, and return what the newest rollback of the write did.

        A compaction's plan is taken back. Another process may have undone the write meanwhile: then its
        rollback counts.
        """
        table, instant_time = self.table, self.instant_time
        timeline = table.timeline()
        refuse_restoring(ROLLBACK, timeline)
        timeline = finish_rollbacks_first(ROLLBACK, self.other_writers, timeline)
        victim = timeline.write_at(instant_time)
        if victim is not None and victim.action in COMPACTING and _is_undone(victim):
            take_back(table, victim)
        elif victim is not None and victim.state != State.COMPLETED and _is_undone(victim):
            # By this call the user declares the writer dead, whatever signs of life there are.
            roll_back(self.other_writers, PlannedRollback(victim, certain=True))
        elif victim is not None:
            self._roll_back_completed(timeline)
        now = table.timeline()
        for instant in pending_rollbacks(now).get(instant_time, ()):
            # Another process has taken the write off the timeline, and may be gone.
            carry_out_rollback(table, now, instant.requested_time)
            now = now.reload()
        result = rollback_of(table, now, instant_time)
        if result is None:
            # This raises if there is no such write.
            completed_write(ROLLBACK, now, instant_time)
            raise try_again_error(table, f"The rollback of {instant_time}")
        # The write may have been a rescale, whose undo deletes a rule.
        if victim is None or victim.group == REPLACE_COMMIT:
            result = replace(result, todo=match_property_to_rules(table))
        return result

    def dry_result(self) -> ServiceResult:
        """Return what `run` would do, without writing anything."""
        table, instant_time = self.table, self.instant_time
        timeline = table.timeline()
        refuse_restoring(ROLLBACK, timeline)
        victim = timeline.write_at(instant_time)
        if instant_time in pending_rollbacks(timeline):
            # Another process has planned the rollback already, and a call would finish it.
            return ServiceResult(table.path, "rollback", instants=1, dry=True)
        if victim is not None and victim.state != State.COMPLETED and _is_undone(victim):
            plan = plan_of(table, victim, files_of(table, timeline, instant_time))
        else:
            # These raise if there is no such write, or a later writer lives or may live.
            completed_write(ROLLBACK, timeline, instant_time)
            dead_writes(ROLLBACK, self.other_writers, timeline, instant_time)
            decided_plan = self._plan(timeline, asked=Asked.BEFORE_PLAN)
            plan = RollbackPlan() if decided_plan is None else decided_plan
        files = sum(1 for _ in table.format.undo.planned(plan))
        return ServiceResult(table.path, "rollback", files=files, instants=1, dry=True)

    def _roll_back_completed(self, timeline: Timeline) -> None:
        """Undo the newest completed write, after undoing dead writes that came after it."""
        table = self.table
        for dead in dead_writes(ROLLBACK, self.other_writers, timeline, self.instant_time):
            roll_back(self.other_writers, dead)
        begin(table, "rollback", self._plan)
        for planned in self.other_writers.rollbacks_to_finish(timeline.reload(), ROLLBACK):
            roll_back(self.other_writers, planned)

    def _plan(self, timeline: Timeline, asked: Asked = Asked.SINCE_PLAN) -> RollbackPlan | None:
        """Return the plan to undo a completed write; None if the rollback is decided or complete.

        `asked` is BEFORE_PLAN for a dry run. In a round of the decision it is SINCE_PLAN: the dead writes that the call
        saw are undone by then, so another dead write began later, and the user has to call again.
        """
        table, instant_time = self.table, self.instant_time
        refuse_restoring(ROLLBACK, timeline)
        if timeline.write_at(instant_time) is None or instant_time in pending_rollbacks(timeline):
            return None
        archived_until, what = announced_until(timeline), f"The rollback of {instant_time}"
        victim = completed_write(ROLLBACK, timeline, instant_time, archived_until)
        later_instants = [
            instant for instant in timeline.instants if instant.requested_time > instant_time and _depends_on(instant)
        ]
        if later_instants:
            raise UndoError(
                f"The {victim.action} {instant_time} of the table {table.path} is not its newest write; later writes "
                f"depend on it: {instants_in_words(later_instants)}.",
                "Roll those back first, the newest first, or restore the table to an earlier instant "
                "(HudiTable.restore).",
            )
        if asked is Asked.SINCE_PLAN and dead_writes(ROLLBACK, self.other_writers, timeline, instant_time, asked):
            raise try_again_error(table, what)
        refuse_savepoints(ROLLBACK, timeline, instant_time, what, itself=True)
        _check_what_comes_back(table, timeline, victim, archived_until)
        return plan_of(table, victim, files_of(table, timeline, instant_time, rolled_back=True))


def _is_undone(instant: Instant) -> bool:
    """Return whether a pending instant is undone as soon as the user asks for it."""
    meeting = Meeting(ROLLBACK, kind_of(instant.action) or WRITE, shared=frozenset({Shared.TARGET}))
    return judge(meeting) is Verdict.UNDO


def _depends_on(later: Instant) -> bool:
    """Return whether a later instant may build on the write: a completed write, or a planned clustering.

    `dead_writes` decides on writes at work.
    """
    if not later.is_write or (later.state != State.COMPLETED and later.action == later.group):
        return False
    meeting = Meeting(ROLLBACK, kind_of(later.action) or WRITE, known_of(later), frozenset({Shared.LATER}))
    return forbids(meeting)


def _check_what_comes_back(table: Table, timeline: Timeline, victim: Instant, archived_until: str) -> None:
    """Refuse a rollback of the completed write `victim` that would lose rows from before that write.

    Raises `UndoError` if the timeline would have no write left although writes are or will be archived, or if the older
    file slice is gone to which readers would return in a file group that the write changed or replaced.
    Processes will archive what was requested until `archived_until`, "" for nothing.
    """
    what = f"The rollback of {victim.requested_time}"
    staying_writes = [write for write in timeline.writes if write.requested_time > archived_until]
    if len(staying_writes) == 1 and (archived_until or table.archive.writes()):
        raise UndoError(
            f"{what} of the table {table.path} would leave no write on its timeline, and readers would not take "
            "archived writes for committed.",
            "Write the rows that the table should have instead; nothing before this write can be brought back.",
        )
    body = timeline.files.read_commit(victim)
    timeline_before = timeline.without([victim.requested_time])
    time_before = max((instant.requested_time for instant in timeline_before.writes), default="")
    partitions = sorted({*body.partition_to_write_stats, *body.replaced})
    slices = slices_at(ROLLBACK, table, timeline, timeline_before, time_before, what, partitions)
    base_times = {(file_slice.partition_path, file_slice.file_id): file_slice.base_time for file_slice in slices}
    for partition, file_id, base in _changed_groups(body):
        # The write may name the slice that it followed; then another slice of the group is not enough.
        base_time = base_times.get((partition, file_id))
        if base_time is None or (base and base_time != base):
            raise UndoError(
                f"{what} of the table {table.path} needs the file group {file_id} of partition {partition!r} as it "
                f"was before{f', of {base}' if base else ''}, and that is gone.",
                "Write the rows that the table should have instead.",
            )


def _changed_groups(body: CommitMetadata) -> Iterable[tuple[str, str, str]]:
    """Yield each file group that a write changed or replaced, with the instant of its last slice, "" if unknown."""
    for partition, stats in body.partition_to_write_stats.items():
        for stat in stats:
            # A log file joins the current slice, and its statistic names its own instant as the previous slice's.
            is_log = log_file(stat.path or "") is not None
            if stat.file_id and not is_log and (stat.prev_commit or "").isdigit():
                yield partition, stat.file_id, stat.prev_commit or ""
    for partition, file_ids in body.replaced.items():
        for file_id in file_ids:
            yield partition, file_id, ""


def rollback_of(table: Table, timeline: Timeline, instant_time: str) -> ServiceResult | None:
    """Return what the newest completed rollback of a write did; None if there is none."""
    for instant in reversed(timeline.completed):
        if instant.action != "rollback":
            continue
        plan = timeline.files.read_rollback_plan(instant)
        victim = None if plan is None else plan.instant_to_rollback
        if plan is not None and victim is not None and victim.commit_time == instant_time:
            files = sum(1 for _ in table.format.undo.planned(plan))
            return ServiceResult("", "rollback", instant.requested_time, files=files, instants=1)
    return None
