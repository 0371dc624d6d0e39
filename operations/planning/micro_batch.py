"""A planned write becomes a micro-batch: Spark makes the plan before pyhudi knows the query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ...table.seen_table import SeenTable
from ...timeline.instants import WRITE_ACTIONS, Instant
from ...timeline.writers.owner import Claim, Owner
from ..rollback.pending import OtherWriters, PlannedRollback
from ..streams.batch import LOST, OFFSETS, StreamBatch
from ..streams.checkpoints import find_batch, refuse_other_offsets
from ..transaction.decide import settle
from .plan import WritePlan, plan_write
from .request import WriteRequest


def plan_batch(request: WriteRequest) -> WritePlan:
    """Plan a write, which may be a micro-batch. Raises as `plan_write` and `resolve_batch`."""
    plan, batch = plan_write(request), request.write.batch
    return plan if batch is None else resolve_batch(plan, batch)


def as_batch(plan: WritePlan, batch: StreamBatch) -> WritePlan:
    """Return a planned write with the ids of a micro-batch; each task and the commit call this."""
    work = plan.transaction
    work = replace(work, write_id=batch.write_id, owner=owner_of_batch(work.owner, batch))
    plan = replace(plan, transaction=work, settings=replace(plan.settings, batch=batch))
    return with_notes(plan, batch.lost, batch.offsets)


def with_notes(plan: WritePlan, lost_rows: int, offsets: str) -> WritePlan:
    """Return a planned write whose commit notes the batch's offsets, and how many rows its stream skipped before.

    The commit gets no note for 0 rows or for empty offsets.
    """
    notes = {LOST: str(lost_rows) if lost_rows else "", OFFSETS: offsets}
    extra = {**plan.settings.commit.extra_metadata, **{key: text for key, text in notes.items() if text}}
    commit = replace(plan.settings.commit, extra_metadata=extra)
    return replace(plan, settings=replace(plan.settings, commit=commit))


def resolve_batch(plan: WritePlan, batch: StreamBatch, offsets: Callable[[], str] | None = None) -> WritePlan:
    """Return the plan of a micro-batch: a replay if the table has the batch, else with the rollbacks before it.

    The first task carries the rollbacks out. ``offsets`` is called for the batch's offsets if it has none. Raises as
    `find_batch`, as `refuse_other_offsets`, and as `OtherWriters.dead_before_write`.
    """
    table, settings = plan.table, plan.settings
    # The maker of the newest decision may have died before it made the completed file of this very batch.
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
    """Return the rollbacks of batches that earlier runs of the query left pending, and of the query's older batches.

    Spark runs a query only once at a time, so signs of life do not count: a failed query and its restart may have the
    same living process.
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
    """Return the owner of a write with the ids of a micro-batch, by which the query's later runs find its instant."""
    return replace(
        owner,
        write_id=batch.write_id,
        query_id=batch.query_id,
        batch_id=str(batch.batch_id),
        run_id=batch.run_id,
        identifier=batch.identifier,
    )
