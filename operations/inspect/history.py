"""What happened to a table, told from its timeline."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from ...errors import InvalidOptionError
from ...storage.base import Storage
from ...storage.bounds import parse_json
from ...storage.parallel import for_each
from ...table.config import load_config
from ...timeline.instants import WRITE_ACTIONS, Instant, State
from ...timeline.metadata.models import CommitMetadata
from ...timeline.timeline import Timeline, load_timeline
from ..replay import WRITE_ID
from ..result import CommitResult
from ..write.commit_metadata import DROPPED, NOT_FOUND, SECONDS

_GREATEST = (1 << 63) - 1
_COUNT = re.compile(r"[0-9]{1,18}")

HISTORY_SCHEMA = pa.schema(
    [
        pa.field("instant", pa.string(), nullable=False),
        pa.field("action", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("completed", pa.string()),
        pa.field("operation", pa.string()),
        pa.field("inserts", pa.int64()),
        pa.field("updates", pa.int64()),
        pa.field("deletes", pa.int64()),
        pa.field("files", pa.int64()),
        pa.field("bytes", pa.int64()),
    ]
)


def history(storage: Storage, limit: int | None = None) -> pa.Table:
    """Return one row for every instant of the active timeline, newest first.

    Args:
        storage: Rooted at the table.
        limit: How many instants at most; no others are opened.

    Returns:
        Columns as in `HISTORY_SCHEMA`; the counts are null for instants that wrote no rows.

    Raises:
        InvalidOptionError: The limit is below zero.
    """
    if limit is not None and limit < 0:
        raise InvalidOptionError(f"The history was asked for {limit} instants.", "Ask for none or more.")
    timeline = load_timeline(storage, load_config(storage))
    newest = [*reversed(timeline.instants)][:limit]
    rows = for_each(storage, lambda instant: _row(storage, timeline, instant), newest)
    return pa.Table.from_pylist(rows, HISTORY_SCHEMA)


def last_commit(storage: Storage, write_id: str | None = None) -> CommitResult | None:
    """Return what the newest completed write did, or the one of ``write_id``; None where there is none."""
    timeline = load_timeline(storage, load_config(storage))
    for instant in reversed(timeline.writes):
        metadata = timeline.files.read_commit(instant)
        if write_id is None or metadata.extra_metadata.get(WRITE_ID) == write_id:
            return result_from(storage.path, instant.requested_time, metadata)
    return None


def result_of(storage: Storage, timeline: Timeline, instant: Instant) -> CommitResult:
    """Return what one completed write did."""
    return result_from(storage.path, instant.requested_time, timeline.files.read_commit(instant))


def result_from(path: str, instant_time: str, metadata: CommitMetadata) -> CommitResult:
    """Return what a commit of this metadata did."""
    stats = [stat for group in metadata.partition_to_write_stats.values() for stat in group]
    extra = metadata.extra_metadata
    return CommitResult(
        path=path,
        instant=instant_time,
        operation=metadata.operation_type or "UNKNOWN",
        inserts=_total(stat.num_inserts for stat in stats),
        updates=_total(stat.num_update_writes for stat in stats),
        deletes=_total(stat.num_deletes for stat in stats),
        not_found=_count(extra.get(NOT_FOUND, "0")),
        dropped=_count(extra.get(DROPPED, "0")),
        replaced=sum(map(len, metadata.replaced.values())),
        files=len(stats),
        bytes=_total(stat.file_size_in_bytes for stat in stats),
        seconds=_seconds(extra.get(SECONDS, "{}")),
        write_id=extra.get(WRITE_ID, ""),
    )


def _total(numbers: Iterable[int]) -> int:
    """Return a sum that an Arrow column can hold, whatever the numbers that somebody wrote."""
    return max(-_GREATEST, min(_GREATEST, sum(numbers)))


def _count(text: str) -> int:
    """Return a number that pyhudi keeps among what is a writer's own; 0 for what pyhudi did not write."""
    return int(text) if _COUNT.fullmatch(text) else 0


def _seconds(text: str) -> dict[str, float]:
    """Return the seconds of each phase; none where pyhudi did not write them."""
    try:
        found = parse_json(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and all(type(one) in {int, float} for one in found.values()) else {}


def _row(storage: Storage, timeline: Timeline, instant: Instant) -> dict[str, object]:
    row: dict[str, object] = {
        "instant": instant.requested_time,
        "action": instant.action,
        "state": instant.state.name,
        "completed": instant.completion_time,
    }
    if instant.state == State.COMPLETED and instant.action in WRITE_ACTIONS:
        result = result_of(storage, timeline, instant)
        names = ("operation", "inserts", "updates", "deletes", "files", "bytes")
        row |= {name: getattr(result, name) for name in names}
    return row
