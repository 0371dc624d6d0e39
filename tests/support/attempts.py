"""Writes as Spark drives them, for tests in which one of their steps fails."""

from __future__ import annotations

import contextlib

import pyarrow as pa
from pyhudi.errors import PyHudiError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.timeline.writers.patience import Patience
from support.drive import KEYED, plan, task
from support.places import Place

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
PARTED = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2)
# A writer in this very process counts as dead at once, when its heartbeat may be a moment old.
IMPATIENT = WriteSettings(patience=Patience(heartbeat_misses=-1, foreign_age_s=-1.0))


def rows(*keys: int, value: int, ts: int = 1) -> pa.Table:
    return pa.table([[f"k{key}" for key in keys], [ts] * len(keys), [value] * len(keys)], schema=SCHEMA)


def parted(partition: str, *keys: int, value: int) -> pa.Table:
    return rows(*keys, value=value).append_column("p", pa.array([partition] * len(keys)))


def attempt(
    path: Place,
    parts: list[pa.Table],
    settings: WriteSettings,
    operation: str | None = None,
    table: TableSettings = KEYED,
) -> None:
    """Write as Spark does: abort follows whatever failed; what abort itself raises is only logged by Spark."""
    planned = plan(path, parts[0].schema, operation=operation, table=table, settings=settings)
    try:
        commit_write(planned, [task(planned, part, number) for number, part in enumerate(parts)])
    except PyHudiError:
        with contextlib.suppress(PyHudiError):
            abort_write(planned)
        raise
