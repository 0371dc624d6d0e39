"""One micro-batch of a stream: its tasks hand all rows over, and the commit merges them, again where it met a write.

Spark plans each micro-batch in a process that does not know the query. Each task does, and sends the plan along
with its result, since the process of the commit has nothing but these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from ...errors import CommitConflictError
from ...storage import open_storage
from ...table.files.names import WriteToken
from ...table.table import find_table
from ...timeline.writers.patience import Patience
from ..planning.micro_batch import as_batch, pending_batches, settle_batch, with_lost
from ..planning.plan import WritePlan
from ..result import CommitResult
from ..rollback.pending import OtherWriters, PlannedRollback
from ..rollback.rollback import roll_back
from ..streams.batch import StreamBatch
from ..streams.checkpoints import find_batch
from ..transaction.decide import settle
from .abort import abort_write
from .commit import commit_write
from .task import TaskResult, run_task


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one task of a micro-batch, with the plan as the task found it."""

    plan: WritePlan
    batch: StreamBatch
    result: TaskResult


def run_batch_task(
    plan: WritePlan, batch: StreamBatch, batches: Iterator[pa.RecordBatch], token: WriteToken
) -> BatchResult:
    """Run one task of a micro-batch; it takes no rows where the table has the batch."""
    with_rows = (rows for rows in batches if rows.num_rows)
    first = next(with_rows, None)
    plan = as_batch(plan, batch)
    if first is not None and plan.transaction.notes.find(1) is None:
        plan = settle_batch(plan, batch)
    rows = iter(()) if first is None else chain([first], with_rows)
    return BatchResult(plan, batch, run_task(plan, rows, token))


def no_rows(plan: WritePlan, batch: StreamBatch) -> BatchResult:
    """Return the result of a micro-batch without a task; "" as the query's id leaves the batch without a name."""
    plan = as_batch(plan, batch) if batch.query_id else plan
    return BatchResult(plan, batch, TaskResult(WriteToken(0, 0, 0)))


def commit_batch(results: Sequence[BatchResult], lost: int = 0) -> CommitResult:
    """Complete a micro-batch, unless the table has it. Raises as `commit_write`, and as `settle_batch`.

    ``lost`` is the number of rows that the stream passed over before, which the commit states.
    """
    began = [found for found in results if found.result.rows]
    replayed = [found for found in results if found.plan.replays is not None]
    found = (began or replayed or list(results))[0]
    plan = found.plan
    if not began and not replayed and found.batch.query_id:
        plan = settle_batch(plan, found.batch)
    if began and replayed:
        plan = _completed_meanwhile(plan, found.batch)
    return commit_write(with_lost(plan, lost), [done.result for done in results])


def abort_batch(results: Sequence[BatchResult]) -> None:
    """Undo a micro-batch, unless it turns out to be completed."""
    for found in results:
        if found.plan.replays is None:
            # The other tasks have the same plan.
            abort_write(found.plan)
            return


def is_complete(found: BatchResult) -> bool:
    """Return whether the table has a micro-batch."""
    table = found.plan.table
    return find_batch(table, table.timeline(), found.batch) is not None


def abort_numbered(path: str, storage_options: Mapping[str, str], query_id: str, batch_id: int) -> None:
    """Undo the pending instants of a query's batch, where no task has sent its plan."""
    table = find_table(open_storage(path, storage_options))
    if table is None:
        return
    _, timeline = settle(table)
    for instant, owner in pending_batches(table, timeline, query_id):
        if owner.batch_id == str(batch_id):
            roll_back(OtherWriters(table, Patience()), PlannedRollback(instant, certain=True))


def _completed_meanwhile(plan: WritePlan, batch: StreamBatch) -> WritePlan:
    """Give up a micro-batch of which some tasks took no rows, as another run of the query completed it meanwhile."""
    done = find_batch(plan.table, plan.table.timeline(), batch)
    if done is None:
        raise CommitConflictError(
            f"The batch {batch.batch_id} of the streaming query {batch.query_id} was complete in the table "
            f"{plan.path}, and was undone while its tasks ran.",
            "Start the query again, which repeats the batch.",
        )
    abort_write(plan)
    return replace(plan, replays=done)
