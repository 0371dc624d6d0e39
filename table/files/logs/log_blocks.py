"""The blocks of a log file: what each says of itself, and the bytes around its content.

Source: ``HoodieLogFormat``, ``HoodieLogBlock`` and ``HoodieLogFileReader``. All numbers are big-endian:

    magic 6 | length 8 | version 4 | type 4 | headers | content length 8 | content | no footers 4 | trailer 8

The length counts the bytes behind it, and the trailer the bytes before it: they tell if a block was written in part.
No writer writes footers, so the number of footers is 0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from ....errors import CorruptFileError, UnsupportedTableError
from ....storage.bounds import MOST_OF_PROPERTIES

MAGIC = b"#HUDI#"
VERSION = 1

_LENGTH = struct.Struct(">q")
_INT = struct.Struct(">i")
_VERSION_AND_TYPE = struct.Struct(">ii")
_ENTRY = struct.Struct(">ii")
_TAIL = struct.Struct(">iq")
# The bytes behind the length of an empty block: version, type, no headers, no content, no footers, trailer.
_LEAST = _VERSION_AND_TYPE.size + _INT.size + _LENGTH.size + _TAIL.size
PREFIX = len(MAGIC) + _LENGTH.size
_SHORTEST_TIME = len("yyyyMMddHHmmss")

Read = Callable[[int, int], bytes]


class BlockType(IntEnum):
    """What a block holds, by the numbers that log files store."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO = 3
    HFILE = 4
    PARQUET = 5
    CDC = 6


class Header(IntEnum):
    """What a block may say of itself, by the numbers that log files store."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


_TYPES = frozenset(BlockType) - {BlockType.CORRUPT}
_HEADERS = frozenset(Header)
DATA_BLOCKS = frozenset({BlockType.AVRO, BlockType.HFILE, BlockType.PARQUET, BlockType.CDC})
ROLLBACK = "0"


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block without its content; of its headers it lacks the positions of rows, which nothing here trusts."""

    path: str
    offset: int
    type: BlockType
    headers: Mapping[Header, str] = field(hash=False)
    content_offset: int
    content_size: int

    @property
    def instant_time(self) -> str:
        """Requested time of the instant that wrote it; empty if the block is corrupt."""
        return self.headers.get(Header.INSTANT_TIME, "")

    @property
    def schema(self) -> str | None:
        """The Avro schema of its rows, JSON, with meta columns."""
        return self.headers.get(Header.SCHEMA)

    @property
    def is_data(self) -> bool:
        return self.type in DATA_BLOCKS

    @property
    def is_partial(self) -> bool:
        """Whether its rows have some columns only, and leave the others as they are."""
        return self.headers.get(Header.IS_PARTIAL, "").lower() == "true"

    @property
    def compacted_times(self) -> tuple[str, ...]:
        """Of a block that log compaction wrote: the instants that it replaces."""
        return tuple(filter(None, self.headers.get(Header.COMPACTED_BLOCK_TIMES, "").split(",")))

    @property
    def target_instant_time(self) -> str | None:
        """Of a command: the instant that it rolls back."""
        return self.headers.get(Header.TARGET_INSTANT_TIME)

    @property
    def is_rollback(self) -> bool:
        return self.type == BlockType.COMMAND and self.headers.get(Header.COMMAND_BLOCK_TYPE) == ROLLBACK

    @property
    def shown(self) -> str:
        return f"the block at byte {self.offset} of the log file {self.path}"


@dataclass(frozen=True, slots=True)
class BlockHead:
    """What comes before a block's content: its type and its headers."""

    type: BlockType
    headers: Mapping[Header, str]

    @property
    def described(self) -> bytes:
        """The bytes of the block from its version to its last header."""
        texts = [(ordinal, text.encode()) for ordinal, text in self.headers.items()]
        entries = b"".join(_ENTRY.pack(ordinal, len(text)) + text for ordinal, text in texts)
        return b"".join((_VERSION_AND_TYPE.pack(VERSION, self.type), _INT.pack(len(texts)), entries))

    def framed(self, content: Sequence[Any]) -> list[Any]:
        """Return the parts of a whole block: what comes before a content, the content, and the trailer."""
        described, size = self.described, sum(memoryview(part).nbytes for part in content)
        length = len(described) + _LENGTH.size + size + _TAIL.size
        beginning = b"".join((MAGIC, _LENGTH.pack(length), described, _LENGTH.pack(size)))
        return [beginning, *content, _TAIL.pack(0, len(beginning) + size + _INT.size)]


