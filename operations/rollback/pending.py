"""Unfinished instants on the timeline: which a write ignores, which keep it out, and which it undoes as dead."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from ...errors import (
    CommitConflictError,
    ConcurrentWriteError,
    CorruptInstantError,
    MetInstant,
    UnsupportedTableError,
)
from ...storage.base import Storage
from ...table.files.names import FileGroupId
from ...table.table import Table
from ...timeline.held import says_what_it_holds
from ...timeline.instants import Instant
from ...timeline.pending_undo import pending_restore, pending_rollbacks
from ...timeline.rescales import rescale_of, rescaling
from ...timeline.timeline import Timeline
from ...timeline.writers import owner
from ...timeline.writers.owner import Liveness, Suspect
from ...timeline.writers.patience import Patience
from ...timeline.writers.reserve import Reserve
from ..meeting.concurrency import (
    CLUSTERING,
    RESCALE,
    RESTORE,
    ROLLBACK,
    WRITE,
    Asked,
    InstantKind,
    Known,
    Meeting,
    Shared,
    Verdict,
    all_shared,
    forbids,
    judge,
    kind_of,
    rules_of,
)

BESIDE_A_WRITE = Meeting(WRITE, WRITE)


@dataclass(frozen=True, slots=True)
class PlannedRollback:
    """A rollback of a dead write, or of the victim of a pending rollback.

    Attributes:
        beat: The overdue heartbeat by which the writer counts as dead; None if no heartbeat was judged.
        certain: Whether its writer counts as dead whatever signs of life there are.
        at_work: Whether a living process carries the rollback out, so that no other need finish it.
    """

    victim: Instant
    beat: float | None = None
    certain: bool = False
    at_work: bool = False


@dataclass(frozen=True, slots=True)
class OtherWriters:
    """The writers of a table's unfinished instants.

    Attributes:
        patience: When a silent writer counts as dead.
        waits: Whether the write waits for rescales in its commit, so that it may begin beside each of them.
    """

    table: Table
    patience: Patience
    waits: bool = False

    def rollbacks_to_finish(
        self, timeline: Timeline, mine: InstantKind, asked: Asked = Asked.BEFORE_PLAN
    ) -> tuple[PlannedRollback, ...]:
        """Return the pending rollbacks that have to be finished before an instant, the newest victim first.

        ``mine`` is the kind of that instant. ``asked`` says whether the rollbacks began before its plan or since then.
        """
        return tuple(dead for dead in self.unfinished_rollbacks(timeline, mine, asked) if not dead.at_work)

    def unfinished_rollbacks(
        self, timeline: Timeline, mine: InstantKind, asked: Asked = Asked.BEFORE_PLAN
    ) -> tuple[PlannedRollback, ...]:
        """Return the pending rollbacks whose victims are on the timeline, the newest victim first.

        The victims are going to vanish, completed writes included: the plan of a write must not build on them. The
        arguments are those of `rollbacks_to_finish`.
        """
        rollbacks_of = pending_rollbacks(timeline)
        planned = []
        for time in sorted(rollbacks_of, reverse=True):
            victim, rollback = timeline.write_at(time), rollbacks_of[time][0]
            asks_maker = victim is not None and asked is Asked.BEFORE_PLAN
            their_state = self.state_of_maker(rollback) if asks_maker else Known.PENDING
            verdict = judge(Meeting(mine, ROLLBACK, their_state, all_shared({Shared.VICTIM: victim}), asked))
            if verdict is Verdict.REFUSE:
                raise in_the_way_error(timeline, rollback)
            if victim is not None:
                # The instant may begin beside a rollback whose maker lives, because the maker finishes its rollback.
                at_work = verdict is Verdict.GO_ON
                planned.append(PlannedRollback(victim, certain=True, at_work=at_work))
        return tuple(planned)

    def state_of_maker(self, rollback: Instant) -> Known:
        """Return LIVING or FOREIGN if a process at work on a rollback gives signs of life, else PENDING.

        A short rollback of pyhudi gives no signs of life, and any process may finish it.
        """
        liveness = self.suspect(rollback).judge(may_wait=False)
        shows_no_sign = liveness.foreign and liveness.beat is None
        if not liveness.alive or (shows_no_sign and self.patience.foreign_age_s is None):
            return Known.PENDING
        return Known.FOREIGN if liveness.foreign else Known.LIVING

    def state_of_restore(self, restore: Instant) -> Known:
        """Return whether the process at work on a restore lives; FOREIGN if that is unknown."""
        return state_by_liveness(self.suspect(restore).judge(may_wait=False))

    def suspect(self, instant: Instant) -> Suspect:
        """Return the `Suspect` that judges by signs of life whether the process of an instant is dead."""
        table = self.table
        return Suspect(table.instants, instant, self.patience, table.storage.file_time(), table.config.timezone)

    def dead_before_write(
        self, timeline: Timeline, victims: Collection[str] = frozenset()
    ) -> tuple[tuple[Instant, float | None], ...]:
        """Return the pending writes to undo before a write, oldest first, each with its writer's last heartbeat.

        The heartbeat is None if none was judged. It skips the `victims` of pending rollbacks. Raises
        `ConcurrentWriteError` if a pending instant keeps the write out and its process lives, or may live, and
        `UnsupportedTableError` for a clustering without a plan.
        """
        restore = pending_restore(timeline)
        if restore is not None and forbids(Meeting(WRITE, RESTORE)):
            # A restore that broke off leaves half-undone writes, which look like pending writes older than it.
            raise restoring_error(timeline, restore)
        dead_writes = []
        for instant in timeline.pending:
            kind = kind_of(instant.action)
            if kind is None or kind in {RESTORE, ROLLBACK} or instant.requested_time in victims:
                continue
            has_plan = says_what_it_holds(timeline, instant)
            if kind is WRITE and not has_plan:
                liveness = self._death_of_rescaler(timeline, instant)
                if liveness is not None:
                    dead_writes.append((instant, liveness.beat))
                    continue
                if self._may_begin_beside(timeline, instant):
                    continue
                liveness = self.refuse_living(instant)
                dead_writes += [] if liveness is None else [(instant, liveness.beat)]
                continue
            # A clustering with a plan may have the action of an overwrite.
            kind = CLUSTERING if has_plan else kind
            # Without a plan it is unknown which file groups the clustering will change.
            lacks_plan = kind is CLUSTERING and not has_plan
            if judge(Meeting(WRITE, kind, shared=all_shared({Shared.UNTOLD: lacks_plan}))) is Verdict.GO_ON:
                continue
            if not lacks_plan:
                raise in_the_way_error(timeline, instant)
            raise UnsupportedTableError(
                f"The clustering {instant.requested_time} is pending on the table {self.table.path}, and it has "
                "no plan, so it is unknown which file groups must not be written meanwhile.",
                "Finish it with Apache Hudi, or take it back with HudiTable.rollback, then write again.",
            )
        return tuple(dead_writes)

    def _may_begin_beside(self, timeline: Timeline, instant: Instant) -> bool:
        """Return whether a write may begin beside a pending write: that is pyhudi's, alive or dead, or it is over."""
        if forbids(replace(BESIDE_A_WRITE, their_state=Known.LIVING), rules_of(self.patience)):
            return False
        if owner.Claim(self.table.storage, instant.requested_time).owner() is not None:
            return True
        # A write that completed since the listing has left no owner.
        return instant not in timeline.reload().pending

    def _death_of_rescaler(self, timeline: Timeline, instant: Instant) -> Liveness | None:
        """Return the signs by which the maker of a rescale counts as dead; None if it lives, or for another instant.

        Raises `CommitConflictError` if the maker lives, the rescale holds all partitions, and the commit does not wait
        for it. The commit itself looks for a living rescale of some partitions.
        """
        rescale, fields = rescale_of(timeline, instant), self.table.config.partition_fields
        if rescale is None:
            return None
        holds_all = rescale.partitions is None or (not fields and rescale.holds(""))
        meeting = Meeting(WRITE, RESCALE, shared=frozenset({Shared.PARTITION}))
        try:
            # Beside a rescale of some partitions the write may begin, so it does not wait for a verdict.
            return self.refuse_living(instant, meeting, may_wait=holds_all)
        except ConcurrentWriteError as error:
            if self.waits or not holds_all:
                return None
            raise CommitConflictError(
                f"The write to the table {self.table.path} cannot be made. {rescaling(instant, None)}: {error.what}",
                "Write again once the rescale is complete; this write left nothing behind.",
                met=MetInstant(instant.requested_time, RESCALE.value),
            ) from error

    def refuse_living(
        self,
        instant: Instant,
        meeting: Meeting = BESIDE_A_WRITE,
        *,
        known_beat: float | None = None,
        may_wait: bool = True,
    ) -> Liveness | None:
        """Return the signs by which the writer of a pending instant counts as dead; None if it keeps nothing out.

        ``meeting`` names the kinds of the instant that is to begin and of the pending instant. `known_beat` is a
        heartbeat that was overdue at an earlier look. With ``may_wait`` it watches an overdue heartbeat until its
        tolerance is over. Raises `ConcurrentWriteError` if the writer lives, or may live.
        """
        if is_given_up(self.table.storage, instant.requested_time):
            given_up = Liveness(False, "it was given up")
            return None if judge(replace(meeting, their_state=Known.DEAD)) is Verdict.GO_ON else given_up
        state = f"is pending on the table {self.table.path}"
        return self.refuse_unless_dead(instant, state, meeting, known_beat=known_beat, may_wait=may_wait)

    def refuse_unless_dead(
        self,
        instant: Instant,
        state: str,
        meeting: Meeting,
        *,
        known_beat: float | None = None,
        may_wait: bool = True,
    ) -> Liveness | None:
        """Return the signs by which the writer of a pending instant counts as dead; None if it keeps nothing out.

        It goes by the signs of life alone, whether or not the write was given up. Raises `ConcurrentWriteError`
        if the writer lives, or may live; `state` follows the instant in the error's text.
        """
        liveness = self.suspect(instant).judge(known_beat, may_wait=may_wait)
        verdict = judge(replace(meeting, their_state=state_by_liveness(liveness)), rules_of(self.patience))
        if liveness.alive and verdict is Verdict.REFUSE:
            raise ConcurrentWriteError(
                f"The {instant.action} {instant.requested_time} {state}: {liveness.reason}.",
                liveness.todo,
                met=MetInstant(instant.requested_time, meeting.theirs.value),
            )
        return None if verdict is Verdict.GO_ON else liveness


