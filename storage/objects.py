"""Tables in object stores: whole files under keys, each made visible by one request, and no folders.

The stores differ in their `ObjectClient`, a class for each store.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import pyarrow as pa

from ..errors import InvalidOptionError, StorageError
from .base import FileInfo, Folder, ListedFolder, check_inside, is_sidecar, join, split, storage_errors
from .bounds import MOST_BYTES
from .object_files import ObjectInput, ObjectStaged, Ranges, Uploads

Options = tuple[tuple[str, str], ...]
Connect = Callable[[str, Mapping[str, str]], "ObjectClient"]


class UnclearAnswer(OSError):  # noqa: N818 (no failure yet: the caller finds out what happened)
    """The request may have succeeded or not: no answer came, or an answer that leaves it open."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What a store says of one object.

    Attributes:
        modified: Epoch seconds, by the store's clock.
        stamp: That of `ObjectClient.put_if_absent` or of the upload; "" for other objects, and in listings.
    """

    key: str
    size: int
    modified: float
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The objects with a prefix, and the longer prefixes up to the next "/" that further objects share."""

    objects: Sequence[Stat]
    prefixes: Sequence[str] = ()


class ObjectClient(Ranges, Uploads, Protocol):
    """One bucket of one store. Methods raise FileNotFoundError for an absent object, and OSError for every failure."""

    def get(self, key: str, most: int) -> bytes:
        """Return an object's bytes; CorruptFileError, before fetching, if it has more than ``most``."""

    def stat(self, key: str) -> Stat | None:
        """Return what the store says of an object; None if it is absent."""

    def put(self, key: str, data: bytes) -> None:
        """Put an object in place of any object of the key."""

    def put_if_absent(self, key: str, data: bytes, stamp: str) -> bool:
        """Put an object with a stamp that `stat` shows; False if the key has an object.

        That object may be this call's own, if a first try made it and the answer was lost. Raises UnclearAnswer if
        the result is not known.
        """

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; an absent object is no error."""

    def list(self, prefix: str, *, delimited: bool, most: int | None = None) -> Listing:
        """Return what begins with the prefix; nothing beyond the next "/" if the listing is delimited."""

    def now(self) -> float:
        """Return the store's clock in epoch seconds."""


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """A table below a prefix of a bucket.

    It holds no connection, so that it can be pickled and used after a fork: each process makes its own client.
    ``options`` may hold secrets.
    """

    path: str
    connect: Connect = field(repr=False)
    options: Options = field(default=(), repr=False)
    remote: ClassVar[bool] = True

    @classmethod
    def open(cls, path: str, connect: Connect, options: Mapping[str, str]) -> ObjectStorage:
        """Open ``scheme://bucket/prefix``; only the bucket has to exist.

        Raises InvalidOptionError if the path names no bucket or an option does not fit, and StorageError if the
        store's package is missing.
        """
        storage = cls(path.rstrip("/"), connect, tuple(sorted(options.items())))
        if not storage._bucket:
            raise InvalidOptionError(f"The path {path} names no bucket.", "Give one like s3://bucket/folder/table.")
        # It raises what this method promises; later calls get the same client.
        storage._client()
        return storage

    def parent(self) -> ObjectStorage | None:
        """Return the prefix above, within the bucket."""
        above = self.path.rpartition("/")[0]
        return replace(self, path=above) if above.count("/") > 2 else None

    def uri(self, path: str) -> str:
        check_inside(path)
        return join(self.path, path)

    def read(self, path: str, most: int = MOST_BYTES) -> bytes:
        with self._errors("read", path, absence=True):
            return self._client().get(self._key(path), most)

    def open_input(self, path: str) -> pa.NativeFile:
        with self._errors("open", path, absence=True):
            client, key = self._client(), self._key(path)
            return pa.PythonFile(ObjectInput(client, key, self.uri(path)), mode="r")

    def list(self, folder: str, *, recursive: bool = False, strict: bool = True) -> list[FileInfo]:
        with self._errors("list", folder):
            listing = self._client().list(self._prefix(folder), delimited=not recursive)
            return self._files(listing.objects)

    def look(self, folder: str) -> Folder:
        """Return the files and the names of the sub-folders of a folder, by one listing; nothing if it is absent."""
        prefix = self._prefix(folder)
        with self._errors("list", folder):
            listing = self._client().list(prefix, delimited=True)
        folder_names = {folder[len(prefix) :].rstrip("/") for folder in listing.prefixes} - {""}
        return ListedFolder(tuple(self._files(listing.objects)), tuple(sorted(folder_names)))

    def exists(self, path: str) -> bool:
        return self.modified(path) is not None

    def has_files(self, folder: str) -> bool:
        with self._errors("list", folder):
            return bool(self._client().list(self._prefix(folder), delimited=False, most=1).objects)

    def modified(self, path: str) -> float | None:
        key = self._key(path)
        with self._errors("look at", path):
            stat = self._client().stat(key) if key else None
        return None if stat is None else stat.modified

    def now(self) -> float:
        with self._errors("ask for its time", ""):
            return self._client().now()

    def file_time(self) -> float:
        return self.now()

    def set_modified(self, path: str, seconds: float) -> None:
        raise StorageError(
            f"The store of {self.uri(path)} gives each file the time at which it was stored.", "Store the file again."
        )

    def write(self, path: str, data: bytes, *, durable: bool = True) -> None:
        with self._errors("write", path):
            self._client().put(self._key(path), data)

    def create(self, path: str, data: bytes, *, durable: bool = True) -> bool:
        """Create the object; True if this very call made it.

        A client without an answer tries again, and the store may refuse because of the object that the first try made.
        The stamp of each call decides, also if two writers create the same bytes.
        """
        client, key, stamp = self._client(), self._key(path), uuid.uuid4().hex
        with self._errors("create", path):
            try:
                if client.put_if_absent(key, data, stamp):
                    return True
            except UnclearAnswer:
                stat = client.stat(key)
                if stat is None:
                    # The request may still arrive, so the caller cannot count on either result.
                    raise
            else:
                # The key has an object, which may be this call's own.
                stat = client.stat(key)
            return stat is not None and stat.stamp == stamp

    def delete(self, *paths: str, durable: bool = True) -> None:
        if paths:
            with self._errors("delete", paths[0]):
                self._client().delete([self._key(path) for path in paths])

    def delete_folder(self, path: str) -> None:
        """Delete every object below a folder, which ends the folder, too; an absent folder is no error."""
        with self._errors("delete", path):
            client = self._client()
            objects = client.list(self._prefix(path), delimited=False).objects
            if objects:
                client.delete([entry.key for entry in objects])

    def stage(self, path: str, aside: str, *, durable: bool = True) -> ObjectStaged:
        check_inside(aside)
        return ObjectStaged(self._client(), self._key(path), self.uri(path))

    def flush(self, folders: Iterable[str], *, new: bool = False) -> None:
        """Do nothing: the store keeps every object that it has confirmed."""

    def sweep(self, folders: Iterable[str], older_than_s: float, *, empty: bool = False) -> None:
        """Give up the uploads below the table that killed processes never completed, in any folder."""
        with self._errors("sweep", ""):
            client = self._client()
            client.abort_uploads(self._prefix(""), client.now() - older_than_s)

    @property
    def _bucket(self) -> str:
        return self.path.partition("://")[2].partition("/")[0]

    def _client(self) -> ObjectClient:
        return _client(self.connect, self._bucket, self.options)

    def _key(self, path: str) -> str:
        """Return the key of the object at a path."""
        check_inside(path)
        return join(self.path.partition("://")[2].partition("/")[2].strip("/"), path)

    def _prefix(self, folder: str) -> str:
        """Return what the keys of all objects below a folder begin with."""
        key = self._key(folder)
        return f"{key}/" if key else ""

    def _files(self, objects: Iterable[Stat]) -> _Infos:
        """Return objects as files of the table, sorted by path, without sidecars and keys of empty folders."""
        skipped = len(self._prefix(""))
        infos = [FileInfo(entry.key[skipped:], entry.size, entry.modified) for entry in objects]
        # Some tools make an empty folder as a key that ends in "/".
        files = [info for info in infos if not info.path.endswith("/") and not is_sidecar(split(info.path)[1])]
        return sorted(files, key=lambda info: info.path)

    def _errors(self, operation: str, path: str, *, absence: bool = False) -> AbstractContextManager[None]:
        return storage_errors(operation, join(self.path, path), absence=absence, kinds=Exception)


_Infos = list[FileInfo]
_Known = dict[tuple[Connect, str, Options], ObjectClient]

_clients: _Known = {}
_lock = threading.Lock()
# A child process must not close its parent's clients: they share sockets.
_of_parents: list[_Known] = []


def _client(connect: Connect, bucket: str, options: Options) -> ObjectClient:
    """Return this process's client of a bucket, which all its threads share; ``connect`` makes it at first use."""
    with _lock:
        client = _clients.get((connect, bucket, options))
        if client is None:
            client = _clients[connect, bucket, options] = connect(bucket, dict(options))
        return client


def _forget_clients() -> None:
    """Give a forked child process clients of its own.

    The parent's are kept, since closing them would close shared sockets.
    """
    global _clients, _lock
    _of_parents.append(_clients)
    _clients, _lock = {}, threading.Lock()


os.register_at_fork(after_in_child=_forget_clients)
