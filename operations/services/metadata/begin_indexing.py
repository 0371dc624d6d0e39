"""The decision that begins an indexing, and takes back the indexings of dead processes.

Source: ``ScheduleIndexActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ....errors import ConcurrentWriteError
from ....table.config import load_config
from ....table.metadata.kinds import COLUMN_STATS
from ....table.seen_table import SeenTable
from ....table.table import Table
from ....timeline.instants import Instant
from ....timeline.timeline import Timeline
from ....timeline.writers.first_steps import FirstSteps
from ...transaction.claimed import begin_claimed
from ...transaction.left_overs import try_to_forget
from ...transaction.transaction import Transaction
from ..means import Means
from .columns_to_index import columns_to_index
from .first_files import first_files
from .index_names import absent
from .pending_indexings import INDEXING, dead_indexings, pending_indexings, taken_back

if TYPE_CHECKING:
    from ....timeline.metadata.models import IndexPlan

# What Apache Hudi calls the instant before all others.
_BEFORE_ALL = "00000000000000"


class BegunIndexing(NamedTuple):
    """The claimed instant, and the partitions that it builds."""

    work: Transaction
    names: tuple[str, ...]


class _NothingLeftError(Exception):
    """Another process has built all wanted partitions meanwhile."""


def begin_indexing(
    table: Table, means: Means, wanted: Sequence[str], columns: Sequence[str] | None
) -> BegunIndexing | None:
    """Request an indexing of the wanted partitions that are not in use; None if all are.

    Raises `ConcurrentWriteError` beside another indexing, and what `columns_to_index` raises.
    """
    storage = table.storage
    dead = dead_indexings(table, table.timeline(), means.patience)
    given_up = {indexing.instant.requested_time for indexing in dead}
    builds_bounds = COLUMN_STATS in absent(wanted, table.config.metadata_partitions)
    indexed = columns_to_index(SeenTable.now(table), columns) if builds_bounds else ()
    chosen: list[tuple[str, ...]] = [()]

    def plan(timeline: Timeline) -> IndexPlan:
        living = [each for each in pending_indexings(timeline) if each.instant.requested_time not in given_up]
        if living:
            raise ConcurrentWriteError(
                f"Another process has begun to build an index of the table {table.path} (indexing "
                f"{living[-1].instant.requested_time}).",
                "Wait until it is complete, and run this again.",
            )
        chosen[0] = absent(wanted, load_config(storage).metadata_partitions)
        if not chosen[0]:
            raise _NothingLeftError
        return plan_of(chosen[0], timeline)

    def first(timeline: Timeline, instant: Instant) -> tuple[FirstSteps, ...]:
        names = chosen[0]
        gone = taken_back(timeline, storage, pending_indexings(timeline), keep=names)
        made = first_files(storage, load_config(storage), names, instant.requested_time, indexed)
        return gone, FirstSteps(made, begins=names)

    try:
        work = begin_claimed(table, INDEXING, means.patience, means.application, plan, first)
    except _NothingLeftError:
        return None
    for time in given_up:
        try_to_forget(storage, time)
    return BegunIndexing(work, chosen[0])


def plan_of(names: Sequence[str], timeline: Timeline) -> IndexPlan:
    """Return the plan of an indexing that begins on a timeline."""
    from ....timeline.metadata import models  # noqa: PLC0415 (see timeline/instant_files.py)

    until = timeline.writes[-1].requested_time if timeline.writes else _BEFORE_ALL
    infos = [models.IndexPartitionInfo(metadata_partition_path=name, index_upto_instant=until) for name in names]
    return models.IndexPlan(index_partition_infos=infos)
