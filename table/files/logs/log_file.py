"""One log file: its blocks read one by one, and rows and deletes written as blocks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ....errors import CorruptFileError, StorageError, UnsupportedTableError
from ....storage.base import Storage, storage_errors
from ..base_file import BaseFileWriter
from ..column_bounds import BoundsOfRows, ColumnBounds, of_parts
from ..file_group import LogFile
from ..names import RUN_AGAIN, met_at_file
from ..output import Output
from . import avro_rows, block_checksum, delete_block
from .delete_block import Deletes
from .log_blocks import MAGIC, BlockHead, BlockParser, BlockType, Header, LogBlock, sound_end

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger("pyhudi")

# Bytes read from a block's beginning on, enough for its headers with the schema: over a network in one request.
_AHEAD_REMOTE = 256 << 10
_AHEAD = 16 << 10
_SEARCHED = 1 << 20


def read_blocks(
    storage: Storage,
    path: str,
    check_size: Callable[[int], None] = lambda size: None,
    *,
    passes_over_damage: bool = False,
) -> Iterator[LogBlock]:
    """Yield the blocks of a log file in their order, without contents; each corrupt stretch as one block.

    `read_log` reads the log files of file slices, and raises if they are damaged. With ``passes_over_damage`` a
    whole block whose headers are invalid counts as corrupt, too, instead of raising. ``check_size`` gets the file's
    size first.
    """
    with storage_errors("read", path), open_log(storage, path) as source:
        reader = _BlockReader(source, path, _AHEAD_REMOTE if storage.remote else _AHEAD, passes_over_damage)
        check_size(reader.size)
        yield from reader.blocks()


def blocks_of(storage: Storage, path: str, source: Any) -> Iterator[LogBlock]:
    """Yield the blocks as `read_blocks` does, of a log file that is open; in between, others may read from it."""
    ahead = _AHEAD_REMOTE if storage.remote else _AHEAD
    yield from _BlockReader(source, path, ahead, passes_over_damage=False).blocks()


def blocks_in(data: bytes, path: str) -> Iterator[LogBlock]:
    """Yield the blocks of a file of the archive of table version 6, whose bytes were read: they are of no instant."""
    yield from _BlockReader(pa.BufferReader(data), path, _AHEAD, passes_over_damage=False, timed=False).blocks()


def writers_in(storage: Storage, log: LogFile) -> frozenset[str]:
    """Return the requested times of the instants whose blocks a log file holds."""
    return frozenset(block.instant_time for block in read_blocks(storage, log.path) if block.type != BlockType.CORRUPT)


def open_log(storage: Storage, path: str) -> Any:
    """Open a log file; StorageError, by which a query may be run again, if it is gone."""
    try:
        return storage.open_input(path)
    except FileNotFoundError as error:
        raise StorageError(
            f"The log file {path} of the table {storage.path} was removed while it was needed.",
            RUN_AGAIN,
            met=met_at_file(path),
        ) from error


class _BlockReader:
    """Finds the blocks of a log file, and the next sound block behind a torn one.

    ``ahead`` is how many bytes it reads at once, at least. Of a file that is ``timed`` each block has to name its
    instant. ``passes_over_damage`` is as in `read_blocks`.
    """

    def __init__(self, source: Any, path: str, ahead: int, passes_over_damage: bool, *, timed: bool = True) -> None:
        self._passes_over_damage = passes_over_damage
        self._timed = timed
        self._source = source
        self._path = path
        self.size: int = source.size()
        self._ahead = ahead
        self._window = b""
        self._window_at = 0

    def blocks(self) -> Iterator[LogBlock]:
        """Yield the blocks in their order, each torn or corrupt stretch as one block; it is logged."""
        start = 0
        while start < self.size:
            if self.size - start == len(MAGIC) and self._read(start, len(MAGIC)) == MAGIC:
                return  # a writer of Apache Hudi's that failed before its first block
            end = sound_end(self._read, start, self.size)
            if end is None:
                end = self._next_sound(start)
                logger.warning(
                    "%s has a corrupt or torn block at byte %s; %s bytes are passed over",
                    self._path,
                    start,
                    end - start,
                )
                yield LogBlock(self._path, start, BlockType.CORRUPT, {}, start, end - start)
            else:
                yield self._parsed_block(start, end)
            start = end

    def _parsed_block(self, at: int, end: int) -> LogBlock:
        """Return a sound block; one with invalid headers counts as corrupt if damage is passed over, or raises."""
        try:
            return BlockParser(self._read, self._path, at, end, self._timed).parse()
        except (CorruptFileError, UnsupportedTableError):
            if not self._passes_over_damage:
                raise
            return LogBlock(self._path, at, BlockType.CORRUPT, {}, at, end - at)

    def _next_sound(self, at: int) -> int:
        """Return where the next sound block begins, or the file's size if there is none."""
        while True:
            at = self._find_magic(at + 1)
            if at == self.size or sound_end(self._read, at, self.size) is not None:
                return at

    def _find_magic(self, at: int) -> int:
        """Return where the next magic bytes are, or the file's size."""
        while at < self.size:
            searched = self._read(at, _SEARCHED)
            offset = searched.find(MAGIC)
            if offset >= 0:
                return at + offset
            # The magic bytes may lie across the end of what was searched.
            at += max(len(searched) - len(MAGIC) + 1, 1)
        return self.size

    def _read(self, at: int, length: int) -> bytes:
        """Return bytes from a position on, fewer if the file ends; bytes read ahead are kept for the next call."""
        start = at - self._window_at
        if start < 0 or start + length > len(self._window):
            self._source.seek(at)
            self._window = self._source.read(min(max(length, self._ahead), self.size - at))
            self._window_at, start = at, 0
        return self._window[start : start + length]


