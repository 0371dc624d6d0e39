"""Tables in the memory of this process (``memory://…``), for tests and trials."""

from __future__ import annotations

import bisect
import io
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from .base import FileInfo, Folder, ListedFolder, check_inside, join
from .bounds import MOST_BYTES, check_size

SCHEME = "memory://"


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    modified: float


@dataclass(frozen=True, slots=True)
class _Files:
    """All files of this process; the keys are sorted, so that a folder's files are next to each other."""

    by_key: dict[str, _File] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    def put(self, key: str, file: _File) -> None:
        if key not in self.by_key:
            bisect.insort(self.keys, key)
        self.by_key[key] = file

    def remove(self, key: str) -> None:
        if self.by_key.pop(key, None) is not None:
            del self.keys[bisect.bisect_left(self.keys, key)]

    def below(self, prefix: str) -> list[str]:
        """Return the keys with a prefix, in their order."""
        if not prefix:
            return self.keys.copy()
        # Keys with the prefix sort before the prefix whose last character is replaced by the next.
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return self.keys[bisect.bisect_left(self.keys, prefix) : bisect.bisect_left(self.keys, end)]


_Named = list[tuple[str, _File]]
_FILES = _Files()
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class MemoryStorage:
    """A table in memory; all storages of this process with the same path share it."""

    path: str
    remote: ClassVar[bool] = False

    @classmethod
    def open(cls, path: str) -> MemoryStorage:
        return cls(SCHEME + path.removeprefix(SCHEME).strip("/"))

    def parent(self) -> MemoryStorage | None:
        """Return the folder above."""
        above = self.path.removeprefix(SCHEME).rpartition("/")[0]
        return MemoryStorage(SCHEME + above) if above else None

    def uri(self, path: str) -> str:
        return SCHEME + self._key(path)

    def read(self, path: str, most: int = MOST_BYTES) -> bytes:
        """Return a file's bytes; CorruptFileError if it has more than ``most``, FileNotFoundError if it is absent."""
        with _LOCK:
            file = _FILES.by_key.get(self._key(path))
        if file is None:
            raise FileNotFoundError(self.uri(path))
        check_size(self.uri(path), len(file.data), most)
        return file.data

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.read(path))

    def list(self, folder: str, *, recursive: bool = False, strict: bool = True) -> list[FileInfo]:
        return [_info(folder, name, file) for name, file in self._files_below(folder) if recursive or "/" not in name]

    def look(self, folder: str) -> Folder:
        """Return the files and the sub-folders of a folder; a folder exists as long as it holds files."""
        files_below = self._files_below(folder)
        names = {name.partition("/")[0] for name, _ in files_below if "/" in name}
        files = tuple(_info(folder, name, file) for name, file in files_below if "/" not in name)
        return ListedFolder(files, tuple(sorted(names)))

    def exists(self, path: str) -> bool:
        return self.modified(path) is not None

    def has_files(self, folder: str) -> bool:
        return bool(self._files_below(folder))

    def modified(self, path: str) -> float | None:
        with _LOCK:
            file = _FILES.by_key.get(self._key(path))
        return None if file is None else file.modified

    def now(self) -> float:
        return time.time()

    def file_time(self) -> float:
        return self.now()

    def set_modified(self, path: str, seconds: float) -> None:
        key = self._key(path)
        with _LOCK:
            _FILES.put(key, _File(_FILES.by_key[key].data, seconds))

    def write(self, path: str, data: bytes, *, durable: bool = True) -> None:
        with _LOCK:
            _FILES.put(self._key(path), _File(bytes(data), self.now()))

    def create(self, path: str, data: bytes, *, durable: bool = True) -> bool:
        """Put a whole file at a path without a file; False if the path has a file. Memory ignores ``durable``."""
        key = self._key(path)
        with _LOCK:
            if key in _FILES.by_key:
                return False
            _FILES.put(key, _File(bytes(data), self.now()))
        return True

    def delete(self, *paths: str, durable: bool = True) -> None:
        for path in paths:
            with _LOCK:
                _FILES.remove(self._key(path))

    def delete_folder(self, path: str) -> None:
        prefix = self._prefix(path)
        with _LOCK:
            for key in _FILES.below(prefix):
                _FILES.remove(key)

    def stage(self, path: str, aside: str, *, durable: bool = True) -> MemoryStaged:
        check_inside(path)
        check_inside(aside)
        return MemoryStaged(self, path)

    def flush(self, folders: Iterable[str], *, new: bool = False) -> None:
        """Do nothing: memory does not outlast a power cut."""

    def sweep(self, folders: Iterable[str], older_than_s: float, *, empty: bool = False) -> None:
        """Do nothing: a killed process takes its memory along."""

    def _key(self, path: str) -> str:
        check_inside(path)
        return join(self.path.removeprefix(SCHEME), path)

    def _prefix(self, folder: str) -> str:
        key = self._key(folder)
        return f"{key}/" if key else ""

    def _files_below(self, folder: str) -> _Named:
        """Return the files below a folder, by their paths relative to it."""
        prefix = self._prefix(folder)
        with _LOCK:
            return [(key[len(prefix) :], _FILES.by_key[key]) for key in _FILES.below(prefix)]


def _info(folder: str, name: str, file: _File) -> FileInfo:
    return FileInfo(join(folder, name), len(file.data), file.modified)


class MemoryStaged:
    """A file that grows in a buffer, until `publish` stores its bytes."""

    def __init__(self, storage: MemoryStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._buffer = io.BytesIO()
        self.stream: Any = self._buffer

    def publish(self) -> int:
        data = self._buffer.getvalue()
        self._buffer.close()
        self._storage.write(self._path, data)
        return len(data)

    def discard(self) -> None:
        self._buffer.close()
