"""One micro-batch of a stream: its tasks hand all rows over, and the commit merges them, again if it met a write.

Spark plans each micro-batch in a process that does not know the query. Each task knows it, and sends the plan with its
result, because the process of the commit has only the results.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from ...errors import CommitConflictError, StorageError
from ...storage.base import Storage
from ...storage.kept import keep
from ...table.files.names import WriteToken
from ...table.seen_table import SeenTable
from ...table.table import find_table
from ...timeline.writers import seals
from ...timeline.writers.patience import Patience
from ..planning.micro_batch import as_batch, pending_batches, resolve_batch, with_notes
from ..planning.plan import WritePlan, plan_write
from ..planning.request import WriteRequest
from ..result import CommitResult
from ..rollback.pending import OtherWriters, PlannedRollback
from ..rollback.rollback import roll_back
from ..streams.batch import StreamBatch
from ..streams.checkpoints import find_batch
from ..transaction.decide import settle
from .commit import commit_write
from .instant import abort_write
from .task import TaskResult, run_task

logger = logging.getLogger("pyhudi")

# By table and query: the newest batch that this process completed, with the files that tell its late tasks so.
_ENDED: dict[tuple[str, str], tuple[int, tuple[str, ...]]] = {}
_MOST_QUERIES = 64


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one task of a micro-batch, with the task's plan."""

    plan: WritePlan
    batch: StreamBatch
    result: TaskResult


def run_batch_task(
    plan: WritePlan,
    batch: StreamBatch,
    batches: Iterator[pa.RecordBatch],
    token: WriteToken,
    offsets: Callable[[], str] | None = None,
) -> BatchResult:
    """Run one task of a micro-batch; it takes no rows if the table has the batch, because the plan is then a replay.

    ``offsets`` is called for `StreamBatch.offsets` if the table has a batch of that number.
    """
    with_rows = (rows for rows in batches if rows.num_rows)
    first_batch = next(with_rows, None)
    plan = as_batch(plan, batch)
    # Once a task has noted the instant, it has found that the table lacks the batch.
    if first_batch is not None and plan.transaction.notes.find(1) is None:
        plan = resolve_batch(plan, batch, offsets)
    rows = iter(()) if first_batch is None else chain([first_batch], with_rows)
    return BatchResult(plan, batch, run_task(plan, rows, token))


def no_rows(plan: WritePlan, batch: StreamBatch) -> BatchResult:
    """Return a result for a micro-batch without a task; without a query's id the batch gets no write id."""
    plan = as_batch(plan, batch) if batch.query_id else plan
    return BatchResult(plan, batch, TaskResult(WriteToken(0, 0, 0)))


def commit_batch(
    results: Sequence[BatchResult],
    lost: int = 0,
    offsets: str = "",
    request: Callable[[], WriteRequest] | None = None,
) -> CommitResult:
    """Complete a micro-batch, unless the table has it, and return the result of its instant.

    Raises as `commit_write`, and as `resolve_batch`. The commit notes ``lost``, the number of rows that the stream
    skipped before, and `StreamBatch.offsets`. ``request`` rebuilds the write request, for when another write makes the
    commit plan the batch again.
    """
    tasks_with_rows = [task for task in results if task.result.rows]
    replayed_tasks = [task for task in results if task.plan.replays is not None]
    batch_result = (tasks_with_rows or replayed_tasks or list(results))[0]
    plan = batch_result.plan
    # Tasks without rows have not looked whether the table has the batch.
    if not tasks_with_rows and not replayed_tasks and batch_result.batch.query_id:
        plan = resolve_batch(plan, replace(batch_result.batch, offsets=offsets))
    if tasks_with_rows and replayed_tasks:
        plan = _completed_meanwhile(plan, batch_result.batch)
    plan_again = None if request is None else lambda: plan_write(request())
    result = commit_write(with_notes(plan, lost, offsets), [task.result for task in results], plan_again)
    if tasks_with_rows and plan.replays is None and plan.settings.tasks.hand_over and result.instant:
        _expire_seals(plan, batch_result, result)
    return result


def _expire_seals(plan: WritePlan, batch_result: BatchResult, result: CommitResult) -> None:
    """Delete the seal and the notes of the previous batch: tasks that only hand rows over need neither.

    A late task of that batch finds by the query's greatest batch that its own batch is over.
    """
    query = plan.path, batch_result.batch.query_id
    previous_batch, previous_paths = _ENDED.get(query, (batch_result.batch.batch_id, ()))
    times = dict.fromkeys([batch_result.result.instant_time, result.instant])
    seal_paths = seals.of_write(times, plan.transaction.notes, result.attempts)
    keep(_ENDED, query, (batch_result.batch.batch_id, seal_paths), _MOST_QUERIES)
    if previous_batch >= batch_result.batch.batch_id:
        # This process completed no earlier batch of the query.
        return
    try:
        plan.storage.delete(*previous_paths, durable=False)
    except StorageError:
        logger.info("table %s: seals of the batch %d stay for a day", plan.path, previous_batch, exc_info=True)


def abort_batch(results: Sequence[BatchResult]) -> None:
    """Undo a micro-batch, unless it turns out to be completed."""
    for batch_result in results:
        if batch_result.plan.replays is None:
            # The other tasks have the same plan.
            abort_write(batch_result.plan)
            return


def is_complete(batch_result: BatchResult) -> bool:
    """Return whether the table has a micro-batch."""
    return find_batch(SeenTable.now(batch_result.plan.table), batch_result.batch) is not None


def abort_numbered(storage: Storage, query_id: str, batch_id: int) -> None:
    """Undo the pending instants of a query's batch, if no task has sent its plan."""
    table = find_table(storage)
    if table is None:
        return
    # If its completion was decided, this completes the batch, which is then no longer pending.
    timeline = settle(table)
    for instant, owner in pending_batches(SeenTable(table, timeline), query_id):
        if owner.batch_id == str(batch_id):
            roll_back(OtherWriters(table, Patience()), PlannedRollback(instant, certain=True))


def _completed_meanwhile(plan: WritePlan, batch: StreamBatch) -> WritePlan:
    """Return the plan as a replay, if another run of the query completed the batch while some tasks took rows.

    The instant of those tasks is given up. Raises `CommitConflictError` if the batch was undone since.
    """
    completed_time = find_batch(SeenTable.now(plan.table), batch)
    if completed_time is None:
        raise CommitConflictError(
            f"The batch {batch.batch_id} of the streaming query {batch.query_id} was complete in the table "
            f"{plan.path}, and was undone while its tasks ran.",
            "Start the query again, which repeats the batch.",
        )
    abort_write(plan)
    return replace(plan, replays=completed_time)
