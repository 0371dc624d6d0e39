"""The function that Spark calls with each micro-batch of `HudiTable.stream`.

On Spark Connect a Python process of the server unpickles and calls it. So it holds no session, and imports slow modules
with the first batch.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..source.paths import QUERY_ID, RUN_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from ...operations.streams.batch import StreamBatch


@dataclass
class MicroBatches:
    """Writes the micro-batches of one run of a query to a table.

    Attributes:
        texts: The resolved options of the stream.
        checkpoint: Spark's folder of the query, whose metadata names it.
        run_id: The id of this run of the query, if Spark tells none.
        lost: How many rows were skipped since the last completed batch.
        query: The query, once Spark has started it; None in the copy of this that a server of Spark Connect has.
    """

    path: str
    texts: Mapping[str, str]
    checkpoint: str
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    lost: int = 0
    query: StreamingQuery | None = None
    _query_id: str = ""

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        from .batch_writes import tell_stopping, write_batch  # noqa: PLC0415

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

        context = getattr(df.sparkSession, "_sc", None)
        if context is not None:
            query_id, run_id = context.getLocalProperty(QUERY_ID), context.getLocalProperty(RUN_ID)
            if query_id:
                return StreamBatch(query_id, batch_id, run_id or self.run_id)
        if not self._query_id:
            self._query_id = _query_id_in(df, self.checkpoint)
        return StreamBatch(self._query_id, batch_id, self.run_id)


def _query_id_in(df: DataFrame, checkpoint: str) -> str:
    """Return the id of the query from its checkpoint folder, which Spark reads in any store."""
    import json  # noqa: PLC0415

    lines = df.sparkSession.read.text(f"{checkpoint.rstrip('/')}/metadata").collect()
    return str(json.loads("".join(row[0] for row in lines))["id"])
