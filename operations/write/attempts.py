"""The attempts of one commit: rows that the tasks handed over are merged again where another write came first.

Only the commit has read the table for such a write, so that it may see the table anew: under a new instant and the same
write id. A micro-batch is planned anew, too, and its rows are brought to that plan's columns and buckets. Before it
merges beside other writes it leaves a ticket and waits for older writes of the same data, so that merges of one file
group come one after another, and a large write does not lose to small writes for ever.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...errors import CommitConflictError, ConcurrentWriteError, StorageError
from ...index.registry import index_for
from ...table.arrow.spill import SpillFile
from ...table.bucket_numbers import bucket_numbers, refuse_unknown
from ...table.merging.merger import RowMeeting
from ...table.seen_table import SeenTable
from ...timeline.instants import WRITE_ACTIONS
from ...timeline.timeline import Timeline
from ...timeline.writers.patience import NOT_WAITED, Waited
from ...timeline.writers.tickets import Places, Ticket, age_of, held, places_of_buckets, wait_for_older
from ..indexing.known_keys import KeysOfWrite, keys_of_write
from ..planning.operation import OVERWRITE_TABLE, REPLACING
from ..planning.pinned import pin
from ..planning.plan import WritePlan, placed_by
from ..planning.settle_table import settle_table
from ..result import ATTEMPTS, MET, CommitResult, find_write
from ..streams.checkpoints import find_batch
from ..transaction.abort import abort
from ..transaction.conflicts import changed_numbers, check_columns_since, check_moment
from ..transaction.since import Since
from ..transaction.taken import given_up_as_conflicts, taken_as_conflicts
from ..write_ids import GENERATED_ID
from .begin import begun
from .spilled_rows import SpilledRows, opened_spills
from .waits import wait_for_rescale, wait_for_restore

logger = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class Committed:
    """A write as it was completed: its plan with its last instant, its result, and a timeline after its seal."""

    plan: WritePlan
    result: CommitResult
    timeline: Timeline


@dataclass
class Attempts:
    """The attempts of the commit of one write.

    Attributes:
        first: The write under the instant of its tasks.
        opened: Closes the spills after the last attempt.
        wrote: Whether tasks wrote files themselves, which no attempt of the commit can make again.
        plan_again: Plans the same write as the table is now; None where this process lacks the write's options.
        number: The number of the attempt at hand, from 1.
        previous: The time of the attempt before.
        until_s: The monotonic time at which further attempts end.
        repeated: How many attempts followed a pause, as the options of a stream ask.
        is_last: Whether any further attempt would fail as this one did.
        waited: For which writes it waited, those for which `HudiTable` did included.
        known: What the attempt at hand knows of the table's keys; None where it knows none.
        again: The rows by the plan of the attempt at hand, where that is another than the tasks'.
    """

    first: WritePlan
    spills: Sequence[SpillFile]
    opened: ExitStack
    wrote: bool
    plan_again: Callable[[], WritePlan] | None = None
    number: int = 0
    previous: str = ""
    until_s: float = 0.0
    repeated: int = 0
    is_last: bool = False
    waited: Waited = NOT_WAITED
    known: KeysOfWrite | None = field(init=False)
    again: SpilledRows | None = None

    def __post_init__(self) -> None:
        self.waited = self.first.settings.past.waited
        self.known = _known_keys(self.first)

    @cached_property
    def given(self) -> SpilledRows:
        """The rows as the tasks handed them over."""
        return self.opened.enter_context(opened_spills(self.first, self.spills))

    @property
    def spilled(self) -> SpilledRows:
        """The rows by the plan of the attempt at hand."""
        return self.given if self.again is None else self.again

    @property
    def merges_again(self) -> bool:
        settings = self.first.settings
        made_elsewhere = self.wrote or self.first.names_places or settings.based_on or settings.counted is not None
        return settings.retry_s > 0 and not made_elsewhere

    @property
    def seconds(self) -> Mapping[str, float]:
        return {"wait": round(self.waited.seconds, 3)} if self.waited.met else {}

    @property
    def extra_metadata(self) -> Mapping[str, str]:
        """What the completed instant says of the attempts; nothing where the write met no other."""
        number = self.first.settings.past.attempts + self.number
        again = {ATTEMPTS: str(number)} if number > 1 else {}
        return {**again, **({MET: json.dumps(self.waited.met)} if self.waited.met else {})}

    def run(self, attempt: Callable[[WritePlan], Committed]) -> Committed:
        """Attempt the commit until it completes, or `WriteSettings.retry_s` are over; else raise its last error.

        It repeats a micro-batch some times after that, and after failures of the store.
        """
        self.until_s, plan = time.monotonic() + self.first.settings.retry_s, self.first
        while True:
            self.number += 1
            try:
                with given_up_as_conflicts(self.first.transaction, after=self.previous), self._begun() as plan:
                    return attempt(plan)
            except CommitConflictError as error:
                done = self._replayed()
                if done is None and not (self._can_merge_again and (time.monotonic() < self.until_s or self._repeat())):
                    raise
                logger.info("table %s: %s gives way: %s", plan.path, plan.instant_time, error.what)
            except (StorageError, ConcurrentWriteError) as error:
                if not self._repeat():
                    raise
                done = self._replayed()
                logger.warning("table %s: the commit %s is repeated: %s", plan.path, plan.instant_time, error.what)
            # An attempt may fail before it has begun, and then has a time and no plan of its own.
            self.previous = max(plan.instant_time, plan.transaction.notes.newest() or "")
            # The spills are in the folder of the first instant.
            keeps_spills = self.previous == self.first.instant_time and done is None
            abort(plan.transaction.at(self.previous), tries_again=keeps_spills)
            # The write may have decided to complete before the store failed.
            done = done or (self._replayed() if self.repeated else None)
            if done is not None:
                return done

    @contextmanager
    def _begun(self) -> Iterator[WritePlan]:
        """Return the write under the instant of the next attempt."""
        if self.number == 1:
            yield self.first
            return
        plan = self.first if self.plan_again is None else self._planned_again(self.plan_again)
        with begun(plan, self.previous) as work:
            yield work.plan

    def _planned_again(self, plan_again: Callable[[], WritePlan]) -> WritePlan:
        """Plan the write anew, and bring its rows to that plan; raise where no further attempt could do so."""
        first = self.first
        wait_for_restore(first.transaction, self.until_s)
        plan = first.replaced_by(plan_again())
        try:
            if plan.creates_table and not first.creates_table:
                raise first.transaction.conflict("The table was dropped meanwhile")
            self.spilled.discard()
            self.again = self.given.by_plan(plan)
        except CommitConflictError:
            self.is_last = True
            raise
        if first.creates_table or plan.config.index_type != first.config.index_type:
            self.known = _known_keys(plan)
        return plan

    def _repeat(self) -> bool:
        """Return whether to repeat a micro-batch once more, after its pause."""
        settings = self.first.settings
        if settings.batch is None or not self.merges_again or self.repeated >= settings.stream.retries:
            return False
        time.sleep(settings.stream.wait_s(self.repeated))
        self.repeated += 1
        return True

    def _replayed(self) -> Committed | None:
        """Return the write where a replay of it completed meanwhile."""
        table, batch, write_id = self.first.table, self.first.settings.batch, self.first.transaction.write_id
        if write_id.startswith(GENERATED_ID):
            return None
        seen = SeenTable.now(table)
        if batch is not None and find_batch(seen, batch) is None:
            return None
        found = find_write(table, seen.timeline, write_id)
        return None if found is None else Committed(self.first, found, seen.timeline)

    @property
    def _can_merge_again(self) -> bool:
        if not self.merges_again or self.is_last:
            return False
        # A process that took the write for dead has deleted the spills with the folder of the first instant; a task
        # that found no folder may have made its note anew.
        first = self.first.transaction
        return first.claim.owner() is not None and not first.seal.is_given_up() and self._fits_again

    @property
    def _fits_again(self) -> bool:
        """Whether the plan of the next attempt fits the properties that the table has now."""
        if self.plan_again is not None:
            return True
        try:
            settle_table(self.first)
        except CommitConflictError:
            return False
        return True

    @contextmanager
    def turn(self, plan: WritePlan, since: Since) -> Iterator[tuple[WritePlan, Timeline]]:
        """Wait for older writes of the same data, and return the write as if it had been planned after them.

        ``since`` is what completed since the plan, as of the seal.
        """
        work, timeline = plan.transaction, since.timeline
        if not self.merges_again:
            yield plan, timeline
            return
        try:
            now = wait_for_rescale(plan, timeline, self.spilled.paths)
        except CommitConflictError:
            # It has waited as long as it may.
            self.is_last = True
            raise
        changed = bool(since.active or since.archived or now is not timeline)
        timeline = now
        beside = [
            instant for instant in timeline.pending if instant.action in WRITE_ACTIONS and instant != work.inflight
        ]
        places = self._places(plan) if beside or self.number > 1 else {}
        if places == {}:
            yield self._at_new_moment(plan) if changed else (plan, timeline)
            return
        name = age_of(work.storage, work.write_id, f"{self.first.instant_time}.{work.key[-8:]}")
        ticket = Ticket(work.storage, name, work.owner, places)
        with held(ticket, work.patience):
            found = wait_for_older(ticket, work.patience, plan.settings.wait_s)
            self.waited = self.waited.and_then(found)
            yield self._at_new_moment(plan) if found.met or changed else (plan, timeline)

    def _at_new_moment(self, plan: WritePlan) -> tuple[WritePlan, Timeline]:
        """Return a write as if it had been planned now, and the timeline; it must not have read the table before.

        Raises `CommitConflictError` where the table's properties or columns no longer fit the plan, or were restored.
        """
        with taken_as_conflicts(plan.transaction):
            pinned = pin(plan.table, plan.settings)
        fresh = replace(plan, transaction=replace(plan.transaction, watermark=pinned.watermark))
        try:
            since = check_moment(plan.transaction, pinned.now)
            check_columns_since(since, plan.schema, merges=plan.operation not in REPLACING)
            if changed_numbers(since, placed_by(plan, self.spilled.paths)):
                numbers = bucket_numbers(plan.table, pinned.now)
                refuse_unknown(numbers)
                fresh = replace(fresh, numbers=numbers)
            settle_table(fresh)
        except CommitConflictError:
            # The next attempt of the same plan would meet the same.
            self.is_last = self.plan_again is None
            raise
        return fresh, pinned.now

    def _places(self, plan: WritePlan) -> Places | None:
        """Return what the write rewrites; None for the whole table, and nothing where it only adds file groups."""
        if plan.operation in REPLACING:
            whole = plan.operation == OVERWRITE_TABLE or not plan.takes_rows
            return None if whole else dict.fromkeys(self.spilled.paths)
        index = index_for(plan.config)
        adds = plan.rules.meeting is RowMeeting.ADD and plan.looks_up
        if adds or plan.config.generates_keys or not self.spilled.rows:
            return {}
        if plan.looks_up:
            return None if index.is_global else dict.fromkeys(self.spilled.paths)
        return places_of_buckets(self.spilled.rows)


def _known_keys(plan: WritePlan) -> KeysOfWrite | None:
    index = index_for(plan.config, plan.settings.lookup)
    return keys_of_write(plan.table, index, fills=plan.settings.batch is not None, is_new=plan.creates_table)
