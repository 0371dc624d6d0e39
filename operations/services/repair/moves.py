"""Moves files within a table: copies them whole first and deletes them last, so that a kill in between loses nothing.

No store moves a file in one durable step. After a kill there may be two copies; the next repair or undo deletes the
copy that is not needed.
"""

from __future__ import annotations

from ....errors import StorageError
from ....storage.base import Storage, split
from ....storage.copying import checksum_of, copy_file
from ....timeline.writers.removed import RemovedFiles


def move_aside(removed: RemovedFiles, path: str) -> int | None:
    """Move a file of the table to the removed files, and return its size; None if it is gone."""
    try:
        size = copy_and_check(removed.storage, path, removed.place_of(path), removed.folder)
    except FileNotFoundError:
        return None
    removed.storage.delete(path)
    return size


def may_come_back(removed: RemovedFiles, path: str) -> bool:
    """Return whether a removed file may come back: the table has no file of that path, or the same file."""
    storage = removed.storage
    return not storage.exists(path) or checksum_of(storage, path) == checksum_of(storage, removed.place_of(path))


def put_back(removed: RemovedFiles, path: str) -> None:
    """Move a removed file that `may_come_back` back into the table."""
    storage, removed_path = removed.storage, removed.place_of(path)
    # If the table has the file, it is the same file: an earlier call copied it and then broke off.
    if not storage.exists(path):
        copy_and_check(storage, removed_path, path, removed.folder)
    storage.delete(removed_path)


def copy_and_check(storage: Storage, source: str, target: str, aside: str) -> int:
    """Copy a file and check the copy by reading it, so that the caller may delete the source; return its size.

    The copy grows in the folder `aside`, where no reader looks, and comes to the path `target` once it is whole.
    """
    checksum = copy_file(storage, source, target, aside)
    # Otherwise a power cut might lose the copy's name after the caller has deleted the source.
    storage.flush([split(target)[0]])
    if checksum_of(storage, target) != checksum:
        raise StorageError(
            f"The copy {target} of {source} in the table {storage.path} has other bytes than were written.",
            "Check the store, and repair again; the original is where it was.",
        )
    return checksum.size
