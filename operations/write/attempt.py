"""One attempt of a commit: its plan, the rows that it merges, and its turn to merge them.

If other writes are pending, an attempt first leaves a ticket and waits for older writes of the same data. So merges of
one file group come one after another, and a large write does not always lose to small writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...errors import CommitConflictError
from ...index.registry import index_for
from ...table.arrow.spill import SpillFile
from ...table.bucket_numbers import bucket_numbers, refuse_unknown
from ...table.merging.merger import RowMeeting
from ...timeline.instants import WRITE_ACTIONS
from ...timeline.timeline import Timeline
from ...timeline.writers.patience import Waited
from ...timeline.writers.tickets import Places, Ticket, age_of, in_turn, places_of_buckets
from ..indexing.known_keys import KeysOfWrite, keys_of_write
from ..planning.operation import OVERWRITE_TABLE, REPLACING
from ..planning.pinned import pin
from ..planning.plan import WritePlan, buckets_by_partition
from ..planning.settle_table import properties_to_write
from ..result import ATTEMPTS, MET
from ..transaction.conflicts import changed_numbers, check_columns_since, check_moment
from ..transaction.since import Since
from ..transaction.taken import taken_as_conflicts
from .spilled_rows import SpilledRows, opened_spills
from .waits import wait_for_rescale


@dataclass
class Attempt:
    """The current attempt of a commit.

    Attributes:
        first: The plan under the instant of the tasks.
        spills: The rows that the tasks handed over, in the order of the tasks.
        opened: Closes the spills after the last attempt.
        wrote: Whether tasks wrote files themselves, which no attempt of the commit can make again.
        plans_again: Whether the next attempt has a plan of its own.
        number: From 1.
        is_last: Whether each further attempt would fail for the same reason.
        plan: The plan under the attempt's instant.
        waited: The writes for which the attempts waited, and `HudiTable` before them.
        known_keys: What this process knows of the table's keys; None if it knows none.
    """

    first: WritePlan
    spills: Sequence[SpillFile]
    opened: ExitStack
    wrote: bool
    plans_again: bool
    number: int = 0
    is_last: bool = False
    plan: WritePlan = field(init=False)
    waited: Waited = field(init=False)
    known_keys: KeysOfWrite | None = field(init=False)
    _by_later_plan: SpilledRows | None = None

    def __post_init__(self) -> None:
        self.plan = self.first
        self.waited = self.first.settings.past.waited
        self.known_keys = _known_keys(self.first)

    @cached_property
    def _by_first_plan(self) -> SpilledRows:
        return self.opened.enter_context(opened_spills(self.first, self.spills))

    @property
    def rows(self) -> SpilledRows:
        """The rows by the attempt's plan."""
        return self._by_first_plan if self._by_later_plan is None else self._by_later_plan

    def bring_to(self, plan: WritePlan) -> None:
        """Bring the rows to a later plan of the write; raise if no attempt can do so."""
        first = self.first
        try:
            if plan.creates_table and not first.creates_table:
                raise first.transaction.conflict("The table was dropped meanwhile")
            self.rows.discard()
            self._by_later_plan = self._by_first_plan.by_plan(plan)
        except CommitConflictError:
            self.is_last = True
            raise
        if first.creates_table or plan.config.index_type != first.config.index_type:
            self.known_keys = _known_keys(plan)

    @property
    def merges_again(self) -> bool:
        """Whether the commit can merge the rows again."""
        settings = self.first.settings
        from_table = settings.origin.based_on or settings.origin.counted is not None
        made_elsewhere = self.wrote or self.first.names_places or from_table
        return settings.commit.retry_s > 0 and not made_elsewhere

    @property
    def seconds(self) -> dict[str, float]:
        return {"wait": round(self.waited.seconds, 3)} if self.waited.met else {}

    @property
    def extra_metadata(self) -> Mapping[str, str]:
        """The entries about attempts in the completed instant; none if the write met no other write."""
        number = self.first.settings.past.attempts + self.number
        again = {ATTEMPTS: str(number)} if number > 1 else {}
        return {**again, **({MET: json.dumps(self.waited.met)} if self.waited.met else {})}

    @contextmanager
    def turn(self, since: Since) -> Iterator[tuple[WritePlan, Timeline]]:
        """Wait for older writes of the same data, and yield the plan as if it had been made after them.

        ``since`` is what completed between the plan and the seal.
        """
        plan, work, timeline = self.plan, self.plan.transaction, since.timeline
        if not self.merges_again:
            yield plan, timeline
            return
        try:
            now = wait_for_rescale(plan, timeline, self.rows.paths)
        except CommitConflictError:
            # It has waited as long as its settings allow.
            self.is_last = True
            raise
        changed = bool(since.active or since.archived or now is not timeline)
        beside = [instant for instant in now.pending if instant.action in WRITE_ACTIONS and instant != work.inflight]
        places = self._places() if beside or self.number > 1 else {}
        if places == {}:
            yield self._at_new_moment() if changed else (plan, now)
            return
        name = age_of(work.storage, work.write_id, f"{self.first.instant_time}.{work.key[-8:]}")
        wait_s = plan.settings.commit.wait_s
        with in_turn(Ticket(work.storage, name, work.owner, places), work.patience, wait_s) as waited:
            self.waited = self.waited.and_then(waited)
            yield self._at_new_moment() if waited.met or changed else (plan, now)

    def _at_new_moment(self) -> tuple[WritePlan, Timeline]:
        """Return the plan as if it had been made now, and the timeline; the write must not have read the table before.

        Raises `CommitConflictError` if the table's properties or columns no longer fit the plan, or it was restored.
        """
        plan = self.plan
        with taken_as_conflicts(plan.transaction):
            pinned = pin(plan.table, plan.settings.patience)
        fresh = replace(plan, transaction=replace(plan.transaction, watermark=pinned.watermark))
        try:
            since = check_moment(plan.transaction, pinned.now)
            check_columns_since(since, plan.schema, merges=plan.operation not in REPLACING)
            if changed_numbers(since, buckets_by_partition(plan, self.rows.paths)):
                numbers = bucket_numbers(plan.table, pinned.now)
                refuse_unknown(numbers)
                fresh = replace(fresh, numbers=numbers)
            properties_to_write(fresh)
        except CommitConflictError:
            # The next attempt of the same plan would fail for the same reason.
            self.is_last = not self.plans_again
            raise
        return fresh, pinned.now

    def _places(self) -> Places | None:
        """Return the places that the write rewrites; None for the whole table, none if it only adds file groups."""
        plan, rows = self.plan, self.rows
        if plan.operation in REPLACING:
            whole = plan.operation == OVERWRITE_TABLE or not plan.takes_rows
            return None if whole else dict.fromkeys(rows.paths)
        index = index_for(plan.config)
        adds = plan.rules.meeting is RowMeeting.ADD and plan.looks_up
        if adds or plan.config.generates_keys or not rows.rows:
            return {}
        if plan.looks_up:
            return None if index.is_global else dict.fromkeys(rows.paths)
        return places_of_buckets(rows.rows)


def _known_keys(plan: WritePlan) -> KeysOfWrite | None:
    index = index_for(plan.config, plan.settings.lookup)
    return keys_of_write(plan.table, index, fills=plan.settings.batch is not None, is_new=plan.creates_table)
