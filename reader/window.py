"""The commits of a window of completion times, and how to find their rows; values in, values out.

Source of the rules: ``IncrementalQueryAnalyzer`` and ``CompletionTimeQueryViewV2``. A window is open at its beginning
and closed at its end, and compares completion times; rows carry the requested time of the commit that wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..timeline.instants import Instant
from .predicates import Compare, Predicate

COMMIT_TIME = "_hoodie_commit_time"


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """The values of ``_hoodie_commit_time`` that belong to a window, among the table's rows at its end.

    Small enough to travel with every task, as hardly any commit overtakes an older commit.

    Attributes:
        least: The least value.
        less: Greater values that do not belong, as their commits completed before the window.
    """

    least: str
    less: tuple[str, ...] = ()

    def predicate(self) -> Predicate:
        """Return a conjunct that all rows of the window satisfy."""
        return Compare(COMMIT_TIME, ">=", self.least)

    def mask(self, times: pa.Array) -> pa.BooleanArray:
        """Return which of these times belong."""
        belongs = pc.greater_equal(times, self.least)
        return pc.and_(belongs, pc.invert(pc.is_in(times, pa.array(self.less)))) if self.less else belongs


@dataclass(frozen=True, slots=True)
class Window:
    """The completed writes of a window.

    Attributes:
        begin: None for the table's beginning.
        end: None for now.
        instants: In order of requested time.
        times: The values of ``_hoodie_commit_time`` of their rows; None for every row of the table at the window's end,
            and in a window without writes.
    """

    begin: str | None
    end: str | None
    instants: tuple[Instant, ...]
    times: CommitTimes | None


def plan_window(writes: Iterable[Instant], begin: str | None, end: str | None) -> Window:
    """Return the writes that completed within (begin, end]."""
    until = sorted(
        (one for one in writes if end is None or one.visible_since <= end), key=lambda one: one.requested_time
    )
    if begin is None:
        return Window(begin, end, tuple(until), None)
    inside = tuple(one for one in until if one.visible_since > begin)
    if not inside:
        return Window(begin, end, (), None)
    least = inside[0].requested_time
    earlier = (one.requested_time for one in until if one.visible_since <= begin)
    return Window(begin, end, inside, CommitTimes(least, tuple(time for time in earlier if time > least)))
