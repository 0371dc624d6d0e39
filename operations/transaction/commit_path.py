"""The only way by which an instant enters a table's timeline by a plan, completes, or is given up.

Writes and table services call these functions. The choice of an instant's time, the race for the table's next decision,
the lock and the followers of a table's files are in this package and nowhere else:

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
from .body import CommitBody
from .decide import decide
from .followers import Prepared, changed_properties, following, prepare
from .locks import HeldLock, has_lock, hold
from .outcome import Outcome

if TYPE_CHECKING:
    from ...timeline.metadata.models import InstantModel

R = TypeVar("R")

# Followers prepare this often for one instant, while other instants change what they follow.
_PREPARATIONS = 20


@dataclass(frozen=True, slots=True)
class Begun:
    """The requested instant, None if the plan needs none, and the timeline that `plan` got last."""

    instant: Instant | None
    timeline: Timeline


@dataclass(frozen=True, slots=True)
class Completed:
    """An instant that this process completed, and what it wrote to the metadata table; None if there is none."""

    instant: Instant
    metadata: MetadataWritten | None = None


def time_after(table: Table, timeline: Timeline, later_than: str = "") -> str:
    """Return the time of an instant that a round of a decision requests or completes: now, or after all others."""
    now_ms = int(time.time() * 1000)
    greatest = max(timeline.greatest_time() or "", later_than)
    return next_time(now_ms, greatest or None, table.config.timezone, parity=Parity.ODD)


def begin(
    table: Table,
    action: str,
    plan: Callable[[Timeline], InstantModel | None],
    at: Callable[[], str | None] = lambda: None,
    first: Callable[[Timeline, Instant], tuple[FirstSteps, ...]] = lambda _, __: (),
) -> Begun:
    """Request an instant that holds what `plan` returns; None requests nothing. Raises as `decide`.

    `plan` runs again after each lost race. `at` returns the requested time, or None for a time after all others.
    `first` returns what is done right before the requested file.
    """
    requested: list[Instant] = []

    def build(timeline: Timeline) -> Decision | None:
        requested.clear()
        model = plan(timeline)
        if model is None:
            return None
        instant = Instant(at() or time_after(table, timeline), action, State.REQUESTED)
        requested.append(instant)
        body = timeline.files.codec.encode(model)
        steps = first(timeline, instant)
        return Decision(DecisionKind.MAKE, instant, body, changes=changed_properties(table), first=steps)

    timeline = decide(table, build)
    return Begun(requested[0] if requested else None, timeline)


def begin_reading(table: Table, pending: Instant, check: Callable[[Timeline], None]) -> Timeline | None:
    """Make an instant's inflight file, and return a timeline with all that completed without seeing that file.

    None if the instant is gone. An instant that completes later sees the file: the decisions of a table come one
    after another, and this is one of them. `check` gets the timeline of each round, and raises if the instant must
    not begin. Raises as `decide`.
    """
    same, requested = (pending.requested_time, pending.action), pending.at(State.REQUESTED)
    is_pending: list[bool] = []

    def build(timeline: Timeline) -> Decision | None:
        is_pending[:] = [any((instant.requested_time, instant.action) == same for instant in timeline.pending)]
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
        # Making the requested file again is harmless.
        return Decision(DecisionKind.MAKE, requested, body, changes=changed_properties(table))

    decide(table, build)
    return table.timeline() if is_pending[0] else None


def complete(
    table: Table,
    pending: Instant,
    outcome: Callable[[Timeline], Outcome | None],
    relief: Callable[[], None] | None = None,
    *,
    starts: bool = False,
) -> Completed | None:
    """Complete an instant, the point of no return; return None if it is completed or gone already.

    `outcome` runs again after each lost race, and raises if the instant must not complete. With ``starts`` each
    round makes the inflight file, too. Followers of the table prepare before the race, and again if instants that
    completed meanwhile touch what they wrote. Otherwise as `decide`.
    """
    followers, locked = following(table), has_lock(table)
    for further in reversed(range(_PREPARATIONS)):
        prepared = seen = None
        if followers or locked:
            # What reads data files does so now, and in a round looks only at what came since.
            seen = table.timeline()
            planned = outcome(seen)
            if planned is None:
                return None
            if followers and planned.followed:
                prepared = prepare(followers, SeenTable(table, seen), pending, planned)
        try:
            leaves = seen if locked and further else None
            return _complete(table, pending, outcome, prepared, leaves, relief, starts=starts)
        except _OutdatedError:
            # Another process may have begun to build a metadata table since this process opened the table.
            stored = stored_config(table.storage)
            followers = following(table if stored is None else replace(table, config=stored))
    raise ConcurrentWriteError(
        f"Other instants changed what follows the table {table.path}, {_PREPARATIONS} times in a row, while the "
        f"{pending.action} {pending.requested_time} was about to complete.",
        "Run it again.",
    )


class _OutdatedError(Exception):
    """Instants completed since followers prepared, and touch what these wrote, or since data files were read."""


def _complete(
    table: Table,
    pending: Instant,
    outcome: Callable[[Timeline], Outcome | None],
    prepared: Prepared | None,
    seen: Timeline | None,
    relief: Callable[[], None] | None,
    *,
    starts: bool,
) -> Completed | None:
    """Complete an instant; where writes are ``seen``, raise `_OutdatedError` once others completed."""
    completed: list[Instant] = []

    def build(timeline: Timeline) -> Decision | None:
        completed.clear()
        if seen is not None and not set(timeline.writes).issubset(seen.writes):
            raise _OutdatedError
        outcome_now = outcome(timeline)
        if outcome_now is None:
            return None
        outcome_now.settle()
        if starts:
            timeline.files.start(pending)
        new = bool(outcome_now.properties.new_table)
        config = None if new else outcome_now.properties.current or stored_config(table.storage)
        after = "" if config is None or not outcome_now.followed else _ready_after(table, prepared, timeline, config, outcome_now)
        if outcome_now.own is not None and config is not None:
            after = max(after, _required(outcome_now.own.ready_after(timeline, config)))
        at = time_after(table, timeline, after)
        completed.append(timeline.files.layout.completed(pending, at))
        codec = timeline.files.codec
        body = outcome_now.body.at(timeline, pending) if isinstance(outcome_now.body, CommitBody) else codec.encode(outcome_now.body)
        if config is not None:
            refuse_other_version(table, config)
        follows = changed_properties(table, config) if outcome_now.followed and config is not None else {}
        changes = {**outcome_now.properties.changes, **follows}
        preparations = (
            *(() if prepared is None else prepared.by_follower),
            *(() if outcome_now.own is None else [outcome_now.own]),
        )
        steps = [each.steps(completed[0]) for each in preparations]
        first = (*outcome_now.first, *(each for each in steps if each.steps or each.drops))
        return Decision(DecisionKind.MAKE, completed[0], body, outcome_now.properties.new_table, changes, first=first)

    decide(table, build, relief)
    if not completed:
        return None
    if prepared is None:
        return Completed(completed[0])
    if any(each.sets_aside for each in prepared.by_follower):
        table.storage.delete_folder(folder_of(pending.requested_time))
    return Completed(completed[0], prepared.report)


def _ready_after(
    table: Table, prepared: Prepared | None, timeline: Timeline, config: TableConfig, outcome: Outcome
) -> str:
    """Return a time after which an instant has to complete; raise `_OutdatedError` if followers prepare anew."""
    ready = () if prepared is None else prepared.followers
    if any(follower not in ready for follower in following(replace(table, config=config))):
        raise _OutdatedError
    return "" if prepared is None else _required(prepared.ready_after(timeline, config, outcome))


def _required(ready: str | None) -> str:
    if ready is None:
        raise _OutdatedError
    return ready


def abandon(table: Table, find: Callable[[Timeline], Instant | None]) -> Timeline:
    """Decide that the instant that `find` returns never completes; return the timeline. Raises as `decide`."""

    def build(timeline: Timeline) -> Decision | None:
        instant = find(timeline)
        return None if instant is None else Decision(DecisionKind.GIVE_UP, instant.at(State.INFLIGHT))

    return decide(table, build)


def exclusive(table: Table, work: Callable[[HeldLock], R]) -> R:
    """Do work on the timeline that makes no instant, under the table's lock; every step may run twice."""
    with hold(table) as held:
        return work(held)


def prepare_for_removed_files(table: Table) -> None:
    """Have followers ready before data files go by the hand of no instant."""
    with hold(table):
        changes = changed_properties(table)
        if changes:
            update_config(table.storage, changes)


def prepare_followers(table: Table, instant: Instant) -> None:
    """Have followers ready before the first data file changes for an instant. Raises as `decide`.

    Where another process requested it, a metadata table may be in use. Making the requested file again is harmless.
    """
    same = (instant.requested_time, instant.action)

    def build(timeline: Timeline) -> Decision | None:
        changes = changed_properties(table)
        if not changes or not any((instant.requested_time, instant.action) == same for instant in timeline.pending):
            return None
        requested = instant.at(State.REQUESTED)
        return Decision(
            DecisionKind.MAKE, requested, table.storage.read(timeline.files.path(requested)), changes=changes
        )

    if changed_properties(table):
        decide(table, build)
