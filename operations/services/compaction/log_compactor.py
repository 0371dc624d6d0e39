"""The log files of one file slice joined into one, wherever that is done, and what the completed instant says of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ....storage.base import Storage, join
from ....table.arrow.spill import local_spills
from ....table.files.base_file import file_schema
from ....table.files.file_group import FileSlice
from ....table.files.logs.delete_block import Deletes, joined
from ....table.files.logs.log_blocks import BlockType
from ....table.files.logs.log_file import LogFileWriter
from ....table.files.names import LogFileName
from ....table.schema.columns import avro_schema
from ....table.slices.merged_slice import LogCounts
from ....timeline.writers.markers import MarkerType
from ....writer.arrivals import encoded_as
from ....writer.slice_reader import SliceReader
from ...transaction.fence import Fence
from ...transaction.transaction import Transaction
from .executing import at_work, completed, every_block, largest_first, new_token
from .log_plan import why_left
from .plan import Plan

if TYPE_CHECKING:
    from ....timeline.metadata.models import CommitMetadata, WriteStat


@dataclass(frozen=True, slots=True)
class Joined:
    """What became of the log files of one slice.

    Attributes:
        piece: The slice.
        path: The new log file; empty where they were left as they are.
        size: Its bytes.
        rows: Its rows.
        deletes: Its deletes.
        logs: What the older ones held.
        log_data_bytes: Of that, the bytes of the blocks of rows.
        seconds: How long it took.
        skipped: Why they were left.
    """

    piece: FileSlice
    path: str
    size: int
    rows: int
    deletes: int
    logs: LogCounts
    log_data_bytes: int
    seconds: float
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class LogCompactor:
    """A log compaction at work; it travels with every task where an engine carries it out.

    Attributes:
        work: Its instant, claimed by this process.
        schema: The table's data columns.
        compression: Parquet codec.
        row_group_bytes: Uncompressed bytes that one row group aims at.
        data_format: What rows are encoded as: `BlockType.PARQUET` or `BlockType.AVRO`.
        block_bytes: Arrow bytes of rows after which a block ends.
        memory: Arrow bytes of log entries that may be folded at once.
    """

    work: Transaction
    schema: pa.Schema
    compression: str
    row_group_bytes: int
    data_format: BlockType
    block_bytes: int
    memory: int

    def units(self, plan: Plan) -> Sequence[FileSlice]:
        """Return the slices, those with the most bytes of log files first."""
        return largest_first(plan)

    def execute(self, unit: FileSlice) -> Joined:
        """Join the log files of one slice; each attempt makes a file of its own, as a `Compactor` does.

        Raises:
            CorruptFileError: A block that counts cannot be read.
            WriteSealedError: Somebody else has taken the work over, or it is complete.
            StorageError: The store failed.
        """
        with at_work(self.work) as local:
            return self._join(unit, local)

    def result(self, plan: Plan, at: str, done: Sequence[Joined], seconds: float) -> CommitMetadata:
        """Return what was done, as Apache Hudi writes it."""
        stats = ((one.piece, _stat(one)) for one in done if one.path)
        return completed(self.work, self.schema, "LOG_COMPACT", stats)

    def _join(self, piece: FileSlice, local: Storage) -> Joined:
        began = time.monotonic()
        storage = self.work.storage
        reader = SliceReader(storage, self.work.config, self.schema, every_block, self.memory, local_spills(local))
        logs = reader.merged(piece)
        blocks = logs.blocks
        done = partial(
            Joined, piece, logs=logs.counts, log_data_bytes=sum(one.content_size for one in blocks if one.is_data)
        )
        why = why_left(blocks) or (None if blocks else "no block of it counts")
        if why is not None:
            skipped = (
                f"the log files of the file group {piece.file_id} of partition {piece.partition_path!r} stay: {why}"
            )
            return done(path="", size=0, rows=0, deletes=0, seconds=time.monotonic() - began, skipped=skipped)
        name = LogFileName(piece.file_id, self.work.instant_time, 1, new_token(self.work)).format()
        path = join(piece.partition_path, name)
        with ExitStack() as stack:
            staged = storage.stage(path, self.work.aside)
            stack.callback(staged.discard)
            file = LogFileWriter(
                staged.stream,
                instant_time=self.work.instant_time,
                schema=file_schema(self.schema),
                avro_schema=avro_schema(self.schema, self.work.config.name, meta=True),
                data_format=self.data_format,
                compression=self.compression,
                block_bytes=self.block_bytes,
                row_group_bytes=self.row_group_bytes,
                replaces=tuple(dict.fromkeys(one.instant_time for one in blocks)),
            )
            stack.callback(file.abandon)
            rows, deletes = self._write(file, stack.enter_context(closing(logs.entries())))
            fence = Fence(self.work, 0)
            size = fence.publish(staged, piece.partition_path, path, MarkerType.CREATE)
            fence.finish()
        return done(path=path, size=size, rows=rows, deletes=deletes, seconds=time.monotonic() - began)

    def _write(self, file: LogFileWriter, entries: Iterator[tuple[pa.RecordBatch, Deletes]]) -> tuple[int, int]:
        """Write rows as they come and deletes behind them, and return how many there were."""
        schema = file_schema(self.schema)
        counts, waiting = [0, 0], []
        for batch, gone in entries:
            columns = [encoded_as(batch.column(one.name), one.type) for one in schema]
            file.add_rows(pa.RecordBatch.from_arrays(columns, schema=schema))
            counts[0] += batch.num_rows
            counts[1] += len(gone)
            if len(gone):
                waiting.append(gone)
            if sum(one.nbytes for one in waiting) > self.block_bytes:
                file.add_deletes(joined(waiting))
                waiting = []
        if waiting:
            file.add_deletes(joined(waiting))
        file.close()
        return counts[0], counts[1]


def _stat(one: Joined) -> WriteStat:
    from ....timeline.metadata.models import RuntimeStats, WriteStat  # noqa: PLC0415

    piece, millis = one.piece, int(one.seconds * 1000)
    return WriteStat(
        file_id=piece.file_id,
        path=one.path,
        prev_commit=piece.base_time,
        num_writes=one.rows,
        num_deletes=one.deletes,
        num_update_writes=one.rows,
        total_write_bytes=one.size,
        partition_path=piece.partition_path,
        total_log_records=one.logs.records,
        total_updated_records_compacted=one.rows + one.deletes,
        total_log_blocks=one.logs.blocks,
        total_corrupt_log_block=one.logs.corrupt,
        file_size_in_bytes=one.size,
        log_version=1,
        log_offset=0,
        base_file="",
        log_files=[one.path.rpartition("/")[2]],
        runtime_stats=RuntimeStats(total_scan_time=0, total_create_time=0, total_upsert_time=millis),
        total_log_files_compacted=len(piece.logs),
        total_log_size_compacted=one.log_data_bytes,
    )
