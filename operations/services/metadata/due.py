"""When a compaction of a metadata table is due: by the number of log files of its file groups, and by their bytes.

A compaction rewrites the whole metadata table, and a read opens all log files of a file group. Each write asks whether
a compaction is due. To answer, this process lists the metadata table only once its own writes may have made one due.
"""

from __future__ import annotations

from ....storage.kept import keep
from .slices import MetadataSlices

# A file group with more log files, or a metadata table with a greater share of its bytes in them, is slow to read.
MOST_LOG_FILES = 50
MOST_LOG_SHARE = 0.2
# However small the base files are, a compaction waits for so many delta commits, Apache Hudi's default.
LEAST_COMMITS = 10
_MOST_TABLES = 256

# By the table's path, how many writes of this process may pass until it lists the metadata table again.
_PASSES: dict[str, int] = {}


def is_worth_a_look(path: str) -> bool:
    """Return whether a write has to list the metadata table, and count the write."""
    left = _PASSES.get(path, 0)
    if left > 0:
        keep(_PASSES, path, left - 1, _MOST_TABLES)
    return left <= 0


def is_due(path: str, slices: MetadataSlices | None) -> bool:
    """Return whether a compaction is due, and note how many writes of a table may pass until the next listing."""
    left = LEAST_COMMITS if slices is None else _commits_left(slices)
    keep(_PASSES, path, max(left - 1, 0), _MOST_TABLES)
    return left <= 0


def _commits_left(slices: MetadataSlices) -> int:
    """Return after how many further delta commits a compaction is due, if they add as many bytes as those so far."""
    since = commits_since_compaction(slices)
    if since < LEAST_COMMITS:
        return LEAST_COMMITS - since
    newest = [file_slice for _, file_slice in slices.newest]
    by_files = MOST_LOG_FILES - max((len(file_slice.logs) for file_slice in newest), default=0)
    logged = sum(file_slice.log_bytes for file_slice in newest)
    room = MOST_LOG_SHARE * sum(file_slice.base.size for file_slice in newest if file_slice.base is not None) - logged
    return min(by_files, int(room * since / logged)) if logged else by_files


def commits_since_compaction(slices: MetadataSlices) -> int:
    last = slices.metadata.last_compaction
    since = "" if last is None else last.requested_time
    return sum(each.action == "deltacommit" and each.visible_since > since for each in slices.timeline.completed)
