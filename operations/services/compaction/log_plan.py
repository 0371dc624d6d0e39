"""Plans of log compactions: made of the file slices that have many log files, and found again in a requested instant.

The joined log file is read in place of those that it was made of, and comes behind them: its name has the plan's time,
which is greater than theirs. Some readers (hudi-rs 0.5) do not know that it replaces anything and read it after all of
them, which comes to the same as long as nothing else lies in between. So a plan joins all log files that come before
it, and no write may be at work that could add one there. Where writes are, the plan takes a time right before theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ....storage.base import Storage
from ....storage.parallel import for_each
from ....table.files.file_group import FileSlice
from ....table.files.logs.log_blocks import BlockType, LogBlock
from ....table.files.logs.log_scan import effective_blocks
from ....table.files.logs.whole_log import read_log
from ....table.files.view import FileView
from ....table.files.written import read_replaced
from ....timeline.clock import free_time_before
from ....timeline.held import LOG_COMPACTION, log_compactions
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ....timeline.writers.announcements import announced
from ..settings import CompactionSettings, LogCompactionSettings
from .plan import BARE_NAMES, Plan, Planner, held_by_plans, named_slices, operations_of

if TYPE_CHECKING:
    from ....timeline.metadata.models import CompactionPlan

# By which Apache Hudi carries these plans out.
EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
_LEAST_FILES = 2
_JOINED = frozenset({BlockType.AVRO, BlockType.PARQUET, BlockType.DELETE})


@dataclass(frozen=True, slots=True)
class LogRequested:
    """A log compaction as it is put on the timeline."""

    action: str = LOG_COMPACTION

    def requested(self, plan: Plan) -> CompactionPlan:
        """Return the plan as Apache Hudi writes it."""
        from ....timeline.metadata.models import CompactionPlan, CompactionStrategy  # noqa: PLC0415 (see plan.py)

        return CompactionPlan(
            operations=operations_of(plan),
            extra_metadata={},
            version=BARE_NAMES,
            strategy=CompactionStrategy(compactor_class_name=EXECUTOR, strategy_params={}),
            preserve_hoodie_metadata=True,
            missing_schedule_partitions=[],
        )


@dataclass(slots=True)
class LogPlanner:
    """Makes the plan of the next log compaction, again and again while others decide first.

    Attributes:
        storage: Rooted at the table.
        settings: What is joined.
        waits_for: The first of the writes that the last plan would have had to wait for.
        at: The time of a plan that comes before a write at work; None for one after all that is on the timeline.
    """

    storage: Storage
    settings: LogCompactionSettings
    waits_for: Instant | None = None
    at: str | None = None
    _files: Planner = field(init=False)

    def __post_init__(self) -> None:
        self._files = Planner(self.storage, CompactionSettings())

    @property
    def skipped(self) -> str:
        """Why nothing was planned, in words; empty where something was, or nothing is to be joined."""
        one = self.waits_for
        return (
            "" if one is None else f"a log compaction waits for the {one.action} {one.requested_time}, which is at work"
        )

    def plan(self, timeline: Timeline) -> Plan | None:
        """Return what is to be joined on a timeline; None where nothing is before the first write at work.

        Raises:
            CorruptInstantError: A pending compaction or clustering has a plan that cannot be parsed.
            MissingFileError: A file that a completed write names is gone.
        """
        at_work = [one for one in timeline.pending if _may_append(one)]
        self.waits_for = at_work[0] if at_work else None
        self.at = self._time_before(timeline, at_work[0]) if at_work else None
        if at_work and self.at is None:
            return None
        slices = self._files.free_slices(timeline, list)
        if self.at is not None:
            slices = [_before(one, self.at) for one in slices if one.base_time < self.at]
        wanted = for_each(self.storage, self._is_wanted, slices)
        plan = tuple(one for one, wants in zip(slices, wanted, strict=True) if wants) or None
        if plan is not None:
            self.waits_for = None
        return plan

    def missed(self, now: Timeline, made: Instant) -> bool:
        """Return whether a write came in between that a plan does not know of."""
        time = made.requested_time
        return (
            self._files.missed(now, made)
            or bool(older_writes(now, time))
            or (self.at is not None and self._counts_as_archived(now, time))
        )

    def _time_before(self, timeline: Timeline, write: Instant) -> str | None:
        """Return a free time right before a write at work; None where a log compaction cannot have it.

        It comes behind all that was joined before, or it would join the same once more.
        """
        taken = {time for one in timeline.instants for time in (one.requested_time, one.completion_time) if time}
        try:
            time = free_time_before(write.requested_time, taken)
        except (ValueError, OverflowError):
            return None
        joined = max(log_compactions(timeline), default="")
        fits = joined < time < write.requested_time and not self._counts_as_archived(timeline, time)
        return time if fits else None

    def _counts_as_archived(self, timeline: Timeline, time: str) -> bool:
        """Return whether readers may take a file of a time for an archived instant's, whatever is on the timeline."""
        first = min((one.requested_time for one in timeline.writes), default=time)
        return time <= max(first, *announced(self.storage), "")

    def _is_wanted(self, piece: FileSlice) -> bool:
        """Return whether a slice has many log files, or blocks in them, from more than one instant.

        The rule of ``HoodieLogCompactionPlanGenerator``, which counts log files that were joined before, too, and would
        write what came of them once more.
        """
        if len(piece.logs) < _LEAST_FILES:
            return False
        blocks = blocks_of(self.storage, piece)
        many = max(len(piece.logs), len(blocks)) >= self.settings.blocks
        return many and len({one.instant_time for one in blocks}) > 1 and why_left(blocks) is None


