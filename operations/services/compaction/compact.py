"""Plans and carries out compactions and log compactions; the type of the settings decides which of the two."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from ....errors import UnsupportedTableError
from ....storage.base import Storage
from ....table.config import load_config
from ....table.config.property_keys import MERGE_ON_READ
from ....table.files.output import Output
from ....table.table import Table, open_table
from ....timeline.held import COMPACTION, LOG_COMPACTION
from ....timeline.timeline import Timeline
from ....timeline.writers.patience import Patience
from ...result import ServiceResult
from ...service_settings import CompactionSettings, LogCompactionSettings
from ..means import Means
from ..preconditions import open_for_service, refuse_restoring
from ..throughput import Rest, backoff_skips_call, note_work, rest_of
from .compactor import Compaction
from .due_rules import is_due, log_compaction_is_due
from .log_compactor import LogCompaction


def compact_after_write(
    storage: Storage, timeline: Timeline, settings: CompactionSettings | LogCompactionSettings, means: Means
) -> ServiceResult | None:
    """Carry out pending compactions, then plan one if due and carry it out; log compactions by the type of `settings`.

    If the settings say that compactions are not inline, only make the plan, which another call carries out. Return
    what was done; None if no plan was pending or due. Raises `PyHudiError` if it fails; the write stays complete.

    Args:
        timeline: The table's timeline, by which the call sees whether a plan is pending or due.
        means: The resources of the work, with bounds of its bytes and seconds. To make a plan alone takes only the
            patience of these.
    """
    config = load_config(storage)
    due: Callable[[Timeline], bool]
    if isinstance(settings, CompactionSettings):
        action, only_plans = COMPACTION, not settings.inline
        due = partial(is_due, settings=settings, zone=config.timezone)
    else:
        action, only_plans = LOG_COMPACTION, False
        due = partial(log_compaction_is_due, delta_commits=settings.blocks)
    if means.within_s is not None:
        # Nothing that an earlier call found fitted into its seconds, so some calls pass without another look.
        if backoff_skips_call(storage.path, action):
            return None
        # A plan that has to fit into seconds leaves file groups out. The rules count delta commits only since the last
        # compaction, so they would let these wait for too long.
        left_out = rest_of(storage.path, action)
        due = partial(_is_due_again, left_out, settings, due)
    pending = any(instant.action == action for instant in timeline.pending)
    # A write that only plans makes no plan while the last plan is pending.
    wanted = not pending and due(timeline) if only_plans else pending or due(timeline)
    if config.table_type != MERGE_ON_READ or not wanted:
        return None
    if only_plans:
        result = schedule_compaction(storage, settings, means.patience, due=due)
    else:
        result = compact(storage, settings, means, due=due)
    # Without an instant and a reason in the result, another process has done the work meanwhile.
    return result if result.instant or result.skipped else None


def compact_where_due(
    storage: Storage, settings: CompactionSettings | LogCompactionSettings, means: Means
) -> ServiceResult | None:
    """Do what `compact_after_write` does in a round of services; return None if no plan was pending or due.

    Plans are carried out even if the settings let writes only plan.
    """
    if isinstance(settings, CompactionSettings):
        settings = replace(settings, inline=True)
    return compact_after_write(storage, open_table(storage).timeline(), settings, means)


def _is_due_again(
    left_out: Rest,
    settings: CompactionSettings | LogCompactionSettings,
    due: Callable[[Timeline], bool],
    timeline: Timeline,
) -> bool:
    """Return whether a plan is due by the rules `due`, or by the delta commits of file groups that wait.

    These are the file groups that the last plan left out; `left_out` says how many delta commits they had.
    """
    least_delta_commits = settings.delta_commits if isinstance(settings, CompactionSettings) else settings.blocks
    return due(timeline) or left_out.by_now(timeline) >= max(least_delta_commits, 1)


_SERVICES: Mapping[type, Callable[..., Compaction | LogCompaction]] = {
    CompactionSettings: Compaction,
    LogCompactionSettings: LogCompaction,
}


def schedule_compaction(
    storage: Storage,
    settings: CompactionSettings | LogCompactionSettings,
    patience: Patience,
    *,
    dry_run: bool = False,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Plan a compaction, or a log compaction, and return the result, whose `skipped` names a write to wait for.

    Make no plan if `due` returns false for the timeline. With `dry_run` the result says what the plan would hold.
    """
    began = time.monotonic()
    means = Means(patience, Output())
    service = _SERVICES[type(settings)](open_merge_on_read(storage, means), settings, means)
    if dry_run:
        # The name of the service in the result is that of the call that only plans.
        return replace(_dry_result(service, began, pending=False), service=service.schedule_result(None, 0.0).service)
    return service.schedule_result(service.schedule(due), time.monotonic() - began)


def compact(
    storage: Storage,
    settings: CompactionSettings | LogCompactionSettings,
    means: Means,
    *,
    dry_run: bool = False,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Carry out the pending compactions, or log compactions, then plan one and carry it out; return what was done.

    Make no plan if `due` returns false for the timeline. Without `due`, the user made the call: then it tries plans
    that failed before, too, and raises `ConcurrentWriteError` if other processes are carrying out all pending plans.
    After a failure, pending plans stay for the next call. With `dry_run` the result says what the call would merge.
    """
    began = time.monotonic()
    table = open_merge_on_read(storage, means)
    service = _SERVICES[type(settings)](table, settings, means, insists=due is None)
    if dry_run:
        return _dry_result(service, began, pending=True)
    service.run(due)
    seconds = time.monotonic() - began
    if means.within_s is not None:
        note_work(table.path, service.action, [service.cost(result.unit) for result in service.results], seconds)
    return service.result(seconds)


def carry_out_pending(
    table: Table, settings: CompactionSettings | LogCompactionSettings, means: Means
) -> Mapping[str, str]:
    """Carry out the pending compactions, or log compactions, and plan none; return `PlannedService.left_plans`.

    Raises `ConcurrentWriteError` if other processes are carrying them out.
    """
    service = _SERVICES[type(settings)](table, settings, means)
    # No plan is due, so the call makes none of its own.
    service.run(lambda timeline: False)
    return service.left_plans


def _dry_result(service: Compaction | LogCompaction, began: float, *, pending: bool) -> ServiceResult:
    """Return what a plan made now would merge, and if ``pending`` also what the pending plans merge.

    ``service`` makes and reads the plans of one table, and the call began at ``began`` of the monotonic clock. Raises
    `ConcurrentWriteError` if a restore is pending.
    """
    timeline = service.table.timeline()
    refuse_restoring(service.kind, timeline)
    plans = [instant for instant in timeline.pending if pending and instant.action == service.action]
    pending_slices = [file_slice for instant in plans for file_slice in service.read_plan(timeline, instant)]
    slices = [*pending_slices, *(service.plan(timeline) or ())]
    return ServiceResult(
        service.table.path,
        service.action,
        file_groups=len(slices),
        log_files=sum(len(file_slice.logs) for file_slice in slices),
        bytes_read=sum(file_slice.size for file_slice in slices),
        seconds=time.monotonic() - began,
        dry=True,
        skipped=service.waiting,
    )


def open_merge_on_read(storage: Storage, means: Means) -> Table:
    """Open a table whose log files can be merged; raises `UnsupportedTableError` for a copy-on-write table."""
    table = open_for_service(storage)
    if table.config.table_type != MERGE_ON_READ:
        raise UnsupportedTableError(
            f"The table {storage.path} is copy-on-write: it has no log files that could be compacted.",
            "It needs no compaction: its base files are whole after each write.",
        )
    return table
