"""What every store does: bytes by path below a table's root, with whole-file publishing and create-if-absent."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import PyHudiError, StorageError
from .bounds import MOST_BYTES

SIDECAR = ".crc"
_TEMPORARY = ".pyhudi-"


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file of a listing; ``modified`` is in epoch seconds by the store's clock."""

    path: str
    size: int
    modified: float


class Folder(Protocol):
    """What one look into a folder shows."""

    @property
    def names(self) -> Sequence[str]:
        """The names of its files, in no order, without checksum sidecars; on a disk much cheaper than `files`."""

    @property
    def files(self) -> tuple[FileInfo, ...]:
        """Its files, sorted by path; their sizes on a disk are those at the first access."""

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of its direct sub-folders, sorted."""

    @property
    def links(self) -> tuple[str, ...]:
        """The names of symbolic links in it, sorted; pyhudi follows none."""

    @property
    def unfinished_files(self) -> bool:
        """Whether there is something for `Storage.sweep`: a file in the making, or what a killed process left of it."""


@dataclass(frozen=True, slots=True)
class ListedFolder:
    """A `Folder` whose files were listed with their sizes."""

    files: tuple[FileInfo, ...] = ()
    folders: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    unfinished_files: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(split(info.path)[1] for info in self.files)


class Staged(Protocol):
    """A data file in the making: it grows outside of the folder that readers list, until it is published."""

    @property
    def stream(self) -> Any:
        """A writable binary file object that pyarrow accepts."""

    def publish(self) -> int:
        """Close the stream, make the whole file visible under its final name, and return its size in bytes.

        Raises StorageError if the store failed, or another process removed the file that grew aside.
        """

    def discard(self) -> None:
        """Give the file up; a second call, and a call after `publish`, does nothing."""


class Storage(Protocol):
    """One table's files; paths are relative to its root, "/"-separated, "" being the root itself.

    Once a method returns, what it changed outlasts a power cut, except if ``durable`` is False or its docstring says
    otherwise. Names of folders always outlast it, as later files in them may have to. No method follows a symbolic link
    below the root: each refuses a path that leads through a link. Objects can be pickled. Every method raises
    StorageError if the store fails or refuses.
    """

    @property
    def path(self) -> str:
        """The table's path as the user gave it, without trailing slashes."""

    @property
    def remote(self) -> bool:
        """Whether every call is a request over a network, so that a few large calls beat many small calls."""

    def parent(self) -> Storage | None:
        """Return the folder above as a storage of its own; None at the top of the store."""

    def uri(self, path: str) -> str:
        """Return the absolute URI of a path, unescaped, as Hadoop's ``Path`` reads it."""

    def read(self, path: str, most: int = MOST_BYTES) -> bytes:
        """Return a file's bytes; CorruptFileError if it has more than ``most``.

        Raises FileNotFoundError if there is no such file.
        """

    def open_input(self, path: str) -> Any:
        """Return a file as a seekable pyarrow ``NativeFile``; FileNotFoundError if there is no such file."""

    def list(self, folder: str, *, recursive: bool = False, strict: bool = True) -> list[FileInfo]:
        """Return the files of a folder sorted by path; empty if the folder is absent.

        With ``strict`` it refuses a symbolic link, whose target would be missing from the list; otherwise it skips
        links.
        """

    def look(self, folder: str) -> Folder:
        """Return the files and the sub-folders of a folder; nothing if it is absent."""

    def exists(self, path: str) -> bool:
        """Return whether there is a file at the path."""

    def has_files(self, folder: str) -> bool:
        """Return whether there is any file below a folder; object stores know no empty folder."""

    def modified(self, path: str) -> float | None:
        """Return a file's modification time in epoch seconds by the store's clock; None if it is absent."""

    def now(self) -> float:
        """Return the store's clock in epoch seconds, as far as this process knows it without writing."""

    def file_time(self) -> float:
        """Return the modification time, in epoch seconds, of a file of the table that is made now.

        The age of a file that decides whether its writer is dead counts from this. To find it out, a file may be made
        and deleted.
        """

    def set_modified(self, path: str, seconds: float) -> None:
        """Set when a file was last changed, in seconds of `now`; a store that is ``remote`` refuses."""

    def write(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Put a whole file in place of any file at the path; readers see either the old or the new bytes."""

    def create(self, path: str, data: bytes, *, durable: bool = True) -> bool:
        """Put a whole file at a path without a file; False, with nothing changed, if the path has a file.

        With ``durable``, that existing file outlasts a power cut, too.
        """

    def delete(self, *paths: str, durable: bool = True) -> None:
        """Delete files; an absent file is no error. Without ``durable`` they may come back after a power cut."""

    def delete_folder(self, path: str) -> None:
        """Delete a folder with everything in it; an absent folder is no error.

        Parts of it may come back after a power cut. It deletes symbolic links, not their targets, and keeps a link at
        the path.
        """

    def stage(self, path: str, aside: str, *, durable: bool = True) -> Staged:
        """Begin a file that grows unseen in the folder ``aside``, and becomes visible at ``path`` once it is whole.

        No reader lists the folder. With ``durable``, its bytes outlast a power cut from `Staged.publish` on, and its
        name from `flush` of its folder on.
        """

    def flush(self, folders: Iterable[str], *, new: bool = False) -> None:
        """Bring onto the disk the names that `Staged.publish` and other processes made in folders, and the names above.

        With ``new`` the root itself may be new, so it flushes the folders above the root, too.
        """

    def sweep(self, folders: Iterable[str], older_than_s: float, *, empty: bool = False) -> None:
        """Remove half-written files of killed processes, older than ``older_than_s``, which no listing shows.

        With ``empty`` it then removes the folders that are empty, in a store that has empty folders.
        """


def join(*parts: str) -> str:
    """Return the non-empty path parts joined by "/"."""
    return "/".join(filter(None, parts))


def split(path: str) -> tuple[str, str]:
    """Return a path's folder ("" for the root) and its last name."""
    folder, _, name = path.rpartition("/")
    return folder, name


def sidecar(path: str) -> str:
    """Return the path at which Hadoop's ``ChecksumFileSystem`` keeps the checksum of a file."""
    folder, name = split(path)
    return join(folder, f".{name}{SIDECAR}")


def is_sidecar(name: str) -> bool:
    """Return whether a file name is a checksum sidecar's, which no listing shows."""
    return name.startswith(".") and name.endswith(SIDECAR)


def temporary_name() -> str:
    """Return a name for a file in the making; it looks like a sidecar's, so every Hudi reader ignores it."""
    return f"{_TEMPORARY}{uuid.uuid4().hex}{SIDECAR}"


def is_temporary(name: str) -> bool:
    """Return whether `temporary_name` made a file name."""
    return name.startswith(_TEMPORARY) and name.endswith(SIDECAR)


def check_inside(path: str) -> None:
    """Raise StorageError for a path that would leave the table's root, or that has a NUL in it."""
    if path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise StorageError(
            f"The path {path!r} is not below the table's root.",
            "Look at the file that names it (a marker, a commit): it was damaged or made by something else.",
        )


class Unflushed(OSError):  # noqa: N818 (the cause of a StorageError, not an error of its own)
    """A change in a folder is done, and the disk refused to keep it."""


def is_unflushed(error: StorageError) -> bool:
    """Return whether the failed change is done and visible, but may not outlast a power cut.

    A second flush proves nothing: the disk reports once what it has lost, and then reports success.
    """
    return isinstance(error.__cause__, Unflushed)


def refuse_links(shown: str, folder: str, links: Iterable[str]) -> None:
    """Raise StorageError for the first link of a folder: its target would silently be missing from a listing.

    ``shown`` is the table's path as the user gave it.
    """
    for name in links:
        raise linked(join(shown, folder, name))


def linked(shown: str) -> StorageError:
    """Return the error for a link below a table's root."""
    return StorageError(
        f"{shown} is a symbolic link, and pyhudi follows none below a table's root.",
        "Put what it leads to in its place, or remove it.",
    )


@contextmanager
def storage_errors(
    operation: str, path: str, *, absence: bool = False, kinds: type[Exception] = OSError
) -> Iterator[None]:
    """Turn errors of the operating system or of a store's client into a StorageError that names path and operation.

    ``operation`` is a verb. ``absence`` lets FileNotFoundError through, if absence is an answer. ``kinds`` are the
    exceptions to turn, if a client raises other exceptions than OSError.
    """
    try:
        yield
    except PyHudiError:
        raise
    except kinds as error:
        if absence and isinstance(error, FileNotFoundError):
            raise
        raise failed(operation, path, error) from error


_MOST_OF_A_REASON = 300


def failed(operation: str, path: str, error: Exception) -> StorageError:
    """Return the StorageError for an operation that the store could not do."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    # A client may put pages into its error.
    first = reason.strip().partition("\n")[0][:_MOST_OF_A_REASON].rstrip(". ")
    return StorageError(
        f"The store could not {operation} {path}: {first}.",
        "Check the store's space, permissions and health, then run the job again.",
    )
