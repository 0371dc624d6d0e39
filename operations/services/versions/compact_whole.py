"""The compaction of a whole table of version 6, before the table gets the rules of another version for its log files.

It is the one change of data files that such a merge-on-read table gets from pyhudi, with the undo of dead writes: its
writes and services open the table by `open_for_service`, which refuses it. Nothing here does.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....table.files.file_group import FileSlice
from ....table.files.lost import open_view
from ....table.table import Table
from ....timeline.held import COMPACTING, clustered_groups, says_what_it_holds
from ....timeline.instants import WRITE_ACTIONS, Instant
from ....timeline.pending_undo import pending_rollbacks
from ....timeline.timeline import Timeline
from ...service_settings import CompactionSettings
from ..compaction.compactor import Compaction
from ..compaction.plan import Plan
from ..means import Means

INDEXING = "indexing"


class BegunMeanwhileError(Exception):
    """An instant that has to be done first began since the call looked."""


class WholeCompaction(Compaction):
    """Merges the log files of every file slice."""

    _before_plan: frozenset[str] = frozenset()

    def plan(self, timeline: Timeline) -> Plan | None:
        if has_work(timeline):
            # A delta commit that was planned before appends to the slices that the plan ends.
            raise BegunMeanwhileError
        self._before_plan = frozenset(instant.identity for instant in timeline.instants)
        return tuple(self.slices.find(timeline)) or None

    def missed(self, now: Timeline, made: Instant) -> bool:
        """Return whether a write began that the plan does not know of: it may append to a slice that the plan ends.

        Apache Hudi puts a write on the timeline before it lists the plans, so that the others see this plan.
        """
        planned = self._before_plan | {made.identity}
        return super().missed(now, made) or any(
            instant.is_write and instant.identity not in planned for instant in now.instants
        )


def compact_whole(table: Table, means: Means) -> None:
    """Merge the log files of every file slice. Raises `BegunMeanwhileError` if an instant began that comes first."""
    WholeCompaction(table, CompactionSettings(), means).run()


def slices_with_logs(timeline: Timeline) -> Sequence[FileSlice]:
    return [file_slice for file_slice in open_view(timeline).all_slices() if file_slice.logs]


def clustering_of_logs(timeline: Timeline) -> Sequence[Instant]:
    """Return the pending clusterings whose plans name a file group with log files, which no compaction may change."""
    holders = clustered_groups(timeline)
    if not holders:
        return []
    logged = ((file_slice.partition_path, file_slice.file_id) for file_slice in slices_with_logs(timeline))
    held = {holders[group] for group in logged if group in holders}
    return [instant for instant in timeline.pending if instant in held]


def has_work(timeline: Timeline) -> bool:
    """Return whether an instant is pending that has to be done first; whether its process lives is judged later."""
    works = (
        instant.action in {*WRITE_ACTIONS, *COMPACTING, INDEXING} and not says_what_it_holds(timeline, instant)
        for instant in timeline.pending
    )
    return any(works) or any(timeline.write_at(victim) is not None for victim in pending_rollbacks(timeline))
