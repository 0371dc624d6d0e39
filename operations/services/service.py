"""What the table services share whose work is a plan on the timeline, and how an engine executes their units.

A service's plan is one of the table's decisions, and its completion is another. In between are the units of its plan.
Several processes may take each step, at once or one after the death of another:

    plan --request--> on the timeline --start--> inflight --units, each twice if need be--> complete
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ..transaction.commit_path import begin, prepare_followers
from ..transaction.instant_changes import remove_file, start
from ..transaction.outcome import Outcome

if TYPE_CHECKING:
    from ...timeline.metadata.models import InstantModel

Plan = TypeVar("Plan")
Unit = TypeVar("Unit")
Done = TypeVar("Done")


class NoTasksError(Exception):
    """The engine cannot run Python tasks, for the reason in the text; no unit was executed."""


class Executor(Protocol):
    """Executes units in this process, or in the tasks of an engine."""

    def __call__(self, call: Callable[[Unit], Done], units: Sequence[Unit]) -> list[Done]:
        """Return each unit's result, in the units' order; raises `NoTasksError` before the first unit."""


class TableService(ABC, Generic[Plan]):
    """Puts plans on the timeline of a table and completes their instants."""

    action: ClassVar[str]

    def __init__(self, table: Table) -> None:
        self.table = table

    @abstractmethod
    def requested(self, plan: Plan) -> InstantModel:
        """Return the body of the requested instant that holds a plan."""

    def request(
        self, find: Callable[[Timeline], Plan | None], at: Callable[[], str | None] = lambda: None
    ) -> tuple[Instant, Plan] | None:
        """Make a plan the table's next decision; if this process dies, the next process puts it on the timeline.

        `find` returns the plan for a timeline, and runs again whenever another process decides first. `at` returns the
        requested time of the plan that `find` returned last, None for a time after the whole timeline. Returns the
        instant and its plan; None if `find` returned no plan.
        """
        plans: list[Plan] = []

        def body(timeline: Timeline) -> InstantModel | None:
            """Return the requested instant's body for a timeline, and keep its plan in `plans`; None for no plan."""
            plans[:] = [plan for plan in [find(timeline)] if plan is not None]
            return self.requested(plans[0]) if plans else None

        instant = begin(self.table, self.action, body, at).instant
        return None if instant is None else (instant, plans[0])

    def start(self, instant: Instant) -> bool:
        """Make an instant's inflight file; False if the instant is complete by now and archived, and needs no work."""
        prepare_followers(self.table, instant)
        start(self.table, instant)
        if self.table.storage.exists(self.table.instants.path(instant.at(State.REQUESTED))):
            return True
        # Without its requested file the instant is over, and would look pending by the inflight file made above.
        remove_file(self.table, instant.at(State.INFLIGHT))
        return False


def unless_over(instant: Instant, outcome: Callable[[Timeline], Outcome]) -> Callable[[Timeline], Outcome | None]:
    """Return a function of a timeline: it returns the outcome while the instant is pending there, else None."""
    identity = (instant.requested_time, instant.action)

    def pending(timeline: Timeline) -> Outcome | None:
        """Return the outcome for a timeline on which the instant is pending; None for any other."""
        pending_instants = {(instant.requested_time, instant.action) for instant in timeline.pending}
        return outcome(timeline) if identity in pending_instants else None

    return pending
