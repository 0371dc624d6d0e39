"""Tables on a local or mounted file system: atomic rename for whole files, hard links for create-if-absent."""

from __future__ import annotations

import errno
import io
import logging
import os
import stat
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from .base import (
    FileInfo,
    Folder,
    check_inside,
    failed,
    is_sidecar,
    is_temporary,
    join,
    linked,
    refuse_links,
    sidecar,
    split,
    storage_errors,
    temporary_name,
)
from .bounds import MOST_BYTES, check_size
from .disk import (
    create_in_place,
    flush_above,
    flush_folder,
    link_on_the_way,
    make_folder,
    open_new,
    remove_tree,
    write_new,
)
from .kept import keep

logger = logging.getLogger("pyhudi")

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_BUFFER = 1 << 20
# A warning names each link once; every listing meets it again.
_warned_links: set[str] = set()

# For how long the comparison of two clocks holds, unless this machine's clock steps.
_COMPARED_S = 60.0
_STEP_S = 1.0
_MOST_CLOCKS = 64
_clocks: dict[str, _Compared] = {}


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A table below a folder of this machine; ``durable``: whether changes outlast a power cut, see `disk`.

    Hadoop keeps checksum sidecars (``.<name>.crc``) beside files of a local table. No listing shows them. Before a file
    is replaced or deleted its sidecar goes: with a stale sidecar Apache Hudi cannot open the file. Links may lead to
    the absolute folder ``root``; below it no link is followed.
    """

    path: str
    root: str
    durable: bool = True
    remote: ClassVar[bool] = False

    @classmethod
    def open(cls, path: str, *, durable: bool = True) -> LocalStorage:
        """Open a plain path or a ``file:`` URL; the folder need not exist."""
        plain = path.rstrip("/") or "/"
        # Normalises ".." without following links.
        return cls(plain, os.path.abspath(local_path(plain)), durable)  # noqa: PTH100

    def parent(self) -> LocalStorage | None:
        """Return the folder above."""
        above = os.path.dirname(self.root)  # noqa: PTH120 (no links are followed)
        return None if above == self.root else LocalStorage(above, above, self.durable)

    def uri(self, path: str) -> str:
        return f"file://{self._absolute(path)}"

    def read(self, path: str, most: int = MOST_BYTES) -> bytes:
        """Return a file's bytes; CorruptFileError if it has more than ``most``.

        Raises FileNotFoundError if the file or its folder is absent, or a file has the folder's name, and StorageError
        for all else that the disk cannot do. ``path`` is relative to the table's root.
        """
        with storage_errors("read", self._full_path(path), absence=True), _no_folder_no_file():
            with open(self._checked_path(path), "rb") as file:  # noqa: PTH123
                check_size(self._full_path(path), os.fstat(file.fileno()).st_size, most)
                data = file.read(most + 1)
            # The file may have grown since its size was read.
            check_size(self._full_path(path), len(data), most)
            return data

    def open_input(self, path: str) -> pa.NativeFile:
        with storage_errors("open", self._full_path(path), absence=True), _no_folder_no_file():
            return pa.OSFile(self._checked_path(path), "r")

    def list(self, folder: str, *, recursive: bool = False, strict: bool = True) -> list[FileInfo]:
        """Return the files of a folder, with ``recursive`` of all below, too, sorted by path; none if it is absent.

        With ``strict`` it raises StorageError for a symbolic link, whose target the list would lack; otherwise it
        skips links.
        """
        content = self.look(folder)
        if strict:
            refuse_links(self.path, folder, content.links)
        if not recursive:
            return [*content.files]
        folders = [join(folder, name) for name in content.folders]
        files_below = [info for folder in folders for info in self.list(folder, recursive=True, strict=strict)]
        return sorted([*content.files, *files_below], key=lambda info: info.path)

    def look(self, folder: str) -> Folder:
        """Return the names of a folder's files, sub-folders and symbolic links; no names if it is absent.

        Sizes are read on the first access to them. Checksum sidecars and files in the making are not listed as files;
        `Folder.unfinished_files` tells whether there are any of the latter.
        """
        files, folders, links = [], [], []
        unfinished_files = False
        with storage_errors("list", self._full_path(folder)):
            # A write lists a timeline of maybe 15,000 files several times, so the plain case comes first.
            for entry in self._entries(folder):
                name = entry.name
                if name[0] != "." and entry.is_file(follow_symlinks=False):
                    files.append(name)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                elif is_sidecar(name):
                    unfinished_files = unfinished_files or is_temporary(name)
                elif entry.is_symlink():
                    links.append(name)
                else:
                    # Hidden files count: the names of log files begin with a dot.
                    files.append(name)
        link_names = tuple(sorted(links))
        for name in link_names:
            self._warn_once(join(folder, name))
        return _LocalFolder(
            files,
            tuple(sorted(folders)),
            link_names,
            unfinished_files,
            self._absolute(folder),
            self._full_path(folder),
            folder,
        )

    def exists(self, path: str) -> bool:
        return self.modified(path) is not None

    def has_files(self, folder: str) -> bool:
        content = self.look(folder)
        return bool(content.names) or any(self.has_files(join(folder, name)) for name in content.folders)

    def modified(self, path: str) -> float | None:
        """Return a file's modification time in epoch seconds; None if there is no file, or a folder, at the path."""
        with storage_errors("look at", self._full_path(path)):
            try:
                status = os.stat(self._checked_path(path))  # noqa: PTH116
            except (FileNotFoundError, NotADirectoryError):
                return None
            return None if stat.S_ISDIR(status.st_mode) else status.st_mtime

    def now(self) -> float:
        """Return this machine's clock; a file server stamps the files of a mounted file system by its own."""
        return time.time()

    def file_time(self) -> float:
        """Return this machine's clock, corrected by the modification time of a file that was just made."""
        return self.now() + _clock_offset(self.root)

    def set_modified(self, path: str, seconds: float) -> None:
        with storage_errors("set the time of", self._full_path(path)):
            os.utime(self._checked_entry(path), (seconds, seconds), follow_symlinks=False)

    def write(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Put ``data`` in place of any file at the path, by a rename: readers see the old file or the new file whole.

        With ``durable`` the new file outlasts a power cut, unless changes in the whole storage need not last.
        """
        durable = durable and self.durable
        with storage_errors("write", self._full_path(path)):
            target = self._checked_entry(path)
            temporary = target.parent / temporary_name()
            write_new(temporary, data, durable=durable, folders=self.durable)
            try:
                if self._drop_sidecar(path) and durable:
                    # After a power cut, the new file must not have the old file's checksum beside it.
                    flush_folder(target.parent)
                temporary.replace(target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            if durable:
                flush_folder(target.parent)

    def create(self, path: str, data: bytes, *, durable: bool = True) -> bool:
        """Create the file by hard link, in place if the file system knows no links; False if the path is taken.

        With ``durable`` the file with ``data``, or the file that another writer made, outlasts a power cut, unless
        changes in the whole storage need not last.
        """
        durable = durable and self.durable
        with storage_errors("create", self._full_path(path)):
            target = self._checked_entry(path)
            if os.path.lexists(target):
                # Spare the temporary file; the link below decides if another process makes the file right now.
                was_created = False
            else:
                was_created = self._create(path, target, data, durable=durable)
                if durable:
                    flush_folder(target.parent)
        if durable and not was_created:
            # The writer that made the file a moment ago may not have flushed its name yet.
            self.flush([split(path)[0]])
        return was_created

    def delete(self, *paths: str, durable: bool = True) -> None:
        """Delete files with their sidecars, and flush each of their folders once if the deletion is to last."""
        # Each folder with a path in it, which an error names.
        folders: dict[Path, str] = {}
        for path in paths:
            # Nothing lies below a file, so there is nothing to delete.
            with storage_errors("delete", self._full_path(path)), suppress(NotADirectoryError):
                entry = self._checked_entry(path)
                self._drop_sidecar(path)
                entry.unlink(missing_ok=True)
                folders.setdefault(entry.parent, path)
        if durable and self.durable:
            for folder, path in folders.items():
                with storage_errors("delete", self._full_path(path)):
                    flush_folder(folder)

    def delete_folder(self, path: str) -> None:
        """Delete a folder with everything in it; an absent folder is no error.

        A symbolic link at the path stays, with a warning, as pyhudi follows none; only the root may be a link.
        """
        with storage_errors("delete", self._full_path(path)):
            folder = self._checked_entry(path)
            if path and folder.is_symlink():
                self._warn_once(path)
            else:
                remove_tree(folder)

    def stage(self, path: str, aside: str, *, durable: bool = True) -> LocalStaged:
        """Begin a file that grows unseen in the folder ``aside``, until `LocalStaged.publish` moves it to ``path``.

        With ``durable`` its bytes then outlast a power cut, and its name once `flush` was called for its folder.
        """
        with storage_errors("create", self._full_path(path)):
            # Refuses a link on the way to the final path before any byte is written.
            self._checked_entry(path)
            temporary = self._checked_entry(join(aside, f".{uuid.uuid4().hex}-{split(path)[1]}"))
            return LocalStaged(
                self, path, temporary, open_new(temporary, folders=self.durable), durable=durable and self.durable
            )

    def flush(self, folders: Iterable[str], *, new: bool = False) -> None:
        """Flush folders and all folders above them, the deepest first: up to the root, with ``new`` beyond it."""
        if not self.durable:
            return
        to_flush = {""} if new else set()
        for folder in folders:
            to_flush.add("")
            names = folder.split("/")
            to_flush.update("/".join(names[: count + 1]) for count in range(len(names)))
        for folder in sorted(to_flush, key=len, reverse=True):
            with storage_errors("flush", self._full_path(folder)):
                flush_folder(self._checked_path(folder))
        if new:
            with storage_errors("flush", self.path):
                flush_above(Path(self.root))

    def sweep(self, folders: Iterable[str], older_than_s: float, *, empty: bool = False) -> None:
        """Remove old temporary files, and with ``empty`` the folders that are empty then; links are not followed."""
        for folder in folders:
            with storage_errors("sweep", self._full_path(folder)):
                if link := link_on_the_way(self.root, folder):
                    self._warn_once(link)
                    continue
                for entry in [entry for entry in self._entries(folder) if is_temporary(entry.name)]:
                    with suppress(FileNotFoundError):
                        if self.file_time() - entry.stat(follow_symlinks=False).st_mtime > older_than_s:
                            Path(entry.path).unlink()
                if empty:
                    _remove_empty(self._checked_entry(folder))

    def publish(self, temporary: Path, path: str) -> None:
        """Move a temporary file to its final path, for `LocalStaged`."""
        target = self._checked_entry(path)
        make_folder(target.parent, durable=self.durable)
        # A checksum of an earlier file would make Apache Hudi refuse the new file.
        self._drop_sidecar(path)
        temporary.replace(target)

    def _create(self, path: str, target: Path, data: bytes, *, durable: bool) -> bool:
        """Create a file by a hard link from a temporary file; False if the path has a file.

        On a file system without links the file is created in place. ``target`` is the absolute path.
        """
        temporary = target.parent / temporary_name()
        write_new(temporary, data, durable=durable, folders=self.durable)
        try:
            # A checksum of an earlier file would make Apache Hudi refuse the new file.
            self._drop_sidecar(path)
            target.hardlink_to(temporary)
        except FileExistsError:
            # Over NFS the answer to a successful link may be lost, and its repetition refused: open(2), O_EXCL. A
            # second name of the temporary file shows that the link was made.
            return temporary.stat().st_nlink > 1
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return create_in_place(target, data, durable=durable)
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def _absolute(self, path: str) -> str:
        # Text, as a path object for each of thousands of files would cost more than the call that uses it.
        check_inside(path)
        return os.path.join(self.root, path) if path else self.root  # noqa: PTH118

    def _checked_path(self, path: str) -> str:
        """Return the absolute path of a file or folder, after refusing links on the way to it and at it."""
        at = self._absolute(path)
        self._refuse_link(path)
        return at

    def _checked_entry(self, path: str) -> Path:
        """Return the absolute path of a file, folder or link, after refusing links on the way to it."""
        at = self._absolute(path)
        self._refuse_link(split(path)[0])
        return Path(at)

    def _refuse_link(self, path: str) -> None:
        """Raise StorageError if a symbolic link is on a path below the root."""
        link = link_on_the_way(self.root, path)
        if link is not None:
            raise linked(self._full_path(link))

    def _warn_once(self, path: str) -> None:
        """Log once a process that a link is not followed."""
        shown = self._full_path(path)
        if shown not in _warned_links:
            _warned_links.add(shown)
            logger.warning("%s is a symbolic link, which pyhudi does not follow", shown)

    def _full_path(self, path: str) -> str:
        return join(self.path, path)

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of a folder, of any kind; none if it is absent."""
        try:
            with os.scandir(self._checked_path(folder)) as entries:
                yield from entries
        except (FileNotFoundError, NotADirectoryError):
            return

    def _drop_sidecar(self, path: str) -> bool:
        """Delete the checksum of a file; False if there was none."""
        try:
            os.unlink(self._absolute(sidecar(path)))  # noqa: PTH108
        except FileNotFoundError:
            return False
        return True


@dataclass(frozen=True)
class _LocalFolder:
    """A folder that reads the size of each file on the first access to `files`: many times as slow as the names."""

    names: Sequence[str]
    folders: tuple[str, ...]
    links: tuple[str, ...]
    unfinished_files: bool
    _absolute: str
    _shown: str
    _folder: str

    @cached_property
    def files(self) -> tuple[FileInfo, ...]:
        """The files with size and modification time, sorted by path; those deleted since the listing are left out."""
        infos: list[FileInfo] = []
        with storage_errors("list", self._shown):
            for name in sorted(self.names):
                try:
                    status = os.lstat(f"{self._absolute}/{name}")
                except FileNotFoundError:
                    continue
                infos.append(FileInfo(join(self._folder, name), status.st_size, status.st_mtime))
        return tuple(infos)


class LocalStaged:
    """A file that grows under a temporary name, until `publish` moves it to its path."""

    def __init__(
        self, storage: LocalStorage, path: str, temporary: Path, raw: io.FileIO, *, durable: bool = True
    ) -> None:
        self._storage = storage
        self._path = path
        self._temporary = temporary
        self._durable = durable
        self._shown = join(storage.path, path)
        self.stream: Any = io.BufferedWriter(_Reporting(raw, self._shown), _BUFFER)

    def publish(self) -> int:
        """Close the stream, move the whole file to its final path, and return its size in bytes.

        A durable file's bytes are on the disk before readers can see it.
        """
        with storage_errors("publish", self._shown):
            self.stream.flush()
            if self._durable:
                os.fsync(self.stream.fileno())
            self.stream.close()
            size = self._temporary.stat().st_size
            self._storage.publish(self._temporary, self._path)
        return size

    def discard(self) -> None:
        with storage_errors("discard", self._shown):
            # Closing the buffer would write its bytes, which a full disk refuses.
            self.stream.raw.close()
            self._temporary.unlink(missing_ok=True)


class _Reporting(io.RawIOBase):
    """A raw file whose errors name the table's file."""

    def __init__(self, raw: io.FileIO, shown: str) -> None:
        self._raw = raw
        self._shown = shown

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

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


@dataclass(frozen=True, slots=True)
class _Compared:
    """By how many seconds a store's clock is ahead of this machine's, and both clocks of this machine back then."""

    offset_s: float
    clock_s: float
    steady_s: float

    def holds(self) -> bool:
        """Return whether the comparison is recent, and this machine's clock was not set since."""
        passed_s = time.monotonic() - self.steady_s
        return passed_s <= _COMPARED_S and abs(time.time() - self.clock_s - passed_s) <= _STEP_S


def _clock_offset(root: str) -> float:
    """Return by how many seconds the clock that stamps new files below a root is ahead of this machine's.

    0 if this process may not make files there.
    """
    compared = _clocks.get(root)
    if compared is None or not compared.holds():
        stamp = _stamp_of_new_file(Path(root, ".hoodie"))
        clock_s = time.time()
        compared = _Compared(0.0 if stamp is None else stamp - clock_s, clock_s, time.monotonic())
        keep(_clocks, root, compared, _MOST_CLOCKS)
    return compared.offset_s


def _stamp_of_new_file(folder: Path) -> float | None:
    """Return the time that the file system gives a new file; None if this process may not make a file there."""
    path = folder / temporary_name()
    try:
        with path.open("xb") as file:
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _remove_empty(folder: Path) -> None:
    """Remove a folder if it is empty; a folder with content, or an absent folder, is no error."""
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR}:
            raise


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
    """Turn NotADirectoryError, which a path below a file raises, into FileNotFoundError: no file is there."""
    try:
        yield
    except NotADirectoryError as error:
        raise FileNotFoundError(error.errno, error.strerror) from error
