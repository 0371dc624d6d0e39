"""The moment of a table's history that a query shows."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import OptionConflictError, UnreadableTimeError
from ..table.seen_table import SeenTable
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from .listed_files import Moment
from .long_past import first_whole, reach_back
from .query import AS_OF, BEGIN, END, AsOf, Changes, Query, is_beginning, resolve
from .window import plan_window


def find_moment(seen: SeenTable, query: Query | None) -> Moment:
    """Return the moment that a query shows, the present without a query; may raise UnreadableTimeError."""
    now, zone = seen.timeline, seen.table.config.timezone
    latest = now.completed_until
    if query is None:
        return Moment(now, latest)
    if isinstance(query, AsOf):
        time = resolve(query.time, zone)
        if now.writes and time < now.writes[0].requested_time:
            history = reach_back(seen, time)
            if history is None:
                raise _before_the_first(query.time, first_whole(seen, time), seen.table.path)
            return Moment(history.as_of_request(time), time, history=history)
        return Moment(now.as_of_request(time), min(time, latest))
    begin = None if is_beginning(query.begin) else resolve(query.begin, zone)
    end = None if query.end is None else resolve(query.end, zone)
    if begin is not None and end is not None and begin > end:
        raise OptionConflictError(
            f"The window of the table {seen.table.path} begins at {query.begin} and ends before that, at {query.end}.",
            f"Give {END} a later time than {BEGIN}.",
        )
    gone = () if begin is None and end is None else _only_archived(seen.table.archive.writes(), now)
    _check_reach(query, end, gone, seen.table.path)
    window = plan_window([*gone, *now.writes], begin, end)
    return Moment(now, latest, window) if end is None else Moment(now.as_of_completion(end), min(end, latest), window)


def _only_archived(archived: Iterable[Instant], now: Timeline) -> tuple[Instant, ...]:
    # An instant is archived before its files leave the active timeline.
    active = {instant.requested_time for instant in now.instants}
    return tuple(instant for instant in archived if instant.requested_time not in active)


def _check_reach(query: Changes, end: str | None, gone: Iterable[Instant], where: str) -> None:
    archived_until = max((instant.visible_since for instant in gone), default="")
    if end is not None and end < archived_until:
        raise UnreadableTimeError(
            f"The table {where} cannot be shown as it was at {query.end}, the window's end: commits until "
            f"{archived_until} are archived, so that the first readable end is {archived_until}.",
            f"Give {END}={archived_until} or a later time, or leave it out.",
        )


def _before_the_first(asked: str, first: Instant, where: str) -> UnreadableTimeError:
    return UnreadableTimeError(
        f"The table {where} cannot be shown as of {asked}, which is before its timeline begins, and its "
        f"archive does not show that time. The first instant that can be read whole is {first.requested_time}.",
        f"Give {AS_OF}={first.requested_time} or a later time.",
    )
