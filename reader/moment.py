"""The part of a table's history that a query shows, or an error that names the first part that it could show."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..errors import OptionConflictError, UnreadableTimeError
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from .query import AS_OF, END, AsOf, Changes, Query, is_beginning, resolve
from .window import Window, plan_window


@dataclass(frozen=True, slots=True)
class Moment:
    """What a query shows of a timeline.

    Attributes:
        timeline: What is completed on it is shown.
        time: When that was.
        window: The commits whose rows alone are shown; None for all rows.
        history: The timeline with the archived instants, where the moment is before its first write; else None.
    """

    timeline: Timeline
    time: str
    window: Window | None = None
    history: Timeline | None = None


def find_moment(
    now: Timeline,
    query: Query | None,
    zone: str,
    where: str,
    *,
    archived: Callable[[], Iterable[Instant]],
    reach_back: Callable[[str], Timeline | None],
    first_whole: Callable[[str], Instant],
) -> Moment:
    """Return what a query shows.

    Args:
        now: The timeline as of the moment at which the query was made.
        query: None for the table as it is.
        zone: The timeline's.
        where: The table's path, for messages.
        archived: Returns the archived writes; asked only where they matter.
        reach_back: Returns the timeline with the archived instants, None where they do not tell a moment; asked only of
            a moment before the first write.
        first_whole: Returns the first instant from a time on that can be shown whole; asked only for a message.

    Raises:
        InvalidOptionError: A time of the query is none.
        OptionConflictError: A window ends before it begins.
        UnreadableTimeError: The timeline does not reach back far enough.
    """
    latest = now.completed_until
    if query is None:
        return Moment(now, latest)
    if isinstance(query, AsOf):
        time = resolve(query.time, zone)
        if now.writes and time < now.writes[0].requested_time:
            history = reach_back(time)
            if history is None:
                raise _before_the_first(query.time, first_whole(time), where)
            return Moment(history.as_of_request(time), time, history=history)
        return Moment(now.as_of_request(time), min(time, latest))
    begin = None if is_beginning(query.begin) else resolve(query.begin, zone)
    end = None if query.end is None else resolve(query.end, zone)
    if begin is not None and end is not None and begin > end:
        raise OptionConflictError(
            f"The window of the table {where} begins at {query.begin} and ends before that, at {query.end}.",
            f"Let {END} be the later one.",
        )
    gone = () if begin is None and end is None else _only_archived(archived(), now)
    _check_reach(query, end, gone, where)
    window = plan_window([*gone, *now.writes], begin, end)
    return Moment(now, latest, window) if end is None else Moment(now.as_of_completion(end), min(end, latest), window)


def _only_archived(archived: Iterable[Instant], now: Timeline) -> tuple[Instant, ...]:
    # An instant is archived before its files are removed from the active timeline.
    active = {one.requested_time for one in now.instants}
    return tuple(one for one in archived if one.requested_time not in active)


def _check_reach(query: Changes, end: str | None, gone: Iterable[Instant], where: str) -> None:
    archived_until = max((one.visible_since for one in gone), default="")
    if end is not None and end < archived_until:
        raise UnreadableTimeError(
            f"The table {where} cannot be shown as it was at {query.end}, the window's end: commits until "
            f"{archived_until} are archived, so that the first readable end is {archived_until}.",
            f"Give {END}={archived_until} or a later one, or leave it out.",
        )


def _before_the_first(asked: str, first: Instant, where: str) -> UnreadableTimeError:
    return UnreadableTimeError(
        f"The table {where} cannot be shown as of {asked}, which is before its timeline begins and not told by its "
        f"archive. The first instant that can be read whole is {first.requested_time}.",
        f"Give {AS_OF}={first.requested_time} or a later one.",
    )
