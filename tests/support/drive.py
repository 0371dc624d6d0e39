"""A write driven without Spark: plan, tasks, commit or abort, as Spark would call them."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, takewhile
from pathlib import Path

import pyarrow as pa
from pyhudi import arrow
from pyhudi.arrow.table import Mode
from pyhudi.errors import CommitConflictError
from pyhudi.methods.writes import OPERATION, WRITE_ID
from pyhudi.operations.planning.plan import WritePlan, plan_write
from pyhudi.operations.planning.request import TableSettings, WriteRequest, WriteSettings
from pyhudi.operations.result import CommitResult
from pyhudi.operations.write.run import LocalRun
from pyhudi.operations.write.task import TaskResult, run_task
from pyhudi.options.parsing import parse_options
from pyhudi.table.files.names import WriteToken
from pyhudi.timeline.clock import Parity, next_time
from support.by_options import options_of
from support.write_settings import write_settings

NOTHING_SAID = TableSettings()
DEFAULTS = WriteSettings()
_BOUND = DEFAULTS.commit.merge_max_bytes
KEYED = TableSettings(record_key_fields=("id",), ordering_fields=("ts",), bucket_count=2)


def plan(
    path: Path | str,
    schema: pa.Schema,
    *,
    operation: str | None = None,
    overwrite: bool = False,
    table: TableSettings = NOTHING_SAID,
    settings: WriteSettings = DEFAULTS,
    write_id: str = "",
) -> WritePlan:
    """Plan a write and send the plan through pickle, as Spark does."""
    time.sleep(0.002)  # or two writes of one test might begin in one millisecond
    request = WriteRequest(
        path=str(path),
        operation=operation,
        overwrite=overwrite,
        schema=schema,
        table=table,
        write=settings,
        write_id=write_id,
    )
    return pickle.loads(pickle.dumps(plan_write(request)))  # noqa: S301


def noted(planned: WritePlan) -> str:
    """Return the requested time of a write that has begun, even where it is given up."""
    notes = (planned.transaction.notes.find(number) for number in count(1))
    return max(time for time in takewhile(lambda time: time is not None, notes) if time)


def at_time(planned: WritePlan, instant_time: str) -> WritePlan:
    """Return a write whose first task has chosen its time, and died before its next step."""
    assert planned.transaction.notes.make(1, instant_time)
    return planned.at(instant_time)


def choosing_now(planned: WritePlan) -> WritePlan:
    """Let a write choose its time, and return it; its tasks put it on the timeline later."""
    at_time(planned, next_time(int(time.time() * 1000), None, planned.config.timezone, parity=Parity.EVEN))
    time.sleep(0.003)  # what begins next is later, though the time was rounded up
    return planned


class SparkLikeRun(LocalRun):
    """A write whose results go through pickle, as Spark sends them; the batches of its tasks are small."""

    def task(self, batches: Iterable[pa.RecordBatch], number: int, attempt: int | None = None) -> TaskResult:
        """Run one task."""
        token = WriteToken(number, 1, 100 + number if attempt is None else attempt)
        return pickle.loads(pickle.dumps(run_task(self.plan, iter(batches), token)))  # noqa: S301


def task(planned: WritePlan, rows: pa.Table, number: int, *, attempt: int | None = None) -> TaskResult:
    """Run one task over the rows, in batches of seven."""
    return SparkLikeRun(planned).task(rows.to_batches(max_chunksize=7), number, attempt)


def carry_out(planned: WritePlan, parts: Sequence[pa.Table]) -> CommitResult:
    """Run the tasks and commit; abort and raise when anything fails."""
    return SparkLikeRun(planned).write(rows.to_batches(max_chunksize=7) for rows in parts)


def write(
    path: Path | str,
    parts: Sequence[pa.Table] | pa.Table,
    *,
    operation: str | None = None,
    overwrite: bool = False,
    table: TableSettings = NOTHING_SAID,
    settings: WriteSettings = DEFAULTS,
    write_id: str = "",
) -> CommitResult:
    """Write the rows of a table as a user of `pyhudi.arrow` does, and a list of parts by one task each.

    So does a table where options cannot say the settings, or say what is Spark's to say. A user's rows come as a
    stream: a write of rows in memory takes the turn of its process, and would wait for ever for the write in the midst
    of which a test carries it out.
    """
    by_user = (
        isinstance(parts, pa.Table) and write_settings(settings, colocated=False, merge_max_bytes=_BOUND) == settings
    )
    options = options_of(table, settings) if by_user else None
    if options is None or not isinstance(parts, pa.Table):
        parts = [parts] if isinstance(parts, pa.Table) else parts
        said = {"operation": operation, "overwrite": overwrite, "table": table, "settings": settings}
        return carry_out(plan(path, parts[0].schema, write_id=write_id, **said), parts)  # type: ignore[arg-type]
    time.sleep(0.002)  # or two writes of one test might begin in one millisecond
    more = {OPERATION: operation, WRITE_ID: write_id or None}
    mode: Mode = "overwrite" if overwrite else "append"
    key = None if operation and not table.record_key_fields else ""
    rows = parts.to_reader(max_chunksize=7)
    return arrow.Table(path).write(rows, mode, record_key=key, timestamps="local", **{**options, **more})


def write_in_one_task(path: Path | str, rows: pa.Table, options: Mapping[str, str]) -> CommitResult:
    """Write rows by the options that ``df.write`` would take, in one task of Spark's."""
    asked = parse_options(options).to_write_request(str(path), rows.schema, overwrite=False)
    return write(path, [rows], operation=asked.operation, table=asked.table, settings=asked.write)


def write_after_death(path: Path | str, parts: Sequence[pa.Table] | pa.Table, **options: object) -> CommitResult:
    """Write, and again where that found a dead write to be decided, completed it, and was itself planned before."""
    try:
        return write(path, parts, **options)
    except CommitConflictError as error:
        assert "completed meanwhile" in str(error)
        return write(path, parts, **options)


def read(path: Path | str) -> pa.Table:
    """Return the table's rows with their meta columns, read by this thread: it may hold a step of the store."""
    return arrow.Table(path, threads=1).read(meta=True)


def rows_of(path: Path | str, *columns: str) -> list[tuple[object, ...]]:
    """Return the table's rows as sorted tuples of the given columns."""
    table = arrow.Table(path, threads=1).read(columns)
    return sorted(zip(*(table.column(name).to_pylist() for name in columns), strict=True))
