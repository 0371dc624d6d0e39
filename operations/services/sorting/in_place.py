"""Sorts a copy-on-write table in place: one instant gives each file group a new base file with the same rows.

To other writers the instant is a write that changed these file groups. Readers of changes see by its operation type,
CLUSTER, that it changed no data, and rows keep the commit time of the write that made them. A process that dies leaves
a dead write, which the next write rolls back. File groups that another write changed meanwhile are not sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from ....errors import UnsupportedTableError
from ....index.registry import has_buckets, noted_index_for
from ....table.bucket_numbers import bucket_numbers
from ....table.table import Table
from ....timeline.instants import State
from ....timeline.metadata.codec import SORTED, WRITE_ID
from ....timeline.timeline import Timeline
from ...rollback.dead import ONE_PROCESS, try_to_undo_dead
from ...rollback.ready import make_ready
from ...transaction.begin import BegunWork, begun
from ...transaction.conflicts import CheckedInstants, WriteChanges, changed_meanwhile, check_conflicts
from ...transaction.file_work import FileWork
from ...transaction.life import Made, live
from ...transaction.outcome import Outcome
from ...transaction.taken import taken_as_conflicts
from ..means import Means
from ..service import NoTasksError
from .rewrite_plan import RewritePlan, plan_rewrite
from .sorter import SortedInPlace, Sorter
from .unsorted import Unsorted


def sort_in_place(table: Table, unsorted: Unsorted, means: Means) -> SortedInPlace:
    """Rewrite the slices that lack the order, except for file groups that other writes change meanwhile.

    Raises `CommitConflictError` if other writes changed all of them.
    """
    plan = plan_rewrite(table, unsorted, means)
    if not plan.slices:
        return SortedInPlace()
    rewrite, _ = live(plan.transaction, _begun(plan), lambda began: _Rewrite(plan, began).run(means), ONE_PROCESS)
    try_to_undo_dead(rewrite.work, rewrite.timeline)
    return rewrite.sorted


@contextmanager
def _begun(plan: RewritePlan) -> Iterator[BegunWork]:
    ready = partial(make_ready, rollbacks=plan.rollbacks)
    with begun(plan.transaction, lambda _: b"", ready) as began, taken_as_conflicts(began.work):
        yield began


class _Rewrite:
    """A rewrite whose instant is on the timeline."""

    def __init__(self, plan: RewritePlan, began: BegunWork) -> None:
        self.work = work = began.work
        self.timeline = began.timeline
        self._plan = plan
        self._checked = CheckedInstants()
        self.sorted = SortedInPlace(work.instant_time)
        self._numbers = bucket_numbers(work.table, began.timeline) if has_buckets(work.config) else None

    def run(self, means: Means) -> tuple[_Rewrite, Made]:
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
        own = timeline.find(work.instant_time)
        if own is not None and own.state == State.COMPLETED:
            return None
        changed = changed_meanwhile(work, timeline, self._changes, self._checked)
        # If no file group would remain, `check_conflicts` raises.
        if changed and len(changed) < len(self.sorted.results):
            self.sorted.leave_out(work.storage, changed)
        check_conflicts(work, timeline, self._changes, self._checked)
        return sorter.outcome(self.sorted.results)

    @property
    def _changes(self) -> WriteChanges:
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
