"""A planned write as the micro-batch that it turns out to be: a plan is made before its query is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ...table.seen_table import SeenTable
from ...timeline.instants import WRITE_ACTIONS, Instant
from ...timeline.writers.owner import Claim, Owner
from ..rollback.pending import OtherWriters, PlannedRollback
from ..streams.batch import LOST, OFFSETS, StreamBatch
from ..streams.checkpoints import find_batch
from ..streams.replays import refuse_other_offsets
from ..transaction.decide import settle
from .plan import WritePlan, plan_write
from .request import WriteRequest


def plan_batch(request: WriteRequest) -> WritePlan:
    """Plan a write, which may be a micro-batch. Raises as `plan_write` and `settle_batch`."""
    plan, batch = plan_write(request), request.write.batch
    return plan if batch is None else settle_batch(plan, batch)


def as_batch(plan: WritePlan, batch: StreamBatch) -> WritePlan:
    """Return a planned write under the name of a micro-batch; every task and the commit do."""
    work = plan.transaction
    work = replace(work, write_id=batch.write_id, owner=owner_of_batch(work.owner, batch))
    plan = replace(plan, transaction=work, settings=replace(plan.settings, batch=batch))
    return with_notes(plan, batch.lost, batch.offsets)


def with_notes(plan: WritePlan, lost: int, offsets: str) -> WritePlan:
    """Return a planned write whose commit states how many rows its stream passed over before, and where it has come."""
    notes = {LOST: str(lost) if lost else "", OFFSETS: offsets}
    extra = {**plan.settings.commit.extra_metadata, **{key: text for key, text in notes.items() if text}}
    commit = replace(plan.settings.commit, extra_metadata=extra)
    return replace(plan, settings=replace(plan.settings, commit=commit))


def settle_batch(plan: WritePlan, batch: StreamBatch, offsets: Callable[[], str] | None = None) -> WritePlan:
    """Return a micro-batch as the table has it, or with the rollbacks before it, which its first task carries out.

    ``offsets`` finds the batch's where it does not have them. Raises as `find_batch`, as `refuse_other_offsets`, and as
    `OtherWriters.settle_pending`.
    """
    table, settings = plan.table, plan.settings
    # A decision that died before its completed file may be about this very batch.
    timeline = settle(table)
    seen = SeenTable(table, timeline)
    completed_time = find_batch(seen, batch)
    if completed_time is not None:
        refuse_other_offsets(seen, batch, completed_time, offsets)
        return replace(as_batch(plan, batch), replays=completed_time)
    rollbacks = (*plan.rollbacks, *older_runs(seen, batch))
    victims = frozenset(planned.victim.requested_time for planned in rollbacks)
    # A commit that gets all rows waits for rescales, and places the rows by the numbers after them.
    dead = OtherWriters(table, settings.patience, waits=settings.tasks.hand_over).dead_before_write(timeline, victims)
    rollbacks += tuple(PlannedRollback(instant, beat=beat) for instant, beat in dead)
    return replace(as_batch(plan, batch), rollbacks=rollbacks)


def older_runs(seen: SeenTable, batch: StreamBatch) -> tuple[PlannedRollback, ...]:
    """Return the rollbacks of what earlier runs of the batch's query left pending, and of the query's older batches.

    Spark runs a query once at a time, so that no sign of life counts: in a driver that lives on, a query that failed
    has the same process as its restart.
    """
    return tuple(
        PlannedRollback(instant, certain=True)
        for instant, owner in pending_batches(seen, batch.query_id)
        if (number := int(owner.batch_id)) < batch.batch_id
        or (number == batch.batch_id and owner.run_id != batch.run_id)
    )


def pending_batches(seen: SeenTable, query_id: str) -> Iterator[tuple[Instant, Owner]]:
    """Yield the pending instants of a query's batches, with their owners."""
    for instant in seen.timeline.pending:
        owner = Claim(seen.storage, instant.requested_time).owner() if instant.action in WRITE_ACTIONS else None
        if owner is not None and owner.query_id == query_id and owner.batch_id.isdecimal():
            yield instant, owner


def owner_of_batch(owner: Owner, batch: StreamBatch) -> Owner:
    return replace(
        owner,
        write_id=batch.write_id,
        query_id=batch.query_id,
        batch_id=str(batch.batch_id),
        run_id=batch.run_id,
        identifier=batch.identifier,
    )