_OUTPUT = Output()


@dataclass(slots=True, eq=False)
class LogFileWriter:
    """Writes rows and deletes as the blocks of one log file; a block is written when it is full.

    Rows come in ``schema``, which `file_schema` returned; ``partial`` rows leave other columns as they are.
    ``replaces`` are the instants whose blocks a log compaction replaces. ``size`` excludes rows that wait for their
    block.
    """

    stream: Any
    _: KW_ONLY
    instant_time: str
    schema: pa.Schema
    avro_schema: str
    data_format: BlockType = BlockType.PARQUET
    block_bytes: int = 256 << 20
    output: Output = _OUTPUT
    partial: bool = False
    replaces: Sequence[str] = ()
    size: int = field(default=0, init=False)
    blocks: int = field(default=0, init=False)
    _content: _ParquetContent | _AvroContent | None = field(default=None, init=False)
    _bounds: list[tuple[int, Sequence[ColumnBounds]]] = field(default_factory=list, init=False)

    def add_rows(self, batch: pa.RecordBatch) -> None:
        """Add rows in the order in which they come; a full block is written."""
        if batch.num_rows == 0:
            return
        if self._content is None:
            self._content = self._new_content()
        self._content.add(batch)
        if self._content.arrow_bytes >= self.block_bytes:
            self._end_rows()

    def add_deletes(self, deletes: Deletes) -> None:
        """Add deletes behind the rows that were added so far, in blocks of their own.

        Deletes with an order and deletes without it get separate blocks: other readers take no block that has both.
        """
        self._end_rows()
        for is_of_kind in (pc.invert(deletes.default), deletes.default):
            group = deletes.filter(is_of_kind)
            if len(group):
                self._write(BlockHead(BlockType.DELETE, self._headers), [delete_block.encode(group)])

    def close(self) -> None:
        """Write the rows that wait; the stream stays open."""
        self._end_rows()

    def statistics(self) -> tuple[ColumnBounds, ...] | None:
        """Return the bounds of the columns that the output names in all data blocks; None if it names none."""
        columns = self.output.statistics
        # Of a column that the file lacks nothing is known: rows of a log file may leave columns as they are.
        absent = [ColumnBounds(name, None, None, None) for name in columns if name not in self.schema.names]
        return (*of_parts(self._bounded_fields, self._bounds), *absent) if columns else None

    def abandon(self) -> None:
        """Drop the rows that wait for their block, as the file will not be used."""
        if self._content is not None:
            self._content.abandon()
        self._content = None

    def _new_content(self) -> _ParquetContent | _AvroContent:
        """Return the content of a new data block, which takes rows until it is full."""
        if self.data_format == BlockType.AVRO:
            return _AvroContent(BoundsOfRows(self._bounded_fields))
        parts, notes = _WrittenParts(), {block_checksum.KEY: block_checksum.PLACEHOLDER}
        sink = pa.PythonFile(parts, mode="w")
        writer = BaseFileWriter(sink, self.schema, self.avro_schema, self.output, notes=notes)
        return _ParquetContent(parts, writer, self._headers_of_rows)

    @property
    def _bounded_fields(self) -> list[pa.Field]:
        columns = self.output.statistics
        return [field for field in self.schema if field.name in columns and not pa.types.is_nested(field.type)]

    @property
    def _headers(self) -> Mapping[Header, str]:
        headers = {Header.INSTANT_TIME: self.instant_time, Header.SCHEMA: self.avro_schema}
        return {**headers, Header.COMPACTED_BLOCK_TIMES: ",".join(self.replaces)} if self.replaces else headers

    @property
    def _headers_of_rows(self) -> Mapping[Header, str]:
        return {**self._headers, Header.IS_PARTIAL: "true"} if self.partial else self._headers

    def _end_rows(self) -> None:
        """Write the data block to which rows were added last, if any."""
        if self._content is None:
            return
        ended_content, self._content = self._content, None
        content = ended_content.end()
        self._bounds.append((ended_content.rows, ended_content.bounds()))
        self._write(BlockHead(self.data_format, self._headers_of_rows), content)

    def _write(self, head: BlockHead, content: Sequence[Any]) -> None:
        """Write a block; the checksum of a Parquet block is in its content already."""
        if head.type != BlockType.PARQUET:
            head = block_checksum.sealed(head, content)
        for part in head.framed(content):
            self.stream.write(part)
            self.size += memoryview(part).nbytes
        self.blocks += 1


