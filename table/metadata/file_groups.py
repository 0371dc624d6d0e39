"""One file group of a metadata table: its base file and its log blocks, the oldest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CorruptFileError
from ...storage.base import Storage, storage_errors
from ...storage.inputs import part_of
from ...storage.threads import for_each
from ..files.file_group import FileSlice, LogFile
from ..files.logs.log_blocks import BlockType, LogBlock
from ..files.logs.log_contents import BlockContent
from ..files.logs.log_file import blocks_of, open_log
from ..files.logs.log_scan import effective_blocks
from ..hfile.entries import Entries, joined
from ..hfile.reader import HFile
from .merging import SaidRecords, keys_left, merged

# What a merge of base file and log blocks has in memory at a time.
_CHUNK_BYTES = 64 << 20
# To count keys, those in log files are looked up in the base file.
_COUNTED_LOG_BYTES = 8 << 20


class WantedEntries(Protocol):
    """Which entries a reader asks for."""

    def entries(self, file: HFile) -> Iterator[Entries]:
        """Yield the wanted entries of a file, maybe in several parts."""

    def includes(self, keys: pa.BinaryArray) -> pa.Array:
        """Return which keys the reader asks for."""


class AllEntries:
    """All entries."""

    def entries(self, file: HFile) -> Iterator[Entries]:
        """Yield all entries of a file, in parts of some megabytes."""
        parts: list[Entries] = []
        size = 0
        for part in file.scan():
            parts.append(part)
            size += part.keys.nbytes + part.values.nbytes
            if size >= _CHUNK_BYTES:
                yield joined(parts)
                parts, size = [], 0
        yield joined(parts)

    def includes(self, keys: pa.BinaryArray) -> pa.Array:
        return pc.is_valid(keys)


@dataclass(frozen=True, slots=True)
class EntriesOfKeys:
    """The entries of some keys."""

    keys: pa.BinaryArray

    def entries(self, file: HFile) -> Iterator[Entries]:
        yield file.find(self.keys)

    def includes(self, keys: pa.BinaryArray) -> pa.Array:
        return pc.is_in(keys, value_set=self.keys)


@dataclass(frozen=True, slots=True)
class EntriesOfPrefixes:
    """The entries whose keys begin with one of some prefixes."""

    prefixes: Sequence[bytes]

    def entries(self, file: HFile) -> Iterator[Entries]:
        yield file.with_prefixes(self.prefixes)

    def includes(self, keys: pa.BinaryArray) -> pa.Array:
        """Return which keys begin with one of the prefixes, which may have several lengths."""
        chosen = pa.repeat(False, len(keys))
        for length in {len(prefix) for prefix in self.prefixes}:
            of_length = pa.array([prefix for prefix in self.prefixes if len(prefix) == length], pa.binary())
            chosen = pc.or_(chosen, pc.is_in(pc.binary_slice(keys, 0, length), value_set=of_length))
        return chosen


@dataclass(frozen=True, slots=True)
class GroupReader:
    """Reads one file slice of a metadata table; ``counts`` says of which instants the log blocks count.

    ``adds_up`` says whether the records of one key are merged (`MetadataKind.adds_up`), or the newest counts. Unless
    log files ``may_be_torn``, a torn log file of an instant that counts is damage: what it said is lost, and a reader
    would miss rows. Otherwise torn blocks are passed over, as in log files to which dead writers appended.
    """

    storage: Storage
    file_slice: FileSlice
    counts: Callable[[str], bool]
    adds_up: bool
    may_be_torn: bool = True

    def records(self, wanted: WantedEntries) -> Iterator[pa.StructArray]:
        """Yield the records that a reader asks for.

        Keys that log files have, too, are merged with them last; all others are yielded as the base file is read.
        Raises `CorruptFileError` if a file is damaged.
        """
        with without_metadata(self.storage):
            logs = self.said_in_logs(wanted)
            # None if no log file has a wanted entry, so that the records of the base file need no merge.
            log_keys = pa.concat_arrays([part.keys for part in logs]) if logs else None
            in_both: list[SaidRecords] = []
            for part in self._records_of_base(wanted):
                if log_keys is None:
                    yield from self._merged(part.entries.keys, [part])
                    continue
                is_in_logs = pc.is_in(part.keys, value_set=log_keys)
                in_both.append(part.some(is_in_logs))
                only_in_base = part.some(pc.invert(is_in_logs))
                yield from self._merged(only_in_base.keys, [only_in_base])
            if logs:
                yield from self._merged(log_keys, [*in_both, *logs])

    def count(self) -> int | None:
        """Return how many keys the file group has; None if its log files are too large to be read for that."""
        if self.file_slice.log_bytes > _COUNTED_LOG_BYTES:
            return None
        with without_metadata(self.storage):
            logs = self.said_in_logs(AllEntries())
            with self.open_base() as file:
                if file is None:
                    return len(keys_left(logs)[1]) if logs else 0
                if not logs:
                    return file.count
                keys, keys_left_in_logs = keys_left(logs)
                # Keys of the log files are counted once, and not at all if a log file deletes them last.
                return file.count - len(file.find(keys)) + len(keys_left_in_logs)

    def _merged(self, keys: pa.Array, parts: list[SaidRecords]) -> Iterator[pa.StructArray]:
        """Yield one batch of merged records, or nothing if there are no ``keys``, or if deletes remove all of them.

        Raises `CorruptFileError` for a value that cannot be read.
        """
        if not len(keys):
            return
        try:
            batch = merged(parts, adds_up=self.adds_up)
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFileError(
                f"A value in the file group {self.file_slice.file_id} of the metadata table of {self.storage.path} "
                f"cannot be read ({error}); its files are {', '.join(self.file_slice.files)}.",
                "",
            ) from error
        if batch is not None:
            yield batch

    def _records_of_base(self, wanted: WantedEntries) -> Iterator[SaidRecords]:
        """Yield the wanted entries of the base file in parts; none if the slice has no base file."""
        with self.open_base() as file:
            if file is None:
                return
            for entries in wanted.entries(file):
                if len(entries):
                    yield SaidRecords(entries, file.schema)

    @contextmanager
    def open_base(self) -> Iterator[HFile | None]:
        """Open the base file; None if the slice has none."""
        base = self.file_slice.base
        if base is None:
            yield None
            return
        with storage_errors("read", base.path), self.storage.open_input(base.path) as source:
            yield HFile(source, base.path)

    def said_in_logs(self, wanted: WantedEntries) -> list[SaidRecords]:
        """Return the records and deletes of all log blocks that count, the oldest first.

        Each log file is opened once.
        """
        blocks_by_log = for_each(self.storage, partial(self._read_log, wanted=wanted), self.file_slice.logs)
        records_by_block = {(block.path, block.offset): part for blocks in blocks_by_log for block, part in blocks}
        counting = effective_blocks(([block for block, _ in blocks] for blocks in blocks_by_log), self.counts)
        parts = (records_by_block[block.path, block.offset] for block in counting)
        return [part for part in parts if part is not None and len(part.keys)]

    def _read_log(self, log: LogFile, wanted: WantedEntries) -> list[tuple[LogBlock, SaidRecords | None]]:
        """Return the blocks of a log file, each with its wanted records.

        Raises `CorruptFileError` for a torn file, unless files may be torn.
        """
        with storage_errors("read", log.path), open_log(self.storage, log.path) as source:
            blocks = [*blocks_of(self.storage, log.path, source)]
            if not self.may_be_torn and self._is_torn(log, blocks):
                raise CorruptFileError(
                    f"The log file {log.path} of the metadata table of {self.storage.path} is torn.",
                    "Restore the file from a backup.",
                )
            return [(block, self._records_of_block(block, source, wanted)) for block in blocks]

    def _is_torn(self, log: LogFile, blocks: Sequence[LogBlock]) -> bool:
        """Return whether a log file of an instant that counts is not whole.

        That is if it has a corrupt block, or no block. A failed attempt may leave such a file beside another of its
        instant.
        """
        is_whole = blocks and all(block.type != BlockType.CORRUPT for block in blocks)
        return not is_whole and log.is_counted(self.counts) and not self.file_slice.has_another(log)

    def _records_of_block(self, block: LogBlock, source: Any, wanted: WantedEntries) -> SaidRecords | None:
        """Return the wanted records of a block, or the wanted keys that it deletes.

        None for a block that cannot count.
        """
        if block.type in (BlockType.COMMAND, BlockType.CORRUPT) or not self.counts(block.instant_time):
            return None
        if block.type == BlockType.DELETE:
            keys = BlockContent(self.storage, block, source).deletes().keys.cast(pa.binary())
            keys = keys.filter(wanted.includes(keys))
            return SaidRecords(Entries(keys, pa.nulls(len(keys), pa.binary())), deletes=True)
        with part_of(source, block.content_offset, block.content_size) as part:
            file = HFile(part, block.path, f"{block.shown[:1].upper()}{block.shown[1:]}")
            entries = joined([entries for entries in wanted.entries(file) if len(entries)])
            return SaidRecords(entries, file.schema if len(entries) else "")


@contextmanager
def without_metadata(storage: Storage) -> Iterator[None]:
    """Raise errors about a damaged file of the metadata table again with the advice to drop that table."""
    try:
        yield
    except CorruptFileError as error:
        todo = (
            f"The rows of {storage.path} are whole: drop the metadata table with HudiTable.drop_index('files'), and "
            "build it anew with HudiTable.create_index."
        )
        raise CorruptFileError(error.what, todo) from error
