"""Writes through Spark: one ``df.write`` is one instant of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ...errors import PyHudiError
from .paths import BATCH, COUNTED, DELETES_READ, LOOKED_UP, OF_STORED, PAST, READ, WRITE_KEY
from .workers import worker_call

if TYPE_CHECKING:
    import pyarrow as pa

    from ...operations.planning.plan import WritePlan
    from ...operations.streams.batch import StreamBatch
    from ...operations.write.task import TaskResult
    from ...options.model import HudiOptions

# Spark plans, writes and commits in separate processes that have not imported pyhudi. Each method runs in its own
# process and imports only what it needs.


@dataclass(frozen=True)
class HudiMessage(WriterCommitMessage):
    result: TaskResult


class HudiWriter(DataSourceArrowWriter):
    """Executes a planned write in Spark's tasks and on its driver; every task gets a copy of the small plan."""

    def __init__(self, plan: WritePlan, log_level: str = "warning") -> None:
        self._plan = plan
        self._log_level = log_level

    @classmethod
    def planned(
        cls,
        path: str,
        options: HudiOptions,
        schema: StructType,
        *,
        overwrite: bool,
        spelled: Mapping[str, str | None] = MappingProxyType({}),
    ) -> HudiWriter:
        """Return the writer of a new plan for rows of ``schema``; ``overwrite`` says that this is the save mode.

        ``spelled`` has, by option, what `HudiTable` tells about the rows; None if it says nothing of an option.
        """
        from ...operations.planning.micro_batch import plan_batch  # noqa: PLC0415
        from ...timeline.writers.write_notes import is_key  # noqa: PLC0415
        from .spark_types import to_arrow  # noqa: PLC0415

        with worker_call(options.log_level):
            carried = {option: text for option, text in spelled.items() if text}
            batch = _batch_in(carried.pop(BATCH, None))
            request = options.to_write_request(path, to_arrow(schema), overwrite=overwrite, batch=batch)
            key = carried.pop(WRITE_KEY, "")
            if key and not is_key(key):
                from .carried_options import not_ours  # noqa: PLC0415

                raise not_ours(WRITE_KEY, key)
            request = replace(request, key=key)
            # The other options are those of `HudiTable` about its rows; a write by ``df.write`` has none.
            if carried:
                from ...index.base import LookupFigures  # noqa: PLC0415
                from ...operations.result import NO_PAST, PastAttempts, RowCounts  # noqa: PLC0415
                from .carried_options import parse_carried, parse_marked, parse_read  # noqa: PLC0415

                looked_up, counted, read = spelled.get(LOOKED_UP), spelled.get(COUNTED), spelled.get(READ)
                past, deletes_read, of_stored = spelled.get(PAST), spelled.get(DELETES_READ), spelled.get(OF_STORED)
                origin = replace(
                    request.write.origin,
                    looked_up=None if looked_up is None else parse_carried(LookupFigures, LOOKED_UP, looked_up),
                    counted=None if counted is None else parse_carried(RowCounts, COUNTED, counted),
                    read=() if read is None else parse_read(read),
                    deletes_read=deletes_read is not None and parse_marked(DELETES_READ, deletes_read),
                    of_stored=of_stored is not None and parse_marked(OF_STORED, of_stored),
                )
                attempts = NO_PAST if past is None else parse_carried(PastAttempts, PAST, past)
                request = replace(request, write=replace(request.write, origin=origin, past=attempts))
            plan = plan_batch(request)
        return cls(plan, options.log_level)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> HudiMessage:
        """Write a task's rows, and return the message for the commit."""
        from ...operations.write.task import run_task  # noqa: PLC0415
        from ...table.files.names import WriteToken  # noqa: PLC0415

        context = TaskContext.get()
        if context is None:
            raise PyHudiError("A task of a write runs outside Spark.", "Call operations.write.run_task instead.")
        token = WriteToken(context.partitionId(), context.stageId(), context.taskAttemptId())
        with worker_call(self._log_level):
            return HudiMessage(run_task(self._plan, iterator, token))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the write; fails if a task left no message."""
        from ...operations.write.commit import commit_write  # noqa: PLC0415

        results = [message.result for message in messages if isinstance(message, HudiMessage)]
        if len(results) < len(messages):
            raise PyHudiError(
                f"{len(messages) - len(results)} of {len(messages)} tasks of the write to {self._plan.path} left no "
                "message.",
                "Run the write again.",
            )
        with worker_call(self._log_level):
            commit_write(self._plan, results)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Undo the work of the tasks; Spark passes None for tasks that failed."""
        from ...operations.write.instant import abort_write  # noqa: PLC0415

        with worker_call(self._log_level):
            abort_write(self._plan)


def _batch_in(text: str | None) -> StreamBatch | None:
    """Return the micro-batch in an option's text; None if the rows are no batch of `HudiTable.stream`."""
    if text is None:
        return None
    from ...operations.streams.batch import StreamBatch  # noqa: PLC0415
    from .carried_options import parse_carried  # noqa: PLC0415

    return parse_carried(StreamBatch, BATCH, text)
