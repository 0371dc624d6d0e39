"""What the rows of a write were made from: what counts of it when the write commits."""

from __future__ import annotations

from dataclasses import dataclass

from ...operations.read_rows import ReadRows
from ...operations.result import NO_PAST, PastAttempts, RowCounts
from ...operations.streams.batch import StreamBatch


@dataclass(frozen=True, slots=True)
class MadeFrom:
    """What rows were made from.

    Attributes:
        moment: The snapshot of the table, as the option ``based_on`` takes it; empty if they were not made from it.
        read: The rows of the snapshot that decided which rows these are, if that counts.
        of_stored: Whether they were made of stored rows, one of each, and further stored rows may have their keys.
        counted: How many rows they insert, update and delete; None if the caller did not count.
        past: What was done for the write before they were made.
        deletes_read: Whether deletes among the rows have the ordering values of the rows of the snapshot.
        batch: The micro-batch that they are; None if they are not of a stream.
    """

    moment: str = ""
    read: tuple[ReadRows, ...] = ()
    of_stored: bool = False
    counted: RowCounts | None = None
    past: PastAttempts = NO_PAST
    deletes_read: bool = False
    batch: StreamBatch | None = None


NOTHING_READ = MadeFrom()
