"""The savepoints of a table."""

from __future__ import annotations

import pyarrow as pa

from ...storage.base import Storage
from ...storage.parallel import for_each
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

    The row has the write whose state the savepoint keeps, when it was made, by whom and why, and how many files it
    keeps.
    """
    timeline = open_table(storage).timeline()
    found = [instant for instant in reversed(timeline.completed) if instant.action == "savepoint"]
    return pa.Table.from_pylist(
        for_each(storage, lambda savepoint: _row(timeline, savepoint), found), SAVEPOINTS_SCHEMA
    )


def _row(timeline: Timeline, instant: Instant) -> dict[str, object]:
    kept = timeline.files.read_savepoint(instant)
    return {
        "instant": instant.requested_time,
        "made": kept.savepointed_at,
        "user": kept.savepointed_by,
        "comment": kept.comments,
        "files": sum(len(partition.savepoint_data_file) for partition in kept.partition_metadata.values()),
    }
