"""Undoes dead writes while no write waits for that: after a commit or an abort, and in table services."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from ...errors import ConcurrentWriteError, CorruptInstantError, MetInstant
from ...timeline.held import says_what_it_holds
from ...timeline.instants import Instant, State
from ...timeline.pending_undo import pending_restore
from ...timeline.timeline import Timeline
from ...timeline.writers.owner import Liveness
from ..meeting.concurrency import WRITE, Known, Verdict, judge, kind_of, rules_of
from ..meeting.transaction import Transaction
from ..transaction.abort import abort_begun
from ..transaction.left_overs import marked_by_tasks
from ..transaction.life import Ownership
from .pending import BESIDE_A_WRITE, OtherWriters, PlannedRollback, is_given_up
from .rollback import roll_back

logger = logging.getLogger("pyhudi")

_POLL_S = 0.2


def undo_dead(
    other_writers: OtherWriters, timeline: Timeline, *, own_time: str = ""
) -> Mapping[Instant, Liveness | None]:
    """Roll back the writes of a timeline whose writers are dead, one after another, and wait for no writer.

    The timeline may be of an earlier moment: each rollback looks at its victim again before it decides. Return the
    pending writes: None for each that was undone, and for each other the reason why it stays. During a restore it
    looks at none, because the restore leaves half-undone writes that look pending.
    """
    pending_writes: dict[Instant, Liveness | None] = {}
    if pending_restore(timeline) is not None:
        return pending_writes
    for instant in timeline.pending:
        requested = instant.requested_time
        # A clustering with a plan may have the action of an overwrite.
        is_write = kind_of(instant.action) is WRITE and requested != own_time
        if not is_write or says_what_it_holds(timeline, instant):
            continue
        try:
            pending_writes[instant] = _undo_if_dead(other_writers, instant)
        except (ConcurrentWriteError, CorruptInstantError) as error:
            logger.info(
                "table %s: the %s %s stays pending: %s", other_writers.table.path, instant.action, requested, error
            )
            pending_writes[instant] = Liveness(True, error.what, error.todo)
    return pending_writes


def try_to_undo_dead(work: Transaction, timeline: Timeline) -> None:
    """Call `undo_dead` at the end of another write; a failure is logged, and does not change that write's result."""
    try:
        undo_dead(OtherWriters(work.table, work.patience), timeline, own_time=work.instant_time)
    except Exception:
        logger.warning("table %s: dead writes stay until the next write", work.path, exc_info=True)


def give_up_begun(work: Transaction) -> None:
    """Abort a write or service by the notes on its instant; safe to call twice, and after a failed commit."""
    timeline = abort_begun(work)
    if timeline is not None:
        # A dead write may have filled the disk, so that no write gets as far as its commit.
        try_to_undo_dead(work, timeline)


# Only the process of a write or of a sort may complete it, and only its tasks make markers.
ONE_PROCESS = Ownership(marked_by_tasks, give_up_begun)


def wait_until_over(other_writers: OtherWriters, met: MetInstant, until_s: float) -> None:
    """Wait until a pending write is complete or undone, at most until a monotonic time; undo it if it is dead.

    An instant that was read from an error's text is not undone here: the wait ends, and the next write undoes it.
    """
    is_dead = False
    while time.monotonic() < until_s:
        instant = other_writers.table.timeline().write_at(met.instant)
        if instant is None or instant.state == State.COMPLETED:
            return
        if is_dead:
            # Another process began to undo it, and may be at work on that.
            pause()
        if met.from_text:
            if (
                is_given_up(other_writers.table.storage, met.instant)
                or not other_writers.suspect(instant).judge(may_wait=False).alive
            ):
                return
        else:
            is_dead = _undo_if_dead(other_writers, instant) is None
        if not is_dead:
            pause()


def pause() -> None:
    """Wait a moment for another process to finish its instant."""
    time.sleep(_POLL_S)


def _undo_if_dead(other_writers: OtherWriters, instant: Instant) -> Liveness | None:
    """Roll a write back if its writer is dead, and return None; otherwise return the signs by which it may live.

    A write that was given up counts as dead at once.
    """
    beat = None
    if not is_given_up(other_writers.table.storage, instant.requested_time):
        liveness = other_writers.suspect(instant).judge(may_wait=False)
        if liveness.alive:
            return liveness
        beat = liveness.beat
    if judge(replace(BESIDE_A_WRITE, their_state=Known.DEAD), rules_of(other_writers.patience)) is Verdict.UNDO:
        roll_back(other_writers, PlannedRollback(instant, beat=beat))
    return None
