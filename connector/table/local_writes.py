"""Writes of few rows that lie in the driver's process already: planned, carried out and committed there, without a job.

A job of ten rows takes ten times as long as the write: Spark starts Python to plan, for each task and to commit.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import PyHudiError
from ...operations.locating.touched import touched_by
from ...operations.planning.operation import DELETE_PARTITION
from ...operations.planning.plan import WritePlan, plan_seen
from ...operations.planning.request import WriteRequest
from ...operations.result import CommitResult
from ...operations.write.run import LocalRun
from ...operations.write.turns import Turn
from ...options.model import HudiOptions
from ...table.files.output import MIB
from ...table.schema.columns import POSITION
from ...table.seen_table import SeenTable
from ...timeline.timeline import Timeline
from .service_tasks import with_services_after

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("pyhudi")

# Spark's gateway hands bytes over one by one, a mebibyte in 50 ms of processor time.
MOST_BYTES = MIB
_LOCAL = "LocalRelation"
_CONVERTERS = "org.apache.spark.sql.execution.arrow.ArrowConverters$"
_MOST_ROWS = 1 << 30
_ZONE = "UTC"
# This process merges so many file groups, with so many bytes of files, before a job would begin.
_FEW_GROUPS, _SMALL_BYTES = 32, 16 * MIB


def turn_of(df: DataFrame, options: HudiOptions, path: str) -> Turn | None:
    """Return the turn in which this process may write the rows, a thread at a time.

    None if Spark writes: by the options, the query, or `colocate`.
    """
    by_options = options.write_local != "never" and options.place_rows != "always"
    return Turn(path) if by_options and POSITION not in df.columns and is_local(df) else None


def write_here(df: DataFrame, request: WriteRequest, options: HudiOptions, turn: Turn | None) -> CommitResult | None:
    """Write rows in this process and return the result; None if Spark has to write them, as always without a turn.

    The ``turn`` ends after the commit, or once it is clear that Spark writes.
    """
    if turn is None:
        return None
    batches = local_rows(df)
    result_and_timeline = None if batches is None else _write_if_small(request, batches)
    turn.end()
    # A write that made no instant has no timeline, and no services follow it.
    if result_and_timeline is None or result_and_timeline[1] is None:
        return None if result_and_timeline is None else result_and_timeline[0]
    return with_services_after(df.sparkSession, result_and_timeline[0], result_and_timeline[1], options)


def _write_if_small(
    request: WriteRequest, batches: Sequence[pa.RecordBatch]
) -> tuple[CommitResult, Timeline | None] | None:
    """Write rows in this process if that is faster than a job; None if Spark is to write them.

    Returns the result, and a timeline for services; no timeline if the write made no instant.
    """
    settings = replace(request.write, upkeep=request.write.upkeep.called_for())
    plan, seen = plan_seen(replace(request, write=settings))
    if not _is_small(plan, seen, batches):
        return None
    commit_result = LocalRun(plan).write([batches])
    return commit_result, seen.timeline if commit_result.instant and plan.replays is None else None


def _is_small(plan: WritePlan, seen: SeenTable, batches: Sequence[pa.RecordBatch]) -> bool:
    """Return whether this process merges the rows before a job would begin."""
    if plan.replays is not None or plan.operation == DELETE_PARTITION:
        # A write that an earlier call completed merges no rows, nor does a delete of partitions.
        return True
    try:
        touched = touched_by(plan, seen, batches, _FEW_GROUPS)
    except PyHudiError:
        # The write meets the same error, and then undoes what it has begun.
        return True
    return touched is not None and touched.size <= _SMALL_BYTES


def is_local(df: DataFrame) -> bool:
    """Return whether the rows seem to lie in the driver's process, by the query as it was written.

    Spark does not optimize any other query only for the answer of `local_rows`.
    """
    java_frame = getattr(df, "_jdf", None)
    try:
        leaves = None if java_frame is None else java_frame.queryExecution().analyzed().collectLeaves()
        return leaves is not None and leaves.size() == 1 and bool(leaves.head().nodeName() == _LOCAL)
    except Exception:
        logger.debug("Spark does not show the leaves of a query", exc_info=True)
        return False


def local_rows(df: DataFrame) -> list[pa.RecordBatch] | None:
    """Return rows as Spark would hand them to a task; None if that takes a job, or for more than `MOST_BYTES`.

    Spark Connect's server takes the rows of local relations by the same method. A job reports errors of the query.
    """
    java_frame: Any = getattr(df, "_jdf", None)
    try:
        plan = java_frame.queryExecution().optimizedPlan()
        if plan.nodeName() != _LOCAL or plan.isStreaming():
            return None
        return _rows_of(java_frame, plan)
    except Exception:
        logger.debug("Spark hands no rows over without a job", exc_info=True)
        return None


def _rows_of(java_frame: Any, plan: Any) -> list[pa.RecordBatch] | None:
    """Return the rows of a local plan by Spark's own converter to Arrow; None if they have too many bytes."""
    converters = java_frame.getClass().getClassLoader().loadClass(_CONVERTERS).getField("MODULE$").get(None)
    # No two fields of one struct have one name, and texts have small offsets: as in Spark's tasks of Python.
    streams = converters.toBatchWithSchemaIterator(
        plan.data().iterator(), plan.schema(), _MOST_ROWS, MOST_BYTES, _ZONE, True, False
    )
    if not streams.hasNext():
        return []
    rows = pa.ipc.open_stream(streams.next()).read_all()
    if streams.hasNext():
        streams.close()
        return None
    return rows.to_batches() if rows.nbytes <= MOST_BYTES else None
