"""A plan made and put on the timeline, or carried out with all that is pending: steps of compactions of either kind."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ....errors import ConcurrentWriteError, UnsupportedTableError
from ....storage.base import Storage
from ....table.config.property_keys import MERGE_ON_READ
from ....table.table import Table
from ....timeline.instants import Instant
from ....timeline.timeline import Timeline
from ....timeline.writers.patience import Patience
from ...result import ServiceResult
from ...rollback.pending import broken_off
from ..execution import take_back
from ..service import Planned, request
from ..standing import finish_rollbacks_first, open_for_service, refuse_restoring
from .plan import Plan, Plans
from .run import Run

logger = logging.getLogger("pyhudi")

_ROUNDS = 20


def open_merge_on_read(storage: Storage, metadata_enable: bool | None) -> Table:
    """Open a table whose log files can be merged.

    Raises:
        UnsupportedTableError: It has none.
    """
    table = open_for_service(storage, metadata_enable)
    if table.config.table_type != MERGE_ON_READ:
        raise UnsupportedTableError(
            f"The table {storage.path} is copy-on-write: it has no log files that could be compacted.",
            "Nothing is to be done: its base files are whole after each write.",
        )
    return table


def schedule(
    table: Table,
    requested: Planned[Plan],
    planner: Plans,
    patience: Patience,
    due: Callable[[Timeline], bool] | None,
) -> tuple[Instant, Plan] | None:
    """Put a plan on the timeline, where there is something to be merged and that is due.

    Args:
        table: The table.
        requested: What goes on the timeline.
        planner: Makes the plan.
        patience: When the writers of other pending writes count as dead.
        due: Tells of a timeline whether it is time; None where it is asked for.

    Raises:
        ConcurrentWriteError: A restore is pending, or others decided first all the time.
        MissingFileError: A file that a completed write names is gone.
    """
    for _ in range(_ROUNDS):
        waits: list[Timeline] = []

        def plan(timeline: Timeline, waits: list[Timeline] = waits) -> Plan | None:
            refuse_restoring(table.storage, timeline)
            waits.clear()
            if broken_off(timeline):
                # What is on its way out must not be merged.
                waits.append(timeline)
                return None
            return planner.plan(timeline) if due is None or due(timeline) else None

        made = request(requested, table, plan, lambda: planner.at)
        if waits:
            finish_rollbacks_first(table, waits[0], patience)
        elif made is None or not planner.missed(table.timeline(), made[0]):
            return made
        else:
            # Somebody who knows no decisions completed a write in between.
            take_back(table, made[0])
    raise ConcurrentWriteError(
        f"Others came in between {_ROUNDS} times while a {requested.action} of the table {table.path} was planned.",
        "Compact again.",
    )


def carry_out_all(run: Run, plan_more: Callable[[], object]) -> None:
    """Carry out what is pending, then plan and carry that out.

    Raises:
        ConcurrentWriteError: It was asked for, and somebody else is at all that is pending; a restore is pending; or
            others decided first all the time.
    """
    table = run.table
    timeline = finish_rollbacks_first(table, table.timeline(), run.means.patience)
    refuse_restoring(table.storage, timeline)
    run.attempt_all(timeline)
    plan_more()
    # Among them may be one that somebody decided who died before it was on the timeline.
    run.attempt_all(table.timeline())
    if run.refused is not None and not run.done and run.insists:
        raise run.refused


def foretold(storage: Storage, service: str, made: tuple[Instant, Plan] | None, seconds: float) -> ServiceResult:
    """Return what a plan is going to merge, nothing where there is none."""
    if made is None:
        return ServiceResult(storage.path, service, seconds=seconds)
    instant, plan = made
    logger.info(
        "table %s: planned the %s %s of %d file groups",
        storage.path,
        instant.action,
        instant.requested_time,
        len(plan),
    )
    return ServiceResult(
        storage.path,
        service,
        instant.requested_time,
        file_groups=len(plan),
        log_files=sum(len(one.logs) for one in plan),
        bytes_read=sum(one.size for one in plan),
        seconds=seconds,
    )
