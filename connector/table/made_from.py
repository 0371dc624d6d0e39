"""What the rows of a write were made from, as far as the commit of the write needs it."""

from __future__ import annotations

from dataclasses import dataclass

from ...operations.read_rows import ReadRows
from ...operations.result import NO_PAST, PastAttempts, RowCounts
from ...operations.streams.batch import StreamBatch


@dataclass(frozen=True, slots=True)
class MadeFrom:
    """What rows were made from.

    Attributes:
        moment: The snapshot of the table, as the option ``based_on`` takes it; empty for rows from elsewhere.
        read: Which rows of the snapshot decided what is written; empty if later writes to them do not matter.
        of_stored: Whether each row was made of one stored row, and further stored rows may have its key.
        counted: How many rows they insert, update and delete; None if the caller did not count.
        past: The attempts at this write before these rows were made.
        deletes_read: Whether deletes among the rows have the ordering values of the rows of the snapshot.
        batch: The micro-batch that the rows are; None for rows of no stream.
    """

    moment: str = ""
    read: tuple[ReadRows, ...] = ()
    of_stored: bool = False
    counted: RowCounts | None = None
    past: PastAttempts = NO_PAST
    deletes_read: bool = False
    batch: StreamBatch | None = None


NOTHING_READ = MadeFrom()
