"""Pending indexings: finds those of dead processes and gives them up."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from ....errors import ConcurrentWriteError
from ....storage.base import Storage
from ....table.config import load_config
from ....table.table import Table
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ....timeline.writers.first_steps import DeleteFile, FirstSteps
from ....timeline.writers.owner import Claim
from ....timeline.writers.patience import Patience
from ...following.partitions_in_use import being_built
from ...rollback.pending import OtherWriters
from ...transaction.left_overs import try_to_forget
from ...transaction.without_instant import MetadataSteps, take_metadata_steps

logger = logging.getLogger("pyhudi")

INDEXING = "indexing"


@dataclass(frozen=True, slots=True)
class PendingIndexing:
    """A pending indexing, and the partitions of the metadata table that it builds."""

    instant: Instant
    names: tuple[str, ...]


def pending_indexings(timeline: Timeline) -> tuple[PendingIndexing, ...]:
    """Return the pending indexings with the partitions that each builds; none of them if its plan is empty."""
    instants = (instant for instant in timeline.pending if instant.action == INDEXING)
    return tuple(PendingIndexing(instant, _partitions_built_by(timeline, instant)) for instant in instants)


def dead_indexings(table: Table, timeline: Timeline, patience: Patience) -> tuple[PendingIndexing, ...]:
    """Return the pending indexings, all dead; raises `ConcurrentWriteError` if a process may be at work on one."""
    other_writers, indexings = OtherWriters(table, patience), pending_indexings(timeline)
    for indexing in indexings:
        liveness = other_writers.suspect(indexing.instant).judge(may_wait=False)
        if liveness.alive:
            raise ConcurrentWriteError(
                f"Another process builds {', '.join(indexing.names) or 'an index'} of the table {table.path} (indexing "
                f"{indexing.instant.requested_time}; {liveness.reason}).",
                liveness.todo
                or "Wait until it is complete, or give it up by HudiTable.drop_index of what it builds, and run this "
                "again.",
            )
    return indexings


def give_up_dead(table: Table, timeline: Timeline, patience: Patience) -> None:
    """Take back the indexings of dead processes of pyhudi. Raises what `decide` raises.

    Otherwise each write would log for ever to partitions that no process builds, and archiving would stop at the
    indexings.
    """
    other_writers, claim_of = OtherWriters(table, patience), partial(Claim, table.storage)
    own_indexings = [
        each for each in pending_indexings(timeline) if claim_of(each.instant.requested_time).owner() is not None
    ]
    to_give_up = [each for each in own_indexings if not other_writers.suspect(each.instant).judge(may_wait=False).alive]
    if to_give_up:
        give_up(table, to_give_up)
        times = ", ".join(each.instant.requested_time for each in to_give_up)
        logger.warning("table %s: gave up the indexing %s, whose process is dead", table.path, times)


def steps_to_give_up(
    timeline: Timeline, storage: Storage, indexings: Collection[PendingIndexing], keep: Collection[str] = ()
) -> FirstSteps:
    """Return the steps that take pending indexings back.

    The partitions to ``keep`` stay among those being built, as the caller's own indexing begins to build them.
    """
    config = load_config(storage)
    gone_names = {name for indexing in indexings for name in indexing.names}
    drops = sorted((gone_names & {*being_built(config)}) - {*config.metadata_partitions} - {*keep})
    # The requested file goes last: without it, no process takes the indexing for pending.
    steps = tuple(
        DeleteFile(timeline.files.path(indexing.instant.at(state)))
        for indexing in indexings
        for state in (State.INFLIGHT, State.REQUESTED)
    )
    return FirstSteps(steps, drops=tuple(drops))


def give_up(table: Table, indexings: Collection[PendingIndexing]) -> None:
    """Take indexings back by a decision, unless they are complete by then. Raises what `decide` raises."""
    times = {indexing.instant.requested_time for indexing in indexings}

    def build(timeline: Timeline) -> MetadataSteps | None:
        """Return the steps that take back those of the indexings that are still pending; None if none is."""
        still_pending = [
            indexing for indexing in pending_indexings(timeline) if indexing.instant.requested_time in times
        ]
        return (
            MetadataSteps(still_pending[-1].instant, steps_to_give_up(timeline, table.storage, still_pending))
            if still_pending
            else None
        )

    take_metadata_steps(table, build)
    for time in times:
        try_to_forget(table.storage, time)


def _partitions_built_by(timeline: Timeline, instant: Instant) -> tuple[str, ...]:
    """Return the partitions that an indexing's plan names; none if the plan is empty."""
    plan = timeline.files.read_index_plan(instant)
    infos = () if plan is None else plan.index_partition_infos
    return tuple(info.metadata_partition_path for info in infos if info.metadata_partition_path)
