"""The checksum of a log block: a CRC-32 of its headers and of the bytes of its content that have no other checksum.

The format of log files has no checksum. pyhudi keeps one where the format allows an entry that other readers pass over:
Parquet blocks in an entry of the Parquet footer, whose pages have checksums already; Avro and delete blocks in the
header that identifies a block. While the checksum is computed, its own digits count as zeros.

Source: ``BaseHoodieLogRecordReader`` of Apache Hudi 1.0 reads that header as the number of an attempt and of a block,
parted by a comma, ignores what follows a second comma, and drops blocks if an instant has two attempts. It takes
blocks without the header for those of attempt 0. Apache Hudi 1.1 and 1.2 do not read the header.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping

from .log_blocks import BlockHead, BlockType, Header, LogBlock, damaged

KEY = "pyhudi.block.crc32"
PLACEHOLDER = "00000000"
# Thrift's compact protocol puts the field's type and the length of the digits between key and value.
_BEFORE_DIGITS = KEY.encode() + b"\x18\x08"
_TAIL = struct.Struct("<i4s")
# Attempt and number, the same for all blocks, so that no reader drops a block as another attempt's.
_ATTEMPT_AND_NUMBER = "0,0,"


def sealed(head: BlockHead, content: Iterable[bytes]) -> BlockHead:
    """Return the head of an Avro block or a delete block with its checksum, given its content in parts."""
    crc = zlib.crc32(_with_digits(head, PLACEHOLDER).described)
    for part in content:
        crc = zlib.crc32(part, crc)
    return _with_digits(head, f"{crc:08x}")


def _with_digits(head: BlockHead | LogBlock, digits: str) -> BlockHead:
    """Return a block's head with these digits as its checksum."""
    return BlockHead(head.type, {**head.headers, Header.BLOCK_IDENTIFIER: _ATTEMPT_AND_NUMBER + digits})


class BlockCheck:
    """Checks an Avro or delete block's content by its checksum, if it has one, while ``read`` reads it."""

    def __init__(self, block: LogBlock, read: Callable[[int], bytes]) -> None:
        self._block = block
        self._read = read
        self._stored = None
        identifier = block.headers.get(Header.BLOCK_IDENTIFIER, "")
        if identifier.startswith(_ATTEMPT_AND_NUMBER):
            self._stored = identifier.removeprefix(_ATTEMPT_AND_NUMBER)
            self._crc = zlib.crc32(_with_digits(block, PLACEHOLDER).described)

    def read(self, size: int) -> bytes:
        """Return the next bytes of the content, and count them in the checksum."""
        data = self._read(size)
        if self._stored is not None:
            self._crc = zlib.crc32(data, self._crc)
        return data

    def end(self) -> None:
        """Raise `CorruptFileError` if headers or content, which was read to its end, do not match the checksum."""
        if self._stored is not None and self._stored != f"{self._crc:08x}":
            raise damaged(self._block, "its headers and its content do not match their checksum")


def seal_parquet(parts: list[bytes], headers: Mapping[Header, str]) -> None:
    """Put a block's checksum in place of `PLACEHOLDER` in its Parquet file, given in parts."""
    tail = b""
    # The footer may lie in several parts, the last of which tells how long it is.
    while len(tail) < _TAIL.size or len(tail) < _TAIL.size + _TAIL.unpack_from(tail, len(tail) - _TAIL.size)[0]:
        tail = parts.pop() + tail
    start = len(tail) - _TAIL.size - _TAIL.unpack_from(tail, len(tail) - _TAIL.size)[0]
    digits = tail.index(_BEFORE_DIGITS, start) + len(_BEFORE_DIGITS)
    crc = _checksum(headers, tail[start:])
    parts.append(tail[:digits] + b"%08x" % crc + tail[digits + len(PLACEHOLDER) :])


def check_parquet(block: LogBlock, footer: bytes) -> None:
    """Raise `CorruptFileError` if headers or footer do not match the checksum; a footer without one passes."""
    key_at = footer.find(KEY.encode())
    if key_at < 0:
        return
    digits = key_at + len(_BEFORE_DIGITS)
    stored = footer[digits : digits + len(PLACEHOLDER)]
    zeroed = footer[:digits] + PLACEHOLDER.encode() + footer[digits + len(PLACEHOLDER) :]
    if stored != b"%08x" % _checksum(block.headers, zeroed):
        raise damaged(block, "its headers and its Parquet footer do not match their checksum")


def _checksum(headers: Mapping[Header, str], footer: bytes) -> int:
    """Return the CRC-32 of a Parquet block's headers and of its footer, whose own digits are zeros."""
    return zlib.crc32(footer, zlib.crc32(BlockHead(BlockType.PARQUET, headers).described))
