"""A disk with little room: whatever is to be written beyond it fails, whatever is deleted makes room again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyhudi.errors import StorageError

# A file takes whole blocks, and a little for its name.
BLOCK = 512


@dataclass
class Disk:
    """A disk that holds one folder.

    Attributes:
        folder: All that lies on it.
        room: Bytes that fit; None for as many as one likes.
    """

    folder: Path
    room: int | None = None

    def used(self) -> int:
        """Return how many bytes are taken."""
        files = (f"{folder}/{name}" for folder, _, names in os.walk(self.folder) for name in names)
        return sum(_taken(os.lstat(one).st_size) for one in files)

    def take(self, path: str, size: int) -> None:
        """Refuse what does not fit.

        Raises:
            StorageError: The disk is full.
        """
        if self.room is not None and self.used() + _taken(size) > self.room:
            raise StorageError(f"The store could not write {path}: No space left on device.", "Make room.")


class FullDiskStorage:
    """A local storage on such a disk: files in the making take room as they grow."""

    def __init__(self, inner: Any, disk: Disk) -> None:
        self._inner = inner
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, path: str, data: bytes, **options: Any) -> None:
        """Put a file; what it replaces goes when the new one is whole."""
        self._disk.take(path, len(data))
        self._inner.write(path, data, **options)

    def create(self, path: str, data: bytes, **options: Any) -> bool:
        """Make a file."""
        if self._inner.exists(path):
            return False
        self._disk.take(path, len(data))
        return bool(self._inner.create(path, data, **options))

    def stage(self, path: str, aside: str, **options: Any) -> Any:
        """Begin a file."""
        self._disk.take(path, 0)
        staged = self._inner.stage(path, aside, **options)
        staged.stream = _Growing(staged.stream, self._disk, path)
        return staged


class _Growing:
    """A stream that fails where the disk ends."""

    def __init__(self, inner: Any, disk: Disk, path: str) -> None:
        self._inner = inner
        self._disk = disk
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, data: Any) -> int:
        self._inner.flush()
        self._disk.take(self._path, memoryview(data).nbytes)
        return int(self._inner.write(data))


def _taken(size: int) -> int:
    return (size // BLOCK + 1) * BLOCK
