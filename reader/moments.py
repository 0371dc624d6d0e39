"""The moment of a table's history that a query shows."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import OptionConflictError, UnreadableTimeError
from ..table.seen_table import SeenTable
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from .listed_files import Moment
from .long_past import first_readable_write, reach_back
from .query import AS_OF, BEGIN, END, AsOf, Changes, Query, is_beginning, resolve
from .window import plan_window


def find_moment(seen: SeenTable, query: Query | None) -> Moment:
    """Return the moment that a query shows, the present without a query.

    ``seen`` is the table with one listing of its timeline. A query as of a time shows the writes requested until then,
    and a query of changes the writes of a window, as of the completion time at which it ends. Raises
    UnreadableTimeError if the archive does not tell enough about an earlier moment, and OptionConflictError for a
    window that ends before it begins.
    """
    now, zone = seen.timeline, seen.table.config.timezone
    latest = now.completed_until
    if query is None:
        return Moment(now, latest)
    if isinstance(query, AsOf):
        time = resolve(query.time, zone)
        # Before the timeline's first write, only the archive tells which writes there were.
        if now.writes and time < now.writes[0].requested_time:
            history = reach_back(seen, time)
            if history is None:
                raise _before_timeline_error(query.time, first_readable_write(seen, time), seen.table.path)
            return Moment(history.as_of_request(time), time, history=history)
        return Moment(now.as_of_request(time), min(time, latest))
    begin = None if is_beginning(query.begin) else resolve(query.begin, zone)
    end = None if query.end is None else resolve(query.end, zone)
    if begin is not None and end is not None and begin > end:
        raise OptionConflictError(
            f"The window of the table {seen.table.path} begins at {query.begin} and ends before that, at {query.end}.",
            f"Give {END} a later time than {BEGIN}.",
        )
    # A window without bounds shows all rows as of now, for which the timeline's own writes are enough.
    archived_writes = () if begin is None and end is None else _only_archived(seen.table.archive.writes(), now)
    _check_reach(query, end, archived_writes, seen.table.path)
    window = plan_window([*archived_writes, *now.writes], begin, end)
    return Moment(now, latest, window) if end is None else Moment(now.as_of_completion(end), min(end, latest), window)


def _only_archived(archived: Iterable[Instant], now: Timeline) -> tuple[Instant, ...]:
    """Return the archived instants that are no longer on the timeline."""
    # An instant is archived before its files leave the active timeline.
    active = {instant.requested_time for instant in now.instants}
    return tuple(instant for instant in archived if instant.requested_time not in active)


def _check_reach(query: Changes, end: str | None, archived_writes: Iterable[Instant], where: str) -> None:
    """Raise UnreadableTimeError if a window ends, at ``end``, before the last archived commit completed."""
    archived_until = max((instant.visible_since for instant in archived_writes), default="")
    if end is not None and end < archived_until:
        raise UnreadableTimeError(
            f"The table {where} cannot be shown as it was at {query.end}, the window's end: commits until "
            f"{archived_until} are archived, so that the first readable end is {archived_until}.",
            f"Give {END}={archived_until} or a later time, or leave it out.",
        )


def _before_timeline_error(queried_time: str, first: Instant, where: str) -> UnreadableTimeError:
    """Return the error of a time before the timeline, which the archive does not show; ``first`` is readable."""
    return UnreadableTimeError(
        f"The table {where} cannot be shown as of {queried_time}, which is before its timeline begins, and its "
        f"archive does not show that time. The first instant that can be read whole is {first.requested_time}.",
        f"Give {AS_OF}={first.requested_time} or a later time.",
    )
