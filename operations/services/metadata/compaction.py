"""Compactions of a metadata table: one decision merges the log files of all its file groups into base files.

The process makes the new base files before the decision, for a time M that is later than all times of both timelines.
The decision is made only if the files hold every delta commit that completed before M, and none of these was undone
meanwhile. A delta commit that completes later belongs to the slice that M begins. So no writer waits, and no plan is
pending that another process would have to finish. A compaction that Apache Hudi planned is carried out in the same way.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....storage.base import join, split
from ....table.config import load_config
from ....table.files.file_group import BaseFile, FileSlice, base_file, data_file
from ....table.files.slice_rule import slice_rule
from ....table.metadata.file_groups import GroupReader
from ....table.metadata.group_merge import MergedGroup, merged_group
from ....table.metadata.kinds import FILES, PARTITION_STATS, kind_of
from ....table.metadata.merging import SaidRecords
from ....table.metadata.metadata_table import FOLDER
from ....table.metadata.new_files import base_name
from ....table.metadata.record_schema import schema_of_commits
from ....table.table import Table, refuse_other_version
from ....timeline.held import COMPACTION, LOG_COMPACTION, pending_compactions
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ....timeline.writers.first_steps import MOST_TO_MAKE, DeleteFile, FirstSteps, MakeFile, Step
from ....timeline.writers.long_work import LongWork
from ....timeline.writers.owner import Claim
from ...following.before_completion import file_step, set_aside
from ...following.damage import damage_of
from ...transaction.commit_path import time_after
from ...transaction.decide import settle
from ...transaction.without_instant import MetadataSteps, take_metadata_steps
from .slices import MetadataSlices, is_being_undone
from .tight_partitions import tight_records

if TYPE_CHECKING:
    from ....timeline.metadata.models import CommitMetadata, CompactionPlan, WriteStat

# The version of plans that give files' names without folders.
_BARE_NAMES = 2


@dataclass(frozen=True, slots=True)
class CompactedBase:
    """A new base file of a file group, made from the slice ``merged``."""

    partition: str
    merged: FileSlice
    path: str
    size: int
    group: MergedGroup
    step: Step


def plan_of(merged: Sequence[tuple[str, FileSlice]]) -> CompactionPlan:
    """Return the plan of a compaction, which names what it merges."""
    from ....timeline.metadata.models import CompactionOperation, CompactionPlan  # noqa: PLC0415 (see timeline/instant_files.py)

    operations = [
        CompactionOperation(
            base_instant_time=file_slice.base_time,
            delta_file_paths=[split(log.path)[1] for log in file_slice.logs],
            data_file_path=None if file_slice.base is None else file_slice.base.name,
            file_id=file_slice.file_id,
            partition_path=name,
            metrics=_metrics(file_slice),
        )
        for name, file_slice in merged
    ]
    return CompactionPlan(operations=operations, extra_metadata={}, version=_BARE_NAMES, missing_schedule_partitions=[])


def _metrics(file_slice: FileSlice) -> dict[str, float]:
    """Return what the merge of a slice costs, in files, bytes and MiB; Apache Hudi fails without some entries."""
    return {
        "TOTAL_LOG_FILES": float(len(file_slice.logs)),
        "TOTAL_LOG_FILES_SIZE": float(file_slice.log_bytes),
        "TOTAL_IO_READ_MB": float(file_slice.size >> 20),
        "TOTAL_IO_WRITE_MB": float(file_slice.size >> 20),
        "TOTAL_IO_MB": float(2 * file_slice.size >> 20),
    }


def body_of(bases: Sequence[CompactedBase]) -> CommitMetadata:
    """Return the body of a compaction's completed instant, with the statistics of its base files by partition."""
    from ....timeline.metadata.models import CommitMetadata  # noqa: PLC0415 (as above)

    stats: dict[str, list[WriteStat]] = {}
    for base in bases:
        stats.setdefault(base.partition, []).append(_write_stat(base))
    # File groups may have several schemas, and a commit states a single schema: take that of `files` if there is any.
    bases_of_files = [base for base in bases if base.partition == FILES] or bases
    extra = {"schema": schema_of_commits(bases_of_files[0].group.schema)}
    return CommitMetadata(
        partition_to_write_stats=stats, compacted=True, operation_type="COMPACT", extra_metadata=extra
    )


