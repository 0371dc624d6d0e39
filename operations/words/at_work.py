"""A pending instant in words: which process is at work on it, and since when."""

from __future__ import annotations

from datetime import datetime, timezone

from ...table.table import Table
from ...timeline.clock import moment_of
from ...timeline.instants import Instant
from ...timeline.writers.owner import Claim


def in_words(table: Table, instant: Instant) -> str:
    """Return a pending instant in words, with its process and since when that is at work."""
    process = Claim(table.storage, instant.requested_time).owner()
    process_in_words = (
        "a process that left no note of itself" if process is None else f"process {process.pid} on {process.place}"
    )
    since_when = since_in_words(table, instant)
    return f"the {instant.action} {instant.requested_time} of {process_in_words}" + (
        f", {since_when}" if since_when else ""
    )


def since_in_words(table: Table, instant: Instant) -> str:
    """Return since when a pending instant's process is at work, in words; empty if that is unknown.

    That is the time of its claim; without a claim that of the instant's file, or else the time in the instant's name.
    """
    storage, time = table.storage, instant.requested_time
    claimed_at = storage.modified(Claim(storage, time).path) or storage.modified(table.instants.path(instant))
    moment = (
        moment_of(time, table.config.timezone)
        if claimed_at is None
        else datetime.fromtimestamp(claimed_at, timezone.utc)
    )
    return "" if moment is None else f"at work since {moment:%Y-%m-%d %H:%M:%S} UTC"
