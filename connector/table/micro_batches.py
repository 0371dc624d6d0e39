"""The function that Spark calls with each micro-batch of `HudiTable.stream`.

On Spark Connect a Python process of the server unpickles and calls it. So it holds no session, and imports slow modules
with the first batch.
"""

from __future__ import annotations

import logging
import re
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...errors import DataError, OptionError, PyHudiError, TableError
from ...operations.result import CommitResult
from ...operations.streams.batch import StreamBatch, StreamSettings, may_be_passed_over
from ...operations.streams.checkpoints import find_batch, refuse_other_offsets
from ...operations.transaction.decide import settle
from ...options.names import OPTIONS
from ...options.sources import WRITING, resolve_options
from ...storage import Storage, open_storage
from ...table.seen_table import SeenTable
from ...table.table import open_table
from ..source.own_errors import own_errors
from ..source.paths import QUERY_ID, RUN_ID
from ..stream.checkpoint_folder import CheckpointFolder
from .made_from import MadeFrom
from .writing import write_placed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from ...operations.streams.batch import StreamBatch

logger = logging.getLogger("pyhudi")

# How Spark tells by the text of a Python error that a query was stopped (``StreamExecution.PROXY_ERROR``).
_CALLING = "py4j.protocol.Py4JJavaError: An error occurred while calling"
_INTERRUPTION = "java.lang.InterruptedException"
# Spark Connect's errors of a batch whose query is being stopped; the process of the batch knows nothing of the query.
_STOPPED = re.compile("InterruptedException|InterruptedIOException|ClosedByInterrupt|CANCELLED|[Cc]ancelled")


class QueryStoppingError(Exception):
    """Tells Spark in few words that a batch ended because its query is being stopped.

    Spark searches the error's text with a pattern that needs more stack for each letter. On a text as long as Java's
    stack trace, the search overflows the stack of the query's thread.
    """


def write_batch(
    df: DataFrame,
    batch: StreamBatch,
    path: str,
    texts: Mapping[str, str],
    lost: int,
    checkpoint: str = "",
    stopping: Callable[[], bool] = lambda: False,
) -> int:
    """Write the rows ``df`` of a micro-batch unless the table has the batch.

    Returns how many rows were skipped so far that no commit states yet; ``lost`` is their number before this batch. A
    batch that still fails after its retries is skipped if the options and the error allow that. ``texts`` are the
    resolved options, ``checkpoint`` is the query's folder, and ``stopping`` says whether the query is being stopped.
    """
    resolved = resolve_options(
        {**texts, OPTIONS["write_id"].key: batch.write_id}, path, WRITING, session=df.sparkSession
    )
    options = resolved.options
    stream, storage = options.stream_settings(), open_storage(path, options.storage_options)
    offsets = CheckpointFolder(checkpoint, path, options.storage_options).offsets(batch.batch_id)
    batch = replace(batch, identifier=stream.identifier, lost=lost, offsets=offsets)
    seen = SeenTable.now(open_table(storage))
    instant = find_batch(seen, batch)
    if instant is not None:
        # A batch of that number with other offsets has other rows.
        refuse_other_offsets(seen, batch, instant)
        logger.info("table %s: has the batch %d already, as %s", path, batch.batch_id, instant)
        return lost
    attempts = _Attempts(stream, path, stopping)
    try:
        commit_result = attempts.repeat(
            lambda: write_placed(df, path, storage, resolved, made_from=MadeFrom(batch=batch))
        )
    except Exception as error:
        if not (stream.ignores_failures and attempts.may_be_repeated(error) and may_be_passed_over(error)):
            raise
        if not _is_complete(storage, batch):
            return lost + _count_lost_rows(df, batch, path, error)
        logger.warning("table %s: the batch %d is complete; its answer was lost", path, batch.batch_id)
        return 0
    # The commit states the number. A batch that changed nothing may make no commit.
    return 0 if commit_result.instant else lost


@contextmanager
def tell_stopping(batch_id: int, path: str, stopping: Callable[[], bool]) -> Iterator[None]:
    """Raise `QueryStoppingError` in the place of an error of Spark's, once ``stopping`` says that the query is stopped.

    Spark cancels the batch's job and interrupts whatever else the batch does. Not every part of Spark reports that it
    was interrupted: an interrupted look-up of a data source, for one, ends in an error that there is none.
    """
    try:
        yield
    except Exception as error:
        if _CALLING not in "".join(traceback.format_exception(error)) or not stopping():
            raise
        logger.debug("table %s: a stop of the query ended the batch %d", path, batch_id, exc_info=True)
        message = f"{_CALLING} Spark for the batch {batch_id} of the table {path}: {_INTERRUPTION}"
        raise QueryStoppingError(message) from None


