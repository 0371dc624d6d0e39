"""The attempts of one commit: if another write came first, the commit merges the rows of the tasks again.

Only the commit has read the table for these rows, so the next attempt may read the table anew, under a new instant and
the same write id. A micro-batch is planned anew, too, and its rows are brought to that plan's columns and buckets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...errors import CommitConflictError, ConcurrentWriteError, MetInstant, StorageError
from ...table.seen_table import SeenTable
from ...table.table import open_table
from ...timeline.instant_files import UPGRADE
from ...timeline.instants import State
from ...timeline.timeline import Timeline
from ..planning.plan import WritePlan
from ..planning.settle_table import properties_to_write
from ..result import CommitResult, find_write, result_of
from ..streams.checkpoints import find_batch
from ..transaction.abort import abort
from ..transaction.taken import given_up_as_conflicts
from ..write_ids import GENERATED_ID
from .attempt import Attempt
from .begin import begun
from .waits import wait_for_restore

logger = logging.getLogger("pyhudi")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


@dataclass(frozen=True, slots=True)
class Committed:
    """A completed write: its plan with its last instant, its result, and a timeline after its seal."""

    plan: WritePlan
    result: CommitResult
    timeline: Timeline


@dataclass
class Attempts:
    """The attempts of the commit of one write.

    Attributes:
        attempt: The current attempt.
        plan_again: Plans the same write for the table of now; None if this process lacks the write's options.
        previous: The time of the previous attempt.
        until_s: The monotonic time at which further attempts end.
        repeated: How many attempts followed a pause by the options of a stream.
        met: The instant that the previous attempt met.
        pause_s: How long the current attempt waited for it.
    """

    attempt: Attempt
    plan_again: Callable[[], WritePlan] | None
    previous: str = ""
    until_s: float = 0.0
    repeated: int = 0
    met: MetInstant | None = None
    pause_s: float = 0.0

    @property
    def first(self) -> WritePlan:
        return self.attempt.first

    def run(self, commit: Callable[[Attempt], Committed]) -> Committed:
        """Attempt the commit until it completes, or raise the last error when `CommitSettings.retry_s` are over.

        A micro-batch is repeated a few times after that, and after failures of the store.
        """
        attempt, path, work = self.attempt, self.first.path, self.first.transaction
        self.until_s = time.monotonic() + self.first.settings.commit.retry_s
        while True:
            attempt.number += 1
            try:
                with given_up_as_conflicts(work, after=self.previous), self._begun():
                    return commit(attempt)
            except CommitConflictError as error:
                committed = self._replayed()
                if committed is None and not self._may_merge_again():
                    raise
                logger.info("table %s: %s gives way: %s", path, attempt.plan.instant_time, error.what)
                self._pause_after(error.met)
            except (StorageError, ConcurrentWriteError) as error:
                # An upgrade may have moved the write, so that the rules of the old version no longer find it.
                upgraded = error.met is not None and error.met.kind == UPGRADE
                committed = self._completed_now(attempt.plan.instant_time) if upgraded else None
                if committed is None and not self._repeat():
                    raise
                committed = committed or self._replayed()
                logger.warning("table %s: the commit %s is repeated: %s", path, attempt.plan.instant_time, error.what)
            # An attempt that fails before it has begun has a time, but no plan of its own.
            self.previous = max(attempt.plan.instant_time, work.notes.newest() or "")
            # The spills are in the folder of the first instant.
            keeps_spills = self.previous == work.instant_time and committed is None
            abort(attempt.plan.transaction.at(self.previous), tries_again=keeps_spills)
            # The write may have decided to complete before the store failed.
            committed = committed or (self._replayed() if self.repeated else None)
            if committed is not None:
                return committed

    @contextmanager
    def _begun(self) -> Iterator[None]:
        """Put the attempt on the timeline; the tasks have put the first attempt there already."""
        if self.attempt.number == 1:
            yield
            return
        plan = self.first
        if self.plan_again is not None:
            wait_for_restore(plan.transaction, self.until_s)
            plan = plan.replaced_by(self.plan_again())
            self.attempt.bring_to(plan)
        with begun(plan, self.previous) as work:
            self.attempt.plan = work.plan
            yield

    def _pause_after(self, met: MetInstant | None) -> None:
        """Wait longer each time that attempts meet the same instant, such as a dead rollback that still seems alive."""
        if met is None or met != self.met:
            self.met, self.pause_s = met, 0.0
            return
        self.pause_s = min(max(2 * self.pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        time.sleep(self.pause_s)

    def _may_merge_again(self) -> bool:
        """Return whether to merge the rows again, after a pause if the seconds for that are over."""
        return self._can_merge_again and (time.monotonic() < self.until_s or self._repeat())

    def _repeat(self) -> bool:
        """Return whether to repeat a micro-batch once more, and pause before."""
        settings = self.first.settings
        if settings.batch is None or not self.attempt.merges_again or self.repeated >= settings.stream.retries:
            return False
        time.sleep(settings.stream.wait_s(self.repeated))
        self.repeated += 1
        return True

    def _completed_now(self, instant_time: str) -> Committed | None:
        """Return the write at a requested time if it is complete in the table as it is now."""
        timeline = open_table(self.first.storage).timeline()
        write = timeline.write_at(instant_time)
        if write is None or write.state != State.COMPLETED:
            return None
        return Committed(self.first, result_of(timeline, write), timeline)

    def _replayed(self) -> Committed | None:
        """Return the write if a replay of it completed meanwhile."""
        table, batch, write_id = self.first.table, self.first.settings.batch, self.first.transaction.write_id
        if write_id.startswith(GENERATED_ID):
            return None
        seen = SeenTable.now(table)
        if batch is not None and find_batch(seen, batch) is None:
            return None
        result = find_write(table, seen.timeline, write_id)
        return None if result is None else Committed(self.first, result, seen.timeline)

    @property
    def _can_merge_again(self) -> bool:
        if not self.attempt.merges_again or self.attempt.is_last:
            return False
        # A process that took the write for dead has deleted the spills with the folder of the first instant. A task
        # may have made the folder anew since.
        first = self.first.transaction
        return first.claim.owner() is not None and not first.seal.is_given_up() and self._fits_again

    @property
    def _fits_again(self) -> bool:
        """Whether the plan of the next attempt fits the properties that the table has now."""
        if self.plan_again is not None:
            return True
        try:
            properties_to_write(self.first)
        except CommitConflictError:
            return False
        return True
