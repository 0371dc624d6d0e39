"""The point of no return: an instant becomes part of the table, if nobody changed the same before, or undid it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from ...timeline.clock import next_time
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers import reserve
from ...timeline.writers.decisions import Decision, Kind
from ..decisions.decide import decide
from .conflicts import Changes, check_conflicts
from .transaction import Transaction

# Of the table that the instant makes, and those that it changes in a table that is there.
Properties = tuple[Mapping[str, str], Mapping[str, str | None]]


def complete(work: Transaction, changes: Changes, body: bytes, settle: Callable[[], Properties]) -> None:
    """Decide that an instant is complete, and make its completed file.

    Args:
        work: The instant, which is inflight and sealed.
        changes: What it changes.
        body: What the completed file holds.
        settle: Returns the properties that the table has from then on, having put in order what the instant relies
            on. It is called anew whenever somebody else decided first, and raises where the instant must not complete.

    Raises:
        CommitConflictError: Somebody changed the same since the instant was planned, or undid it.
        ConcurrentWriteError: Others decided first all the time.
    """

    def completion(timeline: Timeline) -> Decision | None:
        own = timeline.find(work.instant_time)
        if own is not None and own.state == State.COMPLETED:
            return None
        if own is None and work.table.archive.holds(work.instant_time):
            # Somebody else completed it for a writer who slept, and archived it.
            return None
        check_conflicts(work, timeline, changes)
        new_table, changed = settle()
        at = next_time(int(time.time() * 1000), timeline.greatest_time(), work.config.timezone)
        done = Instant(work.instant_time, work.action, State.COMPLETED, at)
        return Decision(Kind.MAKE, done, body, new_table, changed)

    # The body is written twice: in the decision, and then, whatever else needs space meanwhile, under its name.
    reserve.hold(work.storage, work.instant_time, len(body))
    decide(work.table, completion, relief=partial(reserve.release, work.storage, work.instant_time))
