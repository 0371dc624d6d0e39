"""The file groups that pending compactions and clusterings hold until they complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import CorruptInstantError
from ..storage.threads import for_each
from .instants import Instant, State
from .timeline import Timeline

if TYPE_CHECKING:
    from .metadata.models import CompactionPlan

COMPACTION, LOG_COMPACTION, CLUSTERING = "compaction", "logcompaction", "clustering"
COMPACTING = frozenset({COMPACTION, LOG_COMPACTION})


def pending_compactions(timeline: Timeline) -> Mapping[Instant, CompactionPlan]:
    """Return the plans of pending compactions and log compactions by instant; a plan that is gone is left out."""
    waiting = [instant for instant in timeline.pending if instant.action in COMPACTING]
    plans = for_each(timeline.files.storage, timeline.files.read_compaction_plan, waiting)
    return {instant: plan for instant, plan in zip(waiting, plans, strict=True) if plan is not None}


def held_groups(pending: Mapping[Instant, CompactionPlan]) -> Mapping[tuple[str, str], Instant]:
    """Return the instants that hold file groups, by the group's partition path and file id, given pending plans."""
    return {
        (operation.partition_path or "", operation.file_id): instant
        for instant, plan in pending.items()
        for operation in plan.operations
        if operation.file_id
    }


def log_compactions(timeline: Timeline) -> frozenset[str]:
    """Return the requested times of the log compactions on a timeline, pending or completed, in one listing.

    A completed log compaction has the action of a delta commit; only its requested file has its own, as in Apache Hudi.
    """
    deltas = [instant for instant in timeline.instants if instant.group == "deltacommit"]
    requested_files = {instant: Instant(instant.requested_time, LOG_COMPACTION, State.REQUESTED) for instant in deltas}
    paths = timeline.files.paths()
    return frozenset(
        instant.requested_time
        for instant, request in requested_files.items()
        if timeline.files.path(request) in paths.get(instant.identity, {}).get(State.REQUESTED, ())
    )


def clustered_groups(timeline: Timeline, own: str | None = None) -> Mapping[tuple[str, str], Instant]:
    """Return the pending clusterings that are going to read file groups, by the group's partition path and file id.

    Another write to such a file group is lost when the clustering is executed: Apache Hudi replaces the file group by
    its content when the clustering was planned. ``own`` is the requested time of the caller's own write, which does not
    count.
    """
    waiting = [instant for instant in timeline.pending if instant.replaces and instant.requested_time != own]
    plans = for_each(timeline.files.storage, timeline.files.read_replace_plan, waiting)
    return {
        (file_slice.partition_path or "", file_slice.file_id): instant
        for instant, plan in zip(waiting, plans, strict=True)
        if plan is not None and plan.clustering_plan is not None
        for group in plan.clustering_plan.input_groups
        for file_slice in group.slices
        if file_slice.file_id
    }


def says_what_it_holds(timeline: Timeline, instant: Instant) -> bool:
    """Return whether a pending instant is a clustering with a plan; an overwrite can have the same action.

    Such a plan names the file groups that the instant holds.
    """
    if not instant.replaces:
        return False
    try:
        plan = timeline.files.read_replace_plan(instant)
    except CorruptInstantError:
        if instant.action == CLUSTERING:
            # It has a plan, so what it holds is unknown.
            raise
        # The writer of an overwrite may have died in the middle of its first file.
        return False
    return plan is not None and plan.clustering_plan is not None
