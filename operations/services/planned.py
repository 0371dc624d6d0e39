"""Table services that rewrite data files: a plan is claimed by one process at a time and executed unit by unit.

A service first carries out the pending plans of any process, and then makes its own. It carries a plan out under the
plan's own time (`execution.py`), beside writes. It skips plans that it cannot carry out. It notes a plan that failed,
and later calls try it again only after some writes.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import ClassVar, Generic, Protocol, TypeVar

from ...errors import CommitConflictError, ConcurrentWriteError, PyHudiError, StorageError
from ...table.inferred.index import with_inferred_index
from ...table.inferred.key_encoding import with_inferred_key_encoding
from ...table.latest_schema import columns_of
from ...table.table import Table
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ...timeline.writers import failures
from ...timeline.writers.failures import NEVER, Failed
from ..meeting.concurrency import InstantKind
from ..meeting.transaction import Transaction
from ..result import ServiceResult
from ..rollback.pending import OtherWriters
from ..transaction.file_work import FileWork
from ..transaction.life import Made, live
from ..transaction.locks import has_lock
from ..transaction.outcome import Outcome
from ..words.at_work import since_in_words
from .execution import ANY_PROCESS, check_claim, claim, take_back
from .means import Means
from .preconditions import finish_rollbacks_first, refuse_restoring
from .service import NoTasksError, TableService, unless_over
from .throughput import note_nothing_fits, throughput_of
from .unit_execution import PlanUnit, UnitResult, UnitWorker, execute_units

logger = logging.getLogger("pyhudi")

_ROUNDS = 20


Settings = TypeVar("Settings")
Unit = TypeVar("Unit", bound=PlanUnit)


class Worker(UnitWorker[Unit, UnitResult[Unit]], Protocol[Unit]):
    """Executes the units of a plan, and makes the outcome of the instant from their results."""

    def outcome(self, results: Sequence[UnitResult[Unit]]) -> Outcome:
        """Return how the instant completes, given the results of all units."""


class PlannedService(TableService[tuple[Unit, ...]], Generic[Settings, Unit]):
    """One call of a service whose plans are tuples of units.

    Attributes:
        kind: What its instants are to other processes.
        name: The service in messages.
        call: The method of `HudiTable` and the job that carry plans out.
        does: A phrase for messages; `str.format` puts in the bytes that a plan reads.
        drops_empty: Whether a plan without units is taken back instead of completed.
        insists: Whether to try plans that have failed before, however few writes have come since.
        instant: Requested time of the last plan that was carried out; `results` has the units of all plans.
        left_plans: The reason for each plan that stays pending as no tasks run and it is too large for this process, by
            the requested time of the plan.
        at: The time that the last plan has to have; None for a time after the whole timeline. `plan` sets it.
        waiting: Why the last plan was not made, in words; empty if it was. `plan` sets it.
    """

    kind: ClassVar[InstantKind]
    name: ClassVar[str]
    call: ClassVar[str]
    does: ClassVar[str]
    drops_empty: ClassVar[bool] = False

    def __init__(self, table: Table, settings: Settings, means: Means, *, insists: bool = True) -> None:
        """Prepare a call of the service; nothing is read or written yet."""
        super().__init__(table)
        self.settings = settings
        self.means = means
        self.other_writers = OtherWriters(table, means.patience)
        self.insists = insists
        self.instant = ""
        self.results: list[UnitResult[Unit]] = []
        self.skipped: list[str] = []
        self.left_plans: dict[str, str] = {}
        self.at: str | None = None
        self.waiting = ""
        self._last_refusal: ConcurrentWriteError | None = None
        self._tried_times: set[str] = set()
        self._failures: Mapping[str, Failed] | None = None

    @abstractmethod
    def plan(self, timeline: Timeline) -> tuple[Unit, ...] | None:
        """Return the units that the service has to execute on a timeline; None for no plan."""

    @abstractmethod
    def missed(self, now: Timeline, planned_instant: Instant) -> bool:
        """Return whether a plan on the timeline lacks a write that it should include."""

    @abstractmethod
    def read_plan(self, timeline: Timeline, instant: Instant) -> tuple[Unit, ...]:
        """Return the units of a pending plan of any process; raises if pyhudi cannot carry the plan out."""

    def waits_for(self, timeline: Timeline, instant: Instant) -> str:
        """Return what a plan has to wait for, in words; empty if it need not wait."""
        return ""

    @abstractmethod
    def worker(self, files: FileWork, timeline: Timeline, plan: tuple[Unit, ...]) -> Worker[Unit]:
        """Return what executes the units of a plan; the timeline is of the moment at which the work begins."""

    @abstractmethod
    def refuse_stale(self, work: Transaction, timeline: Timeline, plan: tuple[Unit, ...]) -> None:
        """Raise `CommitConflictError` if the timeline no longer shows the files that the plan read."""

    @abstractmethod
    def finished(self, units: Sequence[Unit], paths: Sequence[str]) -> Sequence[Unit]:
        """Return the units to which these new data files belong."""

    def schedule(self, due: Callable[[Timeline], bool] | None = None) -> tuple[Instant, tuple[Unit, ...]] | None:
        """Put a plan on the timeline; return its instant and units, None if no plan is due or there is no work.

        A plan is due if `due` returns true for the timeline, or is None.
        """
        table = self.table
        seen_timeline = table.timeline() if has_lock(table) else None
        if seen_timeline is not None and (due is None or due(seen_timeline)):
            # The plan reads each file once: read them now, before the lock is held.
            self.plan(seen_timeline)
        for _ in range(_ROUNDS):
            to_finish: list[Timeline] = []

            def find(timeline: Timeline, to_finish: list[Timeline] = to_finish) -> tuple[Unit, ...] | None:
                """Return the plan for a timeline; `to_finish` gets the timeline if rollbacks have to be finished first.

                None means that no plan is due, or that the rollbacks come first.
                """
                refuse_restoring(self.kind, timeline)
                # Do not rewrite files of a write that is being rolled back.
                to_finish[:] = [timeline] if self.other_writers.rollbacks_to_finish(timeline, self.kind) else []
                return None if to_finish or not (due is None or due(timeline)) else self.plan(timeline)

            instant_and_plan = self.request(find, lambda: self.at)
            if to_finish:
                finish_rollbacks_first(self.kind, self.other_writers, to_finish[0])
            elif instant_and_plan is None or not self.missed(table.timeline(), instant_and_plan[0]):
                return instant_and_plan
            else:
                # A process that knows no decisions completed a write in between.
                take_back(table, instant_and_plan[0])
        raise ConcurrentWriteError(
            f"Other processes came in between {_ROUNDS} times while a {self.action} of the table {table.path} was "
            "planned.",
            "Run it again.",
        )

    def run(self, due: Callable[[Timeline], bool] | None = None) -> None:
        """Carry out the pending plans, then make a plan if `due` says so or is None, and carry it out."""
        timeline = finish_rollbacks_first(self.kind, self.other_writers, self.table.timeline())
        refuse_restoring(self.kind, timeline)
        for instant in self._plans_to_try(timeline):
            self.carry_out(instant, timeline)
            if self._at_bound:
                return
        self.schedule(due)
        # These may include the plan of a process that died between its decision and its file on the timeline.
        timeline = self.table.timeline()
        for instant in self._plans_to_try(timeline):
            self.carry_out(instant, timeline)
            if self._at_bound:
                return
        if self._last_refusal is not None and not self.results and self.insists:
            raise self._last_refusal
        if self.waiting:
            self.skip(self.waiting)

    @property
    def _at_bound(self) -> bool:
        """Whether the call has only some seconds and has carried a plan out: then it carries out no further plan."""
        return self.means.within_s is not None and bool(self.results)

    def carry_out(self, instant: Instant, timeline: Timeline) -> None:
        """Carry a pending plan out, unless it is too large or another process is at work on it.

        Raise the error of the work if it fails; a later call may try the plan again.
        """
        with self._noting_failure(instant, timeline):
            plan = self._pending_plan(instant)
            if plan is None:
                return
            with self._leaving_to_others(instant, plan):
                # If no property names the index and the key encoding, the new files have those of the old files.
                table = with_inferred_key_encoding(with_inferred_index(self.table))
                work = claim(table, instant, self.means.patience, application=self.means.application)
                if work is None:
                    return
                units = partial(self._execute, instant, plan)
                results, completed = live(work, work.heartbeat(), units, ANY_PROCESS)
                if completed:
                    self.instant = instant.requested_time
                    self.results += [result for result in results if result.paths]
                    for why in sorted({result.skipped for result in results if not result.paths}):
                        self.skip(why)

    def _execute(
        self, instant: Instant, plan: tuple[Unit, ...], work: Transaction
    ) -> tuple[list[UnitResult[Unit]], Made | None]:
        """Execute the units of a claimed plan; return their results, and what completes its instant.

        Return no results and None if the instant is complete and archived by now.
        """
        worker = self._worker_of(work, plan)
        if not self.start(instant):
            return [], None
        results = execute_units(worker, plan, self.means, self.name, self.finished)
        paths = {path for result in results for path in result.paths}
        outcome = unless_over(instant, partial(self._outcome, worker, plan, results))
        return results, Made(work, paths, sorted({unit.partition_path for unit in plan}), outcome)

    def result(self, seconds: float) -> ServiceResult:
        """Return what all plans of this call did together."""
        return ServiceResult(
            self.table.path,
            self.action,
            self.instant,
            files=sum(len(result.paths) for result in self.results),
            bytes=sum(result.size for result in self.results),
            file_groups=len(self.results),
            bytes_read=sum(result.unit.size for result in self.results),
            seconds=seconds,
            skipped="; ".join(self.skipped),
        )

    def skip(self, why: str, level: int = logging.WARNING) -> None:
        """Log why a plan, or a part of it, was not carried out, and add the reason to the result."""
        logger.log(level, "table %s: %s", self.table.path, why)
        self.skipped.append(why)

    def _plans_to_try(self, timeline: Timeline) -> Iterator[Instant]:
        """Yield the pending plans that this call has not tried yet and that no failures hold back."""
        pending_plans = [instant for instant in timeline.pending if instant.action == self.action]
        if pending_plans and self._failures is None:
            self._failures = failures.read_failures(self.table.storage, writing=True)
            gone_times = self._failures.keys() - {instant.requested_time for instant in timeline.pending}
            failures.forget(self.table.storage, gone_times)
        for instant in pending_plans:
            if instant.requested_time not in self._tried_times:
                self._tried_times.add(instant.requested_time)
                if not self._holds_back(instant, timeline):
                    yield instant

    def _holds_back(self, instant: Instant, timeline: Timeline) -> bool:
        """Return whether repeated failures hold a plan back for some more writes; never in a call that insists."""
        failure = self._failure(instant)
        writes_since = sum(instant.requested_time > failure.after for instant in timeline.writes)
        if self.insists or not failure.times or writes_since >= failure.wait:
            return False
        self.skip(
            f"the {self.name} {instant.requested_time} failed {failure.times} times in a row ({failure.error}); it "
            f"is tried again after {failure.wait - writes_since} more writes, and by HudiTable.{self.call}"
        )
        return True

    def _failure(self, instant: Instant) -> Failed:
        """Return the noted failures of a plan; `NEVER` if there are none."""
        return (self._failures or {}).get(instant.requested_time, NEVER)

    @contextmanager
    def _noting_failure(self, instant: Instant, timeline: Timeline) -> Iterator[None]:
        """Note a plan's failure, unless other processes caused it; delete the note once the plan is carried out.

        The block carries out the plan of ``instant``. The note counts the failures in a row, and names the newest write
        of ``timeline``, so that `_holds_back` can count the writes since. The block's error is raised either way.
        """
        storage, time_of_plan = self.table.storage, instant.requested_time
        try:
            yield
        except (ConcurrentWriteError, CommitConflictError):
            raise
        except Exception as error:
            newest_write = max((write.requested_time for write in timeline.writes), default="")
            text = error.what if isinstance(error, PyHudiError) else type(error).__name__
            try:
                failures.note(storage, time_of_plan, self._failure(instant).again(newest_write, text))
            except Exception:
                shown = f"the {self.name} {time_of_plan}"
                logger.warning("table %s: the failure of %s is not noted", self.table.path, shown, exc_info=True)
            raise
        if self._failure(instant).times and self.instant == time_of_plan:
            # The plan is carried out all the same; a later call deletes a note that stays.
            with suppress(StorageError):
                failures.forget(storage, [time_of_plan])

    def _pending_plan(self, instant: Instant) -> tuple[Unit, ...] | None:
        """Return the units of a pending plan that this call has to carry out; otherwise None.

        The plan may have to wait for a write, be too large for this call, be empty and so taken back, or be
        carried out by another process already.
        """
        timeline = self.table.timeline()
        waited_for = self.waits_for(timeline, instant)
        if waited_for:
            self.skip(f"the {self.name} {instant.requested_time} waits for {waited_for}")
            return None
        try:
            plan = self.read_plan(timeline, instant)
        except PyHudiError:
            # If another process completed the plan or took it back meanwhile, there is nothing to carry out.
            if instant.identity in {other.identity for other in self.table.timeline().pending}:
                raise
            return None
        if not plan and self.drops_empty:
            take_back(self.table, instant)
            self.skip(f"the {self.name} {instant.requested_time} has nothing left to merge, and was taken back")
            return None
        if not self.allows(plan):
            note_nothing_fits(self.table.path, self.action)
            why = (
                f"{self._plan_in_words(instant, plan)}, which is more than hoodie.pyhudi.stream.upkeep.ms allows: it "
                "is pending"
            )
            self.skip(f"{why}, and HudiTable.{self.call} carries it out", logging.INFO)
            return None
        most_bytes = self.means.most_bytes
        if most_bytes is not None and sum(unit.size for unit in plan) > most_bytes:
            self.skip(
                f"{self._plan_in_words(instant, plan)}, and hoodie.pyhudi.commit.merge.max.bytes allows "
                f"{most_bytes:,}: it is planned, and HudiTable.{self.call} carries it out"
            )
            return None
        return plan

    def cost(self, unit: Unit) -> int:
        """Return the work of a unit in bytes read and written: its new files are about as large as its old files."""
        return 2 * unit.size

    def cut(self, units: Sequence[Unit]) -> tuple[Unit, ...]:
        """Return the units that together fit, by an estimate, into the seconds of the means; all units without these.

        If no unit fits, note that, so that the next calls pass without a look.
        """
        seconds = self.means.within_s
        if seconds is None or not units:
            return tuple(units)
        positions = throughput_of(self.table.path, self.action).fits([*map(self.cost, units)], seconds)
        if not positions:
            note_nothing_fits(self.table.path, self.action)
        return tuple(units[position] for position in positions)

    def allows(self, plan: Sequence[Unit]) -> bool:
        """Return whether a plan fits, by an estimate, into the seconds of the means."""
        seconds = self.means.within_s
        return seconds is None or throughput_of(self.table.path, self.action).allows(map(self.cost, plan), seconds)

    @contextmanager
    def _leaving_to_others(self, instant: Instant, plan: tuple[Unit, ...]) -> Iterator[None]:
        """Skip a plan that another process is carrying out, or that is too large while the engine runs no tasks."""
        try:
            yield
        except NoTasksError as error:
            why = (
                f"{self._plan_in_words(instant, plan)}, which is more than hoodie.pyhudi.commit.merge.max.bytes "
                f"allows this process, and {error}"
            )
            self.left_plans[instant.requested_time] = why
            self.skip(f"{why}: it is planned, and python -m pyhudi.connector.jobs {self.call} carries it out")
        except ConcurrentWriteError as error:
            self._last_refusal = error
            whose = f"the {self.name} {instant.requested_time} belongs to another process"
            # Logged as information: with many writers, each finds such plans after its write.
            self.skip(f"{whose}, {since_in_words(self.table, instant)}: {error}", logging.INFO)

    def _plan_in_words(self, instant: Instant, plan: tuple[Unit, ...]) -> str:
        """Return a plan in words, with the bytes that it reads."""
        return f"the {self.name} {instant.requested_time} {self.does.format(sum(unit.size for unit in plan))}"

    def _worker_of(self, work: Transaction, plan: tuple[Unit, ...]) -> Worker[Unit]:
        """Return what executes a plan's units, with the table's columns now.

        `counts` tells of each instant whether its log blocks count, as those of rolled-back instants do not.
        """
        timeline = work.table.timeline()
        schema = columns_of(work.config, timeline)
        counts = work.table.format.slices.counting(timeline)
        return self.worker(FileWork(work, schema, self.means.output, self.means.logs, counts=counts), timeline, plan)

    def _outcome(
        self, worker: Worker[Unit], plan: tuple[Unit, ...], results: Sequence[UnitResult[Unit]], timeline: Timeline
    ) -> Outcome:
        """Return how the instant completes by its units' results, in a round of the decision on a timeline.

        Raise `CommitConflictError` if another process has taken the plan over, or if the plan's files were replaced.
        """
        check_claim(worker.work, timeline)
        self.refuse_stale(worker.work, timeline, plan)
        return worker.outcome(results)
