"""The instants of a table, from its timeline and its archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from ...errors import InvalidOptionError
from ...storage.base import Storage
from ...storage.threads import for_each
from ...table.table import open_table
from ...timeline.held import COMPACTING
from ...timeline.instants import WRITE_ACTIONS, Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.failures import Failed, read_failures
from ..result import OPERATIONS_OF_SERVICES, CommitResult, archived_results, result_of

HISTORY_SCHEMA = pa.schema(
    [
        pa.field("instant", pa.string(), nullable=False),
        pa.field("action", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("completed", pa.string()),
        pa.field("operation", pa.string()),
        pa.field("inserts", pa.int64()),
        pa.field("updates", pa.int64()),
        pa.field("deletes", pa.int64()),
        pa.field("files", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("log_files", pa.int64()),
        pa.field("log_bytes", pa.int64()),
        pa.field("failures", pa.int64()),
        pa.field("error", pa.string()),
        pa.field("repair", pa.string()),
    ]
)


def history(storage: Storage, limit: int | None = None) -> pa.Table:
    """Return one row for every instant, newest first: those of the timeline, then those of the archive.

    The columns are as in `HISTORY_SCHEMA`. Counts are null for instants without rows; ``failures`` and ``error`` are
    set for pending compactions and log compactions that have failed so far. With a limit, it reads no more instants,
    and no older files of the archive, than it returns.
    """
    if limit is not None and limit < 0:
        raise InvalidOptionError(f"The limit of the history is {limit}.", "Give a limit of 0 or more.")
    table = open_table(storage)
    timeline = table.timeline()
    active = frozenset(instant.identity for instant in timeline.instants)
    newest = [*reversed(timeline.instants)][:limit]
    rows = history_rows(timeline, newest)
    more = None if limit is None else limit - len(newest)
    if more != 0:
        # An instant that is in both places has one row.
        archived = table.archive.newest(more, active)
        results = archived_results(table, (instant for instant in archived if instant.action in WRITE_ACTIONS))
        # Nothing in the archive is pending, so no failed compaction is there.
        rows += [_row(instant, results.__getitem__, {}) for instant in archived]
    return pa.Table.from_pylist(rows, HISTORY_SCHEMA)


def history_rows(timeline: Timeline, instants: Sequence[Instant]) -> list[dict[str, object]]:
    """Return a row for each of some instants, in their order, with values by the names of `HISTORY_SCHEMA`."""
    storage = timeline.storage
    plans = [instant for instant in instants if instant.action in COMPACTING and instant.state != State.COMPLETED]
    failed = read_failures(storage) if plans else {}
    return for_each(storage, lambda instant: _row(instant, partial(result_of, timeline), failed), instants)


def last_commit(storage: Storage) -> CommitResult | None:
    """Return the result of the newest completed write that is no table service; None without any."""
    timeline = open_table(storage).timeline()
    results = (result_of(timeline, instant) for instant in reversed(timeline.writes))
    return next((result for result in results if result.operation not in OPERATIONS_OF_SERVICES), None)


def _row(
    instant: Instant, result_of_write: Callable[[Instant], CommitResult], failed: Mapping[str, Failed]
) -> dict[str, object]:
    """Return the row of an instant; ``result_of_write`` reads the result of a completed write.

    ``failed`` has the compactions that have failed so far, by their requested times.
    """
    row: dict[str, object] = {
        "instant": instant.requested_time,
        "action": instant.action,
        "state": instant.state.name,
        "completed": instant.completion_time,
    }
    if instant.state == State.COMPLETED and instant.action in WRITE_ACTIONS:
        result = result_of_write(instant)
        names = ("operation", "inserts", "updates", "deletes", "files", "bytes", "log_files", "log_bytes")
        row |= {name: getattr(result, name) for name in names}
        row["repair"] = result.repair or None
    elif instant.action in COMPACTING and instant.requested_time in failed:
        row |= {"failures": failed[instant.requested_time].times, "error": failed[instant.requested_time].error}
    return row