def _write_stat(base: CompactedBase) -> WriteStat:
    """Return the write statistic of a new base file, with what it merged."""
    from ....timeline.metadata.models import WriteStat  # noqa: PLC0415 (as above)

    return WriteStat(
        file_id=base.merged.file_id,
        path=base.path.removeprefix(f"{FOLDER}/"),
        prev_commit=base.merged.base_time or "null",
        num_writes=base.group.records,
        num_update_writes=base.group.logged,
        total_write_bytes=base.size,
        partition_path=base.partition,
        file_size_in_bytes=base.size,
        total_log_records=base.group.logged,
        total_log_files=len(base.merged.logs),
        total_log_files_compacted=len(base.merged.logs),
        total_log_size_compacted=base.merged.log_bytes,
        total_log_blocks=len(base.merged.logs),
    )


logger = logging.getLogger("pyhudi")

_ROUNDS = 5
# The bytes of base files that a decision itself holds. Further files wait in the working folder of the instant, from
# which the decision copies them into place.
MOST_HELD = MOST_TO_MAKE // 4


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did; ``bytes_read`` is the size of the files that it merged."""

    instant: str
    file_groups: int
    log_files: int
    bytes: int
    bytes_read: int


def compact_metadata(table: Table) -> Compacted | None:
    """Finish the pending compactions of a metadata table, then merge all log files; return what the last merge did.

    Return None if there is nothing to merge, or if a rollback or restore is pending. Raises what `decide` raises, and
    `DamagedPartitionError` if a file of the metadata table is damaged.
    """
    compacted: Compacted | None = None
    tightens = True
    for _ in range(_ROUNDS):
        slices = _slices_to_merge(table)
        if slices is None:
            return compacted
        planned = next(iter(pending_compactions(slices.timeline)), None)
        if planned is not None and planned.action == LOG_COMPACTION:
            _take_plan_back(table, planned)
            continue
        # Tighten no bounds in another engine's compaction: its time is past, and the bounds of files are of now.
        compaction = _Compaction(table, slices, planned, tightens=tightens and planned is None)
        if not compaction.merged:
            if planned is None:
                return compacted
            _take_plan_back(table, planned)
            continue
        result = compaction.carry_out()
        compacted = result or compacted
        # Bounds can be tightened only while nothing is pending. If writes always are, compact without that.
        tightens = tightens and planned is not None
        if result is not None and planned is None:
            return compacted
    return compacted


def _slices_to_merge(table: Table) -> MetadataSlices | None:
    """Carry out what is decided, and return the metadata table then; None if it must not be merged now."""
    timeline = settle(table)
    if is_being_undone(timeline):
        return None
    return MetadataSlices.of(table, timeline)


class _Compaction:
    """A compaction that Apache Hudi left pending, or a compaction at a new time."""

    def __init__(self, table: Table, slices: MetadataSlices, planned: Instant | None, *, tightens: bool) -> None:
        """Choose what is merged; `tightens` asks for tight bounds of partitions if nothing is pending."""
        self.table, self.slices, self.planned = table, slices, planned
        of_table, of_metadata = slices.metadata.of_table, slices.timeline.greatest_time() or ""
        time = time_after(table, of_table, of_metadata) if planned is None else planned.requested_time
        self.instant = Instant(time, COMPACTION, State.REQUESTED)
        self.plan = None if planned is None else pending_compactions(slices.timeline)[planned]
        self.merged = self._slices_to_merge_here(slices.before(time))
        self.tightens = tightens and not of_table.pending
        self.tight: dict[str, SaidRecords] = {}

    def _slices_to_merge_here(self, slices: list[tuple[str, FileSlice]]) -> list[tuple[str, FileSlice]]:
        """Return all slices, or those that the pending plan names."""
        if self.plan is None:
            return slices
        named_groups = {(operation.partition_path, operation.file_id) for operation in self.plan.operations}
        # Empty if a plan comes back after it was carried out, because no log file of its file groups is older than the
        # plan; the caller then takes the plan back.
        return [(name, file_slice) for name, file_slice in slices if (name, file_slice.file_id) in named_groups]

    @property
    def time(self) -> str:
        """The compaction's requested time, which begins the new slices."""
        return self.instant.requested_time

    def carry_out(self) -> Compacted | None:
        """Make the base files and decide to use them; return what was done.

        Return None if the decision was not made or not carried out, as other instants changed the metadata
        table; the caller may try again.
        """
        storage = self.table.storage
        if not all(map(self.slices.metadata.counts, self._makers_of_logs())):
            # A log file's instant on the table's timeline is about to complete, or half undone by another engine.
            return None
        with LongWork(storage, self.time):
            bases = self._bases()
            decided = take_metadata_steps(self.table, lambda timeline: self._steps(timeline, bases))
        # Files that the decision did not hold itself waited in this folder.
        storage.delete_folder(Claim(storage, self.time).folder)
        if decided is None:
            return None
        if not self._is_complete():
            # A file in the working folder was lost, so the decision was not carried out.
            storage.delete(*(base.path for base in bases))
            return None
        merged = [file_slice for _, file_slice in self.merged]
        compacted = Compacted(
            self.time,
            len(merged),
            sum(len(file_slice.logs) for file_slice in merged),
            sum(base.size for base in bases),
            sum(file_slice.size for file_slice in merged),
        )
        logger.info("table %s: compacted its metadata table at %s: %s", self.table.path, self.time, compacted)
        return compacted

    def _makers_of_logs(self) -> frozenset[str]:
        """Return the times of the delta commits that made the log files to merge."""
        logs = [log for _, file_slice in self.merged for log in file_slice.logs]
        return slice_rule(self.slices.timeline).makers(logs, self.slices.timeline)

    def _is_complete(self) -> bool:
        """Return whether the compaction's instant is completed on the metadata table's timeline."""
        instant = self.slices.timeline.reload().write_at(self.time)
        return instant is not None and instant.state == State.COMPLETED

    def _bases(self) -> list[CompactedBase]:
        """Return the new base files, each with the step that publishes it.

        It makes them one after the other, as each may take as much memory as a commit.
        """
        held_bytes, bases = 0, []
        if self.tightens:
            self.tight = tight_records(self.table, self.slices.metadata, self.merged, self.instant)
        for name, file_slice in self.merged:
            kind = kind_of(name)
            # Whether all records of a key count together; otherwise the newest record replaces the older ones.
            adds_up = kind is not None and kind.adds_up
            # The new base file would lose what a torn log file said, so that is damage.
            reader = GroupReader(
                self.table.storage, file_slice, self.slices.metadata.counts, adds_up, may_be_torn=False
            )
            with damage_of(name):
                group = merged_group(reader, lists=name == FILES, newest=self._tight_records_of(name, file_slice))
            path = join(FOLDER, name, base_name(file_slice.file_id, self.time))
            size = len(group.content)
            step: Step
            if held_bytes + size <= MOST_HELD:
                held_bytes += size
                step = MakeFile(path, group.content)
            else:
                step = set_aside(self.table.storage, self.time, path, group.content)
            bases.append(CompactedBase(name, file_slice, path, size, group, step))
        return bases

    def _tight_records_of(self, name: str, file_slice: FileSlice) -> SaidRecords | None:
        """Return the tight bounds for a file group of ``partition_stats``; None for other groups, or without them."""
        return self.tight.get(file_slice.file_id) if name == PARTITION_STATS else None

    def _steps(self, timeline: Timeline, bases: Sequence[CompactedBase]) -> MetadataSteps | None:
        """Return the steps of the compaction; None if its base files lack what has completed before its time.

        It publishes tight bounds only while nothing is pending.
        """
        if is_being_undone(timeline) or (self.tight and timeline.pending):
            return None
        config = load_config(self.table.storage)
        refuse_other_version(self.table, config)
        now = self.slices.timeline.reload()
        if set(config.metadata_partitions) != set(self.slices.metadata.names) or not self._still_holds(timeline, now):
            return None
        storage, files = self.table.storage, now.files
        completion_time = time_after(self.table, timeline, now.greatest_time() or "")
        body = files.codec.encode(body_of(bases))
        steps: list[Step] = [DeleteFile(path) for path in self._left_files()]
        # Readers see the base files only once the instant is complete, which comes last: a lost file does no harm.
        steps += [base.step for base in bases]
        # The plan names every log file, and the body every base file.
        if self.planned is None:
            plan = files.codec.encode(plan_of(self.merged))
            steps.append(file_step(storage, self.time, files.path(self.instant), plan))
        inflight = files.path(self.instant.at(State.INFLIGHT))
        if self.planned is None or not storage.exists(inflight):
            steps.append(MakeFile(inflight, b""))
        completed_path = files.path(files.layout.completed(self.instant, completion_time))
        steps.append(file_step(storage, self.time, completed_path, body))
        return MetadataSteps(self.instant, FirstSteps(tuple(steps)))

    def _still_holds(self, timeline: Timeline, now: Timeline) -> bool:
        """Return whether the base files have all that completed before their time, and may be used.

        It compares the metadata table's timeline `now` with the timeline as it was when the files were made. No
        other compaction may be in the way.
        """

        def before(metadata: Timeline) -> set[Instant]:
            """Return the instants that completed up to the compaction's time."""
            return {each for each in metadata.completed if each.visible_since <= self.time}

        seen = self.slices.timeline
        if before(now) != before(seen):
            return False
        indexing_times = {each.requested_time for each in timeline.instants if each.action == "indexing"}
        completed_since = set(now.completed).difference(seen.completed)
        # If a partition was built anew meanwhile, the merged files are none of its files.
        if any(each.group != "deltacommit" or each.requested_time in indexing_times for each in completed_since):
            return False
        pending = {(each.requested_time, each.action) for each in now.pending}
        if self.planned is not None:
            return (self.time, COMPACTION) in pending
        times = {each.requested_time for each in (*now.instants, *timeline.instants)}
        return self.time not in times and not any(action in (COMPACTION, LOG_COMPACTION) for _, action in pending)

    def _left_files(self) -> list[str]:
        """Return the base files that another engine left of the pending compaction; readers might take these."""
        if self.planned is None:
            return []
        storage = self.table.storage
        own_names = {base_name(file_slice.file_id, self.time) for _, file_slice in self.merged}
        listed = [info.path for name in {name for name, _ in self.merged} for info in storage.list(join(FOLDER, name))]
        bases = [base for base in map(base_file, listed) if isinstance(base, BaseFile)]
        return [base.path for base in bases if base.instant_time == self.time and base.name not in own_names]


