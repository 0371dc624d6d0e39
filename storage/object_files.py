"""Files of object stores as streams: ranged reads, and uploads that become visible on completion."""

from __future__ import annotations

import io
import logging
import uuid
from typing import Any, Protocol

from ..errors import PyHudiError
from .base import failed
from .inputs import SeekableInput

logger = logging.getLogger("pyhudi")

# The first request brings a Parquet footer, or the whole of a small file.
TAIL = 1 << 20
# Of an S3 upload: a part has at least 5 MiB, an upload at most 10,000 parts.
PART = 16 << 20


class Ranges(Protocol):
    """Reads bytes of an object."""

    def get_tail(self, key: str, length: int) -> tuple[bytes, int]:
        """Return an object's last ``length`` bytes, or all if it is shorter, and its size."""

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Return an object's bytes from ``start`` up to ``end``, which lie within it."""


class Upload(Protocol):
    """An object that is sent in parts and appears when it is complete."""

    def add(self, data: bytes) -> None:
        """Send the next part; a failure may show up in a later call."""

    def complete(self) -> None:
        """Make the object visible, in place of any object of the key."""

    def abort(self) -> None:
        """Give the parts up."""


class Uploads(Protocol):
    """Makes objects, also those too large for one request."""

    def put(self, key: str, data: bytes) -> None:
        """Put an object in place of any object of the key."""

    def upload(self, key: str, stamp: str) -> Upload:
        """Begin an object that is sent in parts; `ObjectClient.stat` shows its stamp."""

    def abort_uploads(self, prefix: str, before: float) -> None:
        """Give up the uploads of keys with a prefix that began before a moment in epoch seconds."""


class ObjectInput(SeekableInput):
    """An object as a seekable file; every read is one answer of the store, or comes from the tail.

    ``shown`` is the path as the user knows it. Raises FileNotFoundError if there is no such object.
    """

    def __init__(self, client: Ranges, key: str, shown: str) -> None:
        self._client = client
        self._key = key
        self._shown = shown
        self._tail, size = client.get_tail(key, TAIL)
        super().__init__(size)

    def _between(self, start: int, end: int) -> bytes:
        """Return bytes of the object, from its tail in memory as far as that reaches, the rest by a request."""
        # The tail in memory begins there.
        kept_from = self._size - len(self._tail)
        if start >= kept_from:
            return self._tail[start - kept_from : end - kept_from]
        try:
            fetched = self._client.get_range(self._key, start, min(end, kept_from))
        except PyHudiError:
            raise
        except Exception as error:
            raise failed("read", self._shown, error) from error
        return fetched if end <= kept_from else fetched + self._tail[: end - kept_from]


class ObjectStaged:
    """A file that grows in memory and, beyond one part, in an upload that no reader sees before its completion."""

    def __init__(self, client: Uploads, key: str, shown: str) -> None:
        self._client = client
        self._key = key
        self._shown = shown
        self._sink = _Sink(client, key, shown)
        self.stream: Any = self._sink

    def publish(self) -> int:
        """Make the object visible: by one request if it fits into one part, else by completing the upload."""
        sink = self._sink
        sink.close()
        try:
            if sink.upload is None:
                self._client.put(self._key, bytes(sink.waiting))
            else:
                if sink.waiting:
                    sink.upload.add(bytes(sink.waiting))
                sink.upload.complete()
        except PyHudiError:
            raise
        except Exception as error:
            raise failed("publish", self._shown, error) from error
        # Leave nothing for `discard` to give up.
        sink.upload, sink.waiting = None, bytearray()
        return sink.size

    def discard(self) -> None:
        """Give up the parts that were sent; a failure is logged, as the parts are invisible."""
        upload, self._sink.upload = self._sink.upload, None
        self._sink.close()
        if upload is None:
            return
        try:
            upload.abort()
        except Exception:
            # No reader sees the parts, and a later write gives up old uploads when it starts.
            logger.warning("the unfinished upload of %s stays for now", self._shown, exc_info=True)


class _Sink(io.RawIOBase):
    """Sends the bytes part by part; errors name the table's file."""

    def __init__(self, client: Uploads, key: str, shown: str) -> None:
        self._client = client
        self._key = key
        self._shown = shown
        self.upload: Upload | None = None
        self.waiting = bytearray()
        self.size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size

    def write(self, data: Any, /) -> int:
        """Take bytes, and send the whole parts among them once there is more than one part."""
        if self.closed:
            raise ValueError(f"{self._shown} is published or given up")
        count = memoryview(data).nbytes
        self.waiting += data
        self.size += count
        if len(self.waiting) > PART:
            try:
                self._send_parts()
            except PyHudiError:
                raise
            except Exception as error:
                raise failed("write", self._shown, error) from error
        return count

    def _send_parts(self) -> None:
        """Send the whole parts among the waiting bytes, and begin the upload before the first part."""
        if self.upload is None:
            self.upload = self._client.upload(self._key, uuid.uuid4().hex)
        bytes_of_parts = len(self.waiting) // PART * PART
        for start in range(0, bytes_of_parts, PART):
            self.upload.add(bytes(memoryview(self.waiting)[start : start + PART]))
        del self.waiting[:bytes_of_parts]
