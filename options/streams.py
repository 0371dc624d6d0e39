"""Options of streaming queries."""

from __future__ import annotations

from pydantic import BaseModel

from ..operations.streams.batch import StreamSettings
from .types import Count, FieldsOf, Threshold, option, settings_of

STREAM = FieldsOf(StreamSettings)


class StreamOptions(BaseModel):
    """How a streaming query writes; the table keeps none of these options."""

    stream_identifier: str = option(
        STREAM.identifier,
        "Apache Hudi's name of the stream, by which a query continues where another engine's ended; queries into one "
        "table need different names.",
        "hoodie.datasource.write.streaming.checkpoint.identifier",
    )
    stream_retries: Threshold = option(
        STREAM.retries,
        "How often the commit of a batch that failed is repeated, with the rows that it has.",
        "hoodie.datasource.write.streaming.retry.count",
    )
    stream_retry_wait_ms: Count = option(
        STREAM.retry_wait_s.of(lambda ms: ms / 1000, default=2000),
        "Milliseconds before the first repetition; each further pause is twice as long.",
        "hoodie.datasource.write.streaming.retry.interval.ms",
    )
    stream_ignores_failures: bool = option(
        STREAM.ignores_failures,
        "Whether a stream passes over a batch whose commit failed, the repetitions included: its rows are lost. Bad "
        "rows fail the query all the same.",
        "hoodie.datasource.write.streaming.ignore.failed.batch",
    )
    stream_without_compaction: bool = option(
        False,
        "Whether a stream leaves all compactions to `run_services()` or another job.",
        "hoodie.datasource.write.streaming.disable.compaction",
    )
    stream_compacts: bool = option(
        True,
        "Whether a stream compacts between its batches, where hoodie.compact.inline lets writes compact; Apache Hudi "
        "does so in threads of the driver.",
        "hoodie.datasource.compaction.async.enable",
    )

    stream_upkeep_ms: Threshold = option(
        STREAM.upkeep_s.of(lambda ms: ms / 1000, default=500),
        "Milliseconds that the table services after each batch of a stream may take together: compactions are cut so "
        "small that they probably fit, and `run_services()` does the rest; 0 for no services after batches.",
        "hoodie.pyhudi.stream.upkeep.ms",
    )

    def stream_settings(self) -> StreamSettings:
        return settings_of(StreamSettings, self, compacts=self.stream_compacts and not self.stream_without_compaction)
