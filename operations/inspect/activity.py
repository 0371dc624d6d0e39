"""The writes and table services that are at work on a table, as far as its store shows them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from ...storage.base import Storage
from ...storage.threads import for_each
from ...table.table import Table, open_table
from ...timeline.clock import moment_of
from ...timeline.instants import Instant, State
from ...timeline.writers.heartbeat import Heartbeat
from ...timeline.writers.owner import Claim, Owner, Seal, seal_of

ACTIVITY_SCHEMA = pa.schema(
    [
        pa.field("instant", pa.string(), nullable=False),
        pa.field("action", pa.string(), nullable=False),
        pa.field("phase", pa.string(), nullable=False),
        pa.field("started", pa.timestamp("ms", tz="UTC")),
        pa.field("application", pa.string()),
        pa.field("host", pa.string()),
        pa.field("pid", pa.int64()),
        pa.field("heartbeat_age_s", pa.float64()),
    ]
)

PLANNED, WRITING, COMMITTING, GIVEN_UP = "planned", "writing", "committing", "given up"


def activity(storage: Storage) -> pa.Table:
    """Return one row for every pending instant, oldest first, with columns as in `ACTIVITY_SCHEMA`.

    The phase is ``planned`` before a process begins the instant, ``writing`` while tasks may add files, ``committing``
    after that, and ``given up`` if the next write undoes it. Application, host and pid are null for other writers than
    pyhudi; the age of a missing heartbeat is null, too.
    """
    table = open_table(storage)
    return pa.Table.from_pylist(activity_rows(table, table.timeline().pending), ACTIVITY_SCHEMA)


def activity_rows(table: Table, pending: Iterable[Instant]) -> list[dict[str, object]]:
    """Return a row for each pending instant, in their order, with values by the names of `ACTIVITY_SCHEMA`."""
    now = table.storage.now()
    return for_each(table.storage, lambda instant: _row(table, instant, now), pending)


def _row(table: Table, instant: Instant, now: float) -> dict[str, object]:
    """Return the row of a pending instant; ``now`` is the store's time, for the age of its heartbeat."""
    storage, time = table.storage, instant.requested_time
    process = Claim(storage, time).owner()
    beat = storage.modified(Heartbeat(storage, time).path)
    row: dict[str, object] = {
        "instant": time,
        "action": instant.action,
        "phase": _phase(storage, instant, process),
        "started": moment_of(time, table.config.timezone),
        "heartbeat_age_s": None if beat is None else max(0.0, now - beat),
    }
    if process is not None:
        row |= {"application": process.application or None, "host": process.host, "pid": process.pid}
    return row


def _phase(storage: Storage, instant: Instant, process: Owner | None) -> str:
    """Return the phase of a pending instant, as `activity` describes it.

    A seal is a file after which the tasks of a write add no more files; it also says whether the write was given up.
    Its name is the requested time alone, or has the process too, as processes work on an instant one after another.
    """
    time = instant.requested_time
    # By these names the seals of the whole write, and of the process that works on it, are looked up.
    seal_names = [time, *([] if process is None else [seal_of(time, process.write_id)])]
    seals = [Seal(storage, name) for name in seal_names]
    if any(seal.is_given_up() for seal in seals):
        return GIVEN_UP
    if instant.state == State.REQUESTED and process is None:
        return PLANNED
    return COMMITTING if any(seal.is_set() for seal in seals) else WRITING
