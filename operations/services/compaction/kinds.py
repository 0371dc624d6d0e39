"""What compactions and log compactions have of their own; they are planned and carried out in the same steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from ....errors import CommitConflictError
from ....index.bloom import filters_for
from ....storage.base import Storage
from ....storage.parallel import for_each
from ....table.files.file_group import FileSlice
from ....table.files.logs.block_format import safe_format
from ....timeline.held import COMPACTION, LOG_COMPACTION
from ....timeline.instants import Instant
from ....timeline.timeline import Timeline
from ...transaction.since import Since
from ...transaction.transaction import Transaction
from ...write_ids import WRITE_ID
from ..service import Planned
from ..settings import CompactionSettings, LogCompactionSettings
from .compactor import Compactor
from .log_compactor import LogCompactor
from .log_plan import LogPlanner, LogRequested, older_writes, read_log_plan
from .means import Means
from .plan import Plan, Planner, Plans, Requested, read_plan, replaced_since


class Done(Protocol):
    """What became of one file slice."""

    @property
    def piece(self) -> FileSlice:
        """The slice."""

    @property
    def path(self) -> str:
        """The new file; empty where there is none."""

    @property
    def size(self) -> int:
        """The new file's bytes."""

    @property
    def skipped(self) -> str:
        """Why there is none; empty where there is."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A plan that this process carries out.

    Attributes:
        work: The plan's instant.
        timeline: As it was when it was claimed.
        plan: What is merged.
        schema: The table's data columns.
        told_index: Whether the table's files alone say which index it has.
    """

    work: Transaction
    timeline: Timeline
    plan: Plan
    schema: pa.Schema
    told_index: bool


class Kind(Protocol):
    """One of the two."""

    @property
    def action(self) -> str:
        """The action of its instants."""

    @property
    def name(self) -> str:
        """What sentences call it."""

    @property
    def merges(self) -> str:
        """What it reads, for sentences."""

    @property
    def call(self) -> str:
        """The method of `HudiTable` that carries it out, and the job."""

    @property
    def noun(self) -> str:
        """What the names of methods and jobs call it."""

    @property
    def requested(self) -> Planned[Plan]:
        """What a plan is on the timeline."""

    def planner(self, storage: Storage) -> Plans:
        """Return what makes plans."""

    def read_plan(self, storage: Storage, timeline: Timeline, instant: Instant) -> Plan:
        """Return the file slices that a pending instant merges, whoever requested it."""

    def waits_for(self, timeline: Timeline, instant: Instant) -> str:
        """Return what a plan has to wait for, in words; empty where it can be carried out."""

    def service(self, claimed: Claimed, means: Means) -> Any:
        """Return the `TableService` that carries a plan out."""

    def refuse_stale(self, work: Transaction, timeline: Timeline, plan: Plan) -> None:
        """Raise where what was merged is not what a timeline shows any more.

        Raises:
            CommitConflictError: It is not.
        """


@dataclass(frozen=True, slots=True)
class Compaction:
    """Log files merged into base files.

    Attributes:
        settings: Which of them.
    """

    settings: CompactionSettings
    action = COMPACTION
    name = noun = "compaction"
    merges = "base and log files"
    call = "compact"
    requested = Requested()

    def planner(self, storage: Storage) -> Planner:
        """Return what plans compactions."""
        return Planner(storage, self.settings)

    def read_plan(self, storage: Storage, timeline: Timeline, instant: Instant) -> Plan:
        """Return the file slices that a pending compaction merges."""
        return read_plan(storage, timeline, instant)

    def waits_for(self, timeline: Timeline, instant: Instant) -> str:
        """Return nothing: log files that complete later belong to the slice that it begins."""
        return ""

    def service(self, claimed: Claimed, means: Means) -> Compactor:
        """Return what merges slices."""
        # Where nobody knows the index, Apache Hudi's files have filters (see planning/plan.py).
        output = means.output
        if output.bloom_filter is None and claimed.told_index:
            output = replace(output, bloom_filter=True)
        return Compactor(
            work=claimed.work,
            schema=claimed.schema,
            output=output,
            ours=_ours(claimed.timeline, claimed.plan),
            bloom=filters_for(claimed.work.config, output),
        )

    def refuse_stale(self, work: Transaction, timeline: Timeline, plan: Plan) -> None:
        """Raise where what was merged was undone or replaced meanwhile."""
        _refuse_undone(self, work, timeline, plan)


