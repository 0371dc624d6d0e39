"""The log files of one file slice joined into one, wherever that is done, and what the completed instant says of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ....storage.base import Storage
from ....table.arrow.spill import local_spills
from ....table.files.file_group import FileSlice
from ....table.files.logs.log_blocks import BlockType
from ....table.files.output import Output
from ....table.schema.columns import avro_schema
from ....table.slices.merged_slice import LogCounts
from ....writer.data_files import DataFiles, FileFormat, LogFormat, write_log_file
from ....writer.slice_reader import SliceReader
from ...transaction.fence import Fence
from ...transaction.outcome import Outcome
from ...transaction.transaction import Transaction
from .executing import at_work, completed, every_block, largest_first, new_token
from .log_plan import why_left
from .plan import Plan

if TYPE_CHECKING:
    from ....timeline.metadata.models import WriteStat


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
        output: How their Parquet looks, and how many bytes of log entries may be folded at once.
        data_format: What rows are encoded as: `BlockType.PARQUET` or `BlockType.AVRO`.
        block_bytes: Arrow bytes of rows after which a block ends.
    """

    work: Transaction
    schema: pa.Schema
    output: Output
    data_format: BlockType
    block_bytes: int

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

    def outcome(self, plan: Plan, at: str, done: Sequence[Joined], seconds: float) -> Outcome:
        """Return what the log compaction did, as Apache Hudi writes it."""
        joined = [one for one in done if one.path]
        body = completed(self.work, self.schema, "LOG_COMPACT", ((one.piece, _stat(one)) for one in joined))
        return Outcome(body, added=[one.path for one in joined])

    def _join(self, piece: FileSlice, local: Storage) -> Joined:
        began = time.monotonic()
        storage = self.work.storage
        memory, spills = self.output.memory, local_spills(local)
        reader = SliceReader(storage, self.work.config, self.schema, every_block, memory, spills)
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
        form = FileFormat(
            schema=self.schema,
            avro_schema=avro_schema(self.schema, self.work.config.name, meta=True),
            output=self.output,
        )
        fence = Fence(self.work, 0)
        files = DataFiles(storage, self.work.instant_time, new_token(self.work), self.work.aside, fence)
        replaces = tuple(dict.fromkeys(one.instant_time for one in blocks))
        log_format = LogFormat(self.data_format, self.block_bytes)
        made = write_log_file(files, piece.group, form, log_format, logs.entries(), replaces)
        fence.finish()
        seconds = time.monotonic() - began
        return done(path=made.path, size=made.size, rows=made.rows, deletes=made.deletes, seconds=seconds)


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
