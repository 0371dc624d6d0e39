"""What the calls of an operating system leave to their caller: bytes and names flushed to the disk, links not followed.

A file's bytes outlast a power cut when the file was flushed, and what was named, renamed or deleted in a folder when
the folder was (fsync(2)). Before that any part of it may be lost, in any order: a file may have its name and no bytes.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from .base import Unflushed

T = TypeVar("T")

ATTEMPTS = 3
# Folders of some mounted file systems cannot be flushed: they keep names by other means, or not at all.
_NO_FLUSH = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF, errno.ENOSYS})


def flush_folder(path: Path | str) -> None:
    """Bring what was named and deleted in a folder onto the disk; one that is gone holds nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FLUSH:
            raise Unflushed(error.errno, f"it is done, but the disk could not keep it: {error.strerror}") from error
    finally:
        os.close(descriptor)


def flush_above(path: Path) -> None:
    """Bring the name of a folder onto the disk, and the names of the folders that it lies in."""
    for folder in path.parents:
        try:
            flush_folder(folder)
        except PermissionError:
            # Nobody who may not look into a folder has made one in it.
            return


def write_new(path: Path, data: bytes, *, durable: bool, folders: bool) -> None:
    """Write a file of a name that is nobody else's; nothing stays of one that fails.

    Args:
        path: The file.
        data: All of its bytes.
        durable: Whether they are brought onto the disk.
        folders: The same of the names of folders that are made for it.
    """
    try:
        _with_folder(path, lambda: _write(path, "wb", data, durable=durable), durable=folders)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def open_new(path: Path, *, folders: bool) -> io.FileIO:
    """Open an unbuffered file of a name that is nobody else's, in a folder that is made where it is missing."""
    return _with_folder(path, lambda: path.open("xb", 0), durable=folders)


def create_in_place(path: Path, data: bytes, *, durable: bool) -> bool:
    """Create a file where none is, in sight of everybody while it grows; False where there is one."""
    try:
        _write(path, "xb", data, durable=durable)
    except FileExistsError:
        return False
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return True


def make_folder(path: Path, *, durable: bool) -> None:
    """Make a folder and those above it that are missing, and bring their names onto the disk."""
    missing: list[Path] = []
    above = path
    while not above.exists():
        missing.append(above)
        above = above.parent
    path.mkdir(parents=True, exist_ok=True)
    if durable:
        for folder in reversed(missing):
            flush_folder(folder.parent)


def remove_tree(path: Path) -> None:
    """Delete a folder with everything in it; of links the links alone."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _remove_tree(path)
            return
        except OSError as error:
            # Somebody may put a file into the folder while it is being emptied.
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST} or attempt == ATTEMPTS:
                raise


def link_on_the_way(root: str, path: str) -> str | None:
    """Return the first link on the way from a root to what lies below it, None where there is none.

    Args:
        root: A folder; it may be reached by links itself.
        path: Relative to the root, "" for the root.

    Returns:
        The link's own path below the root.
    """
    names = path.split("/") if path else []
    for count in range(1, len(names) + 1):
        part = "/".join(names[:count])
        try:
            if stat.S_ISLNK(os.lstat(f"{root}/{part}").st_mode):
                return part
        except (FileNotFoundError, NotADirectoryError):
            return None
    return None


def _with_folder(path: Path, action: Callable[[], T], *, durable: bool) -> T:
    """Do something that needs a path's folder, making the folder only where it turns out to be absent."""
    for _ in range(ATTEMPTS - 1):
        try:
            return action()
        except FileNotFoundError:
            # Another process may remove the folder again before it is used, hence more than one attempt.
            make_folder(path.parent, durable=durable)
    return action()


def _write(path: Path, mode: str, data: bytes, *, durable: bool) -> None:
    with path.open(mode) as file:
        file.write(data)
        # An empty file has nothing but its name, which its folder keeps.
        if durable and data:
            file.flush()
            os.fsync(file.fileno())


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
