"""The part of `HudiTable` that writes streams: a query whose micro-batches are placed as its other writes are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import InvalidOptionError, OptionConflictError
from ...methods.upkeep import UpkeepMethods
from ...operations.planning.target import find_target
from ...options.names import OPTIONS
from ...options.sources import DEFAULTS_ENABLED, WRITING
from ...table.inferred.index import is_unnoted
from ...table.table import open_table
from ..source.own_errors import own_errors
from ..source.spark_types import to_arrow
from .base import TableBase
from .micro_batches import MicroBatches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_MODES = ("append", "update", "complete")


class TableStreams(TableBase, UpkeepMethods["DataFrame"]):
    """The method of `HudiTable` that starts streaming queries, beside those that keep their table small."""

    def stream(
        self,
        df: DataFrame,
        *,
        checkpoint: str,
        output_mode: str = "append",
        query_name: str | None = None,
        processingTime: str | None = None,  # noqa: N803 (Spark's names)
        availableNow: bool | None = None,  # noqa: N803
        once: bool | None = None,
        **options: Any,
    ) -> StreamingQuery:
        """Start a query that writes each micro-batch of streaming rows as one instant, exactly once.

        Executors merge the rows if that pays, as for `upsert`; table services follow a batch in the process that
        calls this method, on Spark Connect in one of the server. A batch that met another writer is written again.

        Args:
            df: Streaming rows with the table's columns.
            checkpoint: The folder in which Spark keeps how far the query came. It names the query: its batches are
                those of one stream, over all restarts.
            output_mode: ``append`` and ``update`` write the rows of each batch as `upsert` does, or by the option
                ``operation``; ``complete`` replaces the table with each batch.
            query_name: The name of the query in Spark's UI.
            processingTime: The time between two batches, such as ``1 second``, as Spark's ``trigger`` takes it.
            availableNow: Whether the query ends once it has written all that is available.
            once: Whether it ends after one batch.
            options: Options of the writes; pass keys with dots as ``**{"hoodie.…": value}``.

        Returns:
            Spark's query, which is running.

        Raises:
            InvalidOptionError: ``df`` is no streaming DataFrame, or the output mode is unknown.
            OptionConflictError: An option is about one write, or an operation is given for output mode ``complete``.
            PyHudiError: The options or the table do not allow the writes.

        Examples:
            >>> query = table.stream(rows, checkpoint="/lake/checkpoints/trips", availableNow=True)  # doctest: +SKIP
            >>> query.awaitTermination()  # doctest: +SKIP
        """
        if not getattr(df, "isStreaming", False):
            raise InvalidOptionError(
                f"stream() of the table {self._path} got rows that are no stream.",
                "Give a DataFrame of spark.readStream; upsert() writes other rows.",
            )
        if output_mode not in _MODES:
            raise InvalidOptionError(
                f"stream() of the table {self._path} got output_mode={output_mode!r}.", f"Choose {' or '.join(_MODES)}."
            )
        resolved = self._resolve(options, WRITING, warn=True)
        self._check_options(resolved.options, output_mode)
        if is_unnoted(open_table(self._storage).config) and output_mode != "complete":
            request = resolved.options.to_write_request(self._path, to_arrow(df.schema), overwrite=False, stream=True)
            # The check of the options raises here, before the query starts.
            find_target(request, self._storage, creates=False)
        replaces_table = output_mode == "complete"
        operation = {OPTIONS["operation"].key: "insert_overwrite_table"} if replaces_table else {}
        texts = {**resolved.texts, **operation, DEFAULTS_ENABLED: "false"}
        task = MicroBatches(self._path, texts, str(checkpoint), replaces_table=replaces_table)
        writer = df.writeStream.foreachBatch(task).outputMode(output_mode).option("checkpointLocation", checkpoint)
        triggers = {"processingTime": processingTime, "availableNow": availableNow, "once": once}
        trigger: dict[str, Any] = {name: value for name, value in triggers.items() if value}
        with own_errors():
            writer = writer.trigger(**trigger) if trigger else writer
            task.query = (writer.queryName(query_name) if query_name else writer).start()
        return task.query

    def _check_options(self, options: Any, output_mode: str) -> None:
        """Refuse options of a single write, and an operation that the output mode complete replaces."""
        options.refuse_one_write(self._path)
        if output_mode == "complete" and options.operation not in {None, "insert_overwrite_table"}:
            raise OptionConflictError(
                f"The stream to the table {self._path} has the output mode complete, which replaces the table with "
                f"each batch, and the operation {options.operation!r}.",
                "Give either.",
            )
