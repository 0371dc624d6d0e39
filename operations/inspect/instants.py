"""All instants of a table, pending, completed and archived, by the names of their files alone."""

from __future__ import annotations

import pyarrow as pa

from ...errors import InvalidOptionError
from ...storage.base import Storage
from ...table.table import open_table
from ...timeline.clock import parse_time
from ...timeline.instants import Instant
from .described_columns import TEXT, DescribedColumn, DescribedRows

TIMELINE = DescribedRows(
    "timeline",
    "A row for each instant, newest first: the active timeline with pending instants, then the archive.",
    (
        DescribedColumn("instant", TEXT, "Requested time of the instant, which is its name.", False),
        DescribedColumn("action", TEXT, "What the instant does, by Apache Hudi's names.", False),
        DescribedColumn("state", TEXT, "`REQUESTED`, `INFLIGHT` or `COMPLETED`.", False),
        DescribedColumn("completed", TEXT, "Completion time; null while pending."),
        DescribedColumn("seconds", pa.float64(), "Seconds from the request to the completion; null while pending."),
        DescribedColumn("archived", pa.bool_(), "Whether the instant is in the archive.", False),
    ),
)


def list_instants(storage: Storage, limit: int | None = None) -> pa.Table:
    """Return one row for each instant, newest first, with columns as in `TIMELINE`.

    With a limit, it reads no older files of the archive than it needs. Raises `InvalidOptionError` for a limit below
    zero.
    """
    if limit is not None and limit < 0:
        raise InvalidOptionError(f"The limit of the timeline is {limit}.", "Give a limit of 0 or more.")
    table = open_table(storage)
    active = table.timeline().instants
    zone, newest = table.config.timezone, [*reversed(active)][:limit]
    rows = [_row(instant, zone, archived=False) for instant in newest]
    more = None if limit is None else limit - len(newest)
    if more != 0:
        # An instant that is in both places has one row.
        identities = frozenset(instant.identity for instant in active)
        rows += [_row(instant, zone, archived=True) for instant in table.archive.newest(more, identities)]
    return TIMELINE.table(rows)


def seconds_of(instant: Instant, zone: str) -> float | None:
    """Return the seconds from an instant's request to its completion; None if a time is missing or invalid."""
    if instant.completion_time is None:
        return None
    try:
        return (parse_time(instant.completion_time, zone) - parse_time(instant.requested_time, zone)) / 1000
    except ValueError:
        return None


def _row(instant: Instant, zone: str, *, archived: bool) -> tuple[object, ...]:
    """Return the values of an instant in the order of `TIMELINE`; ``zone`` is the time zone of the table's times."""
    return (
        instant.requested_time,
        instant.action,
        instant.state.name,
        instant.completion_time,
        seconds_of(instant, zone),
        archived,
    )
