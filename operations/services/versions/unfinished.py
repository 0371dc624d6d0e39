"""What a change of version does first about pending instants, which cannot be carried over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from ....errors import CorruptInstantError, MissingFileError, UnsupportedTableError
from ....table.config import check_mergeable, check_supported
from ....table.files.lost import open_view
from ....table.table import Table
from ....timeline.held import COMPACTING, COMPACTION, LOG_COMPACTION, says_what_it_holds
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ...meeting.concurrency import ROLLBACK
from ...rollback.pending import OtherWriters, PlannedRollback, in_the_way_error
from ...rollback.rollback import roll_back
from ...service_settings import CompactionSettings, LogCompactionSettings
from ..compaction.compact import carry_out_pending
from ..compaction.compactor import Compaction
from ..dead_writes import undo_dead_writes
from ..execution import take_back
from ..means import Means
from ..preconditions import dead_writes, refuse_restoring
from .compact_whole import INDEXING, clustering_of_logs, refuse_left_plans
from .steps import VersionStep

_SETTINGS: Mapping[str, CompactionSettings | LogCompactionSettings] = {
    COMPACTION: CompactionSettings(),
    LOG_COMPACTION: LogCompactionSettings(),
}


class WayToFinish(Enum):
    """What a change of version does about a pending instant."""

    ROLL_BACK = auto()
    CARRY_OUT = auto()
    TAKE_BACK = auto()


@dataclass(frozen=True, slots=True)
class UnfinishedInstant:
    """A pending instant, and what is done about it first; ``sentence`` says it in words."""

    instant: Instant
    way: WayToFinish
    sentence: str


@dataclass(frozen=True)
class UnfinishedInstants:
    """The pending instants of a table that a step does not carry over as they are."""

    table: Table
    step: VersionStep
    means: Means

    def find(self, timeline: Timeline) -> Sequence[UnfinishedInstant]:
        """Return what is done first, dead writes before plans.

        Raises `ConcurrentWriteError` if a process is at work on one of the instants, and `CorruptInstantError` for a
        plan that can be neither carried out nor taken back.
        """
        refuse_restoring(ROLLBACK, timeline)
        sentences = {
            dead.victim: f"Roll the {dead.victim.action} {dead.victim.requested_time} back, whose writer is dead."
            for dead in dead_writes(ROLLBACK, self._other_writers, timeline, "")
            if not says_what_it_holds(timeline, dead.victim)
        }
        for rollback in self._other_writers.unfinished_rollbacks(timeline, ROLLBACK):
            if rollback.at_work:
                raise in_the_way_error(timeline, rollback.victim)
            sentences[rollback.victim] = f"Finish the rollback of {rollback.victim.requested_time}, which broke off."
        undone = [
            UnfinishedInstant(instant, WayToFinish.ROLL_BACK, sentence) for instant, sentence in sentences.items()
        ]
        self._refuse_living_plans(timeline)
        plans = [
            self._unfinished_plan(timeline, instant) for instant in timeline.pending if instant.action in COMPACTING
        ]
        clustered = [
            UnfinishedInstant(
                instant,
                WayToFinish.TAKE_BACK,
                f"Take back the clustering {instant.requested_time}, which holds file groups with log files.",
            )
            for instant in (clustering_of_logs(timeline) if self.step.compacts(self.table) else ())
        ]
        return [*undone, *plans, *clustered]

    def finish(self) -> list[str]:
        """Do what `find` returns, and return its sentences; raise if one of these instants stays pending."""
        table = self.table
        to_finish = self.find(table.timeline())
        if any(unfinished.way is WayToFinish.ROLL_BACK for unfinished in to_finish):
            undo_dead_writes(table, self.means.patience)
        for unfinished in to_finish:
            if unfinished.way is WayToFinish.TAKE_BACK:
                self._take_back(unfinished.instant)
        for action in sorted(
            {unfinished.instant.action for unfinished in to_finish if unfinished.way is WayToFinish.CARRY_OUT}
        ):
            refuse_left_plans(table, self.step.name, carry_out_pending(table, _SETTINGS[action], self.means))
        timeline = table.timeline()
        identities = {unfinished.instant.identity for unfinished in to_finish}
        for unfinished in self.find(timeline) if to_finish else ():
            if unfinished.instant.identity in identities:
                raise in_the_way_error(timeline, unfinished.instant)
        return [unfinished.sentence for unfinished in to_finish]

    @cached_property
    def _other_writers(self) -> OtherWriters:
        """The writers of the pending instants, by whose signs of life dead writes are known."""
        return OtherWriters(self.table, self.means.patience)

    def _refuse_living_plans(self, timeline: Timeline) -> None:
        """Raise `ConcurrentWriteError` if a process is at work on an indexing or a plan."""
        for instant in timeline.pending:
            # An indexing is in the way whether or not its process lives.
            is_at_work = instant.action == INDEXING
            is_planned = instant.action in COMPACTING or says_what_it_holds(timeline, instant)
            if instant.state == State.INFLIGHT and is_planned:
                is_at_work = self._other_writers.suspect(instant).judge(may_wait=False).alive
            if is_at_work:
                raise in_the_way_error(timeline, instant)

    def _unfinished_plan(self, timeline: Timeline, plan: Instant) -> UnfinishedInstant:
        """Return a compaction's plan with what is done about it: carried out if pyhudi can, else taken back."""
        way = WayToFinish.CARRY_OUT if self._may_carry_out(timeline, plan) else WayToFinish.TAKE_BACK
        verb = "Carry out" if way is WayToFinish.CARRY_OUT else "Take back"
        return UnfinishedInstant(plan, way, f"{verb} the {plan.action} {plan.requested_time}.")

    def _may_carry_out(self, timeline: Timeline, plan: Instant) -> bool:
        """Return whether a pending plan is carried out; otherwise it is taken back."""
        if not self.step.compacts(self.table):
            return self._is_mergeable
        if plan.action == LOG_COMPACTION:
            # The whole table is compacted, and pyhudi writes no log files in this version.
            return False
        try:
            Compaction(self.table, CompactionSettings(), self.means).read_plan(timeline, plan)
        except (CorruptInstantError, MissingFileError) as error:
            # Apache Hudi may have appended log files under the plan's time before the decision for the plan, whose
            # maker died, was carried out.
            if any(file_slice.names(plan.requested_time) for file_slice in open_view(timeline).all_slices()):
                raise CorruptInstantError(
                    error.what,
                    "Log files have its time in their names, so to take it back would lose their rows: restore "
                    "what it needs from a backup, or carry it out with Apache Hudi.",
                ) from error
            return False
        return True

    @property
    def _is_mergeable(self) -> bool:
        """Whether pyhudi knows the rules by which a compaction of the table merges."""
        try:
            check_supported(self.table.config, self.table.path, writing=True)
            check_mergeable(self.table.config, self.table.path)
        except UnsupportedTableError:
            return False
        return True

    def _take_back(self, instant: Instant) -> None:
        """Take back a compaction's plan, or roll back a clustering, whatever signs of life there are."""
        if instant.action in COMPACTING:
            take_back(self.table, instant)
        else:
            roll_back(self._other_writers, PlannedRollback(instant, certain=True))
