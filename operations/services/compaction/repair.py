"""Repair: gives up damaged log files that the user names, and makes their file groups' next slices from the rest.

A repair is a compaction of the file groups that hold the files. Of each named file it reads the blocks that can be
read, and of all other files everything, as any compaction does. The damaged file stays in its old slice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import pyarrow as pa

from ....errors import ConcurrentWriteError, CorruptFileError, InvalidOptionError, TableError, UnsupportedTableError
from ....storage.base import Storage, split
from ....table.config.property_keys import EVENT_TIME_ORDERING
from ....table.files.file_group import FileSlice, LogFile
from ....table.files.logs.log_blocks import BlockType, LogBlock
from ....table.files.logs.log_contents import BlockContent, columns_of
from ....table.files.logs.log_file import read_blocks
from ....table.files.logs.whole_log import read_log
from ....table.files.lost import open_view
from ....table.files.names import FileGroupId
from ....table.latest_schema import latest_schema
from ....table.schema.columns import with_meta
from ....table.table import Table
from ....timeline.held import pending_compactions
from ....timeline.instants import Instant
from ....timeline.metadata.codec import REPAIR
from ....timeline.timeline import Timeline
from ...result import RepairedLog, ServiceResult
from ...transaction.concurrency import COMPACTION
from ...transaction.file_work import FileWork
from ..execution import take_back
from ..means import Means
from ..preconditions import finish_rollbacks_first, refuse_restoring
from ..settings import CompactionSettings
from .compact import open_merge_on_read
from .compactor import Compaction, Compactor
from .plan import Plan


def repair(
    storage: Storage,
    accept_loss: Sequence[str],
    means: Means,
    *,
    dry_run: bool = False,
    metadata_enable: bool | None = None,
) -> ServiceResult:
    """Give up what cannot be read of damaged log files, and write the next slice of each of their file groups.

    `accept_loss` names the files as `CorruptFileError` does. Raises `InvalidOptionError` for a file that is not damaged
    or is no log file of a newest slice, and `CorruptFileError` for damage in a file that the call does not name.
    """
    began = time.monotonic()
    table = open_merge_on_read(storage, metadata_enable)
    timeline = table.timeline()
    if not dry_run:
        timeline = finish_rollbacks_first(COMPACTION, table, timeline, means.patience)
    refuse_restoring(COMPACTION, storage, timeline)
    examined = _Examiner.of(table, timeline).examine(accept_loss)
    reports = tuple(file.report for file in examined.values())
    if dry_run:
        return ServiceResult(storage.path, "repair", repaired=reports, dry=True, seconds=time.monotonic() - began)
    service = Repair(table, examined, means)
    service.repair(timeline)
    return replace(service.result(time.monotonic() - began), service="repair", repaired=reports)


class Repair(Compaction):
    """A compaction of the damaged log files' file groups alone, which skips unreadable blocks of these log files."""

    def __init__(self, table: Table, examined: Mapping[str, _Examined], means: Means) -> None:
        super().__init__(table, CompactionSettings(), means)
        self._examined = examined
        self._groups = frozenset(file.group for file in examined.values())

    def repair(self, timeline: Timeline) -> None:
        table = self.table
        for instant, pending in pending_compactions(timeline).items():
            named = {FileGroupId(one.partition_path or "", one.file_id or "") for one in pending.operations}
            if named & self._groups:
                # The plan's executor could not read the damaged files.
                take_back(table, instant)
        scheduled = self.schedule()
        if scheduled is None:
            raise ConcurrentWriteError(
                f"The log files {', '.join(self._examined)} of the table {table.path} are in no slice any more: "
                "another process compacted or replaced their file groups meanwhile.",
                "Run validate to see whether they are damaged still.",
            )
        instant = scheduled[0]
        try:
            self.carry_out(instant, table.timeline())
        except TableError:
            # Every later compaction would fail at this plan as the repair did.
            take_back(table, instant)
            raise
        if self.instant != instant.requested_time:
            raise ConcurrentWriteError(
                f"The repair {instant.requested_time} of the table {table.path} is not done: "
                f"{'; '.join(self.skipped) or 'another process took its plan back'}.",
                "Run it again.",
            )

    def plan(self, timeline: Timeline) -> Plan | None:
        """Return the slices that hold the damaged log files; refuse beside a pending plan for their file groups."""
        partitions = {group.partition_path for group in self._groups}
        free = self.slices.find(timeline, lambda paths: [one for one in paths if one in partitions])
        chosen = tuple(file_slice for file_slice in free if file_slice.group in self._groups)
        held = self._groups - {file_slice.group for file_slice in chosen}
        if chosen and held:
            first = min(held)
            raise UnsupportedTableError(
                f"A pending compaction or clustering of the table {self.table.path} holds the file group "
                f"{first.file_id} of the partition {first.partition_path!r}.",
                "Complete it or take it back with HudiTable.rollback, and repair again.",
            )
        return chosen or None

    def read_plan(self, timeline: Timeline, instant: Instant) -> Plan:
        """Return the plan's file slices, with the damaged log files limited to their readable blocks."""
        given_up = {path: file.log for path, file in self._examined.items()}
        return tuple(
            replace(file_slice, logs=tuple(given_up.get(log.path, log) for log in file_slice.logs))
            for file_slice in super().read_plan(timeline, instant)
        )

    def worker(self, files: FileWork, timeline: Timeline, plan: Plan) -> Compactor:
        """Return the compaction's worker, with a note of the given-up rows for the completed instant."""
        notes = {REPAIR: json.dumps([asdict(file.report) for file in self._examined.values()])}
        return replace(super().worker(files, timeline, plan), notes=notes)