def state_by_liveness(liveness: Liveness) -> Known:
    """Return DEAD for a dead writer, FOREIGN for another engine's writer, and LIVING for pyhudi's."""
    if not liveness.alive:
        return Known.DEAD
    return Known.FOREIGN if liveness.foreign else Known.LIVING


def in_the_way_error(timeline: Timeline, instant: Instant) -> ConcurrentWriteError:
    """Return the error for an instant that cannot begin beside a pending instant, with the process at work on it."""
    storage = timeline.files.storage
    process = owner.Claim(storage, instant.requested_time).owner()
    process_in_words = "" if process is None else f"; process {process.pid} on {process.host} carries it out"
    return ConcurrentWriteError(
        f"The {instant.action} {instant.requested_time} is pending on the table {storage.path}{process_in_words}.",
        "Run it again once that is complete.",
        met=_to_met_instant(instant),
    )


def held_by_clustering_error(table: str, instant: Instant, group: FileGroupId) -> ConcurrentWriteError:
    """Return the error for a write to a file group that a pending clustering holds."""
    return ConcurrentWriteError(
        f"The clustering {instant.requested_time} is pending on the table {table} and holds the file group "
        f"{group.file_id} of partition {group.partition_path!r}, which this write would change. The clustering would "
        "undo that change.",
        "Finish it with Apache Hudi, or take it back with HudiTable.rollback, then write again. Meanwhile you can "
        "write rows of new keys, and change other file groups.",
        met=MetInstant(instant.requested_time, CLUSTERING.value, group.partition_path, group.file_id),
    )


