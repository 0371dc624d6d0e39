"""Log compactions: join the log files of a file slice into one log file, which readers read instead of them.

The joined log file comes after the files that it joins: its name has the plan's time, which is greater than theirs.
Some readers (hudi-rs 0.5) do not know that it replaces files, and read all of them first. They read the same rows as
long as no other log file lies in between. So a plan joins all log files before its time, and no write may be at work
that could add a log file there. While writes are at work, the plan takes a time right before the first of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ....errors import CommitConflictError
from ....storage.base import Storage
from ....storage.threads import for_each
from ....table.files.file_group import FileSlice
from ....table.files.logs.log_blocks import BlockType, LogBlock
from ....table.files.logs.log_scan import effective_blocks
from ....table.files.logs.whole_log import read_log
from ....table.files.read_written import read_replaced
from ....table.files.view import FileView
from ....timeline.clock import free_time_before
from ....timeline.held import LOG_COMPACTION, log_compactions
from ....timeline.instants import Instant
from ....timeline.timeline import Timeline
from ....timeline.writers.announcements import announced
from ....writer.data_files import write_log_file
from ...meeting import concurrency
from ...meeting.concurrency import WRITE, Shared
from ...meeting.transaction import Transaction
from ...service_settings import LogCompactionSettings
from ...transaction.file_work import FileWork
from ...words.at_work import in_words
from ..unit_execution import UnitResult
from .plan import BARE_NAMES, Plan, held_by_plans, named_slices, operations_of
from .slice_worker import SliceWorker
from .slices import SliceService, older_writes

if TYPE_CHECKING:
    from ....timeline.metadata.models import CompactionPlan

# The class with which Apache Hudi carries these plans out.
EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
_LEAST_FILES = 2
_JOINED = frozenset({BlockType.AVRO, BlockType.PARQUET, BlockType.DELETE})


class LogCompaction(SliceService[LogCompactionSettings]):
    """Joins the log files of file slices; it waits for writes at work that were requested before its plan."""

    action = LOG_COMPACTION
    kind = concurrency.LOG_COMPACTION
    name = "log compaction"
    call = "log_compact"
    does = "merges {:,} bytes of log files"
    drops_empty = True

    @cached_property
    def _answers(self) -> dict[tuple[tuple[str, int], ...], bool]:
        """The answers of `_is_wanted` by the paths and sizes of log files."""
        return {}

    def plan(self, timeline: Timeline) -> Plan | None:
        """Return the slices whose log files are joined; None if there are none before the first write at work."""
        at_work = older_writes(self.kind, timeline, timeline.greatest_time() or "")
        self.at = self._time_before(timeline, at_work[0]) if at_work else None
        plan: Plan | None = None
        # Without a free time before the first write at work, the plan has to wait for that write.
        if self.at is not None or not at_work:
            slices = self.slices.find(timeline)
            if self.at is not None:
                slices = [
                    self._with_earlier_logs(file_slice, self.at)
                    for file_slice in slices
                    if file_slice.base_time < self.at
                ]
            answers = for_each(self.table.storage, self._is_wanted, slices)
            wanted_slices = [file_slice for file_slice, wants in zip(slices, answers, strict=True) if wants]
            plan = self.fits(wanted_slices, timeline)
        has_to_wait = at_work and not plan
        self.waiting = f"a log compaction waits for {in_words(self.table, at_work[0])}" if has_to_wait else ""
        return plan

    @property
    def due_after(self) -> int:
        return self.settings.blocks

    def cost(self, unit: FileSlice) -> int:
        return super().cost(replace(unit, base=None))

    def requested(self, plan: Plan) -> CompactionPlan:
        """Return the body of the requested log compaction, with the class by which Apache Hudi carries it out."""
        from ....timeline.metadata.models import CompactionPlan, CompactionStrategy  # noqa: PLC0415 (as in compactor.py)

        return CompactionPlan(
            operations=operations_of(plan),
            extra_metadata={},
            version=BARE_NAMES,
            strategy=CompactionStrategy(compactor_class_name=EXECUTOR, strategy_params={}),
            preserve_hoodie_metadata=True,
            missing_schedule_partitions=[],
        )

    def missed(self, now: Timeline, planned_instant: Instant) -> bool:
        """Return whether a write began or completed that the plan of `planned_instant` should have taken into account.

        It also missed something if readers may take its log file for that of an archived instant by now.
        """
        time_of_plan = planned_instant.requested_time
        return (
            super().missed(now, planned_instant)
            or bool(older_writes(self.kind, now, time_of_plan))
            or (self.at is not None and _counts_as_archived(now, time_of_plan))
        )

    def read_plan(self, timeline: Timeline, instant: Instant) -> Plan:
        """Return the log files that a pending log compaction joins, as slices without base files.

        It skips file groups that were replaced or compacted, that another plan holds, or of which the plan lacks
        earlier log files.
        """
        planned_slices, listings, _ = named_slices(timeline, instant, EXECUTOR)
        view = FileView(timeline, read_replaced(timeline), listings)
        newest_slices = {partition: view.slices(partition) for partition in listings}
        held_groups = held_by_plans(self.kind, timeline, but=instant)
        slices: list[FileSlice] = []
        for file_slice in planned_slices:
            newest_slice = newest_slices[file_slice.partition_path].get(file_slice.file_id)
            if newest_slice is None or (file_slice.partition_path, file_slice.file_id) in held_groups:
                continue
            logs_before = self._with_earlier_logs(newest_slice, instant.requested_time)
            if [log.path for log in logs_before.logs] == [log.path for log in file_slice.logs]:
                slices.append(replace(file_slice, base=None))
        return tuple(slices)

    def worker(self, files: FileWork, timeline: Timeline, plan: Plan) -> LogCompactor:
        return LogCompactor(files)

    def refuse_stale(self, work: Transaction, timeline: Timeline, plan: Plan) -> None:
        """Raise `CommitConflictError` if other log files than the joined ones come before a new log file."""
        super().refuse_stale(work, timeline, plan)
        looks = self.forbids(WRITE, {Shared.BASIS: True})
        if self.waits_for(timeline, work.inflight) or (looks and self.read_plan(timeline, work.inflight) != plan):
            raise CommitConflictError(
                f"The log compaction {work.instant_time} of the table {work.path} is not completed: a write or a "
                "compaction that was requested earlier, or holds the same file groups, came in between.",
                "Run it again once that is complete.",
            )

    def _with_earlier_logs(self, file_slice: FileSlice, time: str) -> FileSlice:
        """Return a slice with only those log files that readers read before a log file of the given time."""
        rule = self.table.format.slices
        return replace(file_slice, logs=tuple(log for log in file_slice.logs if rule.comes_before(log, time)))

    def _time_before(self, timeline: Timeline, write: Instant) -> str | None:
        """Return a free time right before a write at work and after all joined log files; None if there is none."""
        taken_times = {
            time for instant in timeline.instants for time in (instant.requested_time, instant.completion_time) if time
        }
        try:
            free_time = free_time_before(write.requested_time, taken_times)
        except (ValueError, OverflowError):
            return None
        last_joined = max(log_compactions(timeline), default="")
        fits = last_joined < free_time < write.requested_time and not _counts_as_archived(timeline, free_time)
        return free_time if fits else None

    def _is_wanted(self, file_slice: FileSlice) -> bool:
        """Return whether a slice has many log files, or blocks in them, from more than one instant.

        ``HoodieLogCompactionPlanGenerator`` also counts joined log files, and would join them again.
        """
        if len(file_slice.logs) < _LEAST_FILES:
            return False
        logs = tuple((log.path, log.size) for log in file_slice.logs)
        if logs not in self._answers:
            blocks = blocks_of(self.table.storage, file_slice)
            has_many = max(len(logs), len(blocks)) >= self.settings.blocks
            has_several_instants = has_many and len({block.instant_time for block in blocks}) > 1
            self._answers[logs] = has_several_instants and why_unjoinable(blocks) is None
        return self._answers[logs]


@dataclass(frozen=True, slots=True)
class LogCompactor(SliceWorker):
    """Joins the log files of one slice into one log file."""

    operation = "LOG_COMPACT"

    def execute(self, unit: FileSlice) -> UnitResult[FileSlice]:
        """Join the log files of one slice; a result without a file says why they stay as they are."""
        began = time.monotonic()
        with self.opened(unit) as (logs, files):
            blocks = logs.blocks
            why = why_unjoinable(blocks) or (None if blocks else "none of their blocks counts")
            if why is not None:
                skipped = (
                    f"the log files of the file group {unit.file_id} of partition {unit.partition_path!r} stay: {why}"
                )
                return UnitResult(unit, skipped=skipped)
            # Readers leave out the blocks of these instants, for which the new file's blocks come. Each is named once.
            replaces = tuple(dict.fromkeys(block.instant_time for block in blocks))
            form, log_format = self.files.form(), self.files.log_format()
            # The deletes without an ordering value come first, because they hide base rows from the rows after them.
            written = write_log_file(files, unit, form, log_format, logs.resets(), logs.entries(), replaces)
        return self.result(unit, logs, began, written)


def blocks_of(storage: Storage, file_slice: FileSlice) -> tuple[LogBlock, ...]:
    """Return the blocks of a slice's log files that count, without rolled back and already joined blocks."""
    # A slice names complete log files only, so the blocks of all instants count.
    return effective_blocks([tuple(read_log(storage, log)) for log in file_slice.logs], lambda _: True)


def why_unjoinable(blocks: Iterable[LogBlock]) -> str | None:
    """Return why some blocks cannot be joined, in words; None if they can."""
    for block in blocks:
        if block.is_partial:
            return f"{block.shown} has some columns only, and its rows are complete only with older rows"
        if block.type not in _JOINED:
            return f"{block.shown} is of the type {block.type.name}"
    return None


def _counts_as_archived(timeline: Timeline, time: str) -> bool:
    """Return whether readers may take a file of a time for one of an archived instant.

    They do so for each time before the first write on the timeline, which archiving may move on at any moment.
    """
    first_write = min((instant.requested_time for instant in timeline.writes), default=time)
    return time <= max(first_write, *announced(timeline.storage), "")