@dataclass(frozen=True, slots=True)
class LogCompaction:
    """Log files joined into fewer.

    Attributes:
        settings: Which of them.
    """

    settings: LogCompactionSettings
    action = LOG_COMPACTION
    name = "log compaction"
    noun = "log_compaction"
    merges = "log files"
    call = "log_compact"
    requested = LogRequested()

    def planner(self, storage: Storage) -> LogPlanner:
        """Return what plans log compactions."""
        return LogPlanner(storage, self.settings)

    def read_plan(self, storage: Storage, timeline: Timeline, instant: Instant) -> Plan:
        """Return the log files that a pending log compaction joins, by slices without their base files."""
        return read_log_plan(storage, timeline, instant)

    def waits_for(self, timeline: Timeline, instant: Instant) -> str:
        """Return which write has to be over: its log files are going to come before the joined one."""
        waiting = older_writes(timeline, instant.requested_time)
        return f"the {waiting[0].action} {waiting[0].requested_time}, which was at work before it" if waiting else ""

    def service(self, claimed: Claimed, means: Means) -> LogCompactor:
        """Return what joins log files."""
        return LogCompactor(
            work=claimed.work,
            schema=claimed.schema,
            output=means.output,
            data_format=safe_format(means.logs.data_format, claimed.work.config, claimed.schema),
            block_bytes=means.logs.block_bytes,
        )

    def refuse_stale(self, work: Transaction, timeline: Timeline, plan: Plan) -> None:
        """Raise where what was joined is not all that comes before the new log files."""
        _refuse_undone(self, work, timeline, plan)
        if self.waits_for(timeline, work.inflight) or read_log_plan(work.storage, timeline, work.inflight) != plan:
            raise CommitConflictError(
                f"The log compaction {work.instant_time} of the table {work.path} is not completed: a write or a "
                "compaction that was asked for earlier than it, or holds the same file groups, came in between.",
                "Run it again once that is complete.",
            )


def kind_of(settings: CompactionSettings | LogCompactionSettings) -> Kind:
    """Return which of the two has such settings."""
    return Compaction(settings) if isinstance(settings, CompactionSettings) else LogCompaction(settings)


def _refuse_undone(kind: Kind, work: Transaction, timeline: Timeline, plan: Plan) -> None:
    since = Since.find(work, timeline)
    merged = {log.instant_time for one in plan for log in one.logs} | {one.base_time for one in plan}
    gone = sorted(merged & {one.instant_time for one in since.undone()})
    replaced = replaced_since(timeline, (one.group for one in plan))
    gone += [f"{one.file_id} of {one.partition_path!r}" for one in replaced]
    if gone or since.restore is not None:
        what = f"{gone[0]}, which it merged," if gone else "what it merged"
        raise CommitConflictError(
            f"The {kind.name} {work.instant_time} of the table {work.path} is not completed: {what} was undone or "
            "replaced meanwhile.",
            "Compact again.",
        )


def _ours(timeline: Timeline, plan: Sequence[FileSlice]) -> frozenset[str]:
    """Return which of the delta commits that a plan merges are pyhudi's; of archived ones nobody asks."""
    times = {log.instant_time for one in plan for log in one.logs}
    writes = [one for one in timeline.writes if one.requested_time in times]
    said = for_each(timeline.files.storage, timeline.files.read_summary, writes)
    return frozenset(
        one.requested_time for one, body in zip(writes, said, strict=True) if WRITE_ID in body.extra_metadata
    )
