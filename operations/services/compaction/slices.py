"""What compactions and log compactions share: plans of file slices, and when a plan is stale or has to wait."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from ....errors import CommitConflictError
from ....table.files.file_group import FileSlice
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ...meeting.concurrency import (
    RESTORE,
    ROLLBACK,
    WRITE,
    Asked,
    InstantKind,
    Known,
    Meeting,
    Shared,
    all_shared,
    asked_of,
    forbids,
    known_of,
)
from ...meeting.since import InstantsSincePlan
from ...meeting.transaction import Transaction
from ...result import ServiceResult
from ...words.at_work import in_words
from ..means import units_at_once
from ..planned import PlannedService, Settings
from ..throughput import note_left_out
from .plan import FreeSlices, Plan, replaced_since
from .slice_worker import written_slices

logger = logging.getLogger("pyhudi")

# What a slice and each of its log files cost beyond their bytes.
_PER_SLICE, _PER_LOG = 256 << 10, 192 << 10


class SliceService(PlannedService[Settings, FileSlice]):
    """A compaction or a log compaction: its units are file slices, and each becomes one new file."""

    @cached_property
    def slices(self) -> FreeSlices:
        """The slices that no other plan holds, as of the last plan that was made."""
        return FreeSlices(self.table.storage, self.kind)

    def missed(self, now: Timeline, planned_instant: Instant) -> bool:
        return self.slices.missed(now, planned_instant)

    def cost(self, unit: FileSlice) -> int:
        """Return the work of merging a slice, in bytes read and written, with an allowance for each file."""
        return 2 * unit.size + _PER_SLICE + _PER_LOG * len(unit.logs)

    @property
    @abstractmethod
    def due_after(self) -> int:
        """How many delta commits make a compaction due."""

    def fits(self, slices: Sequence[FileSlice], timeline: Timeline) -> Plan | None:
        """Return the slices that fit into the seconds of the means, and note what was left out; None for no slice.

        If not all of them fit, slices with few log files wait, as their base files would be rewritten for little.
        Nearly due slices fill up the idle cores beside the due slices; from then on they are due together.
        """
        if self.means.within_s is None:
            return tuple(slices) or None
        makers = partial(self.table.format.makers, completed=timeline)
        commits_by_group = {file_slice.group: len(makers(file_slice.logs)) for file_slice in slices}
        by_need = sorted(slices, key=lambda file_slice: -commits_by_group[file_slice.group])
        due_count = sum(count >= self.due_after for count in commits_by_group.values())
        early_count = sum(2 * count >= self.due_after for count in commits_by_group.values()) - due_count
        # The due slices leave cores idle in the last round of units: so many nearly due slices fill these.
        taken_count = due_count + min(-due_count % units_at_once(), early_count)
        # If all slices fit, or none is due, the plan has the slices that the strategy chose, in its order.
        plan = self.cut(slices if not due_count or self.allows(slices) else by_need[:taken_count])
        left_out_groups = commits_by_group.keys() - {file_slice.group for file_slice in plan}
        most_commits = max((commits_by_group[group] for group in left_out_groups), default=0)
        note_left_out(self.table.path, self.action, most_commits, timeline.greatest_time() or "")
        return plan or None

    def finished(self, units: Sequence[FileSlice], paths: Sequence[str]) -> Sequence[FileSlice]:
        return written_slices(units, paths)

    def refuse_stale(self, work: Transaction, timeline: Timeline, plan: Plan) -> None:
        """Raise `CommitConflictError` if other instants undid or replaced files that the plan merged.

        `work` is this compaction in the making, with the moment of its plan, `timeline` is listed now, and `plan` has
        the slices that were merged. The caller then does not complete the compaction.
        """
        instants_since = InstantsSincePlan.find(work, timeline)
        logs = (log for file_slice in plan for log in file_slice.logs)
        merged = work.table.format.makers(logs, timeline) | {file_slice.base_time for file_slice in plan}
        undone_times = {
            undo.instant_time
            for undo in instants_since.undone_writes()
            if self.forbids(ROLLBACK, {Shared.BASIS: undo.instant_time in merged}, undo.state)
        }
        replaced_groups = replaced_since(timeline, (file_slice.group for file_slice in plan))
        # The rules of concurrency decide whether a write since the plan is a conflict even if it replaced nothing here.
        write_forbids = bool(replaced_groups or instants_since.writes) and self.forbids(
            WRITE, {Shared.REPLACED: replaced_groups}
        )
        lost_names = [
            *sorted(undone_times),
            *(f"{group.file_id} of {group.partition_path!r}" for group in replaced_groups if write_forbids),
        ]
        restore_forbids = instants_since.restore is not None and self.forbids(
            RESTORE, {}, known_of(instants_since.restore)
        )
        if lost_names or restore_forbids or write_forbids:
            what = f"{lost_names[0]}, which it merged," if lost_names else "what it merged"
            raise CommitConflictError(
                f"The {self.name} {work.instant_time} of the table {work.path} is not completed: {what} was undone or "
                "replaced meanwhile.",
                "Compact again.",
            )

    def forbids(
        self, theirs: InstantKind, shared: Mapping[Shared, object], their_state: Known = Known.COMPLETED
    ) -> bool:
        """Return whether an instant that came since the plan forbids to complete the merge."""
        return forbids(Meeting(self.kind, theirs, their_state, all_shared(shared), Asked.SINCE_PLAN))

    def waits_for(self, timeline: Timeline, instant: Instant) -> str:
        """Return in words the write at work for which the plan waits; empty if there is none.

        The log files of such a write will come before the plan's new file.
        """
        older = older_writes(self.kind, timeline, instant.requested_time)
        return f"{in_words(self.table, older[0])}, which was there before it" if older else ""

    def schedule_result(self, instant_and_plan: tuple[Instant, Plan] | None, seconds: float) -> ServiceResult:
        """Return the result of a call that only plans, given the plan that it made.

        Without a plan, `skipped` says for which write the plan waits, if for any.
        """
        unplanned = ServiceResult(
            self.table.path, f"schedule_{self.name.replace(' ', '_')}", seconds=seconds, skipped=self.waiting
        )
        if instant_and_plan is None:
            return unplanned
        instant, plan = instant_and_plan
        path, time_of_plan = self.table.path, instant.requested_time
        logger.info("table %s: planned the %s %s of %d file groups", path, instant.action, time_of_plan, len(plan))
        return replace(
            unplanned,
            instant=time_of_plan,
            file_groups=len(plan),
            log_files=sum(len(file_slice.logs) for file_slice in plan),
            bytes_read=sum(file_slice.size for file_slice in plan),
        )

    def result(self, seconds: float) -> ServiceResult:
        """Return the result of a call, with the number of log files that were merged, and log it."""
        logs = sum(len(result.unit.logs) for result in self.results)
        summary = replace(super().result(seconds), log_files=logs)
        if self.results:
            logger.info(
                "table %s: %s of %d log files of %d file groups: %d bytes made of %d",
                self.table.path,
                self.name,
                summary.log_files,
                summary.file_groups,
                summary.bytes,
                summary.bytes_read,
            )
        return summary


def older_writes(mine: InstantKind, timeline: Timeline, time_of_plan: str) -> list[Instant]:
    """Return the writes at work for which a plan of an instant of the kind `mine` has to wait, in order of time.

    These were requested before the plan's time, and may still append to log files that it merges.
    """
    return [
        write
        for write in timeline.pending
        if _may_append(write) and forbids(Meeting(mine, WRITE, asked=asked_of(time_of_plan, write)))
    ]


def _may_append(instant: Instant) -> bool:
    """Return whether an instant is a write at work, which may still append log files; a pending plan is none."""
    return instant.is_write and instant.action == instant.group and instant.state != State.COMPLETED
