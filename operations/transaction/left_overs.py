"""What an instant may leave in a table's folder: data files, instant files, and what its writer kept."""

from __future__ import annotations

import logging

from ...storage.base import Storage, split
from ...table.files.marked_files import marked_files
from ...table.files.names import parse_data_name
from ...table.files.partitions import list_partitions
from ...timeline.instant_files import InstantFiles
from ...timeline.instants import Instant
from ...timeline.writers import heartbeat, owner
from ...timeline.writers.markers import Markers

logger = logging.getLogger("pyhudi")


def files_of(storage: Storage, instant_time: str, *, rolled_back: bool = False) -> list[str]:
    """Return the data files that a write may have left: by its markers, or by a listing.

    A pyhudi write makes a marker before each file, so without markers it left no file, unless the write was
    `rolled_back` while it ran: then its markers may be gone.
    """
    if not rolled_back:
        if Markers(storage, instant_time).exist():
            return marked_files(storage, instant_time)
        if storage.has_files(owner.Claim(storage, instant_time).folder):
            return []
    found = []
    for partition in list_partitions(storage):
        for info in storage.list(partition):
            name = parse_data_name(split(info.path)[1])
            if name is not None and name.instant_time == instant_time:
                found.append(info.path)
    return sorted(found)


def erase(instants: InstantFiles, victim: Instant, paths: list[str]) -> None:
    instants.storage.delete(*paths)
    instants.remove_pending(victim)


def forget(storage: Storage, instant_time: str) -> None:
    Markers(storage, instant_time).delete()
    heartbeat.Heartbeat(storage, instant_time).delete()
    storage.delete_folder(owner.Claim(storage, instant_time).folder)


def try_to_forget(storage: Storage, instant_time: str) -> None:
    """Forget an instant that is complete, so that no error here fails its work."""
    try:
        forget(storage, instant_time)
    except Exception:
        logger.warning(
            "table %s: left-overs of %s stay until the next write", storage.path, instant_time, exc_info=True
        )


def forget_attempt(storage: Storage, instant_time: str) -> None:
    """Forget an instant but for its spills, which the next attempt of the commit needs, and its signs of life."""
    Markers(storage, instant_time).delete()
    claim = owner.Claim(storage, instant_time)
    found = storage.look(claim.folder)
    storage.delete(*(info.path for info in found.files if split(info.path)[1] != owner.OWNER_FILE))
    storage.delete_folder(claim.aside)


def by_partition(paths: list[str]) -> dict[str, list[str]]:
    partitions: dict[str, list[str]] = {}
    for path in paths:
        partitions.setdefault(path.rpartition("/")[0], []).append(path)
    return partitions
