"""The sink of a streaming query: Spark's calls of one micro-batch, each in a process of its own.

For each batch Spark makes a writer in the process that plans, sends copies of it to the tasks, and makes another writer
in the process of the commit. That process gets nothing but the messages of the tasks, so each message has the plan.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ...errors import PyHudiError
from ..source.paths import BATCH_ID, QUERY_ID, RUN_ID
from ..source.workers import worker_call

if TYPE_CHECKING:
    import pyarrow as pa

    from ...operations.planning.plan import WritePlan
    from ...operations.planning.request import WriteRequest
    from ...operations.write.micro_batch import BatchResult
    from ...options.model import HudiOptions
    from .checkpoint_folder import CheckpointFolder

logger = logging.getLogger("pyhudi")

# By table and query: the rows of batches that this process passed over since the query's last commit.
_LOST: dict[tuple[str, str], int] = {}


@dataclass(frozen=True)
class BatchMessage(WriterCommitMessage):
    result: BatchResult


class HudiStreamWriter(DataSourceArrowWriter, DataSourceStreamWriter):
    """Writes the micro-batches of a streaming query; a copy in a task has the plan of one.

    As a `DataSourceArrowWriter` it gets record batches from Spark 4.0, too, which hands rows to other sinks.
    """

    def __init__(
        self, path: str, options: HudiOptions, schema: StructType, *, overwrite: bool, checkpoint: str | None
    ) -> None:
        """Keep what the batches of a query need.

        ``overwrite`` says that each batch replaces the table, as in the output mode complete. ``checkpoint`` is the
        path of the query's checkpoint folder, None if it is unknown.
        """
        self._path = path
        # None in the copies in tasks; what tasks need of the options is kept beside them.
        self._options: HudiOptions | None = options
        self._schema = schema
        self._overwrite = overwrite
        # Arguments of `CheckpointFolder`, whose module is imported where they are used.
        self._checkpoint_arguments = (checkpoint or "", path, options.storage_options)
        self._log_level = options.log_level
        self._plan: WritePlan | None = None

    def __getstate__(self) -> dict[str, object]:
        # The model of the options is slow to import, and the tasks do not need it.
        return {**self.__dict__, "_options": None}

    def planned(self) -> HudiStreamWriter:
        """Return the writer for the tasks of one batch."""
        with worker_call(self._log_level):
            self._plan = self._new_plan()
        return self

    def _new_plan(self) -> WritePlan:
        """Return a plan for a batch, made anew from the options."""
        from ...operations.planning.plan import plan_write  # noqa: PLC0415

        return plan_write(self._request())

    def _request(self) -> WriteRequest:
        """Return the write request of a batch; refuses options that a stream, or its output mode, cannot have."""
        from ..source.spark_types import to_arrow  # noqa: PLC0415

        options = self._options_of_query
        options.refuse_one_write(self._path)
        if self._overwrite:
            options.refuse_other_than_complete(self._path)
        schema = to_arrow(self._schema)
        return options.to_write_request(self._path, schema, overwrite=self._overwrite, stream=True)

    @property
    def _options_of_query(self) -> HudiOptions:
        """The options, which the copies of a writer in tasks lack."""
        if self._options is None:
            raise PyHudiError("A task of a stream has no options.", "Report this as a bug.")
        return self._options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchMessage:
        """Write a task's rows of a batch, and return the message for the commit."""
        from ...operations.streams.batch import StreamBatch  # noqa: PLC0415
        from ...operations.write.micro_batch import run_batch_task  # noqa: PLC0415
        from ...table.files.names import WriteToken  # noqa: PLC0415

        context = TaskContext.get()
        query_id = None if context is None else context.getLocalProperty(QUERY_ID)
        batch_id = None if context is None else context.getLocalProperty(BATCH_ID)
        if context is None or self._plan is None or not query_id or not batch_id:
            raise PyHudiError(
                f"Spark does not say which batch of which streaming query a task writes to {self._path}.",
                "Write with HudiTable.stream, which knows both.",
            )
        run_id = context.getLocalProperty(RUN_ID) or ""
        batch = StreamBatch(query_id, int(batch_id), run_id, self._plan.settings.stream.identifier)
        token = WriteToken(context.partitionId(), context.stageId(), context.taskAttemptId())
        with worker_call(self._log_level):
            offsets = partial(self._checkpoint.offsets, batch.batch_id)
            return BatchMessage(run_batch_task(self._plan, batch, iterator, token, offsets))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:  # type: ignore[override]
        """Commit a batch; a batch that fails is passed over if the options and its error allow that.

        ``messages`` has the result of each task, None for a task that failed. Raises `PyHudiError` if a task left
        no result, or if the batch fails and is not passed over, upon which Spark ends the query.
        """
        from ...operations.streams.batch import may_be_passed_over  # noqa: PLC0415

        results = _results_in(messages)
        if len(results) < len(messages):
            raise PyHudiError(
                f"{len(messages) - len(results)} of {len(messages)} tasks of the batch {batch_id} to {self._path} left "
                "no message.",
                "Start the query again.",
            )
        with worker_call(self._log_level):
            try:
                self._commit(results or self._without_tasks(batch_id), batch_id)
            except PyHudiError as error:
                if not self._options_of_query.stream_ignores_failures or not may_be_passed_over(error):
                    raise
                self._pass_over(results, batch_id, error)

    def _commit(self, results: Sequence[BatchResult], batch_id: int) -> None:
        """Commit a batch, and forget the rows lost before if the batch made an instant, which notes their number."""
        from ...operations.write.micro_batch import commit_batch  # noqa: PLC0415

        query = self._path, results[0].batch.query_id
        offsets = self._checkpoint.offsets(batch_id)
        if commit_batch(results, _LOST.get(query, 0), offsets, self._request).instant:
            _LOST.pop(query, None)

    def _pass_over(self, results: Sequence[BatchResult], batch_id: int, error: PyHudiError) -> None:
        """Skip a failed batch for good, and count its lost rows, whose number the query's next commit notes.

        ``results`` are what the tasks of the batch wrote, which is deleted, and ``error`` is why the commit failed, for
        the log. A batch that turns out to be complete loses nothing.
        """
        from ...operations.write.micro_batch import abort_batch, is_complete  # noqa: PLC0415

        query = self._path, results[0].batch.query_id if results else ""
        try:
            abort_batch(results)
            if results and is_complete(results[0]):
                logger.warning("table %s: the batch %d is complete; its answer was lost", self._path, batch_id)
                # Its instant notes the rows lost before.
                _LOST.pop(query, None)
                return
        except PyHudiError:
            # The store may still be away. The next batch gives up its left-overs.
            logger.warning("table %s: left-overs of the batch %d stay", self._path, batch_id, exc_info=True)
        rows = sum(result.result.rows for result in results)
        _LOST[query] = _LOST.get(query, 0) + rows
        logger.warning(
            "table %s: passed over the batch %d, whose %d rows are lost: %s", self._path, batch_id, rows, error
        )

    def _without_tasks(self, batch_id: int) -> Sequence[BatchResult]:
        """Return the result of a batch for which Spark ran no task; in mode complete it empties the table."""
        from ...operations.streams.batch import StreamBatch  # noqa: PLC0415
        from ...operations.write.micro_batch import no_rows  # noqa: PLC0415

        plan = self._new_plan()
        # Without a name the batch is not remembered: emptying the table twice does no harm.
        batch = StreamBatch(self._checkpoint.query_id(), batch_id, "", plan.settings.stream.identifier)
        return [no_rows(plan, batch)]

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:  # type: ignore[override]
        """Undo a batch unless it is complete; Spark passes None for tasks that failed."""
        from ...operations.write.micro_batch import abort_batch, abort_numbered  # noqa: PLC0415
        from ...storage import open_storage  # noqa: PLC0415

        results = _results_in(messages)
        with worker_call(self._log_level):
            if results:
                abort_batch(results)
                return
            # Without a message, only the query and the number of the batch tell what to undo.
            query_id = self._checkpoint.query_id()
            if query_id:
                abort_numbered(open_storage(self._path, self._options_of_query.storage_options), query_id, batch_id)

    @property
    def _checkpoint(self) -> CheckpointFolder:
        """The folder in which Spark keeps how far the query came."""
        from .checkpoint_folder import CheckpointFolder  # noqa: PLC0415

        return CheckpointFolder(*self._checkpoint_arguments)


def _results_in(messages: Sequence[WriterCommitMessage | None]) -> list[BatchResult]:
    return [message.result for message in messages if isinstance(message, BatchMessage)]