def _to_met_instant(instant: Instant) -> MetInstant:
    """Return a pending instant in the form in which errors carry it to callers that wait for it."""
    kind = kind_of(instant.action)
    return MetInstant(instant.requested_time, instant.action if kind is None else kind.value)


def restoring_error(timeline: Timeline, restore: Instant) -> ConcurrentWriteError:
    """Return the error of a write during a pending restore, which has undone some of the writes that it will undo."""
    try:
        plan = timeline.files.read_restore_plan(restore)
    except CorruptInstantError:
        plan = None
    target_time = None if plan is None else plan.savepoint_to_restore_timestamp
    what = f"The restore {restore.requested_time} of the table {timeline.storage.path} is pending"
    if not target_time:
        return ConcurrentWriteError(
            f"{what}, and its plan does not say to which instant.",
            "Finish it with Apache Hudi, or delete its files from the timeline if it has not begun.",
            met=_to_met_instant(restore),
        )
    return ConcurrentWriteError(
        f"{what}: of the commits after {target_time} some are undone and some are not.",
        f"Wait until it is done; if its process is dead, run HudiTable.restore({target_time!r}) again, which finishes "
        "it.",
        met=_to_met_instant(restore),
    )


def is_given_up(storage: Storage, instant_time: str) -> bool:
    """Return whether a pending write of pyhudi was given up, so that it counts as dead at once.

    Its process may live, and may be this process. False for an instant of another engine.
    """
    if owner.Claim(storage, instant_time).owner() is None:
        return False
    return Reserve(storage, instant_time).is_released() or owner.Seal(storage, instant_time).is_given_up()