def _take_plan_back(table: Table, planned: Instant) -> None:
    """Take a pending plan of Apache Hudi off the metadata table's timeline, and delete the files made for it.

    No reader has seen these files. A log compaction must go because it would replace log blocks that a compaction
    merges meanwhile.
    """

    def steps(timeline: Timeline) -> MetadataSteps | None:
        """Return the steps that delete the plan and its files; None if the plan is not pending any more."""
        slices = None if is_being_undone(timeline) else MetadataSlices.of(table, timeline)
        if slices is None or planned.identity not in {each.identity for each in slices.timeline.pending}:
            return None
        storage, files = table.storage, slices.timeline.files
        rule = table.format.slices
        listed = [info for name in slices.metadata.names for info in storage.list(join(FOLDER, name))]
        made_files = [file for file in (data_file(info.path, info.size) for info in listed) if file is not None]
        gone_paths = [file.path for file in made_files if rule.may_be_of(file, planned.requested_time)]
        gone_paths += [files.path(planned.at(State.INFLIGHT)), files.path(planned.at(State.REQUESTED))]
        return MetadataSteps(planned, FirstSteps(tuple(map(DeleteFile, gone_paths))))

    logger.info(
        "table %s: takes back the %s %s of its metadata table", table.path, planned.action, planned.requested_time
    )
    take_metadata_steps(table, steps)
