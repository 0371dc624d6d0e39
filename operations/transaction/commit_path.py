"""The only way by which an instant enters a table's timeline by a plan, completes, or is given up.

Writes and table services come through here. The choice of an instant's time, the race for the table's next decision and
the retirement of the metadata table are in this package and nowhere else:

    begin --> requested      complete --> completed      abandon --> never to complete
    exclusive: work on the timeline that makes no instant
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from ...table.config import TableConfig, has_config, load_config, update_config
from ...table.table import Table
from ...timeline.clock import next_time
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.decisions import Decision, Kind
from . import retired_metadata
from .decide import decide

if TYPE_CHECKING:
    from ...timeline.metadata.models import InstantModel

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Properties:
    """What an instant does to the table's properties.

    Attributes:
        new_table: Those of the table that it makes; empty where the table is there.
        changes: Those that it sets in a table that is there; None removes one.
        current: Those that the table has, where the caller has just read them.
    """

    new_table: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, str | None] = field(default_factory=dict)
    current: TableConfig | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of an instant that completes.

    Attributes:
        body: What the completed file holds, encoded or not.
        properties: What it does to the table's properties.
        changes_files: Whether it adds, removes or replaces data files, of which a metadata table would have to learn.
    """

    body: InstantModel | bytes
    properties: Properties = field(default_factory=Properties)
    changes_files: bool = True


@dataclass(frozen=True, slots=True)
class Begun:
    """An instant that was requested.

    Attributes:
        instant: The requested instant; None where nothing was to be requested.
        timeline: As of the moment at which that was decided.
    """

    instant: Instant | None
    timeline: Timeline


def times_after(table: Table, timeline: Timeline, count: int) -> list[str]:
    """Return the times of instants that are about to be requested: now, or after every time on the timeline."""
    times: list[str] = []
    greatest = timeline.greatest_time()
    for _ in range(count):
        greatest = next_time(int(time.time() * 1000), greatest, table.config.timezone)
        times.append(greatest)
    return times


def time_after(table: Table, timeline: Timeline) -> str:
    """Return the time of an instant that is about to be requested or to complete, as `times_after` does."""
    return times_after(table, timeline, 1)[0]


def begin(
    table: Table,
    action: str,
    plan: Callable[[Timeline], InstantModel | None],
    at: Callable[[], str | None] = lambda: None,
) -> Begun:
    """Request an instant that holds a plan.

    Args:
        table: The table.
        action: The instant's action.
        plan: Returns what the requested file holds, given the timeline on which that is decided; None where nothing is
            to be requested. It is called again whenever another process decided first.
        at: Returns the instant's requested time after `plan` returned; None for one after all that is on the timeline.

    Raises:
        ConcurrentWriteError: Other processes decided first all the time.
        StorageError: The store failed. Where the decision stands, the next process that decides carries it out.
    """
    requested: list[Instant] = []

    def build(timeline: Timeline) -> Decision | None:
        requested.clear()
        found = plan(timeline)
        if found is None:
            return None
        instant = Instant(at() or time_after(table, timeline), action, State.REQUESTED)
        requested.append(instant)
        body = timeline.files.codec.encode(found)
        return Decision(Kind.MAKE, instant, body, changes=_retirement(table, Properties()))

    timeline = decide(table, build)
    return Begun(requested[0] if requested else None, timeline)


def complete(
    table: Table,
    pending: Instant,
    outcome: Callable[[Timeline], Outcome | None],
    relief: Callable[[], None] | None = None,
) -> Instant | None:
    """Complete an instant: the point of no return.

    Args:
        table: The table.
        pending: The instant.
        outcome: Returns what becomes of it, given the timeline on which that is decided; None where it is completed or
            gone already. It is called again whenever another process decided first, and raises where the instant must
            not complete.
        relief: Makes room on the store where it failed after the decision was made.

    Returns:
        The completed instant; None where there was nothing to complete.

    Raises:
        ConcurrentWriteError: Other processes decided first all the time.
        StorageError: The store failed. Where the decision stands, the next process that decides carries it out.
    """
    completed: list[Instant] = []

    def build(timeline: Timeline) -> Decision | None:
        completed.clear()
        found = outcome(timeline)
        if found is None:
            return None
        at = time_after(table, timeline)
        done = Instant(pending.requested_time, pending.group, State.COMPLETED, at)
        completed.append(done)
        body = found.body if isinstance(found.body, bytes) else timeline.files.codec.encode(found.body)
        changes = {**found.properties.changes, **(_retirement(table, found.properties) if found.changes_files else {})}
        return Decision(Kind.MAKE, done, body, found.properties.new_table, changes)

    decide(table, build, relief)
    return completed[0] if completed else None


def abandon(table: Table, find: Callable[[Timeline], Instant | None]) -> Timeline:
    """Decide that an instant never completes.

    Args:
        table: The table.
        find: Returns the instant, given the timeline on which that is decided; None where it is completed or gone.

    Returns:
        The timeline on which that was decided.

    Raises:
        ConcurrentWriteError: Other processes decided first all the time.
        StorageError: The store failed. Where the decision stands, the next process that decides carries it out.
    """

    def build(timeline: Timeline) -> Decision | None:
        found = find(timeline)
        return None if found is None else Decision(Kind.GIVE_UP, found.at(State.INFLIGHT))

    return decide(table, build)


def exclusive(table: Table, work: Callable[[], R], *, changes_files: bool) -> R:
    """Do work on the timeline that makes no instant, with the metadata table out of use where that matters.

    Args:
        table: The table.
        work: What is to be done; every step of it may be taken twice.
        changes_files: Whether it removes data files, of which a metadata table would have to learn.
    """
    if changes_files:
        changes = retired_metadata.retirement(load_config(table.storage))
        if changes:
            update_config(table.storage, changes)
            retired_metadata.remove(table.storage)
    return work()


def retire_metadata_table(table: Table, instant: Instant) -> None:
    """Take the metadata table out of use before the first data file changes for an instant.

    Where another process requested the instant the metadata table may be in use still. Making the requested file again
    changes nothing but the properties.

    Raises:
        ConcurrentWriteError: Other processes decided first all the time.
        StorageError: The store failed.
    """
    same = (instant.requested_time, instant.action)

    def build(timeline: Timeline) -> Decision | None:
        changes = _retirement(table, Properties())
        if not changes or not any((one.requested_time, one.action) == same for one in timeline.pending):
            return None
        requested = instant.at(State.REQUESTED)
        return Decision(Kind.MAKE, requested, table.storage.read(timeline.files.path(requested)), changes=changes)

    if _retirement(table, Properties()):
        decide(table, build)


def _retirement(table: Table, properties: Properties) -> dict[str, str | None]:
    """Return what takes the metadata table out of use; nothing where the instant makes the table."""
    if properties.new_table:
        return {}
    if properties.current is not None:
        return retired_metadata.retirement(properties.current)
    return retired_metadata.retirement(load_config(table.storage)) if has_config(table.storage) else {}
