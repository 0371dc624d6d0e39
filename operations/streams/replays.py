"""Whether a batch of the table is the batch that a stream repeats, or another batch with the same number.

Spark repeats a batch if it has noted its offsets, but not its end. If the checkpoint folder is a copy from right before
that batch, it lacks the offsets, and Spark makes another batch with that number, up to the current end of its sources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...errors import OptionConflictError, StorageError
from ...timeline.metadata.codec import InstantBody
from .batch import OFFSETS, StreamBatch
from .checkpoints import IDENTIFIER

if TYPE_CHECKING:
    from ...table.seen_table import SeenTable


def refuse_other_offsets(
    seen: SeenTable, batch: StreamBatch, instant_time: str, offsets: Callable[[], str] | None = None
) -> None:
    """Raise `OptionConflictError` if an instant has another batch with that number.

    If an older release made the commit, it lacks the offsets, and counts as the same batch.
    """
    mine = batch.offsets or (offsets() if offsets is not None else "")
    noted = _offsets_of(seen, instant_time) if mine else ""
    if noted and noted != mine:
        raise OptionConflictError(
            f"The streaming query {batch.query_id} writes its batch {batch.batch_id} to the table {seen.table.path}, "
            f"which has another batch of that number as {instant_time}: the checkpoint folder is a copy from before "
            "that batch.",
            "Continue from the newest folder; without it, start from a new folder at the end of that batch, and give "
            f"{IDENTIFIER} another name.",
        )


def _offsets_of(seen: SeenTable, time: str) -> str:
    table, timeline = seen.table, seen.timeline
    write = timeline.write_at(time)
    try:
        if write is not None:
            return timeline.files.read_commit(write).extra_metadata.get(OFFSETS, "")
    except StorageError as error:
        # It was archived since the timeline was listed.
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
    archived = table.archive.write_at(time)
    for instant, body in table.archive.bodies([] if archived is None else [archived]).items():
        where = f"{time} in the archive of {table.path}"
        return table.instants.decode_commit(instant, InstantBody(body, where)).extra_metadata.get(OFFSETS, "")
    return ""
