"""Pending compactions carried out one after another, by one call; what cannot be is left, and what failed is noted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ....errors import (
    CommitConflictError,
    ConcurrentWriteError,
    PyHudiError,
    UnsupportedTableError,
    WriteSealedError,
)
from ....table.files.file_group import BaseFile, DataFile, data_file
from ....table.latest_schema import latest_schema
from ....table.table import Table
from ....table.told_index import with_told_index
from ....table.told_spelling import with_told_spelling
from ....timeline.held import LOG_COMPACTION
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ....timeline.writers import failures, heartbeat, owner
from ....timeline.writers.failures import NEVER, Failed
from ...result import ServiceResult
from ...transaction.left_overs import forget
from ...transaction.transaction import Transaction
from ..execution import check_claim, claim, give_up, take_back
from ..service import NoTasksError, carry_out
from .executing import token_of
from .kinds import Claimed, Done, Kind
from .means import Means, here
from .plan import Plan

logger = logging.getLogger("pyhudi")


@dataclass(slots=True)
class Run:
    """One call of `compact` or `log_compact`.

    Attributes:
        kind: Which of the two.
        table: The table.
        means: How plans are carried out.
        insists: Whether plans are tried that have failed before, however little has come since.
        instant: Of the last one that was carried out.
        done: What was done.
        skipped: What was not, and why.
        refused: Why the last one was left that somebody else carries out.
    """

    kind: Kind
    table: Table
    means: Means
    insists: bool
    instant: str = ""
    done: list[Done] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    refused: ConcurrentWriteError | None = None
    _met: set[str] = field(default_factory=set, init=False)
    _failed: Mapping[str, Failed] | None = field(default=None, init=False)

    def attempt_all(self, timeline: Timeline) -> None:
        """Carry out the plans that are pending and that this call has not met yet.

        Raises:
            PyHudiError: One of them failed, which is noted.
        """
        waiting = [one for one in timeline.pending if one.action == self.kind.action]
        if waiting and self._failed is None:
            self._failed = failures.read_failures(self.table.storage, writing=True)
            gone = self._failed.keys() - {one.requested_time for one in timeline.pending}
            failures.forget(self.table.storage, gone)
        for instant in waiting:
            if instant.requested_time not in self._met:
                self._met.add(instant.requested_time)
                if not self._holds_back(instant, timeline):
                    self.attempt(instant, timeline)

    def _holds_back(self, instant: Instant, timeline: Timeline) -> bool:
        """Return whether a plan that has failed again and again is left for some more writes."""
        failed = (self._failed or {}).get(instant.requested_time, NEVER)
        since = sum(one.requested_time > failed.after for one in timeline.writes)
        if self.insists or not failed.times or since >= failed.wait:
            return False
        self.skip(
            f"the {self.kind.name} {instant.requested_time} failed {failed.times} times in a row ({failed.error}); it "
            f"is tried again after {failed.wait - since} more writes, and by HudiTable.{self.kind.call}"
        )
        return True

    def attempt(self, instant: Instant, timeline: Timeline) -> None:
        """Carry out a pending plan, and note it where that fails for other reasons than somebody else's doing.

        Raises:
            PyHudiError: The plan failed.
        """
        time, known = instant.requested_time, self._failed or {}
        try:
            self._carry_out_or_leave(instant)
        except (ConcurrentWriteError, CommitConflictError):
            raise
        except Exception as error:
            newest = max((one.requested_time for one in timeline.writes), default="")
            text = error.what if isinstance(error, PyHudiError) else type(error).__name__
            try:
                failures.note(self.table.storage, time, known.get(time, NEVER).again(newest, text))
            except Exception:
                logger.warning(
                    "table %s: it is not noted that the %s %s failed",
                    self.table.path,
                    self.kind.name,
                    time,
                    exc_info=True,
                )
            raise
        if time in known and self.instant == time:
            failures.forget(self.table.storage, [time])

    def _carry_out_or_leave(self, instant: Instant) -> None:
        """Carry a pending plan out, unless that is beyond the bound, or somebody else is at it."""
        plan, kind = self._planned(instant), self.kind
        if plan is None:
            return
        if not plan and kind.action == LOG_COMPACTION:
            take_back(self.table, instant)
            self.skip(f"the {kind.name} {instant.requested_time} has nothing left to merge, and was taken back")
            return
        told = f"the {kind.name} {instant.requested_time} merges"
        size, most = sum(one.size for one in plan), self.means.most_bytes
        if most is not None and size > most:
            self.skip(
                f"{told} {size:,} bytes of {kind.merges}, and hoodie.pyhudi.commit.merge.max.bytes allows {most:,}: it "
                f"is planned, and HudiTable.{kind.call} carries it out"
            )
            return
        try:
            done = self._carry_out(instant, plan)
        except NoTasksError as error:
            self.skip(
                f"{told} {size:,} bytes of {kind.merges}, which is more than hoodie.pyhudi.commit.merge.max.bytes "
                f"allows this process, and {error}: it is planned, and python -m pyhudi.connector.jobs {kind.call} "
                "carries it out"
            )
            return
        except ConcurrentWriteError as error:
            self.refused = error
            self.skip(f"the {kind.name} {instant.requested_time} is somebody else's: {error}")
            return
        if done is not None:
            self.instant = instant.requested_time
            self.done += [one for one in done if one.path]
            for why in sorted({one.skipped for one in done if not one.path}):
                self.skip(why)

    def _planned(self, instant: Instant) -> Plan | None:
        """Return a pending plan; None where it has to wait, or somebody else has done it, or taken it back."""
        timeline = self.table.timeline()
        older = self.kind.waits_for(timeline, instant)
        if older:
            self.skip(f"the {self.kind.name} {instant.requested_time} waits for {older}")
            return None
        try:
            return self.kind.read_plan(self.table.storage, timeline, instant)
        except PyHudiError:
            if instant.identity in {one.identity for one in self.table.timeline().pending}:
                raise
            return None

    def result(self, seconds: float) -> ServiceResult:
        """Return what was done."""
        done = self.done
        found = ServiceResult(
            self.table.path,
            self.kind.action,
            self.instant,
            files=len(done),
            bytes=sum(one.size for one in done),
            file_groups=len(done),
            log_files=sum(len(one.piece.logs) for one in done),
            bytes_read=sum(one.piece.size for one in done),
            seconds=seconds,
            skipped="; ".join(self.skipped),
        )
        if done:
            logger.info(
                "table %s: %s of %d log files of %d file groups: %d bytes made of %d",
                self.table.path,
                self.kind.name,
                found.log_files,
                found.file_groups,
                found.bytes,
                found.bytes_read,
            )
        return found

    def skip(self, why: str) -> None:
        """Note and log what this call does not do, and why."""
        logger.warning("table %s: %s", self.table.path, why)
        self.skipped.append(why)

    def _carry_out(self, instant: Instant, plan: Plan) -> list[Done] | None:
        """Return what was done of a plan; None where somebody else has done it, or taken it back."""
        storage, means = self.table.storage, self.means
        told = with_told_index(self.table)
        table = with_told_spelling(told)
        work = claim(table, instant, means.patience, application=means.application)
        if work is None:
            return None
        finished: list[Done] = []
        with (
            _given_up(work),
            heartbeat.HeartbeatThread(storage, work.instant_time, interval_s=means.patience.heartbeat_interval_s),
        ):
            timeline = table.timeline()
            schema = latest_schema(table.config, timeline, writing=True)
            if schema is None:
                raise UnsupportedTableError(
                    f"Nothing tells the columns of the table {storage.path}.", "Compact it with Apache Hudi."
                )
            claimed = Claimed(work, timeline, plan, schema, told_index=told is not self.table)
            service = self.kind.service(claimed, means)

            def executed(call: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
                with _naming_who_took_over(work):
                    finished.extend(self._execute(service, plan, call, units))
                self._close(work, plan, finished)
                return list(finished)

            completed = carry_out(service, table, instant, plan, executed, lambda now: self._check(work, plan, now))
        try:
            # Also of one that somebody else has completed: what came since is nobody's.
            forget(storage, work.instant_time)
        except Exception:
            logger.warning(
                "table %s: left-overs of %s stay until the next write", storage.path, work.instant_time, exc_info=True
            )
        return finished if completed else None

    def _execute(self, service: Any, plan: Plan, call: Callable[[Any], Any], units: Sequence[Any]) -> Sequence[Any]:
        """Return what was done of each unit, by this process where an engine has no tasks for it.

        Raises:
            NoTasksError: It has none, and there is too much to be merged for this process.
        """
        if self.means.executor is None:
            return here(call, units)
        try:
            return self.means.executor(call, units)
        except NoTasksError as error:
            own = self.means.without_tasks
            if own is None or (own.most_bytes is not None and sum(one.size for one in plan) > own.most_bytes):
                raise
            logger.warning(
                "table %s: this process merges the %d file groups of the %s %s itself, because %s",
                self.table.path,
                len(units),
                self.kind.name,
                service.work.instant_time,
                error,
            )
            return here(replace(service, output=own.output).execute, units)

    def _close(self, work: Transaction, plan: Plan, done: Sequence[Done]) -> None:
        """Let nothing more be published, and delete what nobody reported: files of attempts that ran twice.

        Files under the plan's time may be somebody else's who has taken it over: those stay.
        """
        storage = self.table.storage
        owner.seal(storage, work.seals[-1])
        kept, prefix = {one.path for one in done}, "-".join(map(str, (*token_of(work), "")))
        partitions = sorted({one.partition_path for one in plan})
        for partition in partitions:
            found = (data_file(info.path) for info in storage.list(partition))
            made = [one for one in found if one is not None and one.instant_time == work.instant_time]
            ours = [one.path for one in made if _token(one).startswith(prefix)]
            storage.delete(*(path for path in ours if path not in kept))
        # Nothing may say that the work is done before the disk keeps what it names.
        storage.flush(partitions)

    def _check(self, work: Transaction, plan: Plan, timeline: Timeline) -> None:
        """Refuse to complete where what was merged is not part of the table any more.

        Raises:
            CommitConflictError: It is not, or the plan is somebody else's by now.
        """
        check_claim(work, timeline)
        self.kind.refuse_stale(work, timeline, plan)


def _token(file: DataFile) -> str:
    """Return what the name of a file says of who wrote it."""
    return file.write_token if isinstance(file, BaseFile) else str(file.name.write_token or "")


@contextmanager
def _naming_who_took_over(work: Transaction) -> Iterator[None]:
    """Raise for the whole plan where a task finds that this process may publish no more files of it.

    Raises:
        ConcurrentWriteError: Another process has taken the plan over, completed it or taken it back.
    """
    try:
        yield
    except WriteSealedError as error:
        known = owner.read(work.storage, work.instant_time)
        done = work.table.timeline().find(work.instant_time)
        if known is not None and known.write_id != work.write_id:
            by = f"{known.application!r}, " if known.application else ""
            who = f"taken over by another process ({by}process {known.pid} on {known.host})"
        elif done is not None and done.state == State.COMPLETED:
            who = "completed by another process"
        else:
            who = "taken back by another process"
        raise ConcurrentWriteError(
            f"The {work.action} {work.instant_time} of the table {work.path} was {who} while this process carried it "
            "out. Nothing of this process's work is part of the table.",
            "Run it again: it carries out what is pending then, and plans anew.",
        ) from error


@contextmanager
def _given_up(work: Transaction) -> Iterator[None]:
    """Undo what this process has done where it fails, so that the next one need not wait until it counts as dead."""
    try:
        yield
    except BaseException:
        try:
            give_up(work)
        except Exception:
            logger.warning(
                "table %s: what is left of the %s %s stays until somebody carries it out",
                work.path,
                work.action,
                work.instant_time,
                exc_info=True,
            )
        raise
