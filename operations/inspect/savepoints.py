"""The savepoints of a table."""

from __future__ import annotations

import pyarrow as pa

from ...storage.base import Storage
from ...storage.threads import for_each
from ...table.table import open_table
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline

SAVEPOINTS_SCHEMA = pa.schema(
    [
        pa.field("instant", pa.string(), nullable=False),
        pa.field("made", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("user", pa.string(), nullable=False),
        pa.field("comment", pa.string(), nullable=False),
        pa.field("files", pa.int64(), nullable=False),
    ]
)


def savepoints(storage: Storage) -> pa.Table:
    """Return one row for every savepoint, newest first, with columns as in `SAVEPOINTS_SCHEMA`.

    The row has the write at which the savepoint keeps the table, its time, user and comment, and the number of files
    that it keeps.
    """
    timeline = open_table(storage).timeline()
    instants = [instant for instant in reversed(timeline.completed) if instant.action == "savepoint"]
    return pa.Table.from_pylist(
        for_each(storage, lambda savepoint: _row(timeline, savepoint), instants), SAVEPOINTS_SCHEMA
    )


def _row(timeline: Timeline, instant: Instant) -> dict[str, object]:
    """Return the row of a savepoint, from its file."""
    body = timeline.files.read_savepoint(instant)
    return {
        "instant": instant.requested_time,
        "made": body.savepointed_at,
        "user": body.savepointed_by,
        "comment": body.comments,
        "files": sum(len(partition.savepoint_data_file) for partition in body.partition_metadata.values()),
    }
