"""Streaming reads on Spark 4.2 and later, which passes the limits of a batch and the end of AvailableNow."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from ..source.workers import worker_call
from .source import HudiStreamReader


class AvailableNowReader(HudiStreamReader, SupportsTriggerAvailableNow):
    """Reads the batches of one query, each within its limits under any trigger."""

    def latestOffset(  # type: ignore[override]
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """Return where the next batch ends; ``start`` if there is nothing new."""
        from ...reader.streams.offsets import parse_offset  # noqa: PLC0415 (the process has to start soon)
        from ...reader.streams.terms import NO_LIMITS  # noqa: PLC0415

        with worker_call(self._options.log_level):
            begun = parse_offset(start, self._path)
            newest = self._stream.latest(begun, NO_LIMITS if isinstance(limit, ReadAllAvailable) else None)
            # Spark takes an offset that is spelled otherwise for new data.
            return start if newest == begun else newest.to_fields()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return a limit of Spark's own kinds for the limits of the options, of which Spark has no kind."""
        limits = self._stream.terms.limits
        if limits.bytes is not None:
            return ReadMaxBytes(limits.bytes)
        return ReadAllAvailable() if limits.commits is None else ReadMaxFiles(limits.commits)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the table's newest offset for Spark's reports; None before the first look at the table."""
        return self._stream.newest.to_fields() if self._stream.newest is not None else None

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of the query at the table's newest commit."""
        self._stream.prepare()
