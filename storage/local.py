"""Tables on a local or mounted file system: atomic rename for whole files, hard links for create-if-absent."""

from __future__ import annotations

import errno
import io
import os
import stat
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from .base import (
    FileInfo,
    Folder,
    check_inside,
    failed,
    is_sidecar,
    is_temporary,
    join,
    sidecar,
    split,
    storage_errors,
    temporary_name,
)

T = TypeVar("T")

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_BUFFER = 1 << 20
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A table below a folder of this machine.

    Checksum sidecars (``.<name>.crc``) that Hadoop keeps beside files of a local table are not listed, and the one of
    a file that is replaced or deleted goes first: a stale one makes Apache Hudi unable to open the file.

    Attributes:
        path: The table's path as the user gave it.
        root: The folder, absolute.
    """

    path: str
    root: str

    @classmethod
    def open(cls, path: str) -> LocalStorage:
        """Open a plain path or one that begins with ``file:``; the folder need not exist."""
        plain = path.rstrip("/") or "/"
        return cls(plain, os.path.abspath(local_path(plain)))  # noqa: PTH100 - normalises ".." without following links

    @property
    def remote(self) -> bool:
        """False."""
        return False

    def uri(self, path: str) -> str:
        """Return the absolute URI of a path, unescaped, as Hadoop's ``Path`` reads it."""
        return f"file://{self._at(path)}"

    def read(self, path: str) -> bytes:
        """Return a file's bytes."""
        with storage_errors("read", self._shown(path), absence=True), _no_folder_no_file():
            return self._at(path).read_bytes()

    def open_input(self, path: str) -> pa.NativeFile:
        """Return a file as a seekable pyarrow ``NativeFile``."""
        with storage_errors("open", self._shown(path), absence=True), _no_folder_no_file():
            return pa.OSFile(str(self._at(path)), "r")

    def list(self, folder: str, *, recursive: bool = False) -> list[FileInfo]:
        """Return the files of a folder sorted by path; those that vanish meanwhile are left out."""
        found = self.look(folder)
        if not recursive:
            return [*found.files]
        below = [info for name in found.folders for info in self.list(join(folder, name), recursive=True)]
        return sorted([*found.files, *below], key=lambda info: info.path)

    def look(self, folder: str) -> Folder:
        """Return the files and the sub-folders of a folder; those that vanish meanwhile are left out."""
        files, folders = [], []
        with storage_errors("list", self._shown(folder)):
            for entry in self._entries(folder):
                try:
                    status = entry.stat()
                except FileNotFoundError:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    folders.append(entry.name)
                elif not is_sidecar(entry.name):
                    files.append(FileInfo(join(folder, entry.name), status.st_size, status.st_mtime))
        return Folder(tuple(sorted(files, key=lambda info: info.path)), tuple(sorted(folders)))

    def exists(self, path: str) -> bool:
        """Return whether there is a file at the path."""
        return self.modified(path) is not None

    def has_files(self, folder: str) -> bool:
        """Return whether there is any file below a folder."""
        found = self.look(folder)
        return bool(found.files) or any(self.has_files(join(folder, name)) for name in found.folders)

    def modified(self, path: str) -> float | None:
        """Return a file's modification time in epoch seconds; None where it is absent."""
        with storage_errors("look at", self._shown(path)):
            try:
                status = self._at(path).stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
            return None if stat.S_ISDIR(status.st_mode) else status.st_mtime

    def now(self) -> float:
        """Return this machine's clock, which stamps the files of a local file system."""
        return time.time()

    def write(self, path: str, data: bytes) -> None:
        """Put a whole file in place of whatever was there, by rename."""
        with storage_errors("write", self._shown(path)):
            temporary = self._temporary(path, data)
            try:
                self._drop_sidecar(path)
                temporary.replace(self._at(path))
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise

    def create(self, path: str, data: bytes) -> bool:
        """Put a whole file where none is, by hard link; in place where the file system knows no links."""
        with storage_errors("create", self._shown(path)):
            target = self._at(path)
            if os.path.lexists(target):
                return False
            temporary = self._temporary(path, data)
            try:
                self._drop_sidecar(path)
                target.hardlink_to(temporary)
            except FileExistsError:
                # Over NFS the answer to a link that was made may be lost and the repetition refused: open(2), O_EXCL.
                return temporary.stat().st_nlink > 1
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                return _create_in_place(target, data)
            finally:
                temporary.unlink(missing_ok=True)
            return True

    def delete(self, *paths: str) -> None:
        """Delete files; one that is absent is no error."""
        for path in paths:
            with storage_errors("delete", self._shown(path)), suppress(NotADirectoryError):
                self._drop_sidecar(path)
                self._at(path).unlink(missing_ok=True)

    def delete_folder(self, path: str) -> None:
        """Delete a folder with everything in it; one that is absent is no error."""
        with storage_errors("delete", self._shown(path)):
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    _remove_tree(self._at(path))
                    return
                except OSError as error:
                    # Somebody may put a file into the folder while it is being emptied.
                    if error.errno not in {errno.ENOTEMPTY, errno.EEXIST} or attempt == _ATTEMPTS:
                        raise

    def stage(self, path: str, aside: str) -> LocalStaged:
        """Begin a file that becomes visible when it is whole."""
        check_inside(path)
        temporary = self._at(join(aside, f".{uuid.uuid4().hex}-{split(path)[1]}"))
        with storage_errors("create", self._shown(path)):
            return LocalStaged(self, path, temporary, _with_parent(temporary, lambda: temporary.open("xb", 0)))

    def sweep(self, folders: Iterable[str], older_than_s: float) -> None:
        """Remove the temporary files of `write` and `create` that killed processes left in the given folders."""
        for folder in folders:
            with storage_errors("sweep", self._shown(folder)):
                for entry in self._entries(folder):
                    with suppress(FileNotFoundError):
                        if is_temporary(entry.name) and self.now() - entry.stat().st_mtime > older_than_s:
                            Path(entry.path).unlink()

    def publish(self, temporary: Path, path: str) -> None:
        """Move a finished file to its final name."""
        target = self._at(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._drop_sidecar(path)
        temporary.replace(target)

    def _at(self, path: str) -> Path:
        check_inside(path)
        return Path(self.root, path)

    def _shown(self, path: str) -> str:
        return join(self.path, path)

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self._at(folder)) as entries:
                yield from entries
        except (FileNotFoundError, NotADirectoryError):
            return

    def _temporary(self, path: str, data: bytes) -> Path:
        temporary = self._at(path).parent / temporary_name()
        try:
            _with_parent(temporary, lambda: temporary.write_bytes(data))
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def _drop_sidecar(self, path: str) -> None:
        self._at(sidecar(path)).unlink(missing_ok=True)


