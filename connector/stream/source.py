"""Streaming reads through Spark: a process of the query finds what each batch has, and tasks read it.

Spark starts that process with the query, keeps it, and calls `initialOffset`, `latestOffset` and `partitions` there. A
process for each batch makes another reader, which travels with the tasks and knows nothing of the first; so a task has
all that it needs from its partition.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ...errors import MissingColumnError, SchemaMismatchError
from ..source.workers import freeze_imports, worker_call

if TYPE_CHECKING:
    import pyarrow as pa

    from ...options.model import HudiOptions
    from ...reader.snapshot import Snapshot
    from ...reader.streams.table_stream import TableStream

logger = logging.getLogger("pyhudi")


class HudiStreamReader(DataSourceStreamReader):
    """Reads the batches of one query, on a Spark without read limits.

    ``schema`` has exactly the columns for Spark, which are fixed while the query runs. ``is_schema_given`` says whether
    the user gave them, instead of taking those of the table.
    """

    def __init__(self, path: str, schema: StructType, options: HudiOptions, *, is_schema_given: bool) -> None:
        self._path = path
        self._schema = schema
        self._is_schema_given = is_schema_given
        self._options = options
        self._stream_of_table: TableStream | None = None
        self._has_warned = False

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def initialOffset(self) -> dict[str, Any]:
        with worker_call(self._options.log_level):
            return self._stream.initial().to_fields()

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """Return where the next batch ends; warns once if limits would end a query with AvailableNow early."""
        from ...reader.streams.terms import NO_LIMITS  # noqa: PLC0415 (only the query's process looks for batches)

        with worker_call(self._options.log_level):
            if self._stream.terms.limits != NO_LIMITS and not self._has_warned:
                self._has_warned = True
                logger.warning(
                    "table %s: this Spark does not tell a source which trigger the query has, so a query with the "
                    "trigger AvailableNow and a limit ends after one batch; Spark 4.2 and later read all batches",
                    self._path,
                )
            return self._stream.latest().to_fields()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the splits of a batch, each with the reader that reads it in a task.

        ``start`` and ``end`` are the offsets at which the batch begins and ends, as `latestOffset` returns them.
        """
        from ...reader.scan import MergeTerms, RowReader  # noqa: PLC0415 (only the query's process plans)
        from ...reader.streams.offsets import parse_offset  # noqa: PLC0415

        with worker_call(self._options.log_level):
            start_offset, end_offset = parse_offset(start, self._path), parse_offset(end, self._path)
            scan = self._stream.plan(start_offset, end_offset, self._columns, self._options.split_size)
            # No write is between the offsets, so the batch has no rows.
            if scan is None:
                return []
            batch = scan.snapshot
            terms = MergeTerms(batch.config, self._options.merge_memory)
            reader = RowReader(batch.storage, scan.columns, batch.schema, (), batch.times, terms)
            return [InputPartition((reader, split)) for split in scan.splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        reader, split = partition.value
        yield from reader.read(split)
        freeze_imports()

    @property
    def _stream(self) -> TableStream:
        """The table's stream, made when it is first needed."""
        if self._stream_of_table is None:
            from ...reader.streams.table_stream import TableStream  # noqa: PLC0415 (the process has to start soon)

            options = self._options
            terms = replace(options.to_stream(), file_search=options.file_search)
            self._stream_of_table = TableStream(self._path, dict(options.storage_options), terms)
        return self._stream_of_table

    def _columns(self, batch: Snapshot) -> pa.Schema:
        """Return the query's columns; raises MissingColumnError or SchemaMismatchError if the table lacks them."""
        from ..source.spark_types import requested_schema  # noqa: PLC0415

        if self._is_schema_given:
            # The table may never have had them, and another start of the query changes nothing.
            return requested_schema(batch.schema, self._schema, self._path)
        todo = "Start the query again, so that it takes the table's columns anew."
        what = f"The columns of the stream of {self._path} are fixed while the query runs, and the table has others now"
        try:
            return requested_schema(batch.schema, self._schema, self._path)
        except MissingColumnError as error:
            raise MissingColumnError(f"{what}: {error.what}", todo) from error
        except SchemaMismatchError as error:
            raise SchemaMismatchError(what, todo, error.differences) from error
