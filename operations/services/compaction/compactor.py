"""One file slice merged into one base file, wherever that is done, and what the completed compaction says of all."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from ....index.registry import noted_index_for
from ....storage.base import Storage
from ....table.arrow.spill import local_spills
from ....table.files.base_file import BaseFileReader
from ....table.files.bloom_filter import BloomSettings
from ....table.files.file_group import FileSlice
from ....table.files.output import Output
from ....table.keys.generator import KeyGenerator
from ....table.schema.columns import FILE_NAME, RECORD_KEY, avro_schema, with_meta
from ....table.slices.merged_slice import LogCounts
from ....timeline.writers.markers import MarkerType
from ....writer.data_files import DataFiles, FileFormat, write_base_file
from ....writer.foreign import ForeignRows
from ....writer.slice_reader import SliceReader
from ...transaction.fence import Fence
from ...transaction.outcome import Outcome
from ...transaction.transaction import Transaction
from .executing import at_work, completed, every_block, largest_first, new_token
from .plan import Plan

if TYPE_CHECKING:
    from ....timeline.metadata.models import WriteStat


@dataclass(frozen=True, slots=True)
class Compacted:
    """What became of one file slice.

    Attributes:
        piece: The slice.
        path: The new base file.
        size: Its bytes.
        rows: Its rows.
        logs: What its logs held.
        log_data_bytes: Of that, the bytes of the blocks of rows.
        seconds: How long it took.
        skipped: Nothing: no slice is left out.
    """

    piece: FileSlice
    path: str
    size: int
    rows: int
    logs: LogCounts
    log_data_bytes: int
    seconds: float
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Compactor:
    """A compaction at work; it travels with every task where an engine carries it out.

    Attributes:
        work: The compaction's instant, claimed by this process.
        schema: The table's data columns.
        output: How base files look, and how many bytes of log entries may be merged at once.
        ours: Requested times of the delta commits that are known to be pyhudi's.
        bloom: What kind of bloom filter base files get; None for none.
        notes: Further entries of the completed instant's extraMetadata.
    """

    work: Transaction
    schema: pa.Schema
    output: Output
    ours: frozenset[str]
    bloom: BloomSettings | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    def units(self, plan: Plan) -> Sequence[FileSlice]:
        """Return the file slices, the largest first: whoever comes last should have little left to do."""
        return largest_first(plan)

    def execute(self, unit: FileSlice) -> Compacted:
        """Merge one file slice; each attempt makes a file of its own, of which the completed instant names one.

        Raises:
            CorruptFileError: One of its files cannot be read.
            WriteSealedError: Somebody else has taken the compaction over, or it is complete.
            StorageError: The store failed.
        """
        with at_work(self.work) as local:
            return self._merge(unit, local)

    def outcome(self, plan: Plan, at: str, done: Sequence[Compacted], seconds: float) -> Outcome:
        """Return what the compaction did, as Apache Hudi writes it."""
        body = completed(self.work, self.schema, "COMPACT", ((one.piece, _stat(one)) for one in done), self.notes)
        return Outcome(body, added=[one.path for one in done])

    def _merge(self, piece: FileSlice, local: Storage) -> Compacted:
        began = time.monotonic()
        work = self.work
        memory, spills = self.output.memory, local_spills(local)
        reader = SliceReader(work.storage, work.config, self.schema, every_block, memory, spills)
        merged = reader.merged(piece)
        kept = pa.schema([one for one in with_meta(self.schema) if one.name != FILE_NAME])
        foreign = self._foreign(piece)
        form = FileFormat(
            schema=self.schema,
            avro_schema=avro_schema(self.schema, work.config.name, meta=True),
            output=self.output,
            bloom=self.bloom,
            stamped=foreign is None or foreign.index is not None,
        )
        batches = merged.batches(kept, dictionaries=frozenset() if foreign else self._passed_through(kept))
        fence = Fence(work, 0)
        files = DataFiles(work.storage, work.instant_time, new_token(work), work.aside, fence)
        kind = MarkerType.CREATE if piece.base is None else MarkerType.MERGE
        rows = batches if foreign is None else foreign.checked(batches, piece)
        made = write_base_file(files, piece.group, form, rows, kind)
        fence.finish()
        data_bytes = sum(one.content_size for one in merged.blocks if one.is_data)
        return Compacted(piece, made.path, made.size, made.rows, merged.counts, data_bytes, time.monotonic() - began)

    def _foreign(self, piece: FileSlice) -> ForeignRows | None:
        """Return what checks the rows of a slice; None where pyhudi wrote all of its files.

        What is merged carries the stamp by which its keys are trusted from then on, unless the table does not tell
        where they belong, as those that Apache Hudi made do not.
        """
        if all(log.instant_time in self.ours for log in piece.logs):
            if piece.base is None:
                return None
            with BaseFileReader(self.work.storage, piece.base.path) as base:
                base.refuse_newer()
                if base.stamped:
                    return None
        config = self.work.config
        keys = None if config.generates_keys else KeyGenerator(config, self.schema)
        return ForeignRows(noted_index_for(config), keys)

    def _passed_through(self, columns: pa.Schema) -> frozenset[str]:
        """Return the columns that nobody looks into."""
        looked_into = {RECORD_KEY, *self.work.config.ordering_fields}
        return frozenset(one.name for one in columns if pa.types.is_string(one.type)) - looked_into


def _stat(one: Compacted) -> WriteStat:
    from ....timeline.metadata.models import RuntimeStats, WriteStat  # noqa: PLC0415

    piece, merge, millis = one.piece, one.logs.merge, int(one.seconds * 1000)
    return WriteStat(
        file_id=piece.file_id,
        path=one.path,
        prev_commit=piece.base_time,
        num_writes=one.rows,
        # Also those of keys that the base file does not hold.
        num_deletes=merge.deletes + merge.not_found,
        num_update_writes=merge.updates,
        num_inserts=merge.inserts,
        total_write_bytes=one.size,
        partition_path=piece.partition_path,
        total_log_records=one.logs.records,
        total_updated_records_compacted=merge.keys,
        total_log_blocks=one.logs.blocks,
        total_corrupt_log_block=one.logs.corrupt,
        file_size_in_bytes=one.size,
        prev_base_file=None if piece.base is None else piece.base.name,
        runtime_stats=RuntimeStats(total_scan_time=0, total_create_time=0, total_upsert_time=millis),
        total_log_files_compacted=len(piece.logs),
        total_log_size_compacted=one.log_data_bytes,
    )
