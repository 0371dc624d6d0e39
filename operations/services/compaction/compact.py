"""Compactions planned and carried out, whoever planned them; before anything is planned, what is pending is done.

A plan is one of the table's decisions, and so is its end. In between it is carried out by one process at a time, under
the plan's own time (`transaction/execution.py`), and writes go on meanwhile: their log files belong to the slices that
the compaction begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ....storage.base import Storage
from ....timeline.timeline import Timeline
from ....timeline.writers.patience import Patience
from ...result import ServiceResult
from ..settings import CompactionSettings
from .kinds import Compaction
from .means import Means
from .plan import Planner, Requested
from .run import Run
from .schedule import carry_out_all, foretold, open_merge_on_read, schedule

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
    made = schedule(storage, config, Requested(), lambda: Planner(storage, settings), patience, due)
    return foretold(storage, SCHEDULE, made, time.monotonic() - began)


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
    run = Run(Compaction(), storage, config, means, insists=due is None)
    carry_out_all(
        run, lambda: schedule(storage, config, Requested(), lambda: Planner(storage, settings), means.patience, due)
    )
    return run.result(time.monotonic() - began)
