"""The end of a write: it completes if no other instant changed the same meanwhile, and none undid it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ...timeline.instants import State
from ...timeline.timeline import Timeline
from .commit_path import complete
from .conflicts import Changes, check_conflicts
from .outcome import Outcome, Properties
from .transaction import Transaction


def complete_write(
    work: Transaction, changes: Changes, body: bytes, added: Collection[str], settle: Callable[[], Properties]
) -> None:
    """Complete a write.

    Args:
        work: The instant, which is inflight and sealed.
        changes: What it changes.
        body: What the completed file holds.
        added: Paths of the data files that it makes part of the table.
        settle: Returns the properties that the table has from then on, having put in order what the instant relies
            on. It is called anew whenever somebody else decided first, and raises where the instant must not complete.

    Raises:
        CommitConflictError: Somebody changed the same since the instant was planned, or undid it.
        ConcurrentWriteError: Others decided first all the time.
    """

    def outcome(timeline: Timeline) -> Outcome | None:
        own = timeline.find(work.instant_time)
        if own is not None and own.state == State.COMPLETED:
            return None
        if own is None and work.table.archive.holds(work.instant_time):
            # Somebody else completed it for a writer who slept, and archived it.
            return None
        check_conflicts(work, timeline, changes)
        return Outcome(body, added, replaced=changes.replaced, properties=settle())

    # The body is written twice: in the decision, and then, whatever else needs space meanwhile, under its name.
    work.reserve.hold(len(body))
    complete(work.table, work.inflight, outcome, relief=work.reserve.release)