@dataclass(slots=True)
class _ParquetContent:
    """The rows of a Parquet block that is not full yet; ``arrow_bytes`` is their size in Arrow."""

    parts: _WrittenParts
    writer: BaseFileWriter
    headers: Mapping[Header, str]
    arrow_bytes: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.writer.write(batch)
        self.arrow_bytes += batch.nbytes

    @property
    def rows(self) -> int:
        return self.writer.rows

    def bounds(self) -> Sequence[ColumnBounds]:
        """Return the bounds of the columns that the writer's output names, once the content has ended."""
        return self.writer.statistics() or ()

    def end(self) -> list[Any]:
        """Return the content's bytes in parts, with the block's checksum in place of the placeholder."""
        self.writer.close()
        block_checksum.seal_parquet(self.parts.written, self.headers)
        return self.parts.written

    def abandon(self) -> None:
        self.writer.abandon()


class _WrittenParts:
    """Keeps what is written to it as it comes: a buffer that grows would be in memory twice while it does."""

    closed = False

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class _AvroContent:
    """The rows of an Avro block that is not full yet; ``arrow_bytes`` is their size in Arrow."""

    def __init__(self, bounds: BoundsOfRows) -> None:
        self._encoded: list[bytes] = []
        self._bounds = bounds
        self.rows = 0
        self.arrow_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._encoded.extend(avro_rows.encode(batch))
        self._bounds.add(batch)
        self.rows += batch.num_rows
        self.arrow_bytes += batch.nbytes

    def bounds(self) -> Sequence[ColumnBounds]:
        return self._bounds.bounds()

    def end(self) -> list[Any]:
        """Return the content's bytes in parts."""
        return [avro_rows.encode_head(self.rows), *self._encoded]

    def abandon(self) -> None:
        self._encoded = []
