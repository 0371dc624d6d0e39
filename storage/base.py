"""What every store can do: bytes by path below one table's root, with whole-file publishing and create-if-absent."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import PyHudiError, StorageError
from .bounds import MOST_BYTES

SIDECAR = ".crc"
_TEMPORARY = ".pyhudi-"


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file as a listing shows it.

    Attributes:
        path: Relative to the storage's root.
        size: Bytes.
        modified: Modification time in epoch seconds, by the store's clock.
    """

    path: str
    size: int
    modified: float


@dataclass(frozen=True, slots=True)
class Folder:
    """What one look into a folder shows.

    Attributes:
        files: Its files, sorted by path; checksum sidecars are left out.
        folders: The names of its direct sub-folders, sorted.
        links: The names of symbolic links in it, sorted, which are neither: nobody follows them.
    """

    files: tuple[FileInfo, ...] = ()
    folders: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


class Staged(Protocol):
    """A data file that is being written aside, out of readers' sight."""

    @property
    def stream(self) -> Any:
        """A writable binary file object that pyarrow accepts."""

    def publish(self) -> int:
        """Close the stream and make the whole file visible under its final name.

        Returns:
            The file's size in bytes.

        Raises:
            StorageError: The store failed, or the file written aside was taken away meanwhile.
        """

    def discard(self) -> None:
        """Give the file up; may be called twice, and after `publish` does nothing."""


