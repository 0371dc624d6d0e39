"""The completed writes of a table, as far as no further write can complete before them.

A listing of a folder is no snapshot: it may show a file and miss an older file that was made while it ran. So a first
listing tells how far a batch may reach, and a second listing tells which writes completed until then. pyhudi's
completion times increase, because each decision is made after the earlier decisions are carried out. Only writers that
know no decisions may complete before a decision that is not carried out; no batch passes such a decision. If readers
see a write from its requested time on, no batch passes a pending write either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.pending_undo import on_the_way_out
from ...timeline.timeline import Timeline
from ...timeline.writers import decisions


@dataclass(frozen=True)
class SettledWrites:
    """A table's completed writes, archived writes included; none completes later at or before ``until``."""

    timeline: Timeline
    archived: tuple[Instant, ...]
    until: str

    @cached_property
    def all(self) -> Mapping[str, Instant]:
        """The completed writes by requested time."""
        return completed_writes(self.timeline, self.archived)

    @cached_property
    def archived_until(self) -> str:
        """The completion time before which the table cannot be shown; "" without an archive."""
        active = {instant.requested_time for instant in self.timeline.instants}
        gone = (write for write in self.archived if write.is_write and write.requested_time not in active)
        return max((write.visible_since for write in gone), default="")

    def between(self, after: str, until: str) -> list[Instant]:
        """Return the writes that completed in a window, open at its beginning, in order of completion."""
        inside = (write for write in self.all.values() if after < write.visible_since <= until)
        return sorted(inside, key=lambda write: (write.visible_since, write.requested_time))


def times_until(writes: Mapping[str, Instant], time: str) -> frozenset[str]:
    return frozenset([requested for requested, write in writes.items() if write.visible_since <= time])


def completed_writes(timeline: Timeline, archived: tuple[Instant, ...]) -> Mapping[str, Instant]:
    active = {write.requested_time: write for write in timeline.instants if write.is_write}
    archived_writes = {write.requested_time: write for write in archived if write.is_write}
    # An archived instant whose files are on the timeline still counts by these: an undo may have begun.
    archived_writes = {time: write for time, write in archived_writes.items() if time not in active}
    return archived_writes | {time: write for time, write in active.items() if write.state == State.COMPLETED}


def settled_timeline(table: Table, listed: Timeline | None = None) -> tuple[Timeline, str]:
    """Return a timeline, and the completion time until which it has every write that will ever complete.

    ``listed`` is a first listing that the caller has made.
    """
    until = _newest(listed or table.timeline())
    decision = decisions.newest(table.storage)
    timeline = table.timeline()
    waiting = [time for time in (_waiting(decision, timeline), *_pending(timeline)) if time is not None]
    if waiting and min(waiting) <= until:
        until = max(
            (write.visible_since for write in timeline.writes if write.visible_since < min(waiting)), default=""
        )
    return timeline, until


def _newest(timeline: Timeline) -> str:
    return max((write.visible_since for write in timeline.writes), default="")


def _pending(timeline: Timeline) -> list[str]:
    """Return the times at which readers will see pending writes, as far as they are known before."""
    pending = [write for write in timeline.pending if write.is_write]
    times = {write: timeline.files.layout.visible_at(write) for write in pending}
    visible_times = {write.requested_time: time for write, time in times.items() if time is not None}
    going = on_the_way_out(timeline) if visible_times else ()
    return [time for requested, time in visible_times.items() if requested not in going]


def _waiting(decision: decisions.Decision | None, timeline: Timeline) -> str | None:
    """Return the completion time of a write that is decided and not completed; None if it is, or never will be."""
    if decision is None:
        return None
    decided = decision.instant
    if not decided.is_write or decided.state != State.COMPLETED:
        return None
    write = timeline.write_at(decided.requested_time)
    if write is None or write.state == State.COMPLETED or write.requested_time in on_the_way_out(timeline):
        return None
    return decided.visible_since
