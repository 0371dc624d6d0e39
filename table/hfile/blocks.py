"""The blocks of an HFile: a header, what the file's compression makes of the content, and checksums.

    magic 8 | size without header 4 | size of the content 4 | offset of the block before 8 | type of the checksums 1 |
    bytes a checksum 4 | size without checksums 4 | content, compressed | checksums of 4 bytes

All numbers are big-endian. Source: ``HFileBlock`` and ``HFileBlockType``; Apache HBase wrote the files of releases
before 1.1. Apache Hudi's own reader checks no checksum, and reads files without them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np

from ...errors import CorruptFileError
from .crc32c import crc32c

_HEADER = struct.Struct(">8siiqBii")
HEADER_BYTES = _HEADER.size
_BYTES_A_CHECKSUM = 16 << 10
_CHECKSUM_BYTES = 4
_NO_CHECKSUMS, _CRC32, _CRC32C = range(3)
_GZIP = 16 + zlib.MAX_WBITS
# Far beyond the largest block of Apache Hudi, whose blocks end after 1 MiB: one entry may be larger than a block.
_MOST_CONTENT = 1 << 30


class Magic(Enum):
    """What a block holds, by its first bytes."""

    DATA = b"DATABLK*"
    META = b"METABLKc"
    ROOT = b"IDXROOT2"
    LEAF = b"IDXLEAF2"
    INTERMEDIATE = b"IDXINTE2"
    INFO = b"FILEINF2"


class Compression(IntEnum):
    """How contents are compressed, by the numbers of trailers."""

    GZIP = 1
    NONE = 2


@dataclass(frozen=True, slots=True)
class Block:
    """The content of one block, uncompressed, and where the block ends."""

    content: bytes
    end: int


@dataclass(frozen=True, slots=True)
class BlockErrors:
    """Names the file and the block of an error; ``shown`` is the file with its path, as a sentence begins."""

    shown: str
    at: int

    def damaged(self, reason: str) -> CorruptFileError:
        return CorruptFileError(
            f"{self.shown} cannot be read: the block at byte {self.at} is damaged, {reason}.",
            "Restore the file from a backup.",
        )


def read_block(
    data: memoryview, start: int, compression: Compression, wanted: Sequence[Magic], errors: BlockErrors
) -> Block:
    """Return the block that begins at ``start`` in ``data``, the bytes of a file.

    Raises CorruptFileError, which ``errors`` makes, if it is damaged or of no ``wanted`` kind. ``compression`` is that
    in the file's trailer.
    """
    if len(data) - start < HEADER_BYTES:
        raise errors.damaged("for it breaks off in its header")
    magic, size, content_size, _, checksum_type, per_checksum, on_disk = _HEADER.unpack_from(data, start)
    if magic not in {expected.value for expected in wanted}:
        raise errors.damaged(f"for it begins with {bytes(magic)!r}")
    end = start + HEADER_BYTES + size
    if not HEADER_BYTES <= on_disk <= HEADER_BYTES + size or not 0 <= content_size <= _MOST_CONTENT:
        raise errors.damaged("for its header states sizes that contradict each other")
    if end > len(data):
        raise errors.damaged(f"for it has {size} bytes, as it states, and the file ends before")
    block = data[start : start + on_disk]
    _check_checksums(block, data[start + on_disk : end], checksum_type, per_checksum, errors)
    return Block(_inflated(block[HEADER_BYTES:], content_size, compression, errors), end)


def _check_checksums(
    block: memoryview, checksums: memoryview, checksum_type: int, per_checksum: int, errors: BlockErrors
) -> None:
    """Raise if a block's bytes do not match their checksums; a block without checksums passes.

    Each checksum is of ``per_checksum`` bytes of the block, the last of what remains.
    """
    if checksum_type == _NO_CHECKSUMS:
        return
    if checksum_type not in (_CRC32, _CRC32C) or per_checksum <= HEADER_BYTES:
        raise errors.damaged(f"for it has checksums of the type {checksum_type}, each of {per_checksum} bytes")
    starts = range(0, len(block), per_checksum)
    if len(checksums) != len(starts) * _CHECKSUM_BYTES:
        raise errors.damaged(f"for it has {len(checksums)} bytes of checksums")
    checksum = zlib.crc32 if checksum_type == _CRC32 else crc32c
    computed = [checksum(block[start : start + per_checksum]) for start in starts]
    if not np.array_equal(np.frombuffer(checksums, ">u4"), np.array(computed, np.uint32)):
        raise errors.damaged("for its bytes do not match their checksums")


def _inflated(data: memoryview, size: int, compression: Compression, errors: BlockErrors) -> bytes:
    """Return a block's content, uncompressed, given the bytes behind its header.

    Raises CorruptFileError, which ``errors`` makes, if it does not have ``size`` bytes, as the header states.
    """
    if compression == Compression.NONE:
        content = bytes(data)
    else:
        inflater = zlib.decompressobj(_GZIP)
        try:
            # One byte more shows a content that is longer than the header states.
            content = inflater.decompress(data, size + 1)
        except zlib.error as error:
            raise errors.damaged(f"for its content cannot be inflated ({error})") from error
        if not inflater.eof:
            raise errors.damaged("for its content does not end where it states")
    if len(content) != size:
        raise errors.damaged(f"for its content has {len(content)} bytes, and it states {size}")
    return content


def write_block(magic: Magic, content: bytes, previous_start: int, compression: Compression) -> bytes:
    """Return a block; ``previous_start`` is where the last block of its kind begins, -1 for none."""
    packed = content
    if compression == Compression.GZIP:
        deflater = zlib.compressobj(wbits=_GZIP)
        packed = deflater.compress(content) + deflater.flush()
    on_disk = HEADER_BYTES + len(packed)
    count = -(-on_disk // _BYTES_A_CHECKSUM)
    size = len(packed) + count * _CHECKSUM_BYTES
    header = _HEADER.pack(magic.value, size, len(content), previous_start, _CRC32, _BYTES_A_CHECKSUM, on_disk)
    block = header + packed
    checksums = [zlib.crc32(block[at : at + _BYTES_A_CHECKSUM]) for at in range(0, on_disk, _BYTES_A_CHECKSUM)]
    return block + struct.pack(f">{count}I", *checksums)


def moved_block(data: bytes, previous_start: int, errors: BlockErrors) -> bytes | None:
    """Return a data block with another ``previous_start``, as in `write_block`, and otherwise the same bytes.

    None if its checksums are of a type that is slow to make. Raises if it is damaged, as far as its checksums
    tell.
    """
    magic, size, content_size, _, checksum_type, per_checksum, on_disk = _HEADER.unpack_from(data)
    if checksum_type == _CRC32C:
        return None
    if magic != Magic.DATA.value or len(data) != HEADER_BYTES + size or not HEADER_BYTES <= on_disk <= len(data):
        raise errors.damaged("for its header states sizes that contradict each other")
    _check_checksums(memoryview(data)[:on_disk], memoryview(data)[on_disk:], checksum_type, per_checksum, errors)
    header = _HEADER.pack(magic, size, content_size, previous_start, checksum_type, per_checksum, on_disk)
    if checksum_type == _NO_CHECKSUMS:
        return header + data[HEADER_BYTES:]
    # The header, which alone differs, is in the bytes of the first checksum.
    first_checksum = zlib.crc32(data[HEADER_BYTES : min(per_checksum, on_disk)], zlib.crc32(header))
    checksum = struct.pack(">I", first_checksum)
    return header + data[HEADER_BYTES:on_disk] + checksum + data[on_disk + _CHECKSUM_BYTES :]