class LocalStaged:
    """A file that grows aside and is renamed to its final name when it is whole."""

    def __init__(self, storage: LocalStorage, path: str, temporary: Path, raw: io.FileIO) -> None:
        self._storage = storage
        self._path = path
        self._temporary = temporary
        self._shown = join(storage.path, path)
        self.stream: Any = io.BufferedWriter(_Reporting(raw, self._shown), _BUFFER)

    def publish(self) -> int:
        """Close the stream and rename the file; returns its size in bytes."""
        with storage_errors("publish", self._shown):
            self.stream.close()
            size = self._temporary.stat().st_size
            self._storage.publish(self._temporary, self._path)
        return size

    def discard(self) -> None:
        """Give the file up; may be called twice, and after `publish` does nothing."""
        with storage_errors("discard", self._shown):
            # Bytes still buffered are not worth writing, and on a full disk could not be.
            self.stream.raw.close()
            self._temporary.unlink(missing_ok=True)


class _Reporting(io.RawIOBase):
    """A raw file whose failures name the table's file they are about."""

    def __init__(self, raw: io.FileIO, shown: str) -> None:
        self._raw = raw
        self._shown = shown

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._raw.tell()

    def write(self, data: Any, /) -> int:
        try:
            return self._raw.write(data)
        except OSError as error:
            raise failed("write", self._shown, error) from error

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
            super().close()


def local_path(path: str) -> str:
    """Return the operating system's path of ``file:/p``, ``file:///p``, ``file://localhost/p`` or ``p``."""
    if not path.startswith("file:"):
        return path
    rest = path[len("file:") :]
    if rest.startswith("//"):
        rest = "/" + rest[2:].partition("/")[2]
    return rest


@contextmanager
def _no_folder_no_file() -> Iterator[None]:
    """Take a path below something that is no folder for one at which nothing is."""
    try:
        yield
    except NotADirectoryError as error:
        raise FileNotFoundError(error.errno, error.strerror) from error


def _with_parent(path: Path, action: Callable[[], T]) -> T:
    """Do something that needs a path's folder, making the folder only where it turns out to be absent."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return action()
        except FileNotFoundError:
            # Another process may remove the folder again before it is used, hence more than one attempt.
            path.parent.mkdir(parents=True, exist_ok=True)
    return action()


def _create_in_place(target: Path, data: bytes) -> bool:
    try:
        file = target.open("xb")
    except FileExistsError:
        return False
    try:
        with file:
            file.write(data)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return True


def _remove_tree(path: Path) -> None:
    try:
        entries = list(os.scandir(path))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            _remove_tree(Path(entry.path))
        else:
            Path(entry.path).unlink(missing_ok=True)
    try:
        path.rmdir()
    except FileNotFoundError:
        return
