"""What a task of a compaction or a log compaction does: the log files of one file slice go into one new file."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import pyarrow as pa

from ....storage import open_storage
from ....storage.base import Storage, split
from ....table.arrow.spill import local_spills
from ....table.config import TableConfig
from ....table.files.base_file import open_base
from ....table.files.file_group import FileSlice, data_file
from ....table.files.names import FileGroupId
from ....table.schema.columns import RECORD_KEY, avro_schema
from ....table.slices.merged_slice import LogCounts, MergedSlice
from ....timeline import formats
from ....version import VERSION
from ....writer.data_files import DataFiles
from ...transaction.body import CommitBody
from ...transaction.fence import Fence
from ...transaction.file_work import FileWork
from ...transaction.outcome import Outcome
from ...transaction.transaction import Transaction
from ..execution import new_token

if TYPE_CHECKING:
    from ....timeline.metadata.models import WriteStat

# Key of extraMetadata for the release of pyhudi that carried a plan out.
MADE_BY = "pyhudi.version"

Self = TypeVar("Self", bound="SliceWorker")


@dataclass(frozen=True, slots=True)
class SliceResult:
    """What became of one file slice, of whose log files `logs` counts the content.

    Attributes:
        log_data_bytes: Bytes of the log files' blocks of rows.
        path: The new file, which `size`, `rows` and `deletes` describe; "" where `skipped` says why there is none.
    """

    file_slice: FileSlice
    logs: LogCounts
    log_data_bytes: int
    seconds: float
    path: str = ""
    size: int = 0
    rows: int = 0
    deletes: int = 0
    skipped: str = ""

    @property
    def paths(self) -> Sequence[str]:
        return (self.path,) if self.path else ()

    @property
    def bytes_read(self) -> int:
        return self.file_slice.size


@dataclass(frozen=True, slots=True)
class SliceWorker:
    """Merges the log files of slices; an engine sends it with every task. `notes` go into extraMetadata."""

    files: FileWork
    notes: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    operation: ClassVar[str]
    compacts: ClassVar[bool] = True

    @property
    def work(self) -> Transaction:
        return self.files.transaction

    def within(self: Self, memory: int) -> Self:
        return replace(self, files=replace(self.files, output=replace(self.files.output, memory=memory)))

    def outcome(self, done: Sequence[SliceResult]) -> Outcome:
        return Outcome(self.body(done), added=[result.path for result in done if result.path])

    def body(self, done: Sequence[SliceResult]) -> CommitBody:
        from ....timeline.metadata.models import CommitMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

        made = sorted((result for result in done if result.path), key=lambda result: result.file_slice.group)
        stats: dict[str, list[WriteStat]] = {}
        for result in made:
            stats.setdefault(result.file_slice.partition_path, []).append(self.stat(result))
        metadata = CommitMetadata(
            partition_to_write_stats=stats,
            compacted=self.compacts,
            extra_metadata={
                "schema": avro_schema(self.files.schema, self.work.config.name),
                formats.KEY: str(formats.COMMIT_KEYS),
                MADE_BY: VERSION,
                **self.notes,
            },
            operation_type=self.operation,
        )
        return CommitBody(metadata, self.work.table)

    @contextmanager
    def opened(self, file_slice: FileSlice) -> Iterator[tuple[MergedSlice, DataFiles]]:
        """Yield a slice and the place of its new file, with the plan's heartbeat running."""
        token = new_token(self.work)
        work, fence = self.work, Fence(self.work, token.attempt)
        with work.heartbeat(), tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
            spills = local_spills(open_storage(folder, durable=False))
            reader = self.files.slices(self.files.counts, spills)
            yield reader.merged(file_slice), self.files.files(token, fence)
            fence.finish()

    def result(self, file_slice: FileSlice, merged: MergedSlice, began: float, **made: Any) -> SliceResult:
        data_bytes = sum(block.content_size for block in merged.blocks if block.is_data)
        return SliceResult(file_slice, merged.counts, data_bytes, time.monotonic() - began, **made)

    def stat(self, result: SliceResult) -> WriteStat:
        raise NotImplementedError

    def _stat(self, result: SliceResult, **own: Any) -> WriteStat:
        from ....timeline.metadata.models import RuntimeStats, WriteStat  # noqa: PLC0415

        millis = int(result.seconds * 1000)
        return WriteStat(
            file_id=result.file_slice.file_id,
            path=result.path,
            prev_commit=result.file_slice.base_time,
            num_writes=result.rows,
            total_write_bytes=result.size,
            partition_path=result.file_slice.partition_path,
            total_log_records=result.logs.records,
            total_log_blocks=result.logs.blocks,
            total_corrupt_log_block=result.logs.corrupt,
            file_size_in_bytes=result.size,
            runtime_stats=RuntimeStats(total_scan_time=0, total_create_time=0, total_upsert_time=millis),
            total_log_files_compacted=len(result.file_slice.logs),
            total_log_size_compacted=result.log_data_bytes,
            **own,
        )


def passed_through(columns: pa.Schema, config: TableConfig) -> frozenset[str]:
    """Return the string columns whose values no step of a merge reads."""
    looked_into = {RECORD_KEY, *config.ordering_fields}
    return frozenset(column.name for column in columns if pa.types.is_string(column.type)) - looked_into


def is_foreign(storage: Storage, file_slice: FileSlice, foreign: Container[FileGroupId]) -> bool:
    """Return whether others than pyhudi wrote some rows of a slice; they wrote log files of the ``foreign`` groups."""
    if file_slice.group in foreign or file_slice.base is None:
        return file_slice.group in foreign
    with open_base(storage, file_slice.base) as base:
        base.refuse_newer()
        return not base.stamped


def written_slices(units: Sequence[FileSlice], paths: Sequence[str]) -> Sequence[FileSlice]:
    """Return the slices to whose file groups these new data files belong."""
    made = (file for path in paths if (file := data_file(path)) is not None)
    groups = {FileGroupId(split(file.path)[0], file.file_id) for file in made}
    return [unit for unit in units if unit.group in groups]
