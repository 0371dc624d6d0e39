"""Sorts a copy-on-write table in place: one instant gives each file group a new base file with the same rows.

To other writers the instant is a write that changed these file groups. Readers of changes see by its operation type,
CLUSTER, that it changed no data, and rows keep the commit time of the write that made them. A process that dies leaves
a dead write, which the next write rolls back. File groups that another write changed meanwhile are not sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from ....errors import UnsupportedTableError
from ....index.registry import has_buckets, noted_index_for
from ....storage.base import Storage
from ....table.buckets.numbers import bucket_numbers
from ....table.files.file_group import FileSlice
from ....table.files.names import FileGroupId
from ....table.latest_schema import columns_of
from ....table.table import Table
from ....timeline.instants import State
from ....timeline.metadata.codec import SORTED, WRITE_ID
from ....timeline.timeline import Timeline
from ....timeline.writers.owner import Owner
from ....timeline.writers.write_notes import new_key
from ...meeting.conflicts import CheckedInstants, WriteChanges, changed_meanwhile, check_conflicts
from ...meeting.taken import taken_as_conflicts
from ...meeting.transaction import Transaction
from ...planning.pinned import pin
from ...rollback.dead import ONE_PROCESS, try_to_undo_dead
from ...rollback.pending import OtherWriters, PlannedRollback
from ...rollback.ready import make_ready
from ...transaction.begin import BegunWork, begun
from ...transaction.file_work import FileWork
from ...transaction.followers import bounded_columns
from ...transaction.life import Made, live
from ...transaction.outcome import Outcome
from ...write_ids import generated_id
from ..compaction.compactor import Compactor
from ..compaction.slice_worker import written_slices
from ..means import Means
from ..service import NoTasksError
from ..unit_execution import UnitResult, execute_units
from .unsorted import UnsortedSlices


@dataclass(frozen=True, slots=True)
class Sorter(Compactor):
    """Writes new base files of slices, in the order of the table's properties."""

    operation = "CLUSTER"
    compacts = False

    def rewrite(self, slices: Sequence[FileSlice], means: Means) -> list[UnitResult[FileSlice]]:
        """Rewrite the slices in the tasks of an engine, or in this process if there are none or few slices."""
        return execute_units(self, slices, means, "sort", written_slices)


@dataclass(slots=True)
class SortedInPlace:
    """What a rewrite of a copy-on-write table did.

    Attributes:
        instant: The requested time of its instant; empty if there was nothing to sort.
        results: The results of the slices that it sorted.
        left_out: File groups changed by another write during the sort; not sorted.
    """

    instant: str = ""
    results: list[UnitResult[FileSlice]] = field(default_factory=list)
    left_out: list[FileGroupId] = field(default_factory=list)

    def leave_out(self, storage: Storage, changed: frozenset[FileGroupId]) -> None:
        """Leave the `changed` file groups out: delete their new files, which readers of the instant would read.

        This happens before the decision, so that no process completes the instant while these files exist.
        """
        left_out_results = [result for result in self.results if result.unit.group in changed]
        storage.delete(*(path for result in left_out_results for path in result.paths))
        storage.flush(sorted({result.unit.partition_path for result in left_out_results}))
        self.results = [result for result in self.results if result.unit.group not in changed]
        self.left_out += sorted(changed)


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


def plan_rewrite(table: Table, unsorted: UnsortedSlices, means: Means) -> RewritePlan:
    """Return the slices to rewrite, which `unsorted` finds, and the transaction that is going to rewrite them.

    Raises `ConcurrentWriteError` if a write or a restore keeps the sort out.
    """
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


def sort_in_place(table: Table, unsorted: UnsortedSlices, means: Means) -> SortedInPlace:
    """Rewrite the slices that lack the order, except for file groups that other writes change meanwhile.

    Raises `CommitConflictError` if other writes changed all of them.
    """
    plan = plan_rewrite(table, unsorted, means)
    if not plan.slices:
        return SortedInPlace()
    rewrite, _ = live(
        plan.transaction, _begun_rewrite(plan), lambda began: _Rewrite(plan, began).run(means), ONE_PROCESS
    )
    try_to_undo_dead(rewrite.work, rewrite.timeline)
    return rewrite.sorted