@dataclass(frozen=True, slots=True)
class _Attempts:
    """The attempts to write one batch."""

    stream: StreamSettings
    path: str
    stopping: Callable[[], bool]

    def repeat(self, write: Callable[[], CommitResult]) -> CommitResult:
        """Return the result of the first attempt that does not fail; pauses double, and the last attempt may raise."""
        for number in range(self.stream.retries):
            try:
                return write()
            except Exception as error:
                if not self.may_be_repeated(error):
                    raise
                pause = self.stream.wait_s(number)
                logger.warning("table %s: a batch failed, and is repeated in %.1f s: %s", self.path, pause, error)
                time.sleep(pause)
        return write()

    def may_be_repeated(self, error: Exception) -> bool:
        """Return whether an attempt might succeed later: not with bad rows or options, nor if the query stops."""
        # On Spark Connect, only the text of an error tells this process that the query stops.
        is_hopeless = isinstance(error, (DataError, OptionError, TableError))
        return not is_hopeless and not self.stopping() and not _STOPPED.search(str(error))


def _is_complete(storage: Storage, batch: StreamBatch) -> bool:
    """Return whether the table has a batch whose write failed; False if the store fails again."""
    try:
        table = open_table(storage)
        # If the completion of the batch was decided before the write failed, this completes it.
        return find_batch(SeenTable(table, settle(table)), batch) is not None
    except PyHudiError:
        logger.info(
            "table %s: nothing tells whether the batch %d is complete", storage.path, batch.batch_id, exc_info=True
        )
        return False


def _count_lost_rows(df: DataFrame, batch: StreamBatch, path: str, error: Exception) -> int:
    """Return the number of rows of a batch that was skipped because of ``error``, and warn of their loss.

    The number is 0 if Spark cannot count the rows.
    """
    try:
        with own_errors():
            rows = df.count()
    except Exception:
        logger.info("table %s: Spark cannot count the batch %d", path, batch.batch_id, exc_info=True)
        rows = 0
    logger.warning(
        "table %s: passed over the batch %d, whose rows are lost, %s: %s",
        path,
        batch.batch_id,
        f"{rows:,} of them" if rows else "of a number that is unknown",
        error,
    )
    return rows


@dataclass
class MicroBatches:
    """Writes the micro-batches of one run of a query to a table.

    Attributes:
        texts: The resolved options of the stream.
        checkpoint: Spark's folder of the query, whose metadata names it.
        run_id: The id of this run of the query, if Spark tells none.
        lost: How many rows were skipped since the last completed batch.
        query: The query, once Spark has started it; None in the copy of this that a server of Spark Connect has.
        replaces_table: Whether the query has the output mode complete.
    """

    path: str
    texts: Mapping[str, str]
    checkpoint: str
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    lost: int = 0
    query: StreamingQuery | None = None
    replaces_table: bool = False
    _query_id: str = ""

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Write a batch, as Spark asks for it, and count the rows that were skipped."""
        with tell_stopping(batch_id, self.path, self.is_stopping):
            batch = self.batch(df, batch_id)
            self.lost = write_batch(
                df, batch, self.path, self.texts, self.lost, self.checkpoint, stopping=self.is_stopping
            )

    def is_stopping(self) -> bool:
        """Return whether the query is known to be stopping."""
        return self.query is not None and not self.query.isActive

    def batch(self, df: DataFrame, batch_id: int) -> StreamBatch:
        """Return the batch with the names by which a replay finds it."""
        from ...operations.streams.batch import StreamBatch  # noqa: PLC0415

        spark_context = getattr(df.sparkSession, "_sc", None)
        if spark_context is not None:
            query_id, run_id = spark_context.getLocalProperty(QUERY_ID), spark_context.getLocalProperty(RUN_ID)
            if query_id:
                return StreamBatch(query_id, batch_id, run_id or self.run_id, replaces_table=self.replaces_table)
        # A server of Spark Connect tells no id, but the checkpoint folder has it.
        if not self._query_id:
            self._query_id = _query_id_in(df, self.checkpoint)
        return StreamBatch(self._query_id, batch_id, self.run_id, replaces_table=self.replaces_table)


def _query_id_in(df: DataFrame, checkpoint: str) -> str:
    """Return the id of the query from its checkpoint folder, which Spark reads in any store."""
    import json  # noqa: PLC0415

    with own_errors():
        lines = df.sparkSession.read.text(f"{checkpoint.rstrip('/')}/metadata").collect()
    return str(json.loads("".join(row[0] for row in lines))["id"])
