"""A table taken back to an earlier write: all later ones undone, the newest first, under one instant.

Steps as in Apache Hudi's ``BaseRestoreActionExecutor``: plan, inflight, each write undone without an instant of its
own, the completed restore, and then the completed rollbacks deleted that are younger than what was restored. From the
plan on nobody else may write, and whoever restores to the same write goes on, from whatever step.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial

from ...errors import ConcurrentWriteError
from ...storage.base import Storage, split
from ...table.files.names import parse_data_name
from ...table.files.partitions import walk_partitions
from ...table.table import Table
from ...timeline.going import pending_restore
from ...timeline.instants import Instant, State
from ...timeline.metadata.models import InstantInfo, RestoreMetadata, RestorePlan, RollbackMetadata
from ...timeline.timeline import Timeline
from ...timeline.writers.announcements import announced
from ...timeline.writers.patience import Patience
from ..result import ServiceResult
from ..rollback.pending import broken_off, restoring
from ..rollback.rollback import plan_of, result_of_plan, roll_back
from ..rollback.undo import hide, take_off
from ..transaction.carried_out import opened_by
from ..transaction.commit_path import abandon, begin, complete, time_after
from ..transaction.left_overs import forget
from ..transaction.opened_partitions import forget_partitions
from ..transaction.outcome import Outcome
from .standing import (
    archiving,
    completed_write,
    dead_writes,
    finish_rollbacks_first,
    open_for_service,
    refuse_savepoints,
    slices_at,
    try_again,
)

logger = logging.getLogger("pyhudi")

_ACTION = "restore"
_PATIENT = Patience()


def restore(
    storage: Storage, to: str, *, metadata_enable: bool | None = None, patience: Patience = _PATIENT
) -> ServiceResult:
    """Take a table back to one of its writes; a restore to it that broke off is finished.

    Args:
        storage: Rooted at the table.
        to: Requested time of the write, savepoint or not, whose files are all there.
        metadata_enable: False where a costly metadata table may be dropped.
        patience: When the writers of pending writes count as dead.

    Returns:
        What was done; ``instant`` is empty where there was nothing to undo.

    Raises:
        UndoError: There is no such write, files of then are gone, or a younger savepoint keeps what is to be undone.
        ConcurrentWriteError: A write, or a restore to another write, is at work.
    """
    began = time.monotonic()
    table = open_for_service(storage, metadata_enable)
    timeline = table.timeline()
    if pending_restore(timeline) is None:
        timeline = _decide(table, timeline, to, patience)
    pending = pending_restore(timeline)
    if pending is None:
        # There was nothing to undo, or another process has done it meanwhile.
        _forget_rollbacks(timeline, to)
        return ServiceResult(storage.path, _ACTION, seconds=time.monotonic() - began)
    plan = timeline.files.read_restore_plan(pending)
    if plan is None or plan.savepoint_to_restore_timestamp != to:
        raise restoring(storage, timeline, pending)
    _take_back_if_archived(table, pending, to)
    undone = _undo(table, timeline, pending, plan)
    seconds = time.monotonic() - began
    complete(table, pending, partial(_completing, table, pending, plan, undone, seconds))
    for one in plan.instants_to_rollback:
        forget(storage, one.commit_time)
    _forget_rollbacks(table.timeline(), to)
    logger.warning("table %s: restored to %s (%d writes undone)", storage.path, to, len(undone))
    files = sum(map(len, undone.values()))
    return ServiceResult(
        storage.path, _ACTION, pending.requested_time, files=files, instants=len(undone), seconds=seconds
    )


def _decide(table: Table, timeline: Timeline, to: str, patience: Patience) -> Timeline:
    """Decide what a restore undoes, unless another process does, and return the timeline afterwards."""
    while True:
        try:
            _settle(table, timeline, to, patience)
            begin(table, _ACTION, partial(_requesting, table, to, patience))
        except ConcurrentWriteError:
            # Who lists instants while another process undoes them may find one of them pending.
            now = timeline.reload()
            if now.instants == timeline.instants:
                raise
            if pending_restore(now) is None:
                timeline = now
                continue
        return table.timeline()


def _take_back_if_archived(table: Table, pending: Instant, to: str) -> None:
    """Give a restore up that has not begun while what it goes back to is being archived.

    Whoever archives has read the timeline before the restore stood there, or stops at it: which of them, nobody knows.

    Raises:
        UndoError: It was.
    """
    if pending.state != State.REQUESTED or all(one < to for one in announced(table.storage)):
        return
    # The decision comes first, or whoever decides next would request it again.
    abandon(table, lambda _: pending)
    table.instants.remove_pending(pending)
    raise archiving(table.storage, to)


def _settle(table: Table, timeline: Timeline, to: str, patience: Patience) -> None:
    """Finish what broke off, and roll back dead writes, which a restore does not wait for."""
    timeline = finish_rollbacks_first(table, timeline, patience)
    for one in dead_writes(table, timeline, patience, to, may_wait=True):
        now = timeline.reload()
        at = time_after(table, now)
        roll_back(table, replace(one, at=at), patience)


def _requesting(table: Table, to: str, patience: Patience, now: Timeline) -> RestorePlan | None:
    """Return the plan to undo everything after a write; None where nothing is to be undone, or it is decided."""
    if pending_restore(now) is not None:
        return None
    what = f"The restore to {to}"
    completed_write(table.storage, now, to)
    later = [one for one in now.instants if one.requested_time > to and one.is_write]
    # A clustering that is planned holds file groups that others changed since: it goes before everything else.
    planned = [one for one in later if one.action != one.group]
    done = [one for one in later if one.state == State.COMPLETED]
    if not planned and not done:
        return None
    if dead_writes(table, now, patience, to, may_wait=False):
        raise try_again(table.storage, what)
    if broken_off(now):
        raise try_again(table.storage, what)
    refuse_savepoints(table.storage, now, to, what, itself=False)
    slices_at(table, now, now.as_of_request(to), to, what)
    undone = [InstantInfo(commit_time=one.requested_time, action=one.action) for one in (*planned, *reversed(done))]
    return RestorePlan(instants_to_rollback=undone, savepoint_to_restore_timestamp=to)


def _undo(table: Table, timeline: Timeline, restore: Instant, plan: RestorePlan) -> dict[str, list[str]]:
    """Undo the writes that a restore's plan names, and return the files that each had left by now."""
    files = timeline.files
    files.start(restore.at(State.INFLIGHT))
    victims = [Instant(one.commit_time, one.action, State.INFLIGHT) for one in plan.instants_to_rollback]
    paths = files.paths()
    data: dict[str, list[str]] = {one.requested_time: [] for one in victims}
    for listed in walk_partitions(table.storage).values():
        for info in listed:
            name = parse_data_name(split(info.path)[1])
            if name is not None and name.instant_time in data:
                data[name.instant_time].append(info.path)
    for victim in victims:
        hide(files, paths, victim)
        table.storage.delete(*data[victim.requested_time])
        take_off(files, paths, victim)
    for folder, listed in walk_partitions(table.storage).items():
        if not any(parse_data_name(split(info.path)[1]) for info in listed):
            opener = opened_by(table.storage, folder)
            for victim in (one for one in victims if one.requested_time == opener):
                forget_partitions(table, victim, [folder])
    return data


