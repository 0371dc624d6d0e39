"""The checksum of a Parquet log block: of its headers and of its Parquet footer, whose pages have checksums already.

Parquet has no checksum of a footer, which names the columns, and a log block has none of its headers. pyhudi keeps the
CRC-32 of both in an entry of the footer, which other readers pass over. While the checksum is computed, its own digits
count as zeros.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from .log_blocks import BlockType, Header, LogBlock, damaged, described

KEY = "pyhudi.block.crc32"
PLACEHOLDER = "00000000"
# Thrift's compact protocol puts the field's type and the length of the digits between key and value.
_BEFORE_DIGITS = KEY.encode() + b"\x18\x08"
_TAIL = struct.Struct("<i4s")
_MAGIC = b"PAR1"


def seal(pieces: list[bytes], headers: Mapping[Header, str]) -> None:
    """Put the checksum of a block into the bytes of its Parquet file, in place.

    Args:
        pieces: The file's bytes, with the entry `KEY` whose value is `PLACEHOLDER`.
        headers: The block's.
    """
    tail = b""
    while len(tail) < _TAIL.size or len(tail) < _TAIL.size + _TAIL.unpack_from(tail, len(tail) - _TAIL.size)[0]:
        tail = pieces.pop() + tail
    start = len(tail) - _TAIL.size - _TAIL.unpack_from(tail, len(tail) - _TAIL.size)[0]
    digits = tail.index(_BEFORE_DIGITS, start) + len(_BEFORE_DIGITS)
    crc = _checksum(headers, tail[start:])
    pieces.append(tail[:digits] + b"%08x" % crc + tail[digits + len(PLACEHOLDER) :])


def check(block: LogBlock, footer: bytes) -> None:
    """Raise where a block's headers or footer are not what was written.

    Args:
        block: A Parquet block.
        footer: The bytes of its Parquet file from the footer on; a footer without a checksum passes.

    Raises:
        CorruptFileError: They differ from the checksum.
    """
    at = footer.find(KEY.encode())
    if at < 0:
        return
    digits = at + len(_BEFORE_DIGITS)
    kept = footer[digits : digits + len(PLACEHOLDER)]
    zeroed = footer[:digits] + PLACEHOLDER.encode() + footer[digits + len(PLACEHOLDER) :]
    if kept != b"%08x" % _checksum(block.headers, zeroed):
        raise damaged(block, "its headers and its Parquet footer do not match their checksum")


def _checksum(headers: Mapping[Header, str], footer: bytes) -> int:
    return zlib.crc32(footer, zlib.crc32(described(BlockType.PARQUET, headers)))
