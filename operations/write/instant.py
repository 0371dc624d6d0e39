"""The instant of a write: begun on the timeline once dead writes are rolled back, or given up after a failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from ...timeline.timeline import Timeline
from ..planning.plan import WritePlan
from ..rollback.dead import give_up_begun
from ..rollback.ready import make_ready
from ..transaction import begin as transaction_begin


def abort_write(plan: WritePlan) -> None:
    """Undo a write, unless it turns out to be completed; safe to call twice, and after a failed commit."""
    if plan.replays is None:
        give_up_begun(plan.transaction)


@dataclass(frozen=True, slots=True)
class BegunWrite:
    """A write whose instant is on the timeline, and a timeline that shows it."""

    plan: WritePlan
    timeline: Timeline


@contextmanager
def begun(plan: WritePlan, previous_time: str = "") -> Iterator[BegunWrite]:
    """Put a write on the timeline, and touch its heartbeat until the block ends; every task calls this.

    ``previous_time`` is that of the commit's last attempt. Raises `WriteSealedError` if the write is over already.
    """
    prepare = partial(make_ready, rollbacks=plan.rollbacks)
    with transaction_begin.begun(plan.transaction, plan.requested, prepare, previous_time) as begun_work:
        yield BegunWrite(plan.at(begun_work.work.instant_time), begun_work.timeline)