def _before(piece: FileSlice, time: str) -> FileSlice:
    return replace(piece, logs=tuple(log for log in piece.logs if log.instant_time < time))


def older_writes(timeline: Timeline, time: str) -> list[Instant]:
    """Return the writes that are at work and were asked for before a time."""
    return [one for one in timeline.pending if _may_append(one) and one.requested_time < time]


def _may_append(instant: Instant) -> bool:
    return instant.is_write and instant.action == instant.group and instant.state != State.COMPLETED


def blocks_of(storage: Storage, piece: FileSlice) -> tuple[LogBlock, ...]:
    """Return the blocks of a slice's log files that count.

    Raises:
        CorruptFileError: A block is whole and says of itself what cannot be.
        UnsupportedTableError: A block is of a kind that only newer releases know.
    """
    return effective_blocks([tuple(read_log(storage, log)) for log in piece.logs], lambda _: True)


def why_left(blocks: Iterable[LogBlock]) -> str | None:
    """Return why some blocks cannot be joined, in words; None where they can."""
    for block in blocks:
        if block.is_partial:
            return f"{block.shown} has some columns only, and its rows fit together with older ones alone"
        if block.type not in _JOINED:
            return f"{block.shown} is of the type {block.type.name}"
    return None


def read_log_plan(storage: Storage, timeline: Timeline, instant: Instant) -> Plan:
    """Return the log files that a pending log compaction joins, whoever requested it, by slices without base files.

    File groups are left out that were replaced or compacted since, that another plan holds, and those of which it does
    not name all log files that come before it.

    Raises:
        CorruptInstantError: The plan cannot be parsed, or names what is no slice of this table.
        MissingFileError: A file that it names is gone.
        UnsupportedTableError: It wants something that pyhudi does not do.
    """
    named, listings = named_slices(storage, timeline, instant, EXECUTOR)
    view = FileView(timeline, read_replaced(timeline), listings)
    newest = {partition: view.slices(partition) for partition in listings}
    held = held_by_plans(timeline, but=instant)
    kept: list[FileSlice] = []
    for piece in named:
        there = newest[piece.partition_path].get(piece.file_id)
        if there is None or (piece.partition_path, piece.file_id) in held:
            continue
        before = [log.path for log in there.logs if log.instant_time < instant.requested_time]
        if before == [log.path for log in piece.logs]:
            kept.append(replace(piece, base=None))
    return tuple(kept)
