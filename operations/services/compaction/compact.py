"""Compactions and log compactions planned and carried out, whoever planned them; which of the two, the settings say.

Before anything is planned, what is pending is done. A plan is one of the table's decisions, and so is its end. In
between it is carried out by one process at a time, under the plan's own time (`services/execution.py`), and writes
go on meanwhile: the log files of those that are at work belong to the slices that a compaction begins, and come behind
what a log compaction joins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ....storage.base import Storage
from ....timeline.timeline import Timeline
from ....timeline.writers.patience import Patience
from ...result import ServiceResult
from ..settings import CompactionSettings, LogCompactionSettings
from .kinds import kind_of
from .means import Means
from .run import Run
from .schedule import carry_out_all, foretold, open_merge_on_read, schedule


def schedule_compaction(
    storage: Storage,
    settings: CompactionSettings | LogCompactionSettings,
    patience: Patience,
    *,
    metadata_enable: bool | None = None,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Plan a compaction or a log compaction, for whoever carries it out.

    Args:
        storage: Rooted at the table.
        settings: What is merged, or joined.
        patience: When the writers of other pending writes count as dead.
        metadata_enable: False where a costly metadata table may be dropped.
        due: Tells of a timeline whether it is due; None where it is asked for.

    Returns:
        The requested instant and what it is going to merge; no instant where there is nothing to be merged, or where
        `skipped` names a write that has to be over first.

    Raises:
        ConcurrentWriteError: A restore is pending, or others decided first all the time.
        MissingFileError: A file that a completed write names is gone.
        UnsupportedTableError: The table has no log files, or is of a kind that pyhudi does not do.
        StorageError: The store failed.
    """
    began = time.monotonic()
    table, kind = open_merge_on_read(storage, metadata_enable), kind_of(settings)
    planner = kind.planner(storage)
    made = schedule(table, kind.requested, planner, patience, due)
    told = foretold(storage, f"schedule_{kind.noun}", made, time.monotonic() - began)
    return replace(told, skipped=planner.skipped)


def compact(
    storage: Storage,
    settings: CompactionSettings | LogCompactionSettings,
    means: Means,
    *,
    metadata_enable: bool | None = None,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Carry out the compactions, or the log compactions, that are pending, then plan one and carry it out.

    Args:
        storage: Rooted at the table.
        settings: What is merged, or joined.
        means: How.
        metadata_enable: False where a costly metadata table may be dropped.
        due: Tells of a timeline whether it is due; None where it is asked for.

    Returns:
        What was merged, and what was skipped and why; no instant where there was nothing to be merged.

    Raises:
        CommitConflictError: A write or a compaction came in between.
        ConcurrentWriteError: It was asked for, and somebody else is at all that is pending; a restore is pending; or
            others decided first all the time.
        CorruptInstantError: A pending one has a plan that nobody can carry out.
        MissingFileError: A file is gone; what is pending stays so.
        UnsupportedTableError: The table has no log files, or is of a kind that pyhudi does not do.
        StorageError: The store failed; whoever comes next goes on with it.
    """
    began = time.monotonic()
    table, kind = open_merge_on_read(storage, metadata_enable), kind_of(settings)
    # Who is asked for it by name tries what has failed before, too.
    run, planner = Run(kind, table, means, insists=due is None), kind.planner(storage)
    carry_out_all(run, lambda: schedule(table, kind.requested, planner, means.patience, due))
    if planner.skipped:
        run.skip(planner.skipped)
    return run.result(time.monotonic() - began)
