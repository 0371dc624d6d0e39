"""How many bytes a row takes in a base file, estimated from earlier commits."""

from __future__ import annotations

import logging

from ..errors import CorruptInstantError, StorageError
from ..storage.parallel import for_each
from ..table.files.names import PARQUET
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from .settings import FileSizes

logger = logging.getLogger(__name__)

_NEWEST = 5
_CLUSTERING = "CLUSTER"


def learned_record_bytes(timeline: Timeline, sizes: FileSizes) -> float:
    """Return how many bytes a row of a table takes in a base file, above 0.

    The newest large commits decide: in small files footers outweigh rows, and a clustering's sorted rows take less.
    """
    newest = timeline.writes[: -_NEWEST - 1 : -1]
    bytes_and_rows = for_each(timeline.files.storage, lambda instant: _bytes_and_rows(timeline, instant), newest)
    much = [
        (written, rows) for written, rows in bytes_and_rows if rows and written > sizes.telling * max(sizes.small, 0)
    ]
    rows = sum(rows for _, rows in much)
    return sum(written for written, _ in much) / rows if rows else float(max(sizes.record_bytes, 1))


def _bytes_and_rows(timeline: Timeline, instant: Instant) -> tuple[int, int]:
    try:
        body = timeline.files.read_commit(instant)
    except (StorageError, CorruptInstantError) as error:
        # The commit may have been archived since. The estimate can do without it.
        logger.info("%s tells no size of a row: %s", instant.requested_time, error)
        return 0, 0
    if body.operation_type == _CLUSTERING:
        return 0, 0
    stats = [
        stat
        for of_partition in body.partition_to_write_stats.values()
        for stat in of_partition
        if (stat.path or "").endswith(PARQUET) and stat.num_writes > 0
    ]
    return sum(stat.total_write_bytes or stat.file_size_in_bytes for stat in stats), sum(
        stat.num_writes for stat in stats
    )
