"""Table services whose work is a plan on the timeline: what all of them share, and where their units are executed.

What a service is about to do is one of the table's decisions, and its end is another. In between are the units of its
plan. Several processes may take each step, at once or one after the death of another:

    plan --request--> on the timeline --start--> inflight --units, each twice if need be--> complete
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

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
Unit = TypeVar("Unit")
Done = TypeVar("Done")


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


class TableService(ABC, Generic[Plan]):
    """A service that puts plans on the timeline of a table and completes their instants."""

    action: ClassVar[str]

    def __init__(self, table: Table) -> None:
        self.table = table

    @abstractmethod
    def requested(self, plan: Plan) -> InstantModel:
        """Return what the requested file holds."""

    def request(
        self, find: Callable[[Timeline], Plan | None], at: Callable[[], str | None] = lambda: None
    ) -> tuple[Instant, Plan] | None:
        """Make a plan the table's next decision.

        Args:
            find: Returns the plan, given the timeline on which that is decided; None where nothing is to be done, or
                not any more. It is called again whenever another process decided first.
            at: Returns the requested time of what was planned last; None for one after all that is on the timeline.

        Raises:
            ConcurrentWriteError: Other processes decided first all the time.
            StorageError: The store failed. Where the decision stands, the next process that decides carries it out.
        """
        made: list[Plan] = []

        def body(timeline: Timeline) -> InstantModel | None:
            made[:] = [plan for plan in [find(timeline)] if plan is not None]
            return self.requested(made[0]) if made else None

        instant = begin(self.table, self.action, body, at).instant
        return None if instant is None else (instant, made[0])

    def start(self, instant: Instant) -> bool:
        """Make an instant's inflight file; False where another process has completed it, and it was archived since."""
        prepare_followers(self.table, instant)
        files = self.table.instants
        files.start(instant)
        if self.table.storage.exists(files.path(instant.at(State.REQUESTED))):
            return True
        self.table.storage.delete(files.path(instant.at(State.INFLIGHT)))
        return False

    def complete(self, instant: Instant, outcome: Callable[[Timeline], Outcome]) -> bool:
        """Complete an instant; return False where another process had completed it, or taken it back.

        Args:
            instant: The requested or inflight instant.
            outcome: Returns what becomes of it, given the timeline on which that is decided, or raises where it must
                not complete any more.

        Raises:
            ConcurrentWriteError: Other processes decided first all the time.
            StorageError: The store failed; the instant stays pending.
        """
        same = (instant.requested_time, instant.action)

        def pending(timeline: Timeline) -> Outcome | None:
            known = {(one.requested_time, one.action) for one in timeline.pending}
            return outcome(timeline) if same in known else None

        return complete(self.table, instant, pending) is not None