class Storage(Protocol):
    """One table's files; paths are relative to its root, "/"-separated, "" being the root itself.

    What a method that changes something has done outlasts a power cut once it returns, but for what its ``durable`` and
    its own words leave out. The names of folders are kept in any case: what is made in one later may have to last.
    No method follows a symbolic link below the root: a path that leads through one is refused.

    Objects can be pickled. Every method raises StorageError when the store fails or refuses.
    """

    @property
    def path(self) -> str:
        """The table's path as the user gave it, without trailing slashes."""

    @property
    def remote(self) -> bool:
        """Whether every call is a request over a network, so that few large ones beat many small ones."""

    def parent(self) -> Storage | None:
        """Return the folder above as a storage of its own; None at the top of the store."""

    def uri(self, path: str) -> str:
        """Return the absolute URI of a path, unescaped, as Hadoop's ``Path`` reads it."""

    def read(self, path: str, most: int = MOST_BYTES) -> bytes:
        """Return a file's bytes, all of them or, where there are more than so many, none.

        Raises:
            FileNotFoundError: There is no such file.
            CorruptFileError: It has more bytes.
        """

    def open_input(self, path: str) -> Any:
        """Return a file as a seekable pyarrow ``NativeFile``.

        Raises:
            FileNotFoundError: There is no such file.
        """

    def list(self, folder: str, *, recursive: bool = False, strict: bool = True) -> list[FileInfo]:
        """Return the files of a folder sorted by path, none where the folder is absent.

        Args:
            folder: Where to look.
            recursive: Whether the files of its sub-folders are among them.
            strict: Whether a link is refused, because what it leads to would be missing; passed over otherwise.
        """

    def look(self, folder: str) -> Folder:
        """Return the files and the sub-folders of a folder; nothing where it is absent."""

    def exists(self, path: str) -> bool:
        """Return whether there is a file at the path."""

    def has_files(self, folder: str) -> bool:
        """Return whether there is any file below a folder; stores of objects know no folder without one."""

    def modified(self, path: str) -> float | None:
        """Return a file's modification time in epoch seconds by the store's clock; None where it is absent."""

    def now(self) -> float:
        """Return the store's clock in epoch seconds."""

    def write(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Put a whole file in place of whatever was there; readers see the old bytes or the new ones.

        Args:
            path: The file.
            data: All of its bytes.
            durable: False for a file that nobody needs after a power cut.
        """

    def create(self, path: str, data: bytes, *, durable: bool = True) -> bool:
        """Put a whole file where none is.

        Args:
            path: The file.
            data: All of its bytes.
            durable: False for a file that nobody needs after a power cut.

        Returns:
            False, with nothing changed, where the file exists already; it outlasts a power cut then, too.
        """

    def delete(self, *paths: str, durable: bool = True) -> None:
        """Delete files; one that is absent is no error.

        Args:
            paths: The files.
            durable: False for files that may come back after a power cut.
        """

    def delete_folder(self, path: str) -> None:
        """Delete a folder with everything in it; one that is absent is no error.

        Parts of it may come back after a power cut. Of links only the links go, and a link in its place stays.
        """

    def stage(self, path: str, aside: str, *, durable: bool = True) -> Staged:
        """Begin a file that becomes visible when it is whole.

        Args:
            path: Its final name.
            aside: Folder in which it grows.
            durable: False for a file that nobody needs after a power cut. Of others the bytes outlast one when they
                are published, and their names once `flush` was called for their folders.
        """

    def flush(self, folders: Iterable[str], *, new: bool = False) -> None:
        """Bring onto the disk what others made in some folders, and what `Staged.publish` named there.

        Args:
            folders: Where it was done; the folders above them are flushed too, each once.
            new: Whether the root may be new, so that those above it count as well.
        """

    def sweep(self, folders: Iterable[str], older_than_s: float, *, empty: bool = False) -> None:
        """Remove what processes that were killed left in the making: half-written files that no listing shows.

        Args:
            folders: Where to look, if the store keeps such files in folders.
            older_than_s: Seconds; younger ones may still be at work.
            empty: Whether those of the folders go, too, in which nothing is then, if the store knows empty folders.
        """


def join(*parts: str) -> str:
    """Return path parts joined by "/", empty ones left out."""
    return "/".join(part for part in parts if part)


def split(path: str) -> tuple[str, str]:
    """Return a path's folder ("" for the root) and its last name."""
    folder, _, name = path.rpartition("/")
    return folder, name


def sidecar(path: str) -> str:
    """Return where Hadoop's ``ChecksumFileSystem`` keeps the checksum of a file."""
    folder, name = split(path)
    return join(folder, f".{name}{SIDECAR}")


def is_sidecar(name: str) -> bool:
    """Return whether a file name is that of a checksum sidecar, which no listing shows."""
    return name.startswith(".") and name.endswith(SIDECAR)


def temporary_name() -> str:
    """Return a name for a file in the making: a sidecar's by its looks, hence ignored by every Hudi reader."""
    return f"{_TEMPORARY}{uuid.uuid4().hex}{SIDECAR}"


def is_temporary(name: str) -> bool:
    """Return whether a file name is one that `temporary_name` made."""
    return name.startswith(_TEMPORARY) and name.endswith(SIDECAR)


def check_inside(path: str) -> None:
    """Refuse a path that would leave the table's root.

    Raises:
        StorageError: A part of the path is "..", it begins with a slash, or it has a NUL in it.
    """
    if path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise StorageError(
            f"The path {path!r} is not below the table's root.",
            "Look at the file that names it (a marker, a commit): it was damaged or made by something else.",
        )


class Unflushed(OSError):  # noqa: N818 (the cause of a StorageError, not an error of its own)
    """Something was done in a folder, and the disk refused to keep it."""


def is_unflushed(error: StorageError) -> bool:
    """Return whether what failed is done, in everybody's sight, and may be undone by a power cut.

    To ask the disk again is no answer: it reports once what it has lost, and then says that all is well.
    """
    return isinstance(error.__cause__, Unflushed)


def refuse_links(shown: str, folder: str, links: Iterable[str]) -> None:
    """Refuse a folder in which there are links: what they lead to would silently be missing.

    Args:
        shown: The table's path as the user gave it.
        folder: Below the table's root.
        links: The names of links in it.

    Raises:
        StorageError: There is one.
    """
    for name in links:
        raise linked(join(shown, folder, name))


def linked(shown: str) -> StorageError:
    """Return the StorageError for a link below a table's root."""
    return StorageError(
        f"{shown} is a symbolic link, and pyhudi follows none below a table's root.",
        "Put what it leads to in its place, or remove it.",
    )


@contextmanager
def storage_errors(
    operation: str, path: str, *, absence: bool = False, kinds: type[Exception] = OSError
) -> Iterator[None]:
    """Turn what the operating system or a store's client reports into a StorageError that names path and operation.

    Args:
        operation: A verb: "read", "list".
        path: What it is done to, as the user knows it.
        absence: Let FileNotFoundError through, where absence is an answer.
        kinds: What is turned; clients raise exceptions of their own besides OSError.

    Raises:
        StorageError: For every other exception of these kinds that is not one of ours already.
    """
    try:
        yield
    except PyHudiError:
        raise
    except kinds as error:
        if absence and isinstance(error, FileNotFoundError):
            raise
        raise failed(operation, path, error) from error


def failed(operation: str, path: str, error: Exception) -> StorageError:
    """Return the StorageError for an operation that the store could not do."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return StorageError(
        f"The store could not {operation} {path}: {reason}.",
        "Check the store's space, permissions and health, then run the job again.",
    )
