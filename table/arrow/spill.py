"""Rows that wait on disk: a file with one Arrow stream for each key and flush, and an index at its end.

Layout: Arrow IPC streams (LZ4) one after another, then the index as JSON, then the index's length as 8 bytes and its
CRC-32 as 4, big-endian. The index lists ``[key, offset, length, CRC-32, rows, Arrow bytes]``, sorted by the keys within
each flush, in the order of the flushes. Callers choose the keys.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...errors import StorageError
from ...storage.base import Storage

_COPIED_AT_ONCE = 32 << 20
# Pieces are small, and several threads are at work on them already.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_END = struct.Struct(">QI")


@dataclass(frozen=True, slots=True)
class SpillPiece:
    """The rows of one key in one flush: the place of their Arrow stream in the file, its checksum and size."""

    key: Any
    offset: int
    length: int
    checksum: int
    rows: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class SpillFile:
    """A finished spill: its path below the storage's root, the file's size and its rows' Arrow bytes."""

    path: str
    size: int
    nbytes: int


class SpillWriter:
    """Writes a spill file, local to the task or in the table's storage if another process reads it.

    ``aside`` is the folder in which the file grows until it is published, "" for the storage's root.
    """

    def __init__(self, storage: Storage, path: str, aside: str) -> None:
        self._path = path
        self._staged = storage.stage(path, aside, durable=False)
        self._position = 0
        self._pieces: list[SpillPiece] = []

    def append(self, rows: Mapping[Any, Sequence[pa.RecordBatch]]) -> None:
        """Add one flush of rows by key; keys are texts, numbers or tuples of these, so that they can be sorted."""
        for key in sorted(rows):
            batches = rows[key]
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batches[0].schema, options=_OPTIONS) as stream:
                for batch in batches:
                    stream.write_batch(batch)
            data = sink.getvalue()
            self._staged.stream.write(data)
            count, nbytes = sum(b.num_rows for b in batches), sum(b.nbytes for b in batches)
            self._pieces.append(SpillPiece(key, self._position, data.size, zlib.crc32(data), count, nbytes))
            self._position += data.size

    def publish(self) -> SpillFile:
        """Write the index, and put the file into its place, so that readers may open it."""
        pieces = [[p.key, p.offset, p.length, p.checksum, p.rows, p.nbytes] for p in self._pieces]
        index = json.dumps(pieces).encode()
        self._staged.stream.write(index)
        self._staged.stream.write(_END.pack(len(index), zlib.crc32(index)))
        size = self._staged.publish()
        return SpillFile(self._path, size, sum(p.nbytes for p in self._pieces))

    def discard(self) -> None:
        """Delete what was written, unless it was published."""
        self._staged.discard()


def local_spills(local: Storage) -> Callable[[], tuple[SpillWriter, Storage]]:
    """Return a function that makes the next spill file in a local folder, with the storage of that folder."""
    opened = iter(range(1 << 62))

    def open_spill() -> tuple[SpillWriter, Storage]:
        return SpillWriter(local, f"part-{next(opened)}.spill", ""), local

    return open_spill


class SpillReader:
    """Reads a spill file, which is open only during a read: a commit may have thousands. Raises StorageError."""

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        with self._open() as file:
            size = file.size()
            length, checksum = _END.unpack(file.read_at(_END.size, size - _END.size))
            index = json.loads(_checked_bytes(file, size - _END.size - length, length, checksum))
        # JSON makes a list of a tuple.
        self.pieces = [SpillPiece(tuple(key) if isinstance(key, list) else key, *rest) for key, *rest in index]

    def batches(self, spill_piece: SpillPiece, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one piece, only ``columns`` of them if these are given."""
        with self._open() as file:
            data = pa.py_buffer(_checked_bytes(file, spill_piece.offset, spill_piece.length, spill_piece.checksum))
            stream = pa.ipc.open_stream(data, options=pa.ipc.IpcReadOptions(use_threads=False))
            if columns is not None:
                # pyarrow does not even decompress the other columns.
                positions = [stream.schema.get_field_index(name) for name in columns]
                options = pa.ipc.IpcReadOptions(included_fields=positions, use_threads=False)
                stream = pa.ipc.open_stream(data, options=options)
            yield from stream

    def delete(self) -> None:
        self._storage.delete(self._path, durable=False)

    def _open(self) -> AbstractContextManager[Any]:
        return _opened(self._storage, self._path)


def bring_near(storage: Storage, spill: SpillFile, local: Storage) -> SpillReader:
    """Open a spill, a file of rows by key in ``storage``. A remote spill is first copied to the root of ``local``.

    The rows of each key are read separately, which would take a request each. The reader's `delete` deletes the copy.
    """
    if not storage.remote:
        return SpillReader(storage, spill.path)
    name = f"{uuid.uuid4().hex}.spill"
    staged = local.stage(name, "", durable=False)
    try:
        with _opened(storage, spill.path) as file:
            while data := file.read(_COPIED_AT_ONCE):
                staged.stream.write(data)
        staged.publish()
    finally:
        # After `publish` it does nothing.
        staged.discard()
    return SpillReader(local, name)


def _checked_bytes(file: Any, offset: int, length: int, checksum: int) -> bytes:
    """Return bytes of the file if they have the checksum; ValueError if not, or if they lie outside the file."""
    # Check before reading: a damaged length may exceed the memory.
    if offset < 0:
        raise ValueError("their index is longer than the file")
    data: bytes = file.read_at(length, offset)
    if zlib.crc32(data) != checksum:
        raise ValueError("their checksum differs")
    return data


@contextmanager
def _opened(storage: Storage, path: str) -> Iterator[Any]:
    """Open a spill file; an error that means lost or damaged rows becomes a `StorageError`."""
    try:
        with storage.open_input(path) as file:
            yield file
    except (FileNotFoundError, ValueError, OverflowError, struct.error) as error:
        raise StorageError(
            f"Rows that a task left in {path} of {storage.path} are gone, cut off or damaged ({error}).",
            "Write again; if it happens again, look for what removes files below .hoodie/.pyhudi, and at the disk.",
        ) from error