def sound_end(read: Read, offset: int, size: int) -> int | None:
    """Return where a block ends, None if it is torn: its length and its trailer differ, or no block follows.

    The block begins at ``offset``, and the file has ``size`` bytes.
    """
    prefix = read(offset, PREFIX)
    if len(prefix) < PREFIX or not prefix.startswith(MAGIC):
        return None
    (length,) = _LENGTH.unpack_from(prefix, len(MAGIC))
    end: int = offset + PREFIX + length
    if length < _LEAST or end > size:
        return None
    trailer_and_next = read(end - _LENGTH.size, _LENGTH.size + len(MAGIC))
    (trailer,) = _LENGTH.unpack_from(trailer_and_next)
    if trailer != length + len(MAGIC) or trailer_and_next[_LENGTH.size :] not in (b"", MAGIC):
        return None
    return end


@dataclass(frozen=True, slots=True)
class BlockParser:
    """Parses one sound block, from ``offset`` to ``end``; ``read`` returns bytes by position and length.

    A block that is ``timed`` has to name its instant; those of the archive of table version 6 are of no instant.
    """

    read: Read
    path: str
    offset: int
    end: int
    timed: bool = True

    def parse(self) -> LogBlock:
        """Return the block; raises `CorruptFileError`, or `UnsupportedTableError` if a newer release wrote it."""
        position = self.offset + PREFIX
        version, ordinal = _VERSION_AND_TYPE.unpack(self.read(position, _VERSION_AND_TYPE.size))
        if version != VERSION:
            raise self._unsupported(f"is of version {version} of the format of logs")
        if ordinal not in _TYPES:
            raise self._unsupported(f"is of the unknown type {ordinal}")
        headers, position = self._headers(position + _VERSION_AND_TYPE.size)
        (content_size,) = _LENGTH.unpack(self.read(position, _LENGTH.size))
        content_offset, content_end = position + _LENGTH.size, self.end - _TAIL.size
        if content_size != content_end - content_offset or self.read(content_end, _INT.size) != bytes(_INT.size):
            raise damaged(self, "its content does not end where the block does")
        if self.timed and not headers.get(Header.INSTANT_TIME):
            raise damaged(self, "it names no instant")
        if ordinal == BlockType.COMMAND and content_size:
            raise damaged(self, "it is a command, and commands have no content")
        block = LogBlock(self.path, self.offset, BlockType(ordinal), headers, content_offset, content_size)
        # Readers leave out the blocks of these instants, so that a damaged header could hide rows.
        if any(len(time) < _SHORTEST_TIME or not time.isdigit() for time in block.compacted_times):
            raise damaged(self, "it says that it replaces a block of no instant")
        return block

    def _headers(self, position: int) -> tuple[dict[Header, str], int]:
        """Return the headers, less the positions of rows, and where they end."""
        end = self.end - _LENGTH.size - _TAIL.size
        (count,) = _INT.unpack(self.read(position, _INT.size))
        position += _INT.size
        if not 0 <= count <= len(Header):
            raise damaged(self, f"it has {count} headers")
        headers: dict[Header, str] = {}
        for _ in range(count):
            if position + _ENTRY.size > end:
                raise damaged(self, "its headers do not end within it")
            ordinal, length = _ENTRY.unpack(self.read(position, _ENTRY.size))
            position += _ENTRY.size
            if not 0 <= length <= end - position:
                raise damaged(self, "its headers do not end within it")
            if ordinal not in _HEADERS:
                raise self._unsupported(f"has the unknown header {ordinal}")
            # The positions of rows may be long, and nothing here trusts them.
            if ordinal != Header.RECORD_POSITIONS:
                headers[Header(ordinal)] = self._text(position, length)
            position += length
        return headers, position

    def _text(self, at: int, length: int) -> str:
        """Return a header's text."""
        if length > MOST_OF_PROPERTIES:
            raise damaged(self, f"a header of it has {length} bytes")
        try:
            return self.read(at, length).decode()
        except UnicodeDecodeError:
            raise damaged(self, "a header of it is no text") from None

    def _unsupported(self, what: str) -> UnsupportedTableError:
        return UnsupportedTableError(
            f"The block at byte {self.offset} of the log file {self.path} {what}, which pyhudi does not read.",
            "Compact the table with the release of Apache Hudi that wrote it, then run this again.",
        )


def damaged(block: LogBlock | BlockParser, reason: str) -> CorruptFileError:
    """Return the error for a block that cannot be read."""
    return CorruptFileError(
        f"The block at byte {block.offset} of the log file {block.path} cannot be read: {reason}.",
        "Restore the file from a backup, or roll back the instant in its name.",
    )
