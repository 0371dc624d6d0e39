"""All options of pyhudi in one model, and the write request that they make."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pydantic import ConfigDict, Field

from ..errors import OptionConflictError
from ..operations.planning.request import WriteRequest
from ..operations.service_settings import Upkeep
from ..operations.streams.batch import StreamBatch, StreamSettings
from ..reader.query import FileSearch
from .catalogue import Scope
from .lookup import LookupOptions
from .metrics import MetricsOptions
from .read import ReadOptions
from .table import TableOptions
from .types import Count, FieldsOf, OptionPart, Threshold, option, settings_of
from .upkeep import UpkeepOptions
from .write import WRITE, WriteOptions

STREAM = FieldsOf(StreamSettings)


class CommonOptions(OptionPart):
    """What reads and writes have in common."""

    path: str | None = option(None, "Where the table is.", "path", "hoodie.base.path")
    defaults: bool = option(
        True, "Take options that are not given from hudi-defaults.conf.", "hoodie.pyhudi.defaults.enabled"
    )
    metadata_enable: bool | None = option(
        WRITE.metadata_enable,
        "`true`: a write builds Apache Hudi's [metadata table](metadata-table.md#asking-for-one) if the table has "
        "none. `false`: a read works [without it](reading.md#the-metadata-table), and a write is refused if the "
        "table has one, because only `drop_index` drops it.",
        "hoodie.metadata.enable",
        otherwise="what the table has",
    )

    # Filled from a family of keys, not from a key of its own; secrets are among them.
    storage_options: dict[str, str] = Field(default_factory=dict, repr=False)


class StreamOptions(OptionPart):
    """How a streaming query writes; the table keeps none of these options."""

    stream_identifier: str = option(
        STREAM.identifier,
        "Apache Hudi's name of the stream. A query continues after the last batch of this name, even if another "
        "engine wrote it. Queries into one table need different names.",
        "hoodie.datasource.write.streaming.checkpoint.identifier",
    )
    stream_retries: Threshold = option(
        STREAM.retries,
        "How often the commit of a failed batch is repeated, with the same rows.",
        "hoodie.datasource.write.streaming.retry.count",
    )
    stream_retry_wait_ms: Count = option(
        STREAM.retry_wait_s.of(lambda ms: ms / 1000, default=2000),
        "Milliseconds before the first repetition. Each further pause is twice as long.",
        "hoodie.datasource.write.streaming.retry.interval.ms",
    )
    stream_ignores_failures: bool = option(
        STREAM.ignores_failures,
        "Skip a batch whose commit still fails after all repetitions because of the store or another engine. Its "
        "rows are lost. Any other failure ends the query.",
        "hoodie.datasource.write.streaming.ignore.failed.batch",
    )
    stream_without_compaction: bool = option(
        False,
        "Leave all compactions to `run_services()` or another job.",
        "hoodie.datasource.write.streaming.disable.compaction",
    )
    stream_compacts: bool = option(
        True,
        "Compact between batches, if hoodie.compact.inline lets writes compact. Apache Hudi does this in threads of "
        "the driver.",
        "hoodie.datasource.compaction.async.enable",
    )

    stream_upkeep_ms: Threshold = option(
        STREAM.upkeep_s.of(lambda ms: ms / 1000, default=500),
        "Milliseconds that the table services after a batch may take together; 0 turns them off. Compactions are cut "
        "to sizes that probably fit, and `run_services()` does the rest.",
        "hoodie.pyhudi.stream.upkeep.ms",
    )

    def stream_settings(self) -> StreamSettings:
        """Return how a streaming query writes; it compacts only if neither of two options forbids it."""
        return settings_of(StreamSettings, self, compacts=self.stream_compacts and not self.stream_without_compaction)


PARTS: dict[Scope, type[OptionPart]] = {
    Scope.ANY: CommonOptions,
    Scope.TABLE: TableOptions,
    Scope.WRITE: WriteOptions,
    Scope.LOOKUP: LookupOptions,
    Scope.UPKEEP: UpkeepOptions,
    Scope.STREAM: StreamOptions,
    Scope.METRICS: MetricsOptions,
    Scope.READ: ReadOptions,
}


class HudiOptions(
    ReadOptions,
    MetricsOptions,
    StreamOptions,
    UpkeepOptions,
    LookupOptions,
    WriteOptions,
    TableOptions,
    CommonOptions,
):
    """The typed options of one read or write; None if an option is not set."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True, hide_input_in_errors=True)

    @property
    def file_search(self) -> FileSearch:
        return FileSearch(asks_metadata=self.metadata_enable is not False, skips_files=self.skips_files)

    def upkeep_after_write(self) -> Upkeep:
        """Return what follows a write: how the table is kept small, and the indexes that the options ask for."""
        upkeep = self.upkeep()
        return replace(upkeep, indexes=self.indexes_to_build()) if self.metadata_enable else upkeep

    def refuse_one_write(self, path: str) -> None:
        """Raise OptionConflictError if the stream to a table got options about one write."""
        for key, value in {
            "hoodie.pyhudi.write.id": self.write_id,
            "hoodie.pyhudi.write.based.on": self.based_on,
        }.items():
            if value:
                raise OptionConflictError(
                    f"The option {key}={value!r} is about one write, and the stream to the table {path} makes many.",
                    "Leave it out: a query writes each of its batches once.",
                )

    def refuse_other_than_complete(self, path: str) -> None:
        """Raise OptionConflictError if each batch of a stream is to replace a table, and the operation does not."""
        if self.operation == "insert_overwrite":
            raise OptionConflictError(
                f"The stream to the table {path} has the output mode complete, which replaces the table with each "
                "batch, and the operation 'insert_overwrite', which leaves partitions without new rows as they are.",
                "Leave the operation out.",
            )

    def to_write_request(
        self, path: str, schema: pa.Schema, *, overwrite: bool, batch: StreamBatch | None = None, stream: bool = False
    ) -> WriteRequest:
        """Return what these options ask of a write; ``overwrite`` is True for Spark's mode ``overwrite``.

        ``path`` is the table's, and ``schema`` has the incoming columns.
        ``batch`` is the micro-batch that is written, if it is known already; None for a write of its own. ``stream`` is
        True of a micro-batch that its tasks alone know; with ``overwrite`` it replaces the whole table. A micro-batch
        without rows leaves no instant unless it replaces the table, or the options say so. Raises OptionConflictError
        if options of a query are set.
        """
        self.refuse_query()
        write = replace(
            self.write_settings(),
            upkeep=self.upkeep_after_write(),
            stream=self.stream_settings(),
            metrics=self.metrics_settings(),
        )
        if stream or batch is not None:
            # By default a write without rows makes an instant, and a stream would make one for each empty batch.
            leaves_empty = "allow_empty_commit" in self.model_fields_set and self.allow_empty_commit
            tasks = replace(write.tasks, hand_over=stream)
            commit = replace(write.commit, allow_empty_commit=leaves_empty)
            replaces_table = overwrite if batch is None else batch.replaces_table
            settings = replace(write.stream, replaces_table=replaces_table)
            write = replace(write, batch=batch, tasks=tasks, commit=commit, stream=settings)
        if stream and overwrite:
            # The output mode complete replaces all partitions, those without new rows as well.
            write = replace(write, replacement=replace(write.replacement, overwrite_mode=None))
        return WriteRequest(
            path=path,
            operation=self.operation,
            overwrite=overwrite,
            schema=schema,
            table=self.table_settings(),
            write=write,
            write_id=self.write_id,
            application=self.application,
            storage_options=dict(self.storage_options),
        )
