"""Plans a sort in place without writing a byte: its transaction, and the slices that lack the order."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ....table.files.file_group import FileSlice
from ....table.latest_schema import columns_of
from ....table.table import Table
from ....timeline.writers.owner import Owner
from ....timeline.writers.write_notes import new_key
from ...planning.pinned import pin
from ...rollback.pending import OtherWriters, PlannedRollback
from ...transaction.followers import bounded_columns
from ...transaction.transaction import Transaction
from ...write_ids import generated_id
from ..means import Means
from .unsorted import Unsorted


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """What a sort in place is going to do.

    Attributes:
        rollbacks: The rollbacks of dead writes that come first.
        schema: The columns of the table.
    """

    transaction: Transaction
    rollbacks: tuple[PlannedRollback, ...]
    slices: tuple[FileSlice, ...]
    schema: pa.Schema


def plan_rewrite(table: Table, unsorted: Unsorted, means: Means) -> RewritePlan:
    """Choose the slices to rewrite; raises `ConcurrentWriteError` if a write or a restore keeps the sort out."""
    pinned = pin(table, means.patience)
    rollbacks = pinned.rollbacks_first(OtherWriters(table, means.patience))
    write_id, key = generated_id(), new_key(table.config.timezone)
    transaction = Transaction(
        table=table,
        action="commit",
        instant_time="",
        write_id=write_id,
        owner=Owner.of_this_process(write_id, means.application, means.patience, key),
        watermark=pinned.watermark,
        patience=means.patience,
        key=key,
        bounded=bounded_columns(table),
    )
    # A dead rescale holds no partition.
    timeline = pinned.timeline.without([planned.victim.requested_time for planned in rollbacks])
    return RewritePlan(transaction, rollbacks, tuple(unsorted.find(timeline)), columns_of(table.config, timeline))
