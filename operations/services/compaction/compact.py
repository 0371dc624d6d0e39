"""Compactions planned and carried out, whoever planned them; before anything is planned, what is pending is done.

A plan is one of the table's decisions, and so is its end. In between it is carried out by one process at a time, under
the plan's own time (`transaction/execution.py`), and writes go on meanwhile: their log files belong to the slices that
the compaction begins.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ....errors import CommitConflictError, ConcurrentWriteError, PyHudiError, UnsupportedTableError
from ....index.bloom import filters_for
from ....storage.base import Storage
from ....storage.parallel import for_each
from ....table.config import TableConfig
from ....table.config.property_keys import MERGE_ON_READ
from ....table.files.file_group import base_file
from ....table.latest_schema import latest_schema
from ....table.told_index import with_told_index
from ....timeline.held import COMPACTION
from ....timeline.instants import Instant
from ....timeline.timeline import Timeline, load_timeline
from ....timeline.writers import heartbeat, owner
from ....timeline.writers.patience import Patience
from ...decisions import retired_metadata
from ...result import ServiceResult
from ...rollback.pending import broken_off
from ...rollback.rollback import forget
from ...transaction.execution import check_claim, claim, give_up, take_back
from ...transaction.since import Since
from ...transaction.transaction import Transaction
from ...write_ids import WRITE_ID
from ..service import carry_out, request
from ..settings import CompactionSettings
from ..standing import finish_rollbacks_first, open_for_service, refuse_restoring
from .compactor import Compacted, Compactor, token_of
from .means import Means, here
from .plan import Plan, Planner, Requested, read_plan, replaced_since

logger = logging.getLogger("pyhudi")

_ROUNDS = 20
SCHEDULE = "schedule_compaction"


def schedule_compaction(
    storage: Storage,
    settings: CompactionSettings,
    patience: Patience,
    *,
    metadata_enable: bool | None = None,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Plan a compaction, for whoever carries it out.

    Args:
        storage: Rooted at the table.
        settings: What is merged.
        patience: When the writers of other pending writes count as dead.
        metadata_enable: False where a costly metadata table may be dropped.
        due: Tells of a timeline whether a compaction is due; None where it is asked for.

    Returns:
        The requested instant and what it is going to merge; no instant where there is nothing to be merged.

    Raises:
        ConcurrentWriteError: A restore is pending, or others decided first all the time.
        MissingFileError: A file that a completed write names is gone.
        UnsupportedTableError: The table has no log files, or is of a kind that pyhudi does not do.
        StorageError: The store failed.
    """
    began = time.monotonic()
    config = open_merge_on_read(storage, metadata_enable)
    made = _schedule(storage, config, settings, patience, due)
    if made is None:
        return ServiceResult(storage.path, SCHEDULE, seconds=time.monotonic() - began)
    instant, plan = made
    logger.info(
        "table %s: planned the compaction %s of %d file groups", storage.path, instant.requested_time, len(plan)
    )
    return _foretold(storage, SCHEDULE, instant, plan, time.monotonic() - began)


