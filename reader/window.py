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
from .skipping.predicates import Compare, Predicate

COMMIT_TIME = "_hoodie_commit_time"


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """The rows of a window: ``_hoodie_commit_time`` from ``least`` on, without ``less``.

    The times in ``less`` are of commits that completed before the window. They are few, because hardly any commit
    overtakes an older commit, and so travel with every task.
    """

    least: str
    less: tuple[str, ...] = ()

    def predicate(self) -> Predicate:
        """Return a predicate that all rows of the window satisfy, and few others."""
        return Compare(COMMIT_TIME, ">=", self.least)

    def mask(self, times: pa.Array) -> pa.BooleanArray:
        """Return which rows, by their commit times, belong to the window."""
        belongs = pc.greater_equal(times, self.least)
        return pc.and_(belongs, pc.invert(pc.is_in(times, pa.array(self.less)))) if self.less else belongs


@dataclass(frozen=True, slots=True)
class Window:
    """The completed writes of (``begin``, ``end``], in order of requested time; None for no bound.

    ``times`` is None for every row of the table at the window's end, and in a window without writes.
    """

    begin: str | None
    end: str | None
    instants: tuple[Instant, ...]
    times: CommitTimes | None


def plan_window(writes: Iterable[Instant], begin: str | None, end: str | None) -> Window:
    """Return the window of completed writes after ``begin`` and until ``end``; None for no bound."""
    writes_until_end = sorted(
        (instant for instant in writes if end is None or instant.visible_since <= end),
        key=lambda instant: instant.requested_time,
    )
    if begin is None:
        return Window(begin, end, tuple(writes_until_end), None)
    writes_of_window = tuple(instant for instant in writes_until_end if instant.visible_since > begin)
    if not writes_of_window:
        return Window(begin, end, (), None)
    least = writes_of_window[0].requested_time
    # Rows of these commits, which completed before the window, are none of its rows, even if their times are in range.
    earlier_times = (instant.requested_time for instant in writes_until_end if instant.visible_since <= begin)
    return Window(
        begin, end, writes_of_window, CommitTimes(least, tuple(time for time in earlier_times if time > least))
    )
