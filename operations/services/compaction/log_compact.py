"""Log compactions planned and carried out, whoever planned them: many log files of a file slice joined into one.

It is what a compaction is, but for the base file, which nobody reads or writes, and for what may go on meanwhile: a
write that was at work before has to be over first (`log_plan.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ....storage.base import Storage
from ....timeline.timeline import Timeline
from ....timeline.writers.patience import Patience
from ...result import ServiceResult
from ..settings import LogCompactionSettings
from .kinds import LogCompaction
from .log_plan import LogPlanner, LogRequested
from .means import Means
from .run import Run
from .schedule import carry_out_all, foretold, open_merge_on_read, schedule

SCHEDULE = "schedule_log_compaction"


def schedule_log_compaction(
    storage: Storage,
    settings: LogCompactionSettings,
    patience: Patience,
    *,
    metadata_enable: bool | None = None,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Plan a log compaction, for whoever carries it out.

    Args:
        storage: Rooted at the table.
        settings: What is joined.
        patience: When the writers of other pending writes count as dead.
        metadata_enable: False where a costly metadata table may be dropped.
        due: Tells of a timeline whether it is due; None where it is asked for.

    Returns:
        The requested instant and what it is going to join; no instant where there is nothing to be joined, or where
        `left` names a write that has to be over first.

    Raises:
        ConcurrentWriteError: A restore is pending, or others decided first all the time.
        MissingFileError: A file that a completed write names is gone.
        UnsupportedTableError: The table has no log files, or is of a kind that pyhudi does not do.
        StorageError: The store failed.
    """
    began = time.monotonic()
    config = open_merge_on_read(storage, metadata_enable)
    planner = LogPlanner(storage, settings)
    made = schedule(storage, config, LogRequested(), lambda: planner, patience, due)
    return replace(foretold(storage, SCHEDULE, made, time.monotonic() - began), left=planner.left)


def log_compact(
    storage: Storage,
    settings: LogCompactionSettings,
    means: Means,
    *,
    metadata_enable: bool | None = None,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Carry out the log compactions that are pending, then plan one and carry it out.

    Args:
        storage: Rooted at the table.
        settings: What is joined.
        means: How.
        metadata_enable: False where a costly metadata table may be dropped.
        due: Tells of a timeline whether it is due; None where it is asked for.

    Returns:
        What was joined, and what was left and why; no instant where there was nothing to be joined.

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
    config = open_merge_on_read(storage, metadata_enable)
    run, planner = Run(LogCompaction(), storage, config, means, insists=due is None), LogPlanner(storage, settings)
    carry_out_all(run, lambda: schedule(storage, config, LogRequested(), lambda: planner, means.patience, due))
    if planner.left:
        run.leave(planner.left)
    return run.result(time.monotonic() - began)
