"""Compacts a whole table of version 6 before an upgrade, after which other rules merge its log files.

This and the undo of dead writes are the only changes that pyhudi makes to data files of a merge-on-read table of
version 6. Other writes and services open tables by `open_for_service`, which refuses such a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....errors import UnsupportedTableError
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
from ..execution import take_back
from ..means import Means

INDEXING = "indexing"


class BegunMeanwhileError(Exception):
    """An instant that has to be finished first began since the call looked."""


class WholeCompaction(Compaction):
    """Merges the log files of every file slice."""

    _before_plan: frozenset[str] = frozenset()

    def plan(self, timeline: Timeline) -> Plan | None:
        """Return all slices with log files, None for no slice.

        Raises `BegunMeanwhileError` if an instant has to be finished first.
        """
        if has_unfinished_instants(timeline):
            # A delta commit that was planned before may append to slices that the plan ends.
            raise BegunMeanwhileError
        self._before_plan = frozenset(instant.identity for instant in timeline.instants)
        return tuple(self.slices.find(timeline)) or None

    def missed(self, now: Timeline, planned_instant: Instant) -> bool:
        """Return whether a write began since the plan was made: it may append to a slice that the plan ends.

        Apache Hudi puts a write on the timeline before it lists the plans, so later writes see this plan.
        """
        identities_before = self._before_plan | {planned_instant.identity}
        return super().missed(now, planned_instant) or any(
            instant.is_write and instant.identity not in identities_before for instant in now.instants
        )


def compact_whole(table: Table, means: Means, name: str) -> None:
    """Merge the log files of every file slice for the call ``name``.

    Raises `BegunMeanwhileError` if an instant has to be finished first, and `UnsupportedTableError` as
    `refuse_left_plans`.
    """
    service = WholeCompaction(table, CompactionSettings(), means)
    own_plan = service.schedule()
    service.run(lambda _: False)
    if own_plan is not None and own_plan[0].requested_time in service.left_plans:
        # No other process could carry it out, as services refuse the table.
        take_back(table, own_plan[0])
    refuse_left_plans(table, name, service.left_plans)


def refuse_left_plans(table: Table, name: str, left_plans: Mapping[str, str]) -> None:
    """Raise `UnsupportedTableError` if the call ``name`` left plans that are too large for a process without tasks."""
    if left_plans:
        raise UnsupportedTableError(
            f"The {name} of the table {table.path} has to merge log files first: {'; '.join(left_plans.values())}.",
            f"Run python -m pyhudi.connector.jobs {name}, which needs no Spark.",
        )


def slices_with_logs(timeline: Timeline) -> Sequence[FileSlice]:
    """Return the newest slices of the table that have log files."""
    return [file_slice for file_slice in open_view(timeline).all_slices() if file_slice.logs]


def clustering_of_logs(timeline: Timeline) -> Sequence[Instant]:
    """Return the pending clusterings that hold a file group with log files, so that no compaction may merge these."""
    holders = clustered_groups(timeline)
    if not holders:
        return []
    logged = ((file_slice.partition_path, file_slice.file_id) for file_slice in slices_with_logs(timeline))
    holding_clusterings = {holders[group] for group in logged if group in holders}
    return [instant for instant in timeline.pending if instant in holding_clusterings]


def has_unfinished_instants(timeline: Timeline) -> bool:
    """Return whether an instant is pending that has to be finished first, whether or not its process lives."""
    works = (
        instant.action in {*WRITE_ACTIONS, *COMPACTING, INDEXING} and not says_what_it_holds(timeline, instant)
        for instant in timeline.pending
    )
    return any(works) or any(timeline.write_at(victim) is not None for victim in pending_rollbacks(timeline))
