"""Compactions planned and carried out, whoever planned them; before anything is planned, what is pending is done.

A plan is one of the table's decisions, and so is its end. In between it is carried out by one process at a time, under
the plan's own time (`transaction/execution.py`), and writes go on meanwhile: their log files belong to the slices that
the compaction begins.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from ....errors import ConcurrentWriteError, UnsupportedTableError
from ....storage.base import Storage
from ....table.config import TableConfig
from ....table.config.property_keys import MERGE_ON_READ
from ....timeline.instants import Instant
from ....timeline.timeline import Timeline, load_timeline
from ....timeline.writers.patience import Patience
from ...decisions import retired_metadata
from ...result import ServiceResult
from ...rollback.pending import broken_off
from ...transaction.execution import take_back
from ..service import request
from ..settings import CompactionSettings
from ..standing import finish_rollbacks_first, open_for_service, refuse_restoring
from .means import Means
from .plan import Plan, Planner, Requested
from .run import Run

logger = logging.getLogger("pyhudi")

_ROUNDS = 20
SCHEDULE = "schedule_compaction"


def schedule_compaction(
    storage: Storage,
    settings: CompactionSettings,
    patience: Patience,
    *,
    metadata_enable: bool | None = None,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Plan a compaction, for whoever carries it out.

    Args:
        storage: Rooted at the table.
        settings: What is merged.
        patience: When the writers of other pending writes count as dead.
        metadata_enable: False where a costly metadata table may be dropped.
        due: Tells of a timeline whether a compaction is due; None where it is asked for.

    Returns:
        The requested instant and what it is going to merge; no instant where there is nothing to be merged.

    Raises:
        ConcurrentWriteError: A restore is pending, or others decided first all the time.
        MissingFileError: A file that a completed write names is gone.
        UnsupportedTableError: The table has no log files, or is of a kind that pyhudi does not do.
        StorageError: The store failed.
    """
    began = time.monotonic()
    config = open_merge_on_read(storage, metadata_enable)
    made = _schedule(storage, config, settings, patience, due)
    if made is None:
        return ServiceResult(storage.path, SCHEDULE, seconds=time.monotonic() - began)
    instant, plan = made
    logger.info(
        "table %s: planned the compaction %s of %d file groups", storage.path, instant.requested_time, len(plan)
    )
    return _foretold(storage, SCHEDULE, instant, plan, time.monotonic() - began)


def compact(
    storage: Storage,
    settings: CompactionSettings,
    means: Means,
    *,
    metadata_enable: bool | None = None,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Carry out the compactions that are pending, then plan one and carry it out.

    Args:
        storage: Rooted at the table.
        settings: What is merged.
        means: How.
        metadata_enable: False where a costly metadata table may be dropped.
        due: Tells of a timeline whether a compaction is due; None where it is asked for.

    Returns:
        What was merged, and what was left to others; no instant where there was nothing to be merged.

    Raises:
        ConcurrentWriteError: It was asked for, and somebody else is at all that is pending; a restore is pending; or
            others decided first all the time.
        CorruptInstantError: A pending one has a plan that nobody can carry out.
        MissingFileError: A file is gone; what is pending stays so.
        UnsupportedTableError: The table has no log files, or is of a kind that pyhudi does not do.
        StorageError: The store failed; whoever comes next goes on with it.
    """
    began = time.monotonic()
    config = open_merge_on_read(storage, metadata_enable)
    # Who is asked for it by name tries what has failed before, too.
    run = Run(storage, config, means, insists=due is None)
    timeline = finish_rollbacks_first(storage, config, load_timeline(storage, config), means.patience)
    refuse_restoring(storage, timeline)
    run.attempt_all(timeline)
    _schedule(storage, config, settings, means.patience, due)
    # Among them may be one that somebody decided who died before it was on the timeline.
    run.attempt_all(load_timeline(storage, config))
    if config.metadata_partitions and run.done:
        retired_metadata.remove(storage)
    if run.refused is not None and not run.done and due is None:
        raise run.refused
    return run.result(time.monotonic() - began)


def open_merge_on_read(storage: Storage, metadata_enable: bool | None) -> TableConfig:
    """Return the properties of a table whose log files can be merged.

    Raises:
        UnsupportedTableError: It has none.
    """
    config = open_for_service(storage, metadata_enable)
    if config.table_type != MERGE_ON_READ:
        raise UnsupportedTableError(
            f"The table {storage.path} is copy-on-write: it has no log files that could be compacted.",
            "Nothing is to be done: its base files are whole after each write.",
        )
    return config


def _schedule(
    storage: Storage,
    config: TableConfig,
    settings: CompactionSettings,
    patience: Patience,
    due: Callable[[Timeline], bool] | None,
) -> tuple[Instant, Plan] | None:
    """Put a plan on the timeline, where there is something to be merged and that is due."""
    for _ in range(_ROUNDS):
        planner = Planner(storage, settings)
        waits: list[Timeline] = []

        def plan(timeline: Timeline, planner: Planner = planner, waits: list[Timeline] = waits) -> Plan | None:
            refuse_restoring(storage, timeline)
            waits.clear()
            if broken_off(timeline):
                # What is on its way out must not be merged.
                waits.append(timeline)
                return None
            return planner.plan(timeline) if due is None or due(timeline) else None

        made = request(Requested(), storage, config, plan)
        if waits:
            finish_rollbacks_first(storage, config, waits[0], patience)
        elif made is None or not planner.missed(load_timeline(storage, config), made[0]):
            return made
        else:
            # Somebody who knows no decisions completed a write in between.
            take_back(storage, config, made[0])
    raise ConcurrentWriteError(
        f"Others came in between {_ROUNDS} times while a compaction of the table {storage.path} was planned.",
        "Compact again.",
    )


def _foretold(storage: Storage, service: str, instant: Instant, plan: Plan, seconds: float) -> ServiceResult:
    """Return what a plan is going to merge."""
    return ServiceResult(
        storage.path,
        service,
        instant.requested_time,
        file_groups=len(plan),
        log_files=sum(len(one.logs) for one in plan),
        bytes_read=sum(one.size for one in plan),
        seconds=seconds,
    )
