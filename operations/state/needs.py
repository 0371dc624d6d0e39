"""The next needs of a table: each service that has work to do, with the arguments of its call.

The rules of a service find its need, from one listing of the table, so that the service then does what was announced.
This writes nothing and opens no data file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from ...table.config.property_keys import MERGE_ON_READ
from ...timeline.held import COMPACTION, LOG_COMPACTION, says_what_it_holds
from ...timeline.instants import Instant, State
from ...timeline.pending_undo import pending_restore, pending_rollbacks
from ...timeline.timeline import Timeline
from ...timeline.writers.heartbeat import INTERVAL_S, Heartbeat
from ...timeline.writers.owner import Claim, Liveness, Suspect
from ...timeline.writers.patience import Patience
from ..inspect.walked_table import WalkedTable
from ..meeting.concurrency import COMPACTION as COMPACTION_KIND
from ..meeting.concurrency import WRITE, kind_of
from ..rollback.pending import is_given_up
from ..service_settings import Upkeep
from ..services.archivable import before_replaced_files, candidates, retained_from
from ..services.clean_plan import plan_clean
from ..services.clean_scope import find_progress, make_survey
from ..services.compaction.choice import choose_partitions, choose_slices
from ..services.compaction.due_rules import is_due
from ..services.compaction.plan import held_by_plans, held_by_rescales
from ..services.versions.steps import FIRST_RELEASE_OF_NEWEST, UPGRADE, offered_upgrade

# Each judged instant costs some requests, so further instants wait for the next look.
MOST_JUDGED = 6
_MANY = 3
# After two missing heartbeats a process counts as silent, as for writers.
_SILENT_S = 2 * INTERVAL_S


@dataclass(frozen=True, slots=True)
class Need:
    """A service that has work to do.

    Attributes:
        why: A sentence.
        service: The service's name, or ``services`` for a round.
        arguments: The values of its arguments by their names.
    """

    why: str
    service: str
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableNeeds:
    """The facts that decide which services a table needs.

    Attributes:
        dead: The partitions with completed files outside of the newest slices; only there a clean may have work.
    """

    walked: WalkedTable
    upkeep: Upkeep
    patience: Patience
    dead: Collection[str]

    def next_needs(self) -> tuple[Need, ...]:
        """Return the next needs of the table, in the order in which the services should run.

        A pending restore or rollback is the only need, because other services wait for it. A table that pyhudi only
        reads needs no services.
        """
        timeline = self.walked.timeline
        if self.walked.table.config.is_read_only:
            return ()
        if pending_restore(timeline) is not None:
            return tuple(self._restores())
        undone = tuple(self._rollbacks())
        if any(instant.action == "rollback" for instant in timeline.pending):
            return undone
        return (*undone, *self._cleans(), *self._archives(), *self._compactions())

    def offers(self) -> tuple[Need, ...]:
        """Return the possible upgrade of the table's version, empty if there is none; no other work waits for it."""
        step = offered_upgrade(self.walked.table)
        if step is None:
            return ()
        why = (
            f"The table can have version {step.after} instead of {step.before}, once no release of Apache Hudi before "
            f"{FIRST_RELEASE_OF_NEWEST} works on it."
        )
        return (Need(why, UPGRADE),)

    def _restores(self) -> Iterator[Need]:
        """Yield the restore that broke off; nothing while its process is at work, or if its plan names no savepoint."""
        restore = pending_restore(self.walked.timeline)
        if restore is None or not self._has_no_process(restore):
            return
        plan = self.walked.timeline.files.read_restore_plan(restore)
        if plan is not None and plan.savepoint_to_restore_timestamp:
            time = restore.requested_time
            why = f"The restore {time} broke off, and the table refuses all writes until it is finished."
            yield Need(why, "restore", {"to": plan.savepoint_to_restore_timestamp})

    def _rollbacks(self) -> Iterator[Need]:
        """Yield the rollbacks that broke off, and those of dead writes, as one round if there are many.

        A pending clustering with a plan is no dead write.
        """
        timeline = self.walked.timeline
        rollbacks_by_victim = pending_rollbacks(timeline)
        broken_off = [
            rollback
            for rollbacks in rollbacks_by_victim.values()
            for rollback in rollbacks[:MOST_JUDGED]
            if self._has_no_process(rollback)
        ]
        if broken_off:
            why = f"The rollback {broken_off[0].requested_time} broke off, and the next write finishes it first."
            yield Need(why, "services", {"service": "rollback"})
        writes = [
            instant
            for instant in timeline.pending
            if kind_of(instant.action) is WRITE
            and instant.requested_time not in rollbacks_by_victim
            and not says_what_it_holds(timeline, instant)
        ]
        reasons = [(instant, why) for instant in writes[:MOST_JUDGED] if (why := self._death_of(instant))]
        if len(reasons) > _MANY:
            yield Need(
                f"{len(reasons)} writes are pending whose writers are dead.", "services", {"service": "rollback"}
            )
            return
        for instant, why in reasons:
            yield Need(
                f"The writer of the pending {instant.action} {instant.requested_time} is dead: {why}.",
                "rollback",
                {"instant": instant.requested_time},
            )

    def _cleans(self) -> Iterator[Need]:
        """Yield a clean if one broke off, or if the cleaning policy no longer keeps some files.

        While a clean is pending, no other is planned.
        """
        pending = [instant for instant in self.walked.timeline.pending if instant.action == "clean"]
        if pending:
            if not self._beats(pending[0]):
                yield Need(
                    f"The clean {pending[0].requested_time} is pending, and no process is at work on it.", "clean"
                )
            return
        listed = {path: self.walked.listings[path] for path in self.dead}
        progress = find_progress(self.walked.timeline) if listed else None
        plan = plan_clean(make_survey(self.walked.table, self.walked.timeline, self.upkeep.clean, progress, listed))
        if plan.files:
            yield Need(
                f"The cleaning policy {plan.policy} no longer keeps {plan.count:,} files ({plan.bytes:,} bytes).",
                "clean",
            )

    def _archives(self) -> Iterator[Need]:
        """Yield an archiving if more writes are on the timeline than the settings keep, and some may leave it."""
        timeline, settings = self.walked.timeline, self.upkeep.archive
        if len(timeline.writes) <= settings.max_commits:
            return
        retained = retained_from(timeline, self.walked.table.config.timezone, self.upkeep.clean)
        archivable = before_replaced_files(timeline, candidates(timeline, settings, retained), self.walked.listings)
        if archivable:
            writes = len(timeline.writes)
            why = f"The timeline has {writes:,} completed writes, and {len(archivable):,} instants may leave it."
            yield Need(why, "archive")

    def _compactions(self) -> Iterator[Need]:
        """Yield the next compaction or log compaction: a plan without a process, else a compaction that is due.

        While a process is at work on a compaction, no other is announced.
        """
        timeline, settings = self.walked.timeline, self.upkeep.compaction
        if self.walked.table.config.table_type != MERGE_ON_READ:
            return
        for action, service in ((COMPACTION, "compact"), (LOG_COMPACTION, "log_compact")):
            plans = [instant for instant in timeline.pending if instant.action == action][:MOST_JUDGED]
            waiting = [instant for instant in plans if self._has_no_process(instant)]
            if waiting:
                yield Need(
                    f"The {action} {waiting[0].requested_time} is planned, and no process is at work on it.", service
                )
                return
        if any(instant.action == COMPACTION for instant in timeline.pending):
            return
        if not is_due(timeline, settings, self.walked.table.config.timezone):
            return
        held_by_rescale = held_by_rescales(COMPACTION_KIND, timeline)
        free_partitions = [path for path in self.walked.partitions if not held_by_rescale(path)]
        held_groups = held_by_plans(COMPACTION_KIND, timeline)
        partitions = frozenset(choose_partitions(settings, free_partitions))
        free_slices = [
            file_slice
            for file_slice in self.walked.slices
            if file_slice.logs
            and file_slice.partition_path in partitions
            and (file_slice.partition_path, file_slice.file_id) not in held_groups
        ]
        chosen_slices = choose_slices(settings, free_slices)
        if chosen_slices:
            size = sum(file_slice.log_bytes for file_slice in chosen_slices)
            why = f"A compaction is due: {len(chosen_slices):,} file groups have log files ({size:,} bytes)."
            yield Need(why, "compact")

    def _death_of(self, write: Instant) -> str:
        """Return why the writer of a pending write counts as dead; empty if it lives, or may live."""
        if is_given_up(self.walked.table.storage, write.requested_time):
            return "it gave the write up"
        liveness = self._liveness_of(write)
        return "" if liveness.alive else liveness.reason

    def _liveness_of(self, instant: Instant) -> Liveness:
        """Return whether the process of a pending instant lives, and by which signs; wait for no further heartbeat."""
        table = self.walked.table
        # Look at the store's clock without making a file.
        suspect = Suspect(table.instants, instant, self.patience, table.storage.now(), table.config.timezone)
        return suspect.judge(may_wait=False)

    def _has_no_process(self, plan: Instant) -> bool:
        """Return whether no living process carries out the plan of a pending instant.

        A process of another engine leaves no claim, so its heartbeat decides once the instant is inflight.
        """
        if Claim(self.walked.table.storage, plan.requested_time).owner() is None:
            return plan.state == State.REQUESTED or not self._beats(plan)
        # Not by `is_given_up`: only a write holds a reserve, so a missing reserve says nothing about other instants.
        return not self._liveness_of(plan).alive

    def _beats(self, instant: Instant) -> bool:
        """Return whether a process at work on a pending instant gave a sign of life lately."""
        age = Heartbeat(self.walked.table.storage, instant.requested_time).age()
        return age is not None and age < _SILENT_S


def pending_work(timeline: Timeline) -> tuple[Instant, ...]:
    """Return the oldest pending instants, as many as a look judges."""
    return timeline.pending[:MOST_JUDGED]