@contextmanager
def _begun_rewrite(plan: RewritePlan) -> Iterator[BegunWork]:
    """Begin the instant of a rewrite, after the rollbacks that come first; yield the work that has begun.

    An instant that others take away meanwhile becomes a conflict.
    """
    ready = partial(make_ready, rollbacks=plan.rollbacks)
    # The requested file of a commit is empty.
    with begun(plan.transaction, lambda _: b"", ready) as began, taken_as_conflicts(began.work):
        yield began


class _Rewrite:
    """A rewrite whose instant is on the timeline."""

    def __init__(self, plan: RewritePlan, began: BegunWork) -> None:
        """Remember the rewrite that has begun, and the numbers of buckets at that moment."""
        self.work = work = began.work
        self.timeline = began.timeline
        self._plan = plan
        self._checked = CheckedInstants()
        self.sorted = SortedInPlace(work.instant_time)
        self._numbers = bucket_numbers(work.table, began.timeline) if has_buckets(work.config) else None

    def run(self, means: Means) -> tuple[_Rewrite, Made]:
        """Rewrite the slices and return how the instant completes; raise `UnsupportedTableError` if no task may run."""
        work = self.work
        files = FileWork(work, self._plan.schema, means.output, means.logs)
        notes = {WRITE_ID: work.write_id, SORTED: str(files.form().order)}
        sorter = Sorter(files, foreign=frozenset(), numbers=self._numbers, notes=notes)
        try:
            self.sorted.results = results = sorter.rewrite(self._plan.slices, means)
        except NoTasksError as error:
            raise UnsupportedTableError(
                f"The files of the table {work.path} to be sorted have more bytes than "
                f"hoodie.pyhudi.commit.merge.max.bytes allows this process, and {error}.",
                "Run python -m pyhudi.connector.jobs sort, which needs no Spark.",
            ) from error
        return self, Made(
            work,
            {path for result in results for path in result.paths},
            sorted({result.unit.partition_path for result in results}),
            partial(self._outcome, sorter),
            # The body needs space twice: reserve it for the completed file before the decision takes as much.
            lambda: work.reserve.hold(sorter.body(results).size),
        )

    def _outcome(self, sorter: Sorter, timeline: Timeline) -> Outcome | None:
        """Return the outcome; None if another process has completed the rewrite. Raises if an instant forbids it."""
        work = self.work
        own_instant = timeline.find(work.instant_time)
        if own_instant is not None and own_instant.state == State.COMPLETED:
            return None
        changed = changed_meanwhile(work, timeline, self._changes, self._checked)
        # If no file group would remain, `check_conflicts` raises.
        if changed and len(changed) < len(self.sorted.results):
            self.sorted.leave_out(work.storage, changed)
        check_conflicts(work, timeline, self._changes, self._checked)
        return sorter.outcome(self.sorted.results)

    @property
    def _changes(self) -> WriteChanges:
        """What the rewrite changes, for the check of conflicts: its file groups keep their rows.

        Another write conflicts if it changed the same bucket, or the same file group if the table has no buckets. The
        rewrite covers no partition, as it does not mind file groups that other writes add.
        """
        slices = [result.unit for result in self.sorted.results]
        groups = frozenset(file_slice.group for file_slice in slices)
        index = noted_index_for(self.work.config, self._numbers)
        return WriteChanges(
            file_groups=groups,
            replaced=frozenset(),
            rewritten=groups,
            bases=[file for file_slice in slices for file in file_slice.data_files],
            rival_key=(lambda group: group) if index is None else index.rival_key,
            covers=lambda _: False,
            columns=self._plan.schema,
        )
