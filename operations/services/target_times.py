"""Finds the instant that a user names by a time, in any spelling that a query's time may have.

Digits in the form of an instant time are taken as they are; if no such instant exists, the service says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import UndoError
from ...reader.query import resolve
from ...table.table import Table
from ...timeline.clock import spelled_digits
from ...timeline.pending_undo import pending_rollbacks

_EPOCHS = (10, 13)


def write_until(table: Table, text: str) -> str:
    """Return the name of the newest completed write that was requested until a time, as in a query of that time.

    `text` is a time as a user spells it; a text in the form of an instant time is returned as it is. A write that is
    being rolled back does not count. Raises `UndoError` if there is no such write.
    """
    if _is_name(text):
        return text
    timeline, time = table.timeline(), resolve(text, table.config.timezone)
    victims = pending_rollbacks(timeline)
    times = [instant.requested_time for instant in timeline.writes if instant.requested_time <= time]
    names = [name for name in times if name not in victims]
    if names:
        return names[-1]
    first_write = timeline.writes[0].requested_time if timeline.writes else "none"
    raise UndoError(
        f"The timeline of the table {table.path} has no completed write that was requested until {text} "
        f"(the first: {first_write}).",
        "Choose a later time, or a write that HudiTable.history shows.",
    )


def write_at(table: Table, text: str) -> str:
    """Return the name of the only write, pending or completed, in the day, second or millisecond that a text spells."""
    if _is_name(text):
        return text
    timeline = table.timeline()
    writes = {instant.requested_time for instant in timeline.instants if instant.is_write} | set(
        pending_rollbacks(timeline)
    )
    return _only_match(table, text, "write", writes)


def savepoint_at(table: Table, text: str) -> str:
    """Return the name of the only savepoint in the day, second or millisecond that a text spells."""
    if _is_name(text):
        return text
    savepoints = (instant.requested_time for instant in table.timeline().instants if instant.action == "savepoint")
    return _only_match(table, text, "savepoint", savepoints)


def _is_name(text: str) -> bool:
    """Return whether a text has the form of an instant time, and is no epoch in seconds or milliseconds."""
    return text.isdigit() and len(text) not in _EPOCHS


def _only_match(table: Table, text: str, kind: str, names: Iterable[str]) -> str:
    """Return the only name that begins with the digits which a text spells; raise `UndoError` for none or several.

    `kind` says in the error what the names are of, a write or a savepoint.
    """
    digits = resolve(text, table.config.timezone)[: spelled_digits(text)]
    all_names = sorted(names)
    matches = [name for name in all_names if name.startswith(digits)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UndoError(
            f"The table {table.path} has {len(matches)} {kind}s of {text}: {', '.join(matches)}.",
            f"Give the {kind}'s instant.",
        )
    raise UndoError(
        f"The table {table.path} has no {kind} of {text} on its timeline ({', '.join(all_names[-10:]) or 'none'}).",
        f"Choose the instant of such a {kind}.",
    )
