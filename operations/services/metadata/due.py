"""When a metadata table's upkeep is due: by how many log files its file groups have, and by their bytes.

A compaction rewrites all that the table says, and a read opens all log files of a group. So a write that asks each
time looks at the listing only once as much as makes a compaction due may have come, as far as this process knows.
"""

from __future__ import annotations

from ....storage.kept import keep
from .slices import MetadataSlices

# A group with more log files is slow to read, and a metadata table with more bytes in them too.
MOST_LOG_FILES = 50
MOST_LOG_SHARE = 0.2
# However small the base files are, a compaction waits for so many delta commits: those of Apache Hudi's default.
LEAST_COMMITS = 10
_MOST_TABLES = 256

# By the table's path: how many writes of this process may pass until the next look.
_PASSES: dict[str, int] = {}


def is_worth_a_look(path: str) -> bool:
    """Return whether a write has to look at the metadata table, and count the write."""
    left = _PASSES.get(path, 0)
    if left > 0:
        keep(_PASSES, path, left - 1, _MOST_TABLES)
    return left <= 0


def is_due(path: str, slices: MetadataSlices | None) -> bool:
    """Return whether a compaction is due, and note how many writes of a table may pass until the next look."""
    left = LEAST_COMMITS if slices is None else _commits_left(slices)
    keep(_PASSES, path, max(left - 1, 0), _MOST_TABLES)
    return left <= 0


def _commits_left(slices: MetadataSlices) -> int:
    """Return after how many further delta commits, of those as they came so far, a compaction is due."""
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
