"""The attempts of one commit: if another write came first, the commit merges the rows of the tasks again.

Only the commit has read the table for these rows, so the next attempt may read the table anew, under a new instant and
the same write id. A micro-batch is planned anew, too, and its rows are brought to that plan's columns and buckets.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...errors import CommitConflictError, ConcurrentWriteError, MetInstant, StorageError
from ...index.registry import index_for
from ...table.arrow.spill import SpillFile
from ...table.buckets.numbers import bucket_numbers, refuse_unknown
from ...table.merging.merger import RowMeeting
from ...table.seen_table import SeenTable
from ...table.table import open_table
from ...timeline.instant_files import UPGRADE
from ...timeline.instants import WRITE_ACTIONS, State
from ...timeline.timeline import Timeline
from ...timeline.writers.patience import Waited
from ...timeline.writers.tickets import Places, Ticket, age_of, in_turn, places_of_buckets
from ..indexing.known_keys import KeysOfWrite, keys_of_write
from ..meeting.conflicts import changed_numbers, check_before_merge, check_columns_since
from ..meeting.since import InstantsSincePlan
from ..meeting.taken import given_up_as_conflicts, taken_as_conflicts
from ..planning.operation import OVERWRITE_TABLE, REPLACING
from ..planning.pinned import pin
from ..planning.plan import WritePlan, buckets_by_partition
from ..planning.table_properties import properties_to_write
from ..result import ATTEMPTS, MET, CommitResult, find_write, result_of
from ..streams.checkpoints import find_batch
from ..transaction.abort import abort
from ..write_ids import is_generated
from .instant import begun
from .spilled_rows import SpilledRows, opened_spills
from .waits import wait_for_rescale, wait_for_restore


@dataclass
class Attempt:
    """The current attempt of a commit.

    Attributes:
        first: The plan under the instant of the tasks.
        spills: The rows that the tasks handed over, in the order of the tasks.
        open_spills: Closes the spills after the last attempt.
        tasks_wrote: Whether tasks wrote files themselves, which no attempt of the commit can make again.
        plans_again: Whether the next attempt has a plan of its own.
        number: From 1.
        is_last: Whether each further attempt would fail for the same reason.
        plan: The plan under the attempt's instant.
        waited: The writes for which the attempts waited, and `HudiTable` before them.
        known_keys: What this process knows of the table's keys; None if it knows none.
    """

    first: WritePlan
    spills: Sequence[SpillFile]
    open_spills: ExitStack
    tasks_wrote: bool
    plans_again: bool
    number: int = 0
    is_last: bool = False
    plan: WritePlan = field(init=False)
    waited: Waited = field(init=False)
    known_keys: KeysOfWrite | None = field(init=False)
    _rows_by_later_plan: SpilledRows | None = None

    def __post_init__(self) -> None:
        self.plan = self.first
        self.waited = self.first.settings.past.waited
        self.known_keys = _known_keys(self.first)

    @cached_property
    def _rows_of_tasks(self) -> SpilledRows:
        """The rows as the tasks handed them over."""
        return self.open_spills.enter_context(opened_spills(self.first, self.spills))

    @property
    def rows(self) -> SpilledRows:
        """The rows by the attempt's plan."""
        return self._rows_of_tasks if self._rows_by_later_plan is None else self._rows_by_later_plan

    def bring_to(self, plan: WritePlan) -> None:
        """Bring the rows to a later plan of the write; raise `CommitConflictError` if no attempt can do so."""
        first_plan = self.first
        try:
            if plan.creates_table and not first_plan.creates_table:
                raise first_plan.transaction.conflict("The table was dropped meanwhile")
            self.rows.discard()
            self._rows_by_later_plan = self._rows_of_tasks.by_plan(plan)
        except CommitConflictError:
            self.is_last = True
            raise
        # What this process knew was about another table or another index.
        if first_plan.creates_table or plan.config.index_type != first_plan.config.index_type:
            self.known_keys = _known_keys(plan)

    @property
    def merges_again(self) -> bool:
        """Whether the commit can merge the rows again.

        It cannot if the options allow no further attempt (``retry_s``), or if the first plan's view of the table went
        into the rows: tasks wrote files, rows name their file groups, or rows were made of stored rows.
        """
        settings = self.first.settings
        from_table = settings.origin.based_on or settings.origin.counted is not None
        made_elsewhere = self.tasks_wrote or self.first.names_places or from_table
        return settings.commit.retry_s > 0 and not made_elsewhere

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds for which the attempts waited, by phase; none if they waited for no write."""
        return {"wait": round(self.waited.seconds, 3)} if self.waited.met else {}

    @property
    def extra_metadata(self) -> Mapping[str, str]:
        """The entries about attempts in the completed instant; none if the write met no other write."""
        number = self.first.settings.past.attempts + self.number
        attempts_entry = {ATTEMPTS: str(number)} if number > 1 else {}
        return {**attempts_entry, **({MET: json.dumps(self.waited.met)} if self.waited.met else {})}

    @contextmanager
    def turn(self, since_plan: InstantsSincePlan) -> Iterator[tuple[WritePlan, Timeline]]:
        """Wait for older writes of the same data, and yield the plan as if it had been made after them.

        ``since_plan`` has what completed between the plan and the seal. If the commit cannot merge rows again, it
        yields the plan as it is.
        """
        plan, work, timeline = self.plan, self.plan.transaction, since_plan.timeline
        if not self.merges_again:
            yield plan, timeline
            return
        try:
            current_timeline = wait_for_rescale(plan, timeline, self.rows.paths)
        except CommitConflictError:
            # It has waited as long as its settings allow.
            self.is_last = True
            raise
        changed = bool(since_plan.active or since_plan.archived or current_timeline is not timeline)
        pending = current_timeline.pending
        other_writes = [each for each in pending if each.action in WRITE_ACTIONS and each != work.inflight]
        # A further attempt takes a ticket even if no write is pending, so that younger writes do not come first again.
        places = self._rewritten_places() if other_writes or self.number > 1 else {}
        if places == {}:
            # No other write is pending, or none can touch the same places, so the write needs no ticket.
            yield self._plan_and_timeline_now() if changed else (plan, current_timeline)
            return
        # Tickets sort by name, so the tickets of all attempts have the time of the first.
        name = age_of(work.storage, work.write_id, f"{self.first.instant_time}.{work.key[-8:]}")
        wait_s = plan.settings.commit.wait_s
        with in_turn(Ticket(work.storage, name, work.owner, places), work.patience, wait_s) as waited:
            self.waited = self.waited.and_then(waited)
            yield self._plan_and_timeline_now() if waited.met or changed else (plan, current_timeline)

    def _plan_and_timeline_now(self) -> tuple[WritePlan, Timeline]:
        """Return the plan as if it had been made now, and the timeline; the write must not have read the table before.

        Raises `CommitConflictError` if the table's properties or columns no longer fit the plan, or it was restored.
        """
        plan = self.plan
        with taken_as_conflicts(plan.transaction):
            pinned = pin(plan.table, plan.settings.patience)
        fresh_plan = replace(plan, transaction=replace(plan.transaction, watermark=pinned.watermark))
        try:
            since_plan = check_before_merge(plan.transaction, pinned.now)
            check_columns_since(since_plan, plan.schema, merges=plan.operation not in REPLACING)
            if changed_numbers(since_plan, buckets_by_partition(plan, self.rows.paths)):
                numbers = bucket_numbers(plan.table, pinned.now)
                refuse_unknown(numbers)
                fresh_plan = replace(fresh_plan, numbers=numbers)
            properties_to_write(fresh_plan)
        except CommitConflictError:
            # The next attempt of the same plan would fail for the same reason.
            self.is_last = not self.plans_again
            raise
        return fresh_plan, pinned.now

    def _rewritten_places(self) -> Places | None:
        """Return the buckets that the write rewrites, by partition; a partition with None is rewritten as a whole.

        The result itself is None for the whole table, and empty for a write that only adds rows.
        """
        plan, rows = self.plan, self.rows
        if plan.operation in REPLACING:
            is_whole_table = plan.operation == OVERWRITE_TABLE or not plan.takes_rows
            return None if is_whole_table else dict.fromkeys(rows.paths)
        index = index_for(plan.config)
        only_adds = plan.rules.meeting is RowMeeting.ADD and plan.looks_up
        if only_adds or plan.config.generates_keys or not rows.rows:
            return {}
        if plan.looks_up:
            return None if index.is_global else dict.fromkeys(rows.paths)
        return places_of_buckets(rows.rows)


def _known_keys(plan: WritePlan) -> KeysOfWrite | None:
    """Return what this process knows of the keys of the table of a plan; None if it knows none."""
    index = index_for(plan.config, plan.settings.lookup)
    return keys_of_write(plan.table, index, fills=plan.settings.batch is not None, is_new=plan.creates_table)


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
                with given_up_as_conflicts(work, later_than=self.previous), self._begin_attempt():
                    return commit(attempt)
            except CommitConflictError as error:
                committed = self._committed_replay()
                if committed is None and not self._may_merge_again():
                    raise
                logger.info("table %s: %s gives way: %s", path, attempt.plan.instant_time, error.what)
                self._pause_after(error.met)
            except (StorageError, ConcurrentWriteError) as error:
                # An upgrade may have moved the write, so that the rules of the old version no longer find it.
                upgraded = error.met is not None and error.met.kind == UPGRADE
                committed = self._committed_in_new_version(attempt.plan.instant_time) if upgraded else None
                if committed is None and not self._pause_to_repeat():
                    raise
                committed = committed or self._committed_replay()
                logger.warning("table %s: the commit %s is repeated: %s", path, attempt.plan.instant_time, error.what)
            # An attempt that fails before it has begun has a time, but no plan of its own.
            self.previous = max(attempt.plan.instant_time, work.notes.newest() or "")
            # The spills are in the folder of the first instant.
            keeps_spills = self.previous == work.instant_time and committed is None
            abort(attempt.plan.transaction.at(self.previous), tries_again=keeps_spills)
            # The write may have decided to complete before the store failed.
            committed = committed or (self._committed_replay() if self.repeated else None)
            if committed is not None:
                return committed

    @contextmanager
    def _begin_attempt(self) -> Iterator[None]:
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
            # Something else was in the way, so the next attempt begins at once.
            self.met, self.pause_s = met, 0.0
            return
        self.pause_s = min(max(2 * self.pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        time.sleep(self.pause_s)

    def _may_merge_again(self) -> bool:
        """Return whether to merge the rows again.

        Once the seconds for that (``until_s``) are over, only a micro-batch is merged again, after a pause.
        """
        return self._can_merge_again and (time.monotonic() < self.until_s or self._pause_to_repeat())

    def _pause_to_repeat(self) -> bool:
        """Pause, and return True, if the options of the stream allow a further attempt; else return False at once."""
        settings = self.first.settings
        if settings.batch is None or not self.attempt.merges_again or self.repeated >= settings.stream.retries:
            return False
        time.sleep(settings.stream.wait_s(self.repeated))
        self.repeated += 1
        return True

    def _committed_in_new_version(self, instant_time: str) -> Committed | None:
        """Return the completed write of an instant time, from the table in its current version; None without it.

        An upgrade may have moved the completed write there.
        """
        timeline = open_table(self.first.storage).timeline()
        write = timeline.write_at(instant_time)
        if write is None or write.state != State.COMPLETED:
            return None
        return Committed(self.first, result_of(timeline, write), timeline)

    def _committed_replay(self) -> Committed | None:
        """Return the completed write if another run of it, with the same write id, completed; None without one."""
        table, batch, write_id = self.first.table, self.first.settings.batch, self.first.transaction.write_id
        if is_generated(write_id):
            # No other run can have an id that this write generated.
            return None
        seen = SeenTable.now(table)
        if batch is not None and find_batch(seen, batch) is None:
            return None
        result = find_write(table, seen.timeline, write_id)
        return None if result is None else Committed(self.first, result, seen.timeline)

    @property
    def _can_merge_again(self) -> bool:
        """Whether a further attempt has the rows of the tasks and a plan that fits."""
        if not self.attempt.merges_again or self.attempt.is_last:
            return False
        # A process that took the write for dead has deleted the spills with the folder of the first instant. A task
        # may have made the folder anew since.
        first_work = self.first.transaction
        return first_work.claim.owner() is not None and not first_work.seal.is_given_up() and self._fits_again

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
