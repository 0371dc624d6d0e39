"""The moment of the table at which a write is planned; the commit compares it with what completed since."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...errors import CommitConflictError
from ...table.seen_table import SeenTable
from ...table.table import Table
from ...timeline.timeline import Timeline
from ...timeline.watermark import Watermark, spell_moment
from ...timeline.writers.patience import Patience
from ..meeting.concurrency import WRITE
from ..rollback.pending import OtherWriters, PlannedRollback


@dataclass(frozen=True, slots=True)
class Pinned:
    """The moment of a write.

    Attributes:
        now: The timeline.
        timeline: The part of the timeline that the write sees, without victims of rollbacks.
        watermark: The moment of the write; the conflict check compares the write with the commits since then.
        rollbacks: The pending rollbacks.
    """

    now: Timeline
    timeline: Timeline
    watermark: Watermark
    rollbacks: tuple[PlannedRollback, ...]

    def rollbacks_first(self, others: OtherWriters, *, judges: bool = True) -> tuple[PlannedRollback, ...]:
        """Return the rollbacks to carry out before the write.

        These are the pending rollbacks that no process is at work on, and with ``judges`` also rollbacks of writes
        whose writers are dead. Raises `ConcurrentWriteError` if a pending instant keeps the write out.
        """
        victims = frozenset(planned.victim.requested_time for planned in self.rollbacks)
        dead = others.dead_before_write(self.timeline, victims) if judges else ()
        return (
            *(planned for planned in self.rollbacks if not planned.at_work),
            *(PlannedRollback(victim, beat) for victim, beat in dead),
        )


def pin(table: Table, patience: Patience, based_on: str = "") -> Pinned:
    """Return the moment of a write: now, or the earlier moment from whose rows its rows were made.

    Raises CommitConflictError if the timeline does not show that earlier moment any more, so that the caller has to
    make the rows again. ``patience`` says after how long without a heartbeat another writer counts as dead.
    ``based_on`` is empty for now, else a completion time, with a tally of the instants until then if pyhudi read the
    rows.
    """
    # Read the archive before the timeline, so that an instant archived in between counts as archived since.
    archive = table.archive.state()
    now = table.timeline()
    rollbacks = OtherWriters(table, patience).unfinished_rollbacks(now, WRITE)
    timeline = now.without([rollback.victim.requested_time for rollback in rollbacks])
    if not based_on:
        return Pinned(now, timeline, replace(timeline.watermark(), archive=archive), rollbacks)
    moment, *tally = based_on.split(":")
    past = timeline.as_of_completion(moment)
    if tally and based_on != spell_moment(past.completed):
        raise CommitConflictError(
            f"The rows for the table {table.path} were made from its state at {moment}, which the timeline does "
            "not show any more: meanwhile instants were archived, or completed by a clock that lags.",
            "Make the rows again from the current state, and write them.",
        )
    watermark = past.watermark()
    if not tally:
        # Instants that completed later may be archived by now, so the check at commit reads the archive, too.
        watermark = replace(watermark, completed_until=moment, by_time=True)
    # What the archive held at that earlier moment is unknown.
    return Pinned(now, timeline, watermark, rollbacks)


def seen_moment(table: Table, based_on: str = "") -> tuple[SeenTable, str]:
    """Return the table as a write planned now would see it, and that moment as a value of the option ``based_on``.

    A lookup before the plan pins the write to this moment. ``based_on`` is the moment from whose rows the write's rows
    were made.
    """
    timeline = pin(table, Patience(), based_on).timeline
    if based_on:
        return SeenTable(table, timeline.as_of_completion(based_on.partition(":")[0])), based_on
    return SeenTable(table, timeline), spell_moment(timeline.completed)
