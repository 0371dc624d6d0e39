"""One micro-batch of a streaming query, and how a stream meets failures."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ConcurrentWriteError, StorageError
from ..write_ids import STREAM_ID

# Apache Hudi's identifier of a stream without an identifier of its own.
DEFAULT_IDENTIFIER = "default_single_writer"
# The key under which a commit notes how many rows its stream skipped before.
LOST = "pyhudi.stream.rows.lost"
# The key under which a commit keeps `StreamBatch.offsets`.
OFFSETS = "pyhudi.stream.offsets"


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """A micro-batch, which becomes one instant of its table.

    Attributes:
        query_id: Spark's id of the query, which its restarts keep.
        run_id: Spark's id of this run of the query; empty if it is unknown.
        identifier: Apache Hudi's name of the stream, under which a table keeps its greatest batch id.
        lost: How many rows the stream skipped since the last batch that it completed.
        offsets: A digest of the time and the offsets in its sources at which Spark ended the batch; empty if unknown.
        replaces_table: Whether the stream has the output mode complete, so that the batch is the whole table.
    """

    query_id: str
    batch_id: int
    run_id: str = ""
    identifier: str = DEFAULT_IDENTIFIER
    lost: int = 0
    offsets: str = ""
    replaces_table: bool = False

    @property
    def write_id(self) -> str:
        return f"{STREAM_ID}{self.query_id}:{self.batch_id}"


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How a stream writes its batches.

    Attributes:
        retry_wait_s: Seconds before the first repetition; each further pause is twice as long.
        ignores_failures: Whether the stream skips a batch whose commit failed for good.
        upkeep_s: How many seconds all table services after a batch may take together; with 0 none run.
        replaces_table: Whether the stream has the output mode complete, so that a batch without rows empties the table.
    """

    identifier: str = DEFAULT_IDENTIFIER
    retries: int = 3
    retry_wait_s: float = 2.0
    ignores_failures: bool = False
    compacts: bool = True
    upkeep_s: float = 0.5
    replaces_table: bool = False

    def wait_s(self, number: int) -> float:
        """Return the seconds before a repetition; the first repetition has the number 0."""
        return self.retry_wait_s * (1 << number)


def may_be_passed_over(error: Exception) -> bool:
    """Return whether a stream may skip a batch after an error: if the store or another engine kept it out.

    Bad rows, options and damage would end each later batch, too, so that the query would lose all rows. A batch that
    met writes of pyhudi for too long is written when the query is started again.
    """
    return isinstance(error, (StorageError, ConcurrentWriteError))
