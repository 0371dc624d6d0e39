"""Seekable files over ranges of bytes, and a part of a file as a file."""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import Any

import pyarrow as pa

# `open_part` reads smaller parts in one request: a request for each column would cost more.
_READ_WHOLE = 4 << 20


class SeekableInput(io.RawIOBase):
    """Bytes of a known number as a seekable file; a subclass fetches a range of them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._position = 0

    @abstractmethod
    def _between(self, start: int, end: int) -> Any:
        """Return the bytes from ``start`` up to ``end``, which both lie within the file."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        return bytes(self._next_bytes(size))

    def _next_bytes(self, size: int | None) -> Any:
        """Return up to ``size`` bytes from the position, and move it; all to the end for None or a negative size."""
        start = min(self._position, self._size)
        end = self._size if size is None or size < 0 else min(self._size, start + size)
        data = self._between(start, end)
        self._position = end
        return data


def open_part(source: Any, offset: int, size: int) -> Any:
    """Return ``size`` bytes of an open file from ``offset`` on as a seekable pyarrow ``NativeFile``, which closes it.

    ``source`` is of `Storage.open_input`. The caller reads it through the part alone, and knows that the part lies
    within. The bytes of a small part are read at once, and ``source`` is closed at once.
    """
    if size <= _READ_WHOLE:
        part = part_of(source, offset, size)
        source.close()
        return part
    return pa.PythonFile(_PartOfFile(source, offset, size), mode="r")


def part_of(source: Any, offset: int, size: int) -> Any:
    """Return what `open_part` does, but the file stays open."""
    if size <= _READ_WHOLE:
        source.seek(offset)
        return pa.BufferReader(source.read_buffer(size))
    return pa.PythonFile(_PartOfFile(source, offset, size, stays_open=True), mode="r")


class _PartOfFile(SeekableInput):
    """A range of bytes of an open file as a file."""

    def __init__(self, source: Any, offset: int, size: int, *, stays_open: bool = False) -> None:
        super().__init__(size)
        self._source = source
        self._offset = offset
        self._stays_open = stays_open

    def read_buffer(self, size: int) -> Any:
        """Return the next bytes without a copy. pyarrow calls the method by this name."""
        return self._next_bytes(size)

    def close(self) -> None:
        if not self.closed and not self._stays_open:
            self._source.close()
        super().close()

    def _between(self, start: int, end: int) -> Any:
        self._source.seek(self._offset + start)
        return self._source.read_buffer(end - start)


def in_memory(data: bytes) -> io.BytesIO:
    """Return bytes as a file. For many small reads, Arrow's reader takes twice the time."""
    return io.BytesIO(data)