def compact(
    storage: Storage,
    settings: CompactionSettings,
    means: Means,
    *,
    metadata_enable: bool | None = None,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Carry out the compactions that are pending, then plan one and carry it out.

    Args:
        storage: Rooted at the table.
        settings: What is merged.
        means: How.
        metadata_enable: False where a costly metadata table may be dropped.
        due: Tells of a timeline whether a compaction is due; None where it is asked for.

    Returns:
        What was merged, and what was left to others; no instant where there was nothing to be merged.

    Raises:
        ConcurrentWriteError: It was asked for, and somebody else is at all that is pending; a restore is pending; or
            others decided first all the time.
        CorruptInstantError: A pending one has a plan that nobody can carry out.
        MissingFileError: A file is gone; what is pending stays so.
        UnsupportedTableError: The table has no log files, or is of a kind that pyhudi does not do.
        StorageError: The store failed; whoever comes next goes on with it.
    """
    began = time.monotonic()
    config = open_merge_on_read(storage, metadata_enable)
    run = _Run(storage, config, settings, means)
    timeline = finish_rollbacks_first(storage, config, load_timeline(storage, config), means.patience)
    refuse_restoring(storage, timeline)
    run.attempt_all(timeline)
    _schedule(storage, config, settings, means.patience, due)
    # Among them may be one that somebody decided who died before it was on the timeline.
    run.attempt_all(load_timeline(storage, config))
    if config.metadata_partitions and run.done:
        retired_metadata.remove(storage)
    if run.refused is not None and not run.done and due is None:
        raise run.refused
    return run.result(time.monotonic() - began)


def open_merge_on_read(storage: Storage, metadata_enable: bool | None) -> TableConfig:
    """Return the properties of a table whose log files can be merged.

    Raises:
        UnsupportedTableError: It has none.
    """
    config = open_for_service(storage, metadata_enable)
    if config.table_type != MERGE_ON_READ:
        raise UnsupportedTableError(
            f"The table {storage.path} is copy-on-write: it has no log files that could be compacted.",
            "Nothing is to be done: its base files are whole after each write.",
        )
    return config


def _schedule(
    storage: Storage,
    config: TableConfig,
    settings: CompactionSettings,
    patience: Patience,
    due: Callable[[Timeline], bool] | None,
) -> tuple[Instant, Plan] | None:
    """Put a plan on the timeline, where there is something to be merged and that is due."""
    for _ in range(_ROUNDS):
        planner = Planner(storage, settings)
        waits: list[Timeline] = []

        def plan(timeline: Timeline, planner: Planner = planner, waits: list[Timeline] = waits) -> Plan | None:
            refuse_restoring(storage, timeline)
            waits.clear()
            if broken_off(timeline):
                # What is on its way out must not be merged.
                waits.append(timeline)
                return None
            return planner.plan(timeline) if due is None or due(timeline) else None

        made = request(Requested(), storage, config, plan)
        if waits:
            finish_rollbacks_first(storage, config, waits[0], patience)
        elif made is None or not planner.missed(load_timeline(storage, config), made[0]):
            return made
        else:
            # Somebody who knows no decisions completed a write in between.
            take_back(storage, config, made[0])
    raise ConcurrentWriteError(
        f"Others came in between {_ROUNDS} times while a compaction of the table {storage.path} was planned.",
        "Compact again.",
    )


@dataclass(slots=True)
class _Run:
    """One call of `compact`."""

    storage: Storage
    config: TableConfig
    settings: CompactionSettings
    means: Means
    instant: str = ""
    done: list[Compacted] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    met: set[str] = field(default_factory=set)
    refused: ConcurrentWriteError | None = None

    def attempt_all(self, timeline: Timeline) -> None:
        """Carry out the compactions that are pending and that this call has not met yet."""
        for instant in timeline.pending:
            if instant.action == COMPACTION and instant.requested_time not in self.met:
                self.met.add(instant.requested_time)
                self._attempt(instant)

    def _attempt(self, instant: Instant) -> None:
        """Carry a pending compaction out, unless that is beyond the bound, or somebody else is at it."""
        plan = self._planned(instant)
        if plan is None:
            return
        size, most = sum(one.size for one in plan), self.means.most_bytes
        if most is not None and size > most:
            self._leave(
                f"the compaction {instant.requested_time} merges {size:,} bytes of base and log files, and "
                f"hoodie.pyhudi.commit.merge.max.bytes allows {most:,}: it is planned, and HudiTable.compact carries "
                "it out"
            )
            return
        try:
            done = self._carry_out(instant, plan)
        except ConcurrentWriteError as error:
            if isinstance(error, CommitConflictError):
                raise
            self.refused = error
            self._leave(f"the compaction {instant.requested_time} is somebody else's: {error}")
            return
        if done is not None:
            self.instant = instant.requested_time
            self.done += done

    def _planned(self, instant: Instant) -> Plan | None:
        """Return a pending plan; None where somebody else has done it, or taken it back, so that its files may go."""
        try:
            return read_plan(self.storage, load_timeline(self.storage, self.config), instant)
        except PyHudiError:
            if instant.identity in {one.identity for one in load_timeline(self.storage, self.config).pending}:
                raise
            return None

    def result(self, seconds: float) -> ServiceResult:
        """Return what was done."""
        done = self.done
        found = ServiceResult(
            self.storage.path,
            COMPACTION,
            self.instant,
            files=len(done),
            bytes=sum(one.size for one in done),
            file_groups=len(done),
            log_files=sum(len(one.piece.logs) for one in done),
            bytes_read=sum(one.piece.size for one in done),
            seconds=seconds,
            left="; ".join(self.left),
        )
        if done:
            logger.info(
                "table %s: compacted %d log files of %d file groups (%d bytes) into %d bytes of base files",
                self.storage.path,
                found.log_files,
                found.file_groups,
                found.bytes_read,
                found.bytes,
            )
        return found

    def _leave(self, why: str) -> None:
        logger.warning("table %s: %s", self.storage.path, why)
        self.left.append(why)

    def _carry_out(self, instant: Instant, plan: Plan) -> list[Compacted] | None:
        """Return what was done of a plan; None where somebody else has done it, or taken it back."""
        storage, config, means = self.storage, with_told_index(self.config, self.storage), self.means
        work = claim(storage, config, instant, means.patience, application=means.application)
        if work is None:
            return None
        finished: list[Compacted] = []
        with (
            _given_up(work, storage),
            heartbeat.HeartbeatThread(storage, work.instant_time, interval_s=means.patience.heartbeat_interval_s),
        ):
            timeline = load_timeline(storage, config)
            schema = latest_schema(storage, config, timeline, writing=True)
            if schema is None:
                raise UnsupportedTableError(
                    f"Nothing tells the columns of the table {storage.path}.", "Compact it with Apache Hudi."
                )
            # Where nobody knows the index, Apache Hudi's files have filters (see planning/plan.py).
            asked = True if means.bloom_filter is None and config is not self.config else means.bloom_filter
            service = Compactor(
                work=work,
                reach=means.reach or (lambda: storage),
                schema=schema,
                compression=means.compression,
                row_group_bytes=means.row_group_bytes,
                memory=means.memory,
                ours=_ours(timeline, plan),
                bloom=filters_for(config, means.bloom, asked),
            )

            def executed(call: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
                finished.extend((means.executor or here)(call, units))
                self._close(work, plan, finished)
                return list(finished)

            completed = carry_out(
                service, storage, config, instant, plan, executed, lambda now: self._check(work, plan, now)
            )
        try:
            # Also of one that somebody else has completed: what came since is nobody's.
            forget(storage, work.instant_time)
        except Exception:
            logger.warning(
                "table %s: left-overs of %s stay until the next write", storage.path, work.instant_time, exc_info=True
            )
        return finished if completed else None

    def _close(self, work: Transaction, plan: Plan, done: Sequence[Compacted]) -> None:
        """Let nothing more be published, and delete what nobody reported: files of attempts that ran twice.

        Files under the compaction's time may be somebody else's who has taken it over: those stay.
        """
        storage = self.storage
        owner.seal(storage, work.seals[-1])
        kept, prefix = {one.path for one in done}, "-".join(map(str, (*token_of(work), "")))
        partitions = sorted({one.partition_path for one in plan})
        for partition in partitions:
            found = (base_file(info.path) for info in storage.list(partition))
            made = [one for one in found if one is not None and one.instant_time == work.instant_time]
            ours = [one.path for one in made if one.write_token.startswith(prefix)]
            storage.delete(*(path for path in ours if path not in kept))
        # Nothing may say that the compaction is done before the disk keeps what it names.
        storage.flush(partitions)

    def _check(self, work: Transaction, plan: Plan, timeline: Timeline) -> None:
        """Refuse to complete where what was merged is not part of the table any more.

        Raises:
            CommitConflictError: It is not, or the compaction is somebody else's by now.
        """
        check_claim(work, self.storage, timeline)
        since = Since.find(work, self.storage, timeline)
        merged = {log.instant_time for one in plan for log in one.logs} | {one.base_time for one in plan}
        gone = sorted(merged & {one.instant_time for one in since.undone()})
        gone += [f"{one.file_id} of {one.partition_path!r}" for one in self._replaced(plan, timeline)]
        if gone or since.restore is not None:
            what = f"{gone[0]}, which it merged," if gone else "what it merged"
            raise CommitConflictError(
                f"The compaction {work.instant_time} of the table {self.storage.path} is not completed: {what} was "
                "undone or replaced meanwhile.",
                "Compact again.",
            )

    def _replaced(self, plan: Plan, timeline: Timeline) -> list[Any]:
        return replaced_since(self.storage, timeline, (one.group for one in plan))


def _ours(timeline: Timeline, plan: Plan) -> frozenset[str]:
    """Return which of the delta commits that a plan merges are pyhudi's; of archived ones nobody asks."""
    times = {log.instant_time for one in plan for log in one.logs}
    writes = [one for one in timeline.writes if one.requested_time in times]
    said = for_each(timeline.files.storage, timeline.files.read_summary, writes)
    return frozenset(
        one.requested_time for one, body in zip(writes, said, strict=True) if WRITE_ID in body.extra_metadata
    )


def _foretold(storage: Storage, service: str, instant: Instant, plan: Plan, seconds: float) -> ServiceResult:
    """Return what a plan is going to merge."""
    return ServiceResult(
        storage.path,
        service,
        instant.requested_time,
        file_groups=len(plan),
        log_files=sum(len(one.logs) for one in plan),
        bytes_read=sum(one.size for one in plan),
        seconds=seconds,
    )


@contextmanager
def _given_up(work: Transaction, storage: Storage) -> Iterator[None]:
    """Undo what this process has done where it fails, so that the next one need not wait until it counts as dead."""
    try:
        yield
    except BaseException:
        try:
            give_up(work, storage)
        except Exception:
            logger.warning(
                "table %s: what is left of the %s %s stays until somebody carries it out",
                storage.path,
                work.action,
                work.instant_time,
                exc_info=True,
            )
        raise
