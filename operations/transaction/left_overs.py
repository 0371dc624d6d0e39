"""What an instant may have left in a table's folder: data files, its own files, and what its writer kept."""

from __future__ import annotations

from ...storage.base import Storage, split
from ...table.files.marked_files import marked_files
from ...table.files.names import parse_data_name
from ...table.files.partitions import list_partitions
from ...timeline.instant_files import InstantFiles
from ...timeline.instants import Instant
from ...timeline.writers import heartbeat, owner
from ...timeline.writers.markers import Markers


def files_of(storage: Storage, instant_time: str, *, rolled_back: bool = False) -> list[str]:
    """Return the data files that a write may have left: by its markers, or by listing where it kept none.

    A write of ours leaves a marker before each file, so that without markers it left no file.

    Args:
        storage: Rooted at the table.
        instant_time: Requested time of the write.
        rolled_back: Whether somebody may have taken the write's markers away while it went on.
    """
    if not rolled_back:
        if Markers(storage, instant_time).exist():
            return marked_files(storage, instant_time)
        if storage.has_files(owner.folder(instant_time)):
            return []
    found = []
    for partition in list_partitions(storage):
        for info in storage.list(partition):
            name = parse_data_name(split(info.path)[1])
            if name is not None and name.instant_time == instant_time:
                found.append(info.path)
    return sorted(found)


def erase(instants: InstantFiles, victim: Instant, paths: list[str]) -> None:
    """Delete a write's data files, then its inflight and requested files."""
    instants.storage.delete(*paths)
    instants.remove_pending(victim)


def forget(storage: Storage, instant_time: str) -> None:
    """Delete what else a write kept: markers, heartbeat and its working folder."""
    Markers(storage, instant_time).delete()
    heartbeat.Heartbeat(storage, instant_time).delete()
    storage.delete_folder(owner.folder(instant_time))


def by_partition(paths: list[str]) -> dict[str, list[str]]:
    """Return the paths of files by the partitions that they are in."""
    partitions: dict[str, list[str]] = {}
    for path in paths:
        partitions.setdefault(path.rpartition("/")[0], []).append(path)
    return partitions
