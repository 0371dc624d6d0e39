"""Partitions of the table whose last data file an instant deleted."""

from __future__ import annotations

from ...storage.base import split
from ...storage.parallel import for_each
from ...table.files.file_group import data_file
from ...table.seen_table import SeenTable
from ...timeline.instants import Instant
from .follower import FileChanges

# The actions of instants that may add a file to a partition without files.
_ADD_FILES = frozenset({"commit", "deltacommit", "replacecommit"})


def emptied_partitions(seen: SeenTable, instant: Instant, changes: FileChanges) -> tuple[str, ...]:
    """Return the partitions that a deleting instant left without a data file, by a listing of them.

    It returns none while an older write is pending. The records of that write would count as older than the records of
    this instant, so that a partition with a new file would stay gone.
    """
    older = (each for each in seen.timeline.pending if each.requested_time < instant.requested_time)
    if not changes.removed or any(each.action in _ADD_FILES for each in older):
        return ()
    written = {file.group.partition_path for file in changes.written if file.path}
    folders = sorted({split(path)[0] for path in changes.removed} - written)
    removed = frozenset(changes.removed)

    def is_empty(folder: str) -> bool:
        files = (info.path for info in seen.storage.list(folder))
        return not any(data_file(path) is not None and path not in removed for path in files)

    empty = for_each(seen.storage, is_empty, folders)
    return tuple(folder for folder, is_gone in zip(folders, empty, strict=True) if is_gone)
