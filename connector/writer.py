"""Writing through Spark: one ``df.write`` is one instant of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ..errors import PyHudiError
from ..operations.write import TaskResult, WritePlan, abort_write, commit_write, plan_write, run_task
from ..table.names import WriteToken
from .option_model import HudiOptions
from .spark_types import to_arrow


@dataclass(frozen=True)
class HudiMessage(WriterCommitMessage):
    """What one task tells the commit."""

    result: TaskResult


class HudiWriter(DataSourceArrowWriter):
    """Carries out a planned write in Spark's tasks and on its driver.

    Args:
        plan: Small enough to travel with every task.
    """

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    @classmethod
    def planned(cls, path: str, options: HudiOptions, schema: StructType, *, overwrite: bool) -> HudiWriter:
        """Plan a write of rows of ``schema``.

        Raises:
            PyHudiError: The options, the schema or the table do not allow it.
        """
        return cls(plan_write(options.to_write_request(path, to_arrow(schema), overwrite=overwrite)))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> HudiMessage:
        """Take one task's share."""
        context = TaskContext.get()
        if context is None:
            raise PyHudiError("A task of a write runs outside Spark.", "Call operations.write.run_task instead.")
        token = WriteToken(context.partitionId(), context.stageId(), context.taskAttemptId())
        return HudiMessage(run_task(self._plan, iterator, token))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Complete the instant from the messages of all tasks."""
        results = [message.result for message in messages if isinstance(message, HudiMessage)]
        if len(results) < len(messages):
            raise PyHudiError(
                f"{len(messages) - len(results)} of {len(messages)} tasks of the write to {self._plan.path} left no "
                "message.",
                "Run the write again.",
            )
        commit_write(self._plan, results)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Take back what the tasks did; Spark sends None for those that failed."""
        abort_write(self._plan)
