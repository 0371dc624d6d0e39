"""The work that waits for a compaction: log files beside base files, with rows that only merging queries see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ...table.files.file_group import FileSlice
from ...timeline.delta_commits import MAKE_COMPACTION_DUE, since_compaction
from ...timeline.held import log_compactions
from ...timeline.timeline import Timeline

_SLICE = pa.struct(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("file_id", pa.string(), nullable=False),
        pa.field("base_bytes", pa.int64(), nullable=False),
        pa.field("log_bytes", pa.int64(), nullable=False),
        pa.field("log_files", pa.int64(), nullable=False),
    ]
)
DEBT_FIELDS = [
    pa.field("log_files", pa.int64(), nullable=False),
    pa.field("log_bytes", pa.int64(), nullable=False),
    pa.field("compaction_debt", pa.list_(_SLICE), nullable=False),
    pa.field("delta_commits", pa.int64(), nullable=False),
    pa.field("wants_compaction", pa.bool_(), nullable=False),
    pa.field("read_optimized_lacks", pa.int64(), nullable=False),
    pa.field("read_optimized_until", pa.string()),
]
_MOST_SHOWN = 20


def debt_of(timeline: Timeline, slices: Iterable[FileSlice]) -> Mapping[str, Any]:
    """Return the columns of `DEBT_FIELDS` for the newest slices of a table.

    The list ``compaction_debt`` has the 20 file groups with the most bytes of log files. Read-optimized queries read
    base files alone: they lack rows of ``read_optimized_lacks`` writes, and show all that was complete at
    ``read_optimized_until``.
    """
    logged = sorted((one for one in slices if one.logs), key=lambda one: (-one.log_bytes, one.group))
    lacking = {log.instant_time for one in logged for log in one.logs}
    # A log compaction joins log files of older writes, which alone count as lacking.
    lacking -= log_compactions(timeline) if lacking else frozenset()
    gathered = len(since_compaction(timeline).since)
    return {
        "log_files": sum(len(one.logs) for one in logged),
        "log_bytes": sum(one.log_bytes for one in logged),
        "compaction_debt": [_described(one) for one in logged[:_MOST_SHOWN]],
        "delta_commits": gathered,
        "wants_compaction": bool(logged) and gathered >= MAKE_COMPACTION_DUE,
        "read_optimized_lacks": len(lacking),
        "read_optimized_until": _until(timeline, lacking),
    }


def _described(file_slice: FileSlice) -> dict[str, object]:
    return {
        "partition": file_slice.partition_path,
        "file_id": file_slice.file_id,
        "base_bytes": file_slice.size - file_slice.log_bytes,
        "log_bytes": file_slice.log_bytes,
        "log_files": len(file_slice.logs),
    }


def _until(timeline: Timeline, lacking: set[str]) -> str | None:
    """Return the completion time of the last write before the first write with lacking rows."""
    completed = sorted(timeline.writes, key=lambda one: one.visible_since)
    first = min((one.visible_since for one in completed if one.requested_time in lacking), default=None)
    if any(time < completed[0].requested_time for time in lacking if completed):
        return None  # an archived write
    return max((one.visible_since for one in completed if first is None or one.visible_since < first), default=None)
