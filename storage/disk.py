"""File operations that flush bytes and names to the disk, and that follow no links.

A file's bytes outlast a power cut once the file is flushed; a new, renamed or deleted name does once its folder is
(fsync(2)). Before that, any part may be lost, in any order: a file may have its name and no bytes.
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
_FOLDER_ATTEMPTS = 20
# Some mounted file systems cannot flush folders: they keep names by other means, or not at all.
_NO_FLUSH = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF, errno.ENOSYS})


def flush_folder(path: Path | str) -> None:
    """Bring a folder's new and deleted names onto the disk; an absent folder has none."""
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
    """Bring the name of a folder, and of all folders above it, onto the disk."""
    for folder in path.parents:
        try:
            flush_folder(folder)
        except PermissionError:
            # A process that may not read a folder has made no folder in it.
            return


def write_new(path: Path, data: bytes, *, durable: bool, folders: bool) -> None:
    """Write a file under a name that no other process uses; a failed write leaves no file.

    ``durable`` flushes its bytes, and ``folders`` the names of the folders that it has to make.
    """
    try:
        _with_folder(path, lambda: _write(path, "wb", data, durable=durable), durable=folders)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def open_new(path: Path, *, folders: bool) -> io.FileIO:
    """Open an unbuffered file under a name that no other process uses, and make its folder if need be.

    ``folders`` flushes the names of the folders that it has to make.
    """
    return _with_folder(path, lambda: path.open("xb", 0), durable=folders)


def create_in_place(path: Path, data: bytes, *, durable: bool) -> bool:
    """Create a file that every reader sees while it grows; False if the file exists."""
    try:
        _write(path, "xb", data, durable=durable)
    except FileExistsError:
        return False
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return True


def make_folder(path: Path, *, durable: bool) -> None:
    """Make a folder and the missing folders above it; ``durable`` flushes their names."""
    missing_folders: list[Path] = []
    folder_above = path
    while not folder_above.exists():
        missing_folders.append(folder_above)
        folder_above = folder_above.parent
    path.mkdir(parents=True, exist_ok=True)
    if durable:
        for folder in reversed(missing_folders):
            flush_folder(folder.parent)


def remove_tree(path: Path) -> None:
    """Delete a folder with everything in it: of a link the link alone, not its target."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _remove_tree(path)
            return
        except OSError as error:
            # Another process may put a file into the folder meanwhile.
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST} or attempt == ATTEMPTS:
                raise


def link_on_the_way(root: str, path: str) -> str | None:
    """Return the first symbolic link on the path below a root, relative to the root; None if there is none.

    Links may lead to the root itself.
    """
    names = path.split("/") if path else []
    for count in range(1, len(names) + 1):
        part = "/".join(names[:count])
        try:
            if stat.S_ISLNK(os.lstat(f"{root}/{part}").st_mode):
                return part
        except (FileNotFoundError, NotADirectoryError):
            # Nothing lies below an absent name, so no link does.
            return None
    return None


def _with_folder(path: Path, action: Callable[[], T], *, durable: bool) -> T:
    """Return the result of an action that makes a file, and make the file's folder only if the action fails without."""
    for _ in range(_FOLDER_ATTEMPTS - 1):
        try:
            return action()
        except FileNotFoundError:
            # Other writers may sweep this folder while it is empty, so make it and try again, and not once only.
            make_folder(path.parent, durable=durable)
    return action()


def _write(path: Path, mode: str, data: bytes, *, durable: bool) -> None:
    """Write a file whole, and with ``durable`` bring its bytes onto the disk."""
    with path.open(mode) as file:
        file.write(data)
        # An empty file has nothing but its name, which its folder keeps.
        if durable and data:
            file.flush()
            os.fsync(file.fileno())


def _remove_tree(path: Path) -> None:
    """Delete a folder once; OSError if another process puts a file into it meanwhile."""
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
