"""The instants of a table in time: the newest with their times, older instants by the day of their request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from ...errors import PyHudiError
from ...timeline.clock import parse_time
from ...timeline.instants import Instant
from ..inspect.instants import seconds_of
from ..inspect.walked_table import WalkedTable
from .figures import DayCount, InstantBar

MOST_BARS = 300
MOST_DAYS = 200


@dataclass(frozen=True, slots=True)
class TimeBars:
    """The instants of a table; ``before`` counts those of older days than the last 200 that have any."""

    bars: tuple[InstantBar, ...]
    older: tuple[DayCount, ...]
    before: int
    untimed: int
    archived: int


def find_bars(walked: WalkedTable, note_problem: Callable[[str], None]) -> TimeBars:
    """Return the instants of the timeline and the archive, newest first.

    ``note_problem`` takes a sentence if the archive is damaged.
    """
    active = [*reversed(walked.timeline.instants)]
    try:
        archived = walked.table.archive.newest(None, frozenset(instant.identity for instant in active))
    except PyHudiError as error:
        note_problem(f"The report lacks archived instants: {error}")
        archived = ()
    clock, instants = InstantClock(walked.table.config.timezone), [*active, *archived]
    bars = [bar for instant in instants[:MOST_BARS] if (bar := clock.bar(instant)) is not None]
    days = Counter(_day(instant) for instant in instants[MOST_BARS:])
    shown_days = sorted(days, reverse=True)[:MOST_DAYS]
    return TimeBars(
        bars=tuple(bars),
        older=tuple(DayCount(day, days[day]) for day in shown_days),
        before=days.total() - sum(days[day] for day in shown_days),
        untimed=min(len(instants), MOST_BARS) - len(bars),
        archived=len(archived),
    )


@dataclass(frozen=True, slots=True)
class InstantClock:
    """Reads instant times in a table's time zone."""

    zone: str

    def ms(self, text: str | None) -> int | None:
        """Return an instant time as epoch milliseconds; None for None, and for a text that is no time."""
        if text is None:
            return None
        try:
            return parse_time(text, self.zone)
        except ValueError:
            return None

    def bar(self, instant: Instant) -> InstantBar | None:
        """Return the bar of an instant; None if its requested time cannot be read."""
        began_ms = self.ms(instant.requested_time)
        if began_ms is None:
            return None
        ended_ms = self.ms(instant.completion_time)
        seconds = seconds_of(instant, self.zone)
        return InstantBar(instant.requested_time, instant.action, instant.state.name, began_ms, ended_ms, seconds)


def _day(instant: Instant) -> str:
    """Return the day of an instant's request by the digits of its name, which may be no date."""
    text = instant.requested_time
    return f"{text[:4]}-{text[4:6]}-{text[6:8]}"
