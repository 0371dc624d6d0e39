"""The base file that a compaction of the metadata table makes of a file slice: what its files say together, by key.

Most records keep their bytes. Only records that several files state, or of another schema than the new file's, are
decoded. All records of a file group are of one schema, as hudi-rs reads log files by the schema of the base file.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CorruptFileError
from ..hfile import entries as stored
from ..hfile.entries import Entries
from ..hfile.reader import HFile
from ..hfile.writer import HFileWriter
from .encoded_again import encoded_again
from .file_groups import AllEntries, GroupReader, without_metadata
from .merging import KEY, NumberedRows, SaidRecords, merged
from .record_schema import record_schema
from .records import decode

# So many blocks of 64 KiB are decoded at a time.
_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class BlockRun:
    """Blocks side by side, all copied or all decoded; ``end_key`` is not greater than any key behind them."""

    numbers: range
    copied: bool
    end_key: bytes | None


@dataclass(frozen=True, slots=True)
class BlocksAtOnce:
    """Runs side by side, whose decoded blocks are in memory together."""

    runs: tuple[BlockRun, ...]

    @property
    def decoded(self) -> list[int]:
        return [number for run in self.runs if not run.copied for number in run.numbers]

    @property
    def end_key(self) -> bytes | None:
        return self.runs[-1].end_key


def sorted_keys(logs: Sequence[SaidRecords]) -> pa.BinaryArray:
    """Return all keys of log files in their order."""
    keys = pa.concat_arrays([log.keys for log in logs]) if logs else pa.array([], pa.binary())
    return keys.take(pc.sort_indices(keys))


def parts_of(file: HFile, keys: pa.BinaryArray, *, copies: bool) -> list[BlocksAtOnce]:
    """Return all blocks of a file in their order, in parts to be in memory together, given the keys of its log files.

    Blocks without such a key are copied, but not the last: a decoded block tells the last key. Without ``copies`` all
    are decoded.
    """
    blocks = file.blocks
    # For each block the first key of the next; None for the last.
    ends: list[bytes | None] = [*(place.key for place in blocks[1:]), None]
    if not copies or len(blocks) < 2 or not file.can_be_copied:
        return [
            BlocksAtOnce(
                (
                    BlockRun(
                        range(at, min(at + _AT_ONCE, len(blocks))), False, ends[min(at + _AT_ONCE, len(blocks)) - 1]
                    ),
                )
            )
            for at in range(0, len(blocks), _AT_ONCE)
        ]
    # How many keys of log files come before each block, and in all: a block whose count rises has such keys.
    counts = [0, *(count_below(keys, place.key) for place in blocks[1:]), len(keys)]
    touched = [before < after for before, after in pairwise(counts)]
    # A copied last block would not tell the last key of the file.
    touched[-1] = True
    return list(_batches_of_runs(touched, ends))


def _batches_of_runs(touched: Sequence[bool], ends: Sequence[bytes | None]) -> Iterator[BlocksAtOnce]:
    """Yield runs of neighbouring blocks, all ``touched`` by log files or all not.

    A batch has so many runs that only some hundred decoded blocks are in memory together. ``ends`` has for each block
    the first key of the next block, None for the last.
    """
    runs: list[BlockRun] = []
    at = decoded = 0
    while at < len(touched):
        end = at + 1
        while end < len(touched) and touched[end] == touched[at] and end - at < _AT_ONCE:
            end += 1
        runs.append(BlockRun(range(at, end), not touched[at], ends[end - 1]))
        decoded += (end - at) if touched[at] else 0
        at = end
        if decoded >= _AT_ONCE:
            yield BlocksAtOnce(tuple(runs))
            runs, decoded = [], 0
    if runs:
        yield BlocksAtOnce(tuple(runs))


def count_below(keys: pa.BinaryArray, key: bytes) -> int:
    """Return how many of some keys, in their order, are less than a key."""
    return bisect_left(range(len(keys)), True, key=lambda at: keys[at].as_py() >= key)  # O(log keys)


@dataclass(frozen=True, slots=True)
class MergedGroup:
    """A new base file; ``records`` counts its entries, ``logged`` those of the log files that it takes in."""

    content: bytes = field(repr=False)
    schema: str = field(repr=False)
    records: int
    logged: int


def merged_group(reader: GroupReader, *, lists: bool, newest: SaidRecords | None = None) -> MergedGroup:
    """Merge a file slice into a new base file.

    ``lists`` says that the records are lists of files, which deleted files leave. ``newest`` comes after all that the
    log files say. Memory holds the log files, the new file, and a part of the base file. Blocks of the base file that
    no log file touches are copied. Raises `CorruptFileError` if a file is damaged.
    """
    with without_metadata(reader.storage):
        try:
            logs = reader.said_in_logs(AllEntries())
            logged = sum(len(part.keys) for part in logs)
            return _Merge(reader, logs if newest is None else [*logs, newest], lists, logged).file()
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFileError(
                f"A value in the file group {reader.file_slice.file_id} of the metadata table of "
                f"{reader.storage.path} cannot be merged ({error}); its files are "
                f"{', '.join(reader.file_slice.files)}.",
                "",
            ) from error


@dataclass(slots=True)
class _Merge:
    """One merge of a base file with the records of log files.

    Attributes:
        lists_files: Whether the records are lists of files, which deleted files leave.
        logged: How many entries the log files have.
        schema: The Avro schema of the new file, as JSON; empty until it is chosen.
    """

    reader: GroupReader
    logs: Sequence[SaidRecords]
    lists_files: bool
    logged: int
    schema: str = ""

    def file(self) -> MergedGroup:
        """Return the merged file.

        The end of an HFile names its last key, which copied blocks do not tell: if they end the file, it is made again
        without copies.
        """
        with self.reader.open_base() as base:
            if base is None or not base.count:
                self._choose_schema("")
                content, count = self._new_file()
            else:
                self._choose_schema(base.schema)
                keys = sorted_keys(self.logs)
                parts = parts_of(base, keys, copies=base.schema == self.schema)
                content, count, tells_last_key = self._rewritten(base, parts)
                if not tells_last_key:
                    content, count, _ = self._rewritten(base, parts_of(base, keys, copies=False))
        return MergedGroup(content, self.schema, count, self.logged)

    def _choose_schema(self, of_base: str) -> None:
        """Set the schema that base file and log files share, or pyhudi's own if they have several.

        ``of_base`` is the schema of the base file, empty if there is none.
        """
        schemas = {text for text in (of_base, *(log.schema for log in self.logs)) if text}
        self.schema = schemas.pop() if len(schemas) == 1 else record_schema()

    def _new_file(self) -> tuple[bytes, int]:
        """Return a file of the log files' records alone, and how many entries it has."""
        stream = pa.BufferOutputStream()
        file = HFileWriter(stream, self.schema)
        file.add(self._merged(self.logs))
        file.close()
        return bytes(stream.getvalue().to_pybytes()), file.count

    def _rewritten(self, base: HFile, parts: Sequence[BlocksAtOnce]) -> tuple[bytes, int, bool]:
        """Return the new file, how many entries it has, and whether its last key is known.

        That is unknown if copied blocks end the file. ``parts`` are all blocks of the base file, in their order.
        """
        stream = pa.BufferOutputStream()
        file, later_logs, decoded, tells_last_key = HFileWriter(stream, self.schema), list(self.logs), 0, True
        for part in parts:
            end = part.end_key
            logs_of_part = later_logs if end is None else [log.some(pc.less(log.keys, end)) for log in later_logs]
            later_logs = [] if end is None else [log.some(pc.greater_equal(log.keys, end)) for log in later_logs]
            of_base = base.entries_in(part.decoded)
            decoded += len(of_base)
            entries = self._of_both(SaidRecords(of_base, base.schema), logs_of_part)
            at = 0
            for run in part.runs:
                if run.copied:
                    _copy_blocks(base, run.numbers, file)
                    tells_last_key = False
                    continue
                stop = len(entries) if run.end_key is None else count_below(entries.keys, run.end_key)
                file.add_evenly(Entries(entries.keys[at:stop], entries.values[at:stop]))
                # A run whose records were all deleted adds no key behind the copied blocks.
                tells_last_key |= stop > at
                at = stop
        copied = base.count - decoded
        # The keys and values of copied blocks were not read, so their bytes are counted by the averages.
        file.note_copied(copied, *(copied * average for average in base.averages))
        file.close()
        return bytes(stream.getvalue().to_pybytes()), file.count, tells_last_key

    def _of_both(self, base: SaidRecords, logs: Sequence[SaidRecords]) -> Entries:
        """Return the merged entries of a part of the base file and of the log files' entries between the same keys."""
        logs_with_keys = [log for log in logs if len(log.keys)]
        if not logs_with_keys:
            return Entries(base.keys, self._values(base))
        is_in_logs = pc.is_in(base.keys, value_set=pa.concat_arrays([log.keys for log in logs_with_keys]))
        only_in_base = base.some(pc.invert(is_in_logs))
        changed = self._merged([base.some(is_in_logs), *logs_with_keys])
        if not len(only_in_base.keys):
            return changed
        keys = pa.concat_arrays([only_in_base.keys, changed.keys])
        values = pa.concat_arrays([self._values(only_in_base), changed.values])
        order = pc.sort_indices(keys)
        return Entries(keys.take(order), values.take(order))

    def _values(self, part: SaidRecords) -> pa.BinaryArray:
        """Return the values of entries whose keys no other file has, in the schema of the new file."""
        if part.schema == self.schema or not len(part.keys):
            return part.entries.values
        return encoded_again(decode(part.entries.values, part.schema), self.schema)

    def _merged(self, parts: Sequence[SaidRecords]) -> Entries:
        """Return the entries of the keys that deletes leave, in the order of the keys; the oldest part comes first.

        The records of a key are merged if records of this kind add up (`MetadataKind.adds_up`); else the newest
        counts. Only those that need no merge are copied as bytes, without being decoded.
        """
        parts = [part for part in parts if len(part.keys)]
        if not parts:
            return stored.NONE
        numbered = NumberedRows.of(parts)
        rows = numbered.rows_after_deletes()
        if not self.reader.adds_up:
            rows = rows[np.isin(rows, numbered.newest)]
        is_only_record = (
            np.bincount(numbered.numbers[rows], minlength=len(numbered.newest))[numbered.numbers[rows]] == 1
        )
        is_one_schema = {part.schema for part in parts if not part.deletes} <= {self.schema}
        # A list of files is decoded even if it is the only record of its key, as deleted files leave it.
        rows_to_copy = rows[is_only_record] if is_one_schema and not self.lists_files else rows[:0]
        keys = pa.concat_arrays([part.keys for part in parts])
        values = pa.concat_arrays([part.entries.values for part in parts])
        entries = Entries(keys.take(pa.array(rows_to_copy)), values.take(pa.array(rows_to_copy)))
        parts_to_merge = [part.some(pc.invert(pc.is_in(part.keys, value_set=entries.keys))) for part in parts]
        records = (
            merged(parts_to_merge, adds_up=self.reader.adds_up)
            if any(len(part.keys) for part in parts_to_merge)
            else None
        )
        if records is not None:
            new = Entries(records.field(KEY).cast(pa.binary()), encoded_again(records, self.schema))
            entries = stored.joined([entries, new])
        order = pc.sort_indices(entries.keys)
        return Entries(entries.keys.take(order), entries.values.take(order))


def _copy_blocks(base: HFile, numbers: range, file: HFileWriter) -> None:
    """Copy blocks as they are; raise ValueError if their checksums cannot be moved."""
    for number in numbers:  # O(blocks)
        block = base.moved_block(number, file.before)
        if block is None:
            raise ValueError("for its blocks have checksums of several types")
        file.copy(block, base.blocks[number].key)
