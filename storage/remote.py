"""Read-only tables in stores that fsspec reaches and for which pyhudi has no create-if-absent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, NoReturn

import fsspec
import pyarrow as pa

from ..errors import InvalidOptionError, PyHudiError, StorageError
from .base import FileInfo, Folder, ListedFolder, Staged, check_inside, failed, is_sidecar, join, split, storage_errors
from .bounds import MOST_BYTES, check_size
from .secrets import hide, secrets_of, tells

_MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
_Entries = list[dict[str, Any]]
_Infos = list[FileInfo]


# By scheme, what to use if fsspec cannot reach the store.
_INSTEAD = {
    "dbfs": "Give the path that Databricks mounts, /dbfs/… for DBFS or /Volumes/… for a volume.",
    "hdfs": "Mount HDFS and give the mounted path, or give fsspec's client a JVM and Hadoop (JAVA_HOME, HADOOP_HOME).",
}


@dataclass(frozen=True, slots=True)
class RemoteStorage:
    """A table behind a URL, read-only; ``options`` are fsspec's and may hold secrets."""

    path: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    remote: ClassVar[bool] = True

    @classmethod
    def open(cls, path: str, options: Mapping[str, str]) -> RemoteStorage:
        """Open a URL.

        Raises InvalidOptionError for an unknown scheme, and StorageError if the store's package is missing or the
        store refuses.
        """
        storage = cls(path.rstrip("/"), tuple(sorted(options.items())))
        # It raises what this method promises.
        storage._file_system()
        return storage

    @property
    def scheme(self) -> str:
        return self.path.partition(":")[0]

    def parent(self) -> RemoteStorage | None:
        """Return the folder above, on the same host."""
        above = self.path.rpartition("/")[0]
        return replace(self, path=above) if above.count("/") > 2 else None

    def uri(self, path: str) -> str:
        return self._absolute(path)

    def read(self, path: str, most: int = MOST_BYTES) -> bytes:
        with self._errors("read", path, absence=True):
            data = bytes(self._file_system().cat_file(self._absolute(path), end=most + 1))
            check_size(self._absolute(path), len(data), most)
            return data

    def open_input(self, path: str) -> pa.NativeFile:
        with self._errors("open", path, absence=True):
            return pa.PythonFile(self._file_system().open(self._absolute(path), "rb"), mode="r")

    def list(self, folder: str, *, recursive: bool = False, strict: bool = True) -> list[FileInfo]:
        with self._errors("list", folder):
            return self._files_among(self._entries(folder, recursive=recursive))

    def look(self, folder: str) -> Folder:
        with self._errors("list", folder):
            entries = self._entries(folder, recursive=False)
            names = (split(entry["name"].rstrip("/"))[1] for entry in entries if entry["type"] == "directory")
            return ListedFolder(tuple(self._files_among(entries)), tuple(sorted(names)))

    def exists(self, path: str) -> bool:
        info = self._info(path)
        return info is not None and info["type"] == "file"

    def has_files(self, folder: str) -> bool:
        return bool(self.list(folder, recursive=True))

    def modified(self, path: str) -> float | None:
        info = self._info(path)
        return None if info is None else _modified(info)

    def now(self) -> float:
        """Return this machine's clock: a reader cannot learn the store's."""
        return time.time()

    def file_time(self) -> float:
        return self.now()

    def set_modified(self, path: str, seconds: float) -> None:
        self._refuse()

    def write(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self._refuse()

    def create(self, path: str, data: bytes, *, durable: bool = True) -> bool:
        self._refuse()

    def delete(self, *paths: str, durable: bool = True) -> None:
        self._refuse()

    def delete_folder(self, path: str) -> None:
        self._refuse()

    def stage(self, path: str, aside: str, *, durable: bool = True) -> Staged:
        self._refuse()

    def flush(self, folders: Iterable[str], *, new: bool = False) -> None:
        self._refuse()

    def sweep(self, folders: Iterable[str], older_than_s: float, *, empty: bool = False) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        """Raise the StorageError of every method that would change the table."""
        raise StorageError(
            f"The table {self.path} cannot be written: in stores of the scheme {self.scheme} pyhudi cannot create a "
            "file and be sure that no other writer created it, too.",
            "Write to a local or mounted path; tables on this scheme can be read.",
        )

    def _file_system(self) -> Any:
        """Return fsspec's file system, whose errors quote no secret."""
        with self._hidden_secrets():
            return self._connected()

    def _connected(self) -> Any:
        """Return fsspec's file system for the path, or raise what the user can do about it."""
        try:
            # Host, port and user are those in the path, unless an option says otherwise.
            store = fsspec.get_filesystem_class(self.scheme)
            named_in_path = store._get_kwargs_from_urls(self.path) if "://" in self.path else {}
            options = {name: _value(name, text) for name, text in self.options}
            return fsspec.filesystem(self.scheme, **{**named_in_path, **options})
        except ImportError as error:
            raise StorageError(
                f"pyhudi cannot reach the table {self.path}: {error}.",
                "Install that package on the driver and on all executors.",
            ) from error
        except (ValueError, TypeError) as error:
            raise InvalidOptionError(
                f"The path {self.path} cannot be opened by its scheme {self.scheme}: {error}.",
                _INSTEAD.get(self.scheme)
                or "Correct the path, install the fsspec package for that scheme, or give the options that it needs.",
            ) from error
        except OSError as error:
            reach_error = failed("reach", self.path, error)
            raise StorageError(reach_error.what, _INSTEAD.get(self.scheme, reach_error.todo)) from error

    def _absolute(self, path: str) -> str:
        """Return a path with the table's URL; StorageError if it leads out of the table."""
        check_inside(path)
        return join(self.path, path)

    def _relative(self, name: str) -> str:
        """Return an entry's path below the table, given its full name."""
        root = str(self._file_system()._strip_protocol(self.path)).strip("/")
        return name.strip("/")[len(root) :].strip("/")

    def _entries(self, folder: str, *, recursive: bool) -> _Entries:
        """Return what fsspec says of the files and folders in a folder, without the folder; none if it is absent."""
        files, where = self._file_system(), self._absolute(folder)
        # A cached listing would hide instants that completed since.
        files.invalidate_cache()
        try:
            entries = files.find(where, detail=True).values() if recursive else files.ls(where, detail=True)
        except FileNotFoundError:
            return []
        return [entry for entry in entries if self._relative(entry["name"]) != folder]

    def _files_among(self, entries: _Entries) -> _Infos:
        """Return the files among entries, sorted by path, without checksum sidecars."""
        files = ((self._relative(entry["name"]), entry) for entry in entries if entry["type"] == "file")
        infos = (
            FileInfo(at, int(entry["size"] or 0), _modified(entry))
            for at, entry in files
            if not is_sidecar(split(at)[1])
        )
        return sorted(infos, key=lambda info: info.path)

    def _info(self, path: str) -> dict[str, Any] | None:
        """Return what the store says of a path now; None if it is absent."""
        with self._errors("look at", path):
            files = self._file_system()
            files.invalidate_cache()
            try:
                info: dict[str, Any] = files.info(self._absolute(path))
            except FileNotFoundError:
                return None
            return info

    @contextmanager
    def _errors(self, operation: str, path: str, *, absence: bool = False) -> Iterator[None]:
        """Turn errors of the client into StorageErrors that quote no secret."""
        with self._hidden_secrets(), storage_errors(operation, join(self.path, path), absence=absence, kinds=Exception):
            yield

    @contextmanager
    def _hidden_secrets(self) -> Iterator[None]:
        """Hide secrets in errors that are raised inside, and in their causes."""
        try:
            yield
        except PyHudiError as error:
            secrets = secrets_of(dict(self.options))
            if not tells(error, secrets):
                raise
            # A traceback would show the causes.
            raise type(error)(hide(error.what, secrets), hide(error.todo, secrets)) from None


def _value(name: str, text: str) -> str | int:
    """Return the value of an option as fsspec's file systems take it: a port is a number."""
    return int(text) if name == "port" and text.isdecimal() else text


def _modified(entry: Mapping[str, Any]) -> float:
    """Return an entry's modification time, whose key differs between fsspec's packages; 0 without such a key."""
    for key in _MODIFIED:
        value = entry.get(key)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, str):
            return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
        if isinstance(value, int | float):
            return float(value)
    return 0.0