def _completing(
    table: Table,
    restore: Instant,
    plan: RestorePlan,
    undone: dict[str, list[str]],
    seconds: float,
    timeline: Timeline,
) -> Outcome | None:
    """Return what a restore did; None where it is complete."""
    if pending_restore(timeline) is None:
        return None
    began = restore.requested_time
    parts: dict[str, list[RollbackMetadata]] = {}
    for one in plan.instants_to_rollback:
        victim = Instant(one.commit_time, one.action, State.INFLIGHT)
        parts[one.commit_time] = [result_of_plan(began, plan_of(table.storage, victim, undone[one.commit_time]), 0.0)]
    body = RestoreMetadata(
        start_restore_time=began,
        time_taken_in_millis=int(seconds * 1000),
        instants_to_rollback=[one.commit_time for one in plan.instants_to_rollback],
        hoodie_restore_metadata=parts,
        restore_instant_info=plan.instants_to_rollback,
    )
    return Outcome(body, removed=[path for paths in undone.values() for path in paths])


def _forget_rollbacks(timeline: Timeline, to: str) -> None:
    """Delete the completed rollbacks between a write and the last restore to it: they tell of writes after it."""
    files = timeline.files
    for restored in reversed([one for one in timeline.completed if one.action == _ACTION]):
        plan = files.read_restore_plan(restored)
        if plan is None or plan.savepoint_to_restore_timestamp != to:
            continue
        gone = [
            one
            for one in timeline.completed
            if one.action == "rollback" and to < one.requested_time < restored.requested_time
        ]
        paths = files.paths() if gone else {}
        for one in gone:
            files.remove_pending(one)
            files.storage.delete(*paths.get(one.identity, {}).get(State.COMPLETED, ()))
        return
