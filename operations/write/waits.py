"""How a commit waits for instants beside which it cannot merge: rescales of its partitions, and restores."""

from __future__ import annotations

import time
from collections.abc import Collection

from ...errors import CommitConflictError
from ...timeline.pending_undo import pending_restore
from ...timeline.timeline import Timeline
from ..meeting.concurrency import RESTORE, WRITE, Asked, Meeting, Verdict, judge
from ..meeting.conflicts import check_rescales, check_restores
from ..meeting.transaction import Transaction
from ..planning.plan import WritePlan
from ..rollback.dead import pause, wait_until_over
from ..rollback.pending import OtherWriters, restoring_error


def wait_for_rescale(plan: WritePlan, timeline: Timeline, paths: Collection[str]) -> Timeline:
    """Wait while a rescale holds a write's partitions, and return a timeline of now.

    A micro-batch waits as long as its attempts may be repeated. Raises `CommitConflictError` after that.
    """
    work, settings = plan.transaction, plan.settings
    wait_s = settings.commit.wait_s if settings.batch is None else max(settings.commit.wait_s, settings.commit.retry_s)
    until_s = time.monotonic() + wait_s
    while True:
        try:
            check_rescales(work, timeline, paths)
        except CommitConflictError as error:
            met = error.met
            if met is None or time.monotonic() > until_s:
                raise
        else:
            return timeline
        wait_until_over(OtherWriters(work.table, work.patience), met, until_s)
        timeline = work.table.timeline()


def wait_for_restore(work: Transaction, until_s: float) -> None:
    """Wait while a process is at work on a restore, which undoes what begins beside it, at most until a monotonic time.

    Raises `CommitConflictError` if the restore takes longer, and `ConcurrentWriteError` at once if it stopped halfway
    and its process is dead.
    """
    other_writers = OtherWriters(work.table, work.patience)
    while True:
        timeline = work.table.timeline()
        restore = pending_restore(timeline)
        if restore is None:
            return
        verdict = judge(Meeting(WRITE, RESTORE, other_writers.state_of_restore(restore), asked=Asked.SINCE_PLAN))
        if verdict is Verdict.REFUSE:
            raise restoring_error(timeline, restore)
        if verdict is not Verdict.WAIT:
            return
        if time.monotonic() > until_s:
            # The restore is pending, so this raises.
            check_restores(work, timeline)
        pause()
