"""Table services that plan, and then carry their plan out: the steps that all of them take.

What a service is about to do is one of the table's decisions, and its end is another. In between are the units of its
plan. Each step may be taken twice, by several processes at once, and by somebody else when its maker died:

    plan --request--> on the timeline --carry_out: units, each twice if need be--> completed
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from ...storage.base import Storage
from ...storage.parallel import for_each
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ..transaction.commit_path import begin, complete, prepare_followers
from ..transaction.outcome import Outcome

if TYPE_CHECKING:
    from ...timeline.metadata.models import InstantModel

Plan = TypeVar("Plan")
Plan_contra = TypeVar("Plan_contra", contravariant=True)
Unit = TypeVar("Unit")
Done = TypeVar("Done")


class Planned(Protocol[Plan_contra]):
    """What one service puts on the timeline."""

    @property
    def action(self) -> str:
        """The action of its instants."""

    def requested(self, plan: Plan_contra) -> InstantModel:
        """Return what the requested file holds."""


class TableService(Protocol[Plan_contra, Unit, Done]):
    """What one service does between the steps."""

    def units(self, plan: Plan_contra) -> Sequence[Unit]:
        """Return the parts of a plan that can be done in any order, by anybody."""

    def execute(self, unit: Unit) -> Done:
        """Do one part; it may have been done already, by halves, or at this very moment by somebody else."""

    def outcome(self, plan: Plan_contra, at: str, done: Sequence[Done], seconds: float) -> Outcome:
        """Return what becomes of the instant, `at` being its requested time."""


class NoTasksError(Exception):
    """An engine cannot run tasks of Python at all; its text says why, and no unit was executed."""


class Executor(Protocol):
    """Where units are executed: in this process, or wherever an engine takes them."""

    def __call__(self, call: Callable[[Unit], Done], units: Sequence[Unit]) -> list[Done]:
        """Return what the call returned for each unit, in the units' order.

        Raises:
            NoTasksError: There is nowhere to execute them.
        """


class Threads:
    """An executor in this process: several threads at once where the store is remote, else one after another."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __call__(self, call: Callable[[Unit], Done], units: Sequence[Unit]) -> list[Done]:
        """Return what the call returned for each unit, in the units' order."""
        return for_each(self._storage, call, units)


def request(
    service: Planned[Plan],
    table: Table,
    plan: Callable[[Timeline], Plan | None],
    at: Callable[[], str | None] = lambda: None,
) -> tuple[Instant, Plan] | None:
    """Make a plan the table's next decision.

    Args:
        service: Whose plan it is.
        table: The table.
        plan: Returns what the service is going to do, given the timeline on which that is decided; None where nothing
            is to be done, or not any more. It is asked again whenever somebody else decided first.
        at: Returns the requested time of what was planned last; None for one after all that is on the timeline.

    Returns:
        The requested instant and its plan; None where there was none.

    Raises:
        ConcurrentWriteError: Others decided first all the time.
        StorageError: The store failed. Where the decision stands, whoever decides next puts the plan on the timeline.
    """
    made: list[Plan] = []

    def body(timeline: Timeline) -> InstantModel | None:
        made.clear()
        found = plan(timeline)
        if found is None:
            return None
        made.append(found)
        return service.requested(found)

    instant = begin(table, service.action, body, at).instant
    return None if instant is None else (instant, made[0])


def carry_out(
    service: TableService[Plan, Unit, Done],
    table: Table,
    instant: Instant,
    plan: Plan,
    executor: Executor,
    check: Callable[[Timeline], None] | None = None,
) -> bool:
    """Do what a requested instant says, whoever requested it, and complete it.

    Args:
        service: Whose plan it is.
        table: The table.
        instant: The requested or inflight instant.
        plan: What it says.
        executor: Where the units are executed.
        check: Raises where the instant must not complete any more, given the timeline on which that is decided.

    Returns:
        False where somebody else had completed it, or taken it back.

    Raises:
        ConcurrentWriteError: Others decided first all the time.
        StorageError: The store failed; the instant stays pending, and whoever comes next goes on with it.
    """
    began = time.monotonic()
    prepare_followers(table, instant)
    if not _start(table, instant):
        return False
    done = executor(service.execute, service.units(plan))

    def outcome(timeline: Timeline) -> Outcome | None:
        if not any(_is(one, instant) for one in timeline.pending):
            return None
        if check is not None:
            check(timeline)
        return service.outcome(plan, instant.requested_time, done, time.monotonic() - began)

    return complete(table, instant, outcome) is not None


def _start(table: Table, instant: Instant) -> bool:
    """Make an instant's inflight file; False where somebody else has completed it, and it was archived since."""
    files = table.instants
    files.start(instant)
    if table.storage.exists(files.path(instant.at(State.REQUESTED))):
        return True
    table.storage.delete(files.path(instant.at(State.INFLIGHT)))
    return False


def _is(one: Instant, instant: Instant) -> bool:
    return (one.requested_time, one.action) == (instant.requested_time, instant.action)