@dataclass(frozen=True, slots=True)
class _Examined:
    """A damaged log file with its readable blocks, and the report of what is given up."""

    group: FileGroupId
    log: LogFile
    report: RepairedLog


@dataclass(frozen=True, slots=True)
class _Examiner:
    storage: Storage
    timeline: Timeline
    schema: pa.Schema
    ordering: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, timeline: Timeline) -> _Examiner:
        schema = latest_schema(table.config, timeline, writing=True) or pa.schema([])
        ordering = table.config.ordering_fields if table.config.merge_mode == EVENT_TIME_ORDERING else ()
        return cls(table.storage, timeline, with_meta(schema), ordering)

    def examine(self, paths: Sequence[str]) -> dict[str, _Examined]:
        view = open_view(self.timeline)
        file_slices = [
            file_slice
            for folder in sorted({split(path)[0] for path in paths})
            for file_slice in view.slices(folder).values()
        ]
        known = {log.path: (file_slice, log) for file_slice in file_slices for log in file_slice.logs}
        for path in paths:
            if path not in known:
                raise InvalidOptionError(
                    f"accept_loss names {path!r}, which is no log file of a newest file slice of the table "
                    f"{self.storage.path}.",
                    "Name the files as validate or the error shows them, relative to the table's path.",
                )
        return {path: self._examine(*known[path]) for path in dict.fromkeys(paths)}

    def _examine(self, file_slice: FileSlice, log: LogFile) -> _Examined:
        found = list(read_blocks(self.storage, log.path, passes_over_damage=True))
        counts = {block.offset: self._count(block, log) for block in found}
        readable = {offset: count for offset, count in counts.items() if count is not None}
        if len(readable) == len(counts) and self._is_whole(log):
            raise InvalidOptionError(
                f"The log file {log.path} of the table {self.storage.path}, which accept_loss names, is not damaged.",
                "Leave it out of accept_loss.",
            )
        stated = log.stated
        report = RepairedLog(
            file=log.path,
            instant=log.instant_time,
            expected_size=None if stated is None else stated.size,
            actual_size=log.size,
            stated_records=None if stated is None else stated.records,
            readable_records=sum(readable.values()),
        )
        return _Examined(file_slice.group, replace(log, readable=frozenset(readable)), report)

    def _is_whole(self, log: LogFile) -> bool:
        try:
            for _ in read_log(self.storage, log):
                pass
        except CorruptFileError:
            return False
        return True

    def _count(self, block: LogBlock, log: LogFile) -> int | None:
        """Return how many rows or deletes of a block can be read; None where the block cannot be read as a whole."""
        if block.type == BlockType.CORRUPT or block.instant_time != log.instant_time:
            return None
        try:
            if block.is_data:
                present = set(columns_of(block).names)
                wanted = pa.schema([one.with_nullable(True) for one in self.schema if one.name in present])
                return sum(int(batch.num_rows) for batch in BlockContent(self.storage, block).rows(wanted))
            if block.type == BlockType.DELETE:
                ordering = [self.schema.field(name) for name in self.ordering]
                return len(BlockContent(self.storage, block).deletes(ordering))
        except (CorruptFileError, UnsupportedTableError):
            return None
        return 0
