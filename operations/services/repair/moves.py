"""Files moved within a table by a whole copy first and a deletion last, so that a kill between the two loses nothing.

No store moves a file and makes both names certain at once. After a kill there may be two copies, and the next repair or
undo deletes the copy that has become needless.
"""

from __future__ import annotations

import zlib

from ....errors import StorageError
from ....storage.base import Storage, split
from ....timeline.writers.removed import RemovedFiles

_CHUNK = 1 << 22


def move_aside(removed: RemovedFiles, path: str) -> int | None:
    """Move a file of the table to its place among the removed files, and return its size; None where it is gone."""
    try:
        size = copy_file(removed.storage, path, removed.place_of(path), removed.folder)
    except FileNotFoundError:
        return None
    removed.storage.delete(path)
    return size


def fits(removed: RemovedFiles, path: str) -> bool:
    """Return whether a removed file may come back: no file has its place, or the very same one."""
    storage = removed.storage
    return not storage.exists(path) or _checksum(storage, path) == _checksum(storage, removed.place_of(path))


def put_back(removed: RemovedFiles, path: str) -> None:
    """Move a removed file that `fits` back to its place in the table."""
    storage, place = removed.storage, removed.place_of(path)
    if not storage.exists(path):
        copy_file(storage, place, path, removed.folder)
    storage.delete(place)


def copy_file(storage: Storage, source: str, target: str, aside: str) -> int:
    """Copy a file, and read the copy again before any caller deletes the source."""
    checksum = 0
    with storage.open_input(source) as stream:
        staged = storage.stage(target, aside)
        try:
            while data := stream.read(_CHUNK):
                checksum = zlib.crc32(data, checksum)
                staged.stream.write(data)
            size = staged.publish()
        except BaseException:
            staged.discard()
            raise
    storage.flush([split(target)[0]])
    if _checksum(storage, target) != (size, checksum):
        raise StorageError(
            f"The copy {target} of {source} in the table {storage.path} has other bytes than were written.",
            "Look at the store's health, and repair again; the original is where it was.",
        )
    return size


def _checksum(storage: Storage, path: str) -> tuple[int, int]:
    size = checksum = 0
    with storage.open_input(path) as stream:
        while data := stream.read(_CHUNK):
            size, checksum = size + len(data), zlib.crc32(data, checksum)
    return size, checksum
