"""Table services of `HudiTable`: their units as Spark tasks, which any session runs, and services after a write."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType

from ...errors import PyHudiError
from ...operations.following.metadata_of_write import metadata_of_write
from ...operations.following.partitions_in_use import written_partitions
from ...operations.result import CommitResult, with_services
from ...operations.services.means import Means
from ...operations.services.service import NoTasksError
from ...operations.upkeep.after_write import means_of, run_after_batch, run_inline
from ...options.model import HudiOptions
from ...storage import open_storage
from ...table.config import TableConfig
from ...table.table import Table
from ...timeline.timeline import Timeline
from ..source.own_errors import own_errors
from .notebook_progress import observer

Unit = TypeVar("Unit")
Done = TypeVar("Done")

_ERROR_LINE = re.compile(r"(Caused by: )?[\w.$]+(Error|Exception)\b")
_MOST_TEXT = 300


class SparkTasks:
    """An executor on Spark, which may run tasks twice: calls must be idempotent. ``what`` names them in Spark's UI."""

    def __init__(self, spark: SparkSession, what: str) -> None:
        self._spark = spark
        self._label = what

    def __call__(self, call: Callable[[Unit], Done], units: Sequence[Unit]) -> list[Done]:
        """Return the result of the call for each unit, in the units' order.

        Raises the `PyHudiError` of a call, and `NoTasksError` if Spark cannot run Python tasks that find pyhudi.
        """
        waiting = list(units)
        if not waiting:
            return []
        try:
            return self._run(call, waiting)
        except PyHudiError:
            raise
        except Exception as error:
            reason = self._why_nothing_runs()
            if reason is None:
                raise
            raise NoTasksError(f"Spark can run no tasks of Python that find pyhudi ({reason})") from error

    def _run(self, call: Callable[[Unit], Done], waiting: Sequence[Unit]) -> list[Done]:
        """Return the results of one Spark job with a task for each unit; the results travel pickled."""

        def run(number: int) -> bytes:
            return pickle.dumps(call(waiting[number]))

        # An Arrow function would need pandas on Spark 4.0.
        task = sf.udf(run, BinaryType(), useArrow=False)
        numbers = self._spark.range(0, len(waiting), 1, len(waiting))
        with own_errors():
            answers = numbers.select("id", task("id").alias(self._label)).collect()
        return [pickle.loads(row[1]) for row in sorted(answers, key=lambda row: row[0])]  # noqa: S301 (made above)

    def _why_nothing_runs(self) -> str | None:
        """Return the reason why even an empty task fails, in a few words; None if it runs."""
        try:
            self._run(_nothing, [0])
        except Exception as error:  # noqa: BLE001 (Spark has many classes; the reason names the error)
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            # The last error line of the traceback is the most specific.
            line = next((line for line in reversed(lines) if _ERROR_LINE.match(line)), lines[0] if lines else "")
            return f"{type(error).__name__}: {line[:_MOST_TEXT]}"
        return None


def _nothing(unit: int) -> int:
    """Do no work: the unit by which `SparkTasks` tries whether any task runs."""
    return unit


def with_metadata(commit_result: CommitResult, table: Table, planned_config: TableConfig) -> CommitResult:
    """Return the result of a write with what it wrote to the metadata table, which Spark's process does not report.

    ``planned_config`` has the properties that the table had when the write was planned: they name the partitions of the
    metadata table that the write had to write to.
    """
    metadata = metadata_of_write(table, commit_result.instant, written_partitions(planned_config))
    return (
        commit_result
        if metadata is None
        else replace(commit_result, metadata=metadata, warnings=(*commit_result.warnings, *metadata.warnings))
    )


def with_services_after(
    spark: SparkSession,
    commit_result: CommitResult,
    timeline: Timeline,
    options: HudiOptions,
    *,
    is_batch: bool = False,
) -> CommitResult:
    """Run the services after a write, and return its result together with theirs.

    After a batch of a stream they run in this process.
    """
    storage, upkeep = (
        open_storage(commit_result.path, options.storage_options, durable=options.durable),
        options.upkeep_after_write(),
    )
    if is_batch:
        means = _means_of_this_process(spark, options)
        return with_services(
            commit_result, run_after_batch(storage, timeline, upkeep, means, options.stream_settings())
        )
    return with_services(commit_result, run_inline(storage, timeline, upkeep, spark_means(spark, options)))


def spark_means(spark: SparkSession, options: HudiOptions) -> Means:
    """Return the means to merge log files: Spark tasks for each file group, or this process if Spark runs none."""
    settings, in_this_process = options.write_settings(), _means_of_this_process(spark, options)
    in_tasks = means_of(settings, executor=SparkTasks(spark, "compaction"), application=in_this_process.application)
    return replace(in_tasks, without_tasks=in_this_process, observer=in_this_process.observer)


def _means_of_this_process(spark: SparkSession, options: HudiOptions) -> Means:
    """Return the means to run services in this process, which merge within its bound of memory."""
    settings, application = options.write_settings(), options.application or application_of(spark)
    means = means_of(settings, most_bytes=settings.commit.merge_max_bytes, application=application)
    return replace(means, observer=observer())


def application_of(spark: SparkSession) -> str:
    return spark.conf.get("spark.app.name", "") or ""
