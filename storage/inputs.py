"""Files that are read in place: whatever gives bytes from between two places, and a part of a file."""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import Any

import pyarrow as pa

# Smaller parts are read at once: a request of its own for each column would cost more.
_READ_WHOLE = 4 << 20


class SeekableInput(io.RawIOBase):
    """Bytes of a known number as a seekable file; a subclass says which lie between two places.

    Args:
        size: How many bytes there are.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._position = 0

    @abstractmethod
    def _between(self, start: int, end: int) -> Any:
        """Return the bytes from one place up to another, both of which are within."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes, all that are left by default."""
        return bytes(self._next(size))

    def _next(self, size: int | None) -> Any:
        start = min(self._position, self._size)
        end = self._size if size is None or size < 0 else min(self._size, start + size)
        data = self._between(start, end)
        self._position = end
        return data


def open_part(source: Any, offset: int, size: int) -> Any:
    """Return some bytes of an open file as a seekable pyarrow ``NativeFile``; closing it closes the file.

    Args:
        source: What `Storage.open_input` returned; it is read through the part alone from now on.
        offset: Where the part begins.
        size: How many bytes it has; that they lie within the file is known.
    """
    if size <= _READ_WHOLE:
        source.seek(offset)
        whole = source.read_buffer(size)
        source.close()
        return pa.BufferReader(whole)
    return pa.PythonFile(_Part(source, offset, size), mode="r")


class _Part(SeekableInput):
    """The bytes of an open file from one place on, as many as there are said to be."""

    def __init__(self, source: Any, offset: int, size: int) -> None:
        super().__init__(size)
        self._source = source
        self._offset = offset

    def read_buffer(self, size: int) -> Any:
        """Return the next bytes as pyarrow has them, without a copy; pyarrow asks for them by this name."""
        return self._next(size)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._source.close()
        super().close()

    def _between(self, start: int, end: int) -> Any:
        self._source.seek(self._offset + start)
        return self._source.read_buffer(end - start)


def in_memory(data: bytes) -> io.BytesIO:
    """Return bytes that are read as a file is; where many small pieces are, Arrow's reader takes twice the time."""
    return io.BytesIO(data)
