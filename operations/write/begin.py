"""The begin of a write: it rolls dead writes back, then its instant enters the timeline."""

from __future__ import annotations

from functools import partial

from ...timeline.timeline import Timeline
from ..planning.plan import WritePlan
from ..rollback.ready import make_ready
from ..transaction.begin import begin_write


def begin(plan: WritePlan) -> Timeline:
    """Put a write on the timeline and return a timeline that shows it; safe to call from every task.

    Raises:
        WriteSealedError: The write was committed or given up already.
        ConcurrentWriteError: Another write took the same time, or all instants on the timeline are younger.
    """
    return begin_write(plan.transaction, plan.requested, partial(make_ready, plan.transaction, plan.rollbacks))
