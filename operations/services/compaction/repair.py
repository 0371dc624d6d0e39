"""Repair: gives up damaged log files that the user names, and makes the next slices of their file groups.

A repair is a compaction of these file groups. It merges the readable blocks of each named file, and all other files as
any compaction does. The damaged file stays in its old slice.
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
from ....table.files.slice_rule import slice_rule
from ....table.latest_schema import latest_schema
from ....table.schema.columns import with_meta
from ....table.table import Table
from ....timeline.held import pending_compactions
from ....timeline.instants import Instant
from ....timeline.metadata.codec import REPAIR
from ....timeline.timeline import Timeline
from ...meeting.concurrency import COMPACTION
from ...result import RepairedLog, ServiceResult
from ...rollback.pending import OtherWriters
from ...service_settings import CompactionSettings
from ...transaction.file_work import FileWork
from ..execution import take_back
from ..means import Means
from ..preconditions import finish_rollbacks_first, refuse_restoring
from .compact import open_merge_on_read
from .compactor import Compaction, Compactor
from .plan import Plan


@dataclass(frozen=True, slots=True)
class ExaminedLog:
    """A damaged log file with its readable blocks, and a report of the rows that are given up."""

    group: FileGroupId
    log: LogFile
    report: RepairedLog


def examine(table: Table, timeline: Timeline, paths: Sequence[str]) -> dict[str, ExaminedLog]:
    """Examine log files, and return them by path.

    Raises `InvalidOptionError` for a file that is not damaged, or is no log file of a newest slice.
    """
    schema = latest_schema(table.config, timeline, writing=True) or pa.schema([])
    ordering = table.config.ordering_fields if table.config.merge_mode == EVENT_TIME_ORDERING else ()
    return _Examiner(table.storage, timeline, with_meta(schema), ordering).examine(paths)


@dataclass(frozen=True, slots=True)
class _Examiner:
    """Counts what can be read of log files, block by block; rows are read with `schema`, deletes with `ordering`."""

    storage: Storage
    timeline: Timeline
    schema: pa.Schema
    ordering: tuple[str, ...]

    def examine(self, paths: Sequence[str]) -> dict[str, ExaminedLog]:
        """Return each named log file as examined; raise `InvalidOptionError` for a file of no newest slice."""
        view = open_view(self.timeline)
        file_slices = [
            file_slice
            for folder in sorted({split(path)[0] for path in paths})
            for file_slice in view.slices(folder).values()
        ]
        logs_by_path = {log.path: (file_slice, log) for file_slice in file_slices for log in file_slice.logs}
        for path in paths:
            if path not in logs_by_path:
                raise InvalidOptionError(
                    f"accept_loss names {path!r}, which is no log file of a newest file slice of the table "
                    f"{self.storage.path}.",
                    "Name the files as validate or the error shows them, relative to the table's path.",
                )
        return {path: self._examine(*logs_by_path[path]) for path in dict.fromkeys(paths)}

    def _examine(self, file_slice: FileSlice, log: LogFile) -> ExaminedLog:
        """Return a log file limited to its readable blocks; raise `InvalidOptionError` if it is not damaged."""
        blocks = list(read_blocks(self.storage, log.path, passes_over_damage=True))
        makers = slice_rule(self.timeline).makers([log], self.timeline)
        counts = {block.offset: self._count(block, makers) for block in blocks}
        # A block is given up if it is unreadable, or names an instant that did not write this file, as damage does.
        readable = {offset: count for offset, count in counts.items() if count is not None}
        # All blocks of a log file that ends too early may be readable.
        if len(readable) == len(counts) and self._is_whole(log):
            raise InvalidOptionError(
                f"The log file {log.path} of the table {self.storage.path}, which accept_loss names, is not damaged.",
                "Leave it out of accept_loss.",
            )
        stated_size = log.stated
        report = RepairedLog(
            file=log.path,
            instant=max(makers, default=""),  # of several the newest
            expected_size=None if stated_size is None else stated_size.size,
            actual_size=log.size,
            stated_records=None if stated_size is None else stated_size.records,
            readable_records=sum(readable.values()),
        )
        return ExaminedLog(file_slice.group, replace(log, readable=frozenset(readable)), report)

    def _is_whole(self, log: LogFile) -> bool:
        """Return whether the log file can be read to its stated end."""
        try:
            # Damage shows only while the file is read.
            for _ in read_log(self.storage, log):
                pass
        except CorruptFileError:
            return False
        return True

    def _count(self, block: LogBlock, makers: frozenset[str]) -> int | None:
        """Return how many rows or deletes a block holds; None if it is of no maker, or cannot be read as a whole."""
        if block.type == BlockType.CORRUPT or block.instant_time not in makers:
            return None
        try:
            if block.is_data:
                present_names = set(columns_of(block).names)
                present_columns = pa.schema(
                    [column.with_nullable(True) for column in self.schema if column.name in present_names]
                )
                return sum(int(batch.num_rows) for batch in BlockContent(self.storage, block).rows(present_columns))
            if block.type == BlockType.DELETE:
                ordering = [self.schema.field(name) for name in self.ordering]
                return len(BlockContent(self.storage, block).deletes(ordering))
        except (CorruptFileError, UnsupportedTableError):
            return None
        return 0


def repair(storage: Storage, accept_loss: Sequence[str], means: Means, *, dry_run: bool = False) -> ServiceResult:
    """Give up the unreadable blocks of damaged log files, and write the next slice of each of their file groups.

    `accept_loss` names the files as `CorruptFileError` does. Raises `InvalidOptionError` if it names none, or if one of
    them is not damaged, or no log file of a newest slice, and `CorruptFileError` for damage in other files.
    """
    began = time.monotonic()
    if not accept_loss:
        raise InvalidOptionError(
            f"The accept_loss of a repair of the table {storage.path} names no file.",
            "Name the files, or leave accept_loss out.",
        )
    table = open_merge_on_read(storage, means)
    timeline = table.timeline()
    if not dry_run:
        timeline = finish_rollbacks_first(COMPACTION, OtherWriters(table, means.patience), timeline)
    refuse_restoring(COMPACTION, timeline)
    examined = examine(table, timeline, accept_loss)
    reports = tuple(file.report for file in examined.values())
    if dry_run:
        return ServiceResult(storage.path, "repair", repaired=reports, dry=True, seconds=time.monotonic() - began)
    service = Repair(table, examined, means)
    service.repair(timeline)
    return replace(service.result(time.monotonic() - began), service="repair", repaired=reports)


class Repair(Compaction):
    """A compaction of the damaged log files' file groups alone, which skips unreadable blocks of these log files."""

    def __init__(self, table: Table, examined: Mapping[str, ExaminedLog], means: Means) -> None:
        """Plan a compaction of the file groups of some examined log files, given by path."""
        super().__init__(table, CompactionSettings(), means)
        self._examined = examined
        self._groups = frozenset(file.group for file in examined.values())

    def repair(self, timeline: Timeline) -> None:
        """Write the next slices of the file groups, after taking back compactions that would read the damaged files.

        Raises `ConcurrentWriteError` if another process came in between. The repair's own plan is taken back if
        it fails.
        """
        table = self.table
        for instant, pending in pending_compactions(timeline).items():
            named_groups = {
                FileGroupId(operation.partition_path or "", operation.file_id or "") for operation in pending.operations
            }
            if named_groups & self._groups:
                # The plan's executor could not read the damaged files.
                take_back(table, instant)
        scheduled = self.schedule()
        if scheduled is None:
            raise ConcurrentWriteError(
                f"The log files {', '.join(self._examined)} of the table {table.path} are in no slice any more: "
                "another process compacted or replaced their file groups meanwhile.",
                "Run validate to see whether they are still damaged.",
            )
        instant = scheduled[0]
        try:
            self.carry_out(instant, table.timeline())
        except TableError:
            # Every later compaction would fail at this plan, as the repair did.
            take_back(table, instant)
            raise
        if self.instant != instant.requested_time:
            raise ConcurrentWriteError(
                f"The repair {instant.requested_time} of the table {table.path} is not done: "
                f"{'; '.join(self.skipped) or 'another process took its plan back'}.",
                "Run it again.",
            )

    def plan(self, timeline: Timeline) -> Plan | None:
        """Return the slices with the damaged log files; None if none of them is free any more.

        Raises `UnsupportedTableError` if a pending plan holds some of their file groups.
        """
        partitions = {group.partition_path for group in self._groups}
        free_slices = self.slices.find(timeline, lambda paths: [path for path in paths if path in partitions])
        chosen_slices = tuple(file_slice for file_slice in free_slices if file_slice.group in self._groups)
        held_groups = self._groups - {file_slice.group for file_slice in chosen_slices}
        if chosen_slices and held_groups:
            first_held = min(held_groups)
            raise UnsupportedTableError(
                f"A pending compaction or clustering of the table {self.table.path} holds the file group "
                f"{first_held.file_id} of the partition {first_held.partition_path!r}.",
                "Complete it or take it back with HudiTable.rollback, and repair again.",
            )
        return chosen_slices or None

    def read_plan(self, timeline: Timeline, instant: Instant) -> Plan:
        """Return the plan's file slices, with the damaged log files limited to their readable blocks."""
        given_up = {path: file.log for path, file in self._examined.items()}
        return tuple(
            replace(file_slice, logs=tuple(given_up.get(log.path, log) for log in file_slice.logs))
            for file_slice in super().read_plan(timeline, instant)
        )

    def worker(self, files: FileWork, timeline: Timeline, plan: Plan) -> Compactor:
        """Return the compaction's worker; the completed instant gets a note on the rows that are given up."""
        notes = {REPAIR: json.dumps([asdict(file.report) for file in self._examined.values()])}
        worker = super().worker(files, timeline, plan)
        return replace(worker, notes={**worker.notes, **notes})
