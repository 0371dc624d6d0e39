"""The only functions that put a planned instant on a table's timeline, complete an instant, or give it up.

Writes and table services call them. Only this package chooses an instant's time, races for the table's next decision,
and knows the lock and the followers of a table's files:

    begin --> requested      complete --> completed      abandon --> never to complete
    exclusive: work on the timeline that makes no instant
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from ...errors import ConcurrentWriteError
from ...table.config import TableConfig, stored_config, update_config
from ...table.seen_table import SeenTable
from ...table.table import Table, refuse_other_version
from ...timeline.clock import Parity, next_time
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.decisions import Decision, DecisionKind
from ...timeline.writers.first_steps import FirstSteps, folder_of
from ..result import MetadataWritten
from .decide import decide
from .followers import Prepared, changed_properties, followers_of, prepare
from .locks import HeldLock, has_lock, hold
from .outcome import CommitBody, Outcome

if TYPE_CHECKING:
    from ...timeline.metadata.models import InstantModel

R = TypeVar("R")

# Followers prepare at most so often for one instant, if other instants change what they follow.
_PREPARATIONS = 20


@dataclass(frozen=True, slots=True)
class Begun:
    """The requested instant, None if the plan needed none, and the timeline that `plan` got last."""

    instant: Instant | None
    timeline: Timeline


@dataclass(frozen=True, slots=True)
class Completed:
    """An instant that this process completed, and what it wrote to the metadata table; None without such a table."""

    instant: Instant
    metadata: MetadataWritten | None = None


def time_after(table: Table, timeline: Timeline, later_than: str = "") -> str:
    """Return a time for an instant to be requested or completed: now, or right after a timeline and ``later_than``.

    It is odd, because writes take even times while decisions are made.
    """
    now_ms = int(time.time() * 1000)
    greatest = max(timeline.greatest_time() or "", later_than)
    return next_time(now_ms, greatest or None, table.config.timezone, parity=Parity.ODD)


def begin(
    table: Table,
    action: str,
    plan: Callable[[Timeline], InstantModel | None],
    choose_time: Callable[[], str | None] = lambda: None,
    steps_before: Callable[[Timeline, Instant], tuple[FirstSteps, ...]] = lambda _, __: (),
) -> Begun:
    """Request an instant that holds what `plan` returns; None requests nothing. Raises as `decide`.

    ``action`` is that of the instant, as the timeline names it. `plan` runs again after each lost race. `choose_time`
    returns the requested time, or None for a time after all others. `steps_before` returns the steps that make files
    right before the requested file.
    """
    requested: list[Instant] = []

    def build(timeline: Timeline) -> Decision | None:
        """Return the decision to request the instant after those on a timeline; None if the plan needs none."""
        requested.clear()
        model = plan(timeline)
        if model is None:
            return None
        instant = Instant(choose_time() or time_after(table, timeline), action, State.REQUESTED)
        requested.append(instant)
        body = timeline.files.codec.encode(model)
        steps = steps_before(timeline, instant)
        return Decision(DecisionKind.MAKE, instant, body, changes=changed_properties(table), first=steps)

    timeline = decide(table, build)
    return Begun(requested[0] if requested else None, timeline)


def begin_reading(table: Table, pending: Instant, check: Callable[[Timeline], None]) -> Timeline | None:
    """Make an instant's inflight file, and return a timeline with all instants that completed before that file.

    None if the instant is gone. An instant that completes later sees the file, because the decisions of a table come
    one after another, and this is one of them. `check` gets the timeline of each round, and raises if the instant must
    not begin. Raises as `decide`.
    """
    identity, requested = (pending.requested_time, pending.action), pending.at(State.REQUESTED)
    is_pending: list[bool] = []

    def build(timeline: Timeline) -> Decision | None:
        """Make the inflight file, and return a decision that orders it among others; None if the instant is gone."""
        is_pending[:] = [any((instant.requested_time, instant.action) == identity for instant in timeline.pending)]
        if not is_pending[0]:
            return None
        check(timeline)
        try:
            body = table.storage.read(timeline.files.path(requested))
        except FileNotFoundError:
            # Another process has rolled it back, maybe right before an earlier round made the inflight file.
            is_pending[0] = False
            table.storage.delete(timeline.files.path(pending))
            return None
        timeline.files.start(pending)
        # It is harmless to make the requested file again.
        return Decision(DecisionKind.MAKE, requested, body, changes=changed_properties(table))

    decide(table, build)
    return table.timeline() if is_pending[0] else None


def complete(
    table: Table,
    pending: Instant,
    outcome: Callable[[Timeline], Outcome | None],
    make_room: Callable[[], None] | None = None,
    *,
    starts: bool = False,
) -> Completed | None:
    """Complete an instant, the point of no return; return None if it is completed or gone already.

    `outcome` returns what the instant changes, by a timeline, or None if it is over. It runs again after each lost
    race, and raises if the instant must not complete. With ``starts`` each round makes the inflight file, too.
    `make_room` frees space that this process holds on a full store. Followers of the table prepare before the race, and
    again if instants that completed meanwhile change what they prepared. Raises as `decide`.
    """
    followers, uses_lock = followers_of(table), has_lock(table)
    for attempts_left in reversed(range(_PREPARATIONS)):
        prepared = timeline_before = None
        if followers or uses_lock:
            # Read data files now, so that each round looks only at what came since.
            timeline_before = table.timeline()
            expected_outcome = outcome(timeline_before)
            if expected_outcome is None:
                return None
            if followers and expected_outcome.followed:
                prepared = prepare(followers, SeenTable(table, timeline_before), pending, expected_outcome)
        try:
            # Data files of newer writes are read without the lock, too, except in the last attempt, which checks newer
            # writes under the lock instead of beginning anew.
            unchanged_since = timeline_before if uses_lock and attempts_left else None
            return _complete_once(table, pending, outcome, prepared, unchanged_since, make_room, starts=starts)
        except _OutdatedError:
            # Another process may have begun to build a metadata table since this process opened the table.
            stored = stored_config(table.storage)
            followers = followers_of(table if stored is None else replace(table, config=stored))
    raise ConcurrentWriteError(
        f"Other instants changed what follows the table {table.path}, {_PREPARATIONS} times in a row, while the "
        f"{pending.action} {pending.requested_time} was about to complete.",
        "Run it again.",
    )


class _OutdatedError(Exception):
    """The work before a decision is outdated: instants completed since then, and change what was read or prepared."""


def _complete_once(
    table: Table,
    pending: Instant,
    outcome: Callable[[Timeline], Outcome | None],
    prepared: Prepared | None,
    unchanged_since: Timeline | None,
    make_room: Callable[[], None] | None,
    *,
    starts: bool,
) -> Completed | None:
    """Complete an instant with what followers prepared; return None if it is completed or gone already.

    Raises `_OutdatedError`, upon which the caller prepares anew, if instants changed what followers prepared.

    Args:
        pending: The instant, requested or inflight.
        outcome: Returns what the instant changes, by a timeline; None if it is completed or gone.
        prepared: What the followers of the table prepared for the instant; None if the table has none.
        unchanged_since: If given, a write that completed since this timeline raises `_OutdatedError`, too.
        make_room: Frees space that this process holds on a full store.
        starts: Whether each round also makes the inflight file.
    """
    completed: list[Instant] = []

    def build(timeline: Timeline) -> Decision | None:
        """Return the decision to complete the instant after those on a timeline; None if it is completed or gone.

        Its completion time is later than the times that followers need. Raises `_OutdatedError` as `_complete_once`.
        """
        completed.clear()
        if unchanged_since is not None and not set(timeline.writes).issubset(unchanged_since.writes):
            raise _OutdatedError
        current_outcome = outcome(timeline)
        if current_outcome is None:
            return None
        # Another process may have deleted files that the instant needs, such as metafiles of its partitions.
        current_outcome.restore()
        if starts:
            timeline.files.start(pending)
        properties, own_preparation = current_outcome.properties, current_outcome.own
        # A table that this instant makes has no properties yet, and so no followers.
        config = None if properties.new_table else properties.current or stored_config(table.storage)
        after_time = ""
        if config is not None and current_outcome.followed:
            after_time = _ready_after(table, prepared, timeline, config, current_outcome)
        if own_preparation is not None and config is not None:
            after_time = max(after_time, _time_or_outdated(own_preparation.ready_after(timeline, config)))
        completion_time = time_after(table, timeline, after_time)
        completed.append(timeline.files.layout.completed(pending, completion_time))
        body = current_outcome.body
        content = body.at(timeline, pending) if isinstance(body, CommitBody) else timeline.files.codec.encode(body)
        if config is not None:
            refuse_other_version(table, config)
        followed_changes = changed_properties(table, config) if current_outcome.followed and config is not None else {}
        changes = {**properties.changes, **followed_changes}
        preparations = (
            *(() if prepared is None else prepared.by_follower),
            *(() if own_preparation is None else [own_preparation]),
        )
        steps_by_preparation = [each.steps(completed[0]) for each in preparations]
        first_steps = (*current_outcome.first, *(each for each in steps_by_preparation if each.steps or each.drops))
        return Decision(DecisionKind.MAKE, completed[0], content, properties.new_table, changes, first=first_steps)

    decide(table, build, make_room)
    if not completed:
        return None
    if prepared is None:
        return Completed(completed[0])
    # Copies of the files that followers prepared are in place now.
    if any(each.sets_aside for each in prepared.by_follower):
        table.storage.delete_folder(folder_of(pending.requested_time))
    return Completed(completed[0], prepared.report)


def _ready_after(
    table: Table, prepared: Prepared | None, timeline: Timeline, config: TableConfig, outcome: Outcome
) -> str:
    """Return a time after which an instant must complete; raise `_OutdatedError` if followers must prepare anew.

    The time is empty if the followers need none. ``config`` are the table's properties now: they may name a follower,
    such as a new metadata table, that ``prepared`` lacks.
    """
    prepared_followers = () if prepared is None else prepared.followers
    if any(follower not in prepared_followers for follower in followers_of(replace(table, config=config))):
        raise _OutdatedError
    return "" if prepared is None else _time_or_outdated(prepared.ready_after(timeline, config, outcome))


def _time_or_outdated(ready_time: str | None) -> str:
    """Return the time after which what was prepared is ready; raise `_OutdatedError` for None."""
    if ready_time is None:
        raise _OutdatedError
    return ready_time


def abandon(table: Table, find: Callable[[Timeline], Instant | None]) -> Timeline:
    """Decide that the instant that `find` returns never completes; return the timeline. Raises as `decide`.

    `find` gets the timeline, and returns None if there is nothing to give up.
    """

    def build(timeline: Timeline) -> Decision | None:
        """Return the decision to give up the instant that `find` returns; None if it returns none."""
        instant = find(timeline)
        return None if instant is None else Decision(DecisionKind.GIVE_UP, instant.at(State.INFLIGHT))

    return decide(table, build)


def exclusive(table: Table, work: Callable[[HeldLock], R]) -> R:
    """Do work on the timeline that makes no instant, under the table's lock; each of its steps may run twice."""
    with hold(table) as held_lock:
        return work(held_lock)


def prepare_for_removed_files(table: Table) -> None:
    """Set the properties that followers want before data files are deleted without an instant."""
    with hold(table):
        changes = changed_properties(table)
        if changes:
            update_config(table.storage, changes)


def prepare_followers(table: Table, instant: Instant) -> None:
    """Set the properties that followers want before the first data file changes for an instant. Raises as `decide`.

    If another process requested the instant, a metadata table may be in use. It is harmless to make the requested file
    again.
    """
    identity = (instant.requested_time, instant.action)

    def build(timeline: Timeline) -> Decision | None:
        """Return the decision that sets the properties; None if nothing changes, or the instant is not pending."""
        changes = changed_properties(table)
        if not changes or not any((instant.requested_time, instant.action) == identity for instant in timeline.pending):
            return None
        requested = instant.at(State.REQUESTED)
        return Decision(
            DecisionKind.MAKE, requested, table.storage.read(timeline.files.path(requested)), changes=changes
        )

    # Mostly nothing changes, and then no decision is needed.
    if changed_properties(table):
        decide(table, build)
