"""Files copied within a store: whole or not at all, and with the bytes that were read."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import NamedTuple

from .base import Storage

_CHUNK = 1 << 22


class Checksum(NamedTuple):
    """The number of bytes of a file, and their CRC-32."""

    size: int
    crc: int


def checksum_of(storage: Storage, path: str) -> Checksum:
    """Return the checksum of a file; FileNotFoundError if there is no such file."""
    size = crc = 0
    with storage.open_input(path) as stream:
        while data := stream.read(_CHUNK):
            size, crc = size + len(data), zlib.crc32(data, crc)
    return Checksum(size, crc)


def copy_file(
    storage: Storage, source: str, target: str, aside: str, check: Callable[[Checksum], None] = lambda read: None
) -> Checksum:
    """Copy a file from ``source`` to ``target``, and return the checksum of the bytes that were read.

    ``check`` gets that checksum before the copy, which grows in the folder ``aside``, becomes visible; it may raise.
    `Storage.flush` of the target's folder makes its name outlast a power cut.
    """
    size = crc = 0
    with storage.open_input(source) as stream:
        staged = storage.stage(target, aside)
        try:
            while data := stream.read(_CHUNK):
                size, crc = size + len(data), zlib.crc32(data, crc)
                staged.stream.write(data)
            check(Checksum(size, crc))
            staged.publish()
        except BaseException:
            staged.discard()
            raise
    return Checksum(size, crc)
