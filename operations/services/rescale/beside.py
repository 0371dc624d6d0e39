"""The instants beside a rescale: which it waits for, gives up or undoes before it reads, and which keep it out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from ....errors import CommitConflictError, ConcurrentWriteError
from ....table.table import Table
from ....timeline.held import COMPACTING, clustered_groups, held_groups, pending_compactions, says_what_it_holds
from ....timeline.instants import Instant, State
from ....timeline.rescales import Rescale, rescale_of
from ....timeline.timeline import Timeline
from ....timeline.writers.owner import Claim, Seal, seal_of
from ...meeting.concurrency import (
    CLUSTERING,
    COMPACTION,
    RESCALE,
    WRITE,
    InstantKind,
    Known,
    Meeting,
    Shared,
    Verdict,
    all_shared,
    judge,
    kind_of,
)
from ...meeting.transaction import Transaction
from ...rollback.dead import pause
from ...rollback.pending import OtherWriters, PlannedRollback, is_given_up, state_by_liveness
from ...rollback.rollback import roll_back
from ...transaction.commit_path import begin_reading
from ...words.at_work import in_words
from ..execution import take_back
from ..preconditions import finish_rollbacks_first, refuse_restoring


class _NotYetError(Exception):
    """Another instant has begun meanwhile, for which the rescale waits."""

    def __init__(self, instant: Instant) -> None:
        """Say for which instant the rescale waits."""
        super().__init__(instant.requested_time)
        self.instant = instant


@dataclass(frozen=True, slots=True)
class InstantsBeside:
    """The instants beside one rescale.

    Attributes:
        wait_s: For how long it waits for writes that were at work when it was requested, and for compactions.
        own_time: Its requested time; empty before it has one.
    """

    other_writers: OtherWriters
    rescale: Rescale
    wait_s: float
    own_time: str = ""

    @property
    def table(self) -> Table:
        return self.other_writers.table

    def refuse(self, timeline: Timeline) -> None:
        """Raise `ConcurrentWriteError` if an instant keeps the rescale out for which it does not wait."""
        refuse_restoring(RESCALE, timeline)
        for instant, verdict in self._verdicts(timeline).items():
            if verdict is Verdict.REFUSE:
                left = "This rescale left nothing behind. " if self.own_time else ""
                raise ConcurrentWriteError(
                    f"The rescale of the table {self.table.path} cannot begin beside {in_words(self.table, instant)}.",
                    f"{left}Stop Apache Hudi's writers, and run the rescale again once that instant is complete.",
                )

    def begin_reading(self, work: Transaction) -> Timeline:
        """Wait for the instants that the rescale has to read, make it inflight, and return the timeline then.

        Raises `ConcurrentWriteError` if that takes too long, and `CommitConflictError` if the rescale was rolled back.
        """
        deadline = time.monotonic() + self.wait_s
        while True:
            waited_for = self._make_way()
            if waited_for is None:
                try:
                    timeline = begin_reading(self.table, work.inflight, self._check_may_begin)
                except _NotYetError as error:
                    waited_for = error.instant
                else:
                    return self._refuse_rolled_back(work, timeline)
            if time.monotonic() > deadline:
                raise ConcurrentWriteError(
                    f"The rescale of the table {self.table.path} waited {self.wait_s:.0f} s for "
                    f"{in_words(self.table, waited_for)}.",
                    "Run it again once that is over, or let it wait for longer (hoodie.write.lock.wait_time_ms).",
                )
            pause()

    def _refuse_rolled_back(self, work: Transaction, timeline: Timeline | None) -> Timeline:
        """Return the timeline; raise `CommitConflictError` if there is none, as the rescale is off the timeline."""
        if timeline is None:
            raise CommitConflictError(
                f"The rescale {work.instant_time} of the table {work.path} was rolled back before it began.",
                "Run it again.",
            )
        return timeline

    def _make_way(self) -> Instant | None:
        """Undo and give up the instants that the rescale may; return an instant to wait for, None without any."""
        timeline = finish_rollbacks_first(RESCALE, self.other_writers, self.table.timeline())
        self.refuse(timeline)
        for instant, verdict in self._verdicts(timeline).items():
            if verdict is Verdict.WAIT:
                return instant
            if verdict is Verdict.UNDO and instant.action in COMPACTING:
                # The rescale merges the log files of its partitions, and the next compaction plans the others again.
                take_back(self.table, instant)
            elif verdict is Verdict.UNDO:
                beat = self.other_writers.suspect(instant).judge(may_wait=False).beat
                roll_back(self.other_writers, PlannedRollback(instant, beat=beat))
        return None

    def _check_may_begin(self, timeline: Timeline) -> None:
        """Raise `ConcurrentWriteError` or `_NotYetError` if an instant keeps the rescale from reading now."""
        self.refuse(timeline)
        for instant, verdict in self._verdicts(timeline).items():
            if verdict in {Verdict.WAIT, Verdict.UNDO}:
                raise _NotYetError(instant)

    def _verdicts(self, timeline: Timeline) -> Mapping[Instant, Verdict]:
        """Return what the rescale does about each pending write, plan and rescale, by the rules of concurrency."""
        holder_by_group = held_groups(pending_compactions(timeline))
        planning_holders = {
            holder.identity for (path, _), holder in holder_by_group.items() if self.rescale.holds(path)
        }
        clustering_holders = {
            holder.identity for (path, _), holder in clustered_groups(timeline).items() if self.rescale.holds(path)
        }
        verdicts: dict[Instant, Verdict] = {}
        for instant in timeline.pending:
            if instant.requested_time == self.own_time:
                continue
            meeting = self._meeting(timeline, instant, planning_holders, clustering_holders)
            if meeting is not None:
                verdicts[instant] = judge(meeting)
        return verdicts

    def _meeting(
        self, timeline: Timeline, instant: Instant, planning_holders: set[str], clustering_holders: set[str]
    ) -> Meeting | None:
        """Return the rescale's meeting with a pending instant; None if the rescale need not mind the instant.

        `planning_holders` are the compactions that hold a partition of the rescale, `clustering_holders` the
        clusterings.
        """
        kind = kind_of(instant.action)
        if instant.action in COMPACTING:
            shared = all_shared({Shared.PARTITION: instant.identity in planning_holders})
            # Whether its process lives matters only for a compaction that is begun in a partition of the rescale.
            their_state = self._state_of(instant) if shared and self._is_begun(instant) else Known.PENDING
            return Meeting(RESCALE, kind or COMPACTION, their_state, shared)
        # A replacecommit with a plan is a clustering, too. Without the names of its file groups, a clustering may hold
        # any partition.
        names_groups = says_what_it_holds(timeline, instant)
        if names_groups or kind is CLUSTERING:
            shared = all_shared(
                {Shared.PARTITION: instant.identity in clustering_holders, Shared.UNTOLD: not names_groups}
            )
            return Meeting(RESCALE, CLUSTERING, shared=shared)
        if kind is not WRITE:
            return None
        their_state = self._state_of(instant)
        if self.own_time and instant.requested_time > self.own_time and their_state is not Known.FOREIGN:
            # A write that began later looks for the rescale itself, unless it is of another engine.
            return None
        theirs: InstantKind = WRITE
        if their_state is not Known.FOREIGN and rescale_of(timeline, instant) is not None:
            theirs = RESCALE
        return Meeting(RESCALE, theirs, their_state)

    def _is_begun(self, instant: Instant) -> bool:
        """Return whether a process is, or was, at work on a compaction's plan."""
        claimed = Claim(self.table.storage, instant.requested_time).owner() is not None
        return claimed or instant.state != State.REQUESTED

    def _state_of(self, instant: Instant) -> Known:
        """Return whether the process of an instant lives; work that was given up counts as dead."""
        if self._is_given_up(instant):
            return Known.DEAD
        return state_by_liveness(self.other_writers.suspect(instant).judge(may_wait=False))

    def _is_given_up(self, instant: Instant) -> bool:
        """Return whether the process of an instant gave its work up, which ended the work for all of its tasks."""
        storage, requested = self.table.storage, instant.requested_time
        if instant.action not in COMPACTING:
            return is_given_up(storage, requested)
        process = Claim(storage, requested).owner()
        return process is not None and Seal(storage, seal_of(requested, process.write_id)).is_given_up()
