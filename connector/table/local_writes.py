"""Writes of few rows that lie in the driver's process already: planned, carried out and committed there, without a job.

A job of ten rows takes ten times as long as the write: Spark starts Python to plan, for each task and to commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import PyHudiError
from ...operations.locating.touched import touched_by
from ...operations.planning.operation import DELETE_PARTITION
from ...operations.planning.plan import WritePlan, plan_seen
from ...operations.planning.request import WriteRequest
from ...operations.result import CommitResult
from ...operations.write.run import LocalRun
from ...options.model import HudiOptions
from ...table.files.output import MIB
from ...table.schema.columns import POSITION
from ...table.seen_table import SeenTable
from .local_rows import local_rows
from .service_tasks import with_inline_services

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# As many file groups, and bytes of their files, as this process merges before a job would begin.
_FEW_GROUPS, _SMALL_BYTES = 32, 16 * MIB


def write_here(df: DataFrame, request: WriteRequest, options: HudiOptions) -> CommitResult | None:
    """Write rows in this process; None, and nothing is written, where Spark is to do it."""
    if options.write_local == "never" or options.place_rows == "always" or POSITION in df.columns:
        return None
    batches = local_rows(df)
    if batches is None:
        return None
    settings = replace(request.write, upkeep=request.write.upkeep.called_for())
    plan, seen = plan_seen(replace(request, write=settings))
    if not _is_small(plan, seen, batches):
        return None
    done = LocalRun(plan).write([batches])
    if not done.instant or plan.replays is not None:
        return done
    return with_inline_services(df.sparkSession, done, seen.timeline, options)


def _is_small(plan: WritePlan, seen: SeenTable, batches: Sequence[pa.RecordBatch]) -> bool:
    if plan.replays is not None or plan.operation == DELETE_PARTITION:
        return True
    try:
        touched = touched_by(plan, seen, batches, _FEW_GROUPS)
    except PyHudiError:
        # The write meets it again, and undoes what it has begun.
        return True
    return touched is not None and touched.size <= _SMALL_BYTES
