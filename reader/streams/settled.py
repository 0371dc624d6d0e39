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
        archived_writes = (write for write in self.archived if write.is_write and write.requested_time not in active)
        return max((write.visible_since for write in archived_writes), default="")

    def between(self, after: str, until: str) -> list[Instant]:
        """Return the writes that completed in a window, open at its beginning, in order of completion."""
        writes_of_window = (write for write in self.all.values() if after < write.visible_since <= until)
        return sorted(writes_of_window, key=lambda write: (write.visible_since, write.requested_time))


def times_until(writes: Mapping[str, Instant], time: str) -> frozenset[str]:
    """Return the requested times of the writes that completed until a time."""
    return frozenset([requested for requested, write in writes.items() if write.visible_since <= time])


def completed_writes(timeline: Timeline, archived: tuple[Instant, ...]) -> Mapping[str, Instant]:
    """Return the completed writes of the timeline and of the archive by requested time."""
    active_writes = {write.requested_time: write for write in timeline.instants if write.is_write}
    archived_writes = {write.requested_time: write for write in archived if write.is_write}
    # An archived instant whose files are on the timeline still counts by these: an undo may have begun.
    archived_writes = {time: write for time, write in archived_writes.items() if time not in active_writes}
    return archived_writes | {time: write for time, write in active_writes.items() if write.state == State.COMPLETED}


def settled_timeline(table: Table, listed: Timeline | None = None) -> tuple[Timeline, str]:
    """Return a timeline, and the completion time until which it has every write that will ever complete.

    A first listing, ``listed`` if the caller has made it, tells how far that time may reach, and a second which writes
    completed until then: a single listing may show a write and miss an older write that completed while it ran.
    """
    until = _newest_completion(listed or table.timeline())
    decision = decisions.newest(table.storage)
    timeline = table.timeline()
    # Until the least of these times a write may still become visible.
    unsettled_times = [
        time
        for time in (_time_of_decided_write(decision, timeline), *_times_of_pending_writes(timeline))
        if time is not None
    ]
    if unsettled_times and min(unsettled_times) <= until:
        until = max(
            (write.visible_since for write in timeline.writes if write.visible_since < min(unsettled_times)), default=""
        )
    return timeline, until


def _newest_completion(timeline: Timeline) -> str:
    """Return the last completion time of the timeline's writes; empty without writes."""
    return max((write.visible_since for write in timeline.writes), default="")


def _times_of_pending_writes(timeline: Timeline) -> list[str]:
    """Return the times at which readers will see pending writes, as far as they are known before."""
    pending = [write for write in timeline.pending if write.is_write]
    times = {write: timeline.files.layout.visible_at(write) for write in pending}
    visible_times = {write.requested_time: time for write, time in times.items() if time is not None}
    undone_times = on_the_way_out(timeline) if visible_times else ()
    return [time for requested, time in visible_times.items() if requested not in undone_times]


def _time_of_decided_write(decision: decisions.Decision | None, timeline: Timeline) -> str | None:
    """Return the completion time of a write that is decided and not yet completed.

    None if it is completed, or never will be.
    """
    if decision is None:
        return None
    instant = decision.instant
    if not instant.is_write or instant.state != State.COMPLETED:
        return None
    write = timeline.write_at(instant.requested_time)
    if write is None or write.state == State.COMPLETED or write.requested_time in on_the_way_out(timeline):
        return None
    return instant.visible_since
