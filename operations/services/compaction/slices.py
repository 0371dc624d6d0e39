"""What compactions and log compactions share: their units are file slices."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ....errors import CommitConflictError
from ....storage import open_storage
from ....storage.base import split
from ....table.arrow.spill import local_spills
from ....table.files.file_group import FileSlice
from ....table.files.names import FileGroupId, parse_data_name
from ....table.schema.columns import avro_schema
from ....table.slices.merged_slice import LogCounts, MergedSlice
from ....table.table import Table
from ....timeline import formats
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ....timeline.writers import heartbeat
from ....version import VERSION
from ....writer.data_files import DataFiles
from ...inspect.activity import shown
from ...result import ServiceResult
from ...transaction.concurrency import (
    RESTORE,
    ROLLBACK,
    WRITE,
    Asked,
    InstantKind,
    Known,
    Meeting,
    Shared,
    Verdict,
    asked_of,
    judge,
    known_of,
    those,
)
from ...transaction.fence import Fence
from ...transaction.file_work import FileWork
from ...transaction.outcome import Outcome
from ...transaction.since import Since
from ...transaction.transaction import Transaction
from ..execution import new_token
from ..means import Means
from ..planned import PlannedService, Settings
from .plan import FreeSlices, Plan, replaced_since

if TYPE_CHECKING:
    from ....timeline.metadata.models import WriteStat

logger = logging.getLogger("pyhudi")

# Key of extraMetadata for the release of pyhudi that carried a plan out.
MADE_BY = "pyhudi.version"

Self = TypeVar("Self", bound="SliceWorker")


@dataclass(frozen=True, slots=True)
class SliceResult:
    """What became of one file slice, of whose log files `logs` counts the content.

    Attributes:
        log_data_bytes: Bytes of the log files' blocks of rows.
        path: The new file, which `size`, `rows` and `deletes` describe; "" where `skipped` says why there is none.
    """

    file_slice: FileSlice
    logs: LogCounts
    log_data_bytes: int
    seconds: float
    path: str = ""
    size: int = 0
    rows: int = 0
    deletes: int = 0
    skipped: str = ""

    @property
    def paths(self) -> Sequence[str]:
        return (self.path,) if self.path else ()

    @property
    def bytes_read(self) -> int:
        return self.file_slice.size


@dataclass(frozen=True, slots=True)
class SliceWorker:
    """Merges the log files of slices; an engine sends it with every task. `notes` go into extraMetadata."""

    files: FileWork
    notes: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    operation: ClassVar[str]

    @property
    def work(self) -> Transaction:
        return self.files.transaction

    def within(self: Self, memory: int) -> Self:
        return replace(self, files=replace(self.files, output=replace(self.files.output, memory=memory)))

    def outcome(self, done: Sequence[SliceResult]) -> Outcome:
        from ....timeline.metadata.models import CommitMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

        made = sorted((one for one in done if one.path), key=lambda one: one.file_slice.group)
        stats: dict[str, list[WriteStat]] = {}
        for one in made:
            stats.setdefault(one.file_slice.partition_path, []).append(self.stat(one))
        body = CommitMetadata(
            partition_to_write_stats=stats,
            compacted=True,
            extra_metadata={
                "schema": avro_schema(self.files.schema, self.work.config.name),
                formats.KEY: str(formats.COMMIT_KEYS),
                MADE_BY: VERSION,
                **self.notes,
            },
            operation_type=self.operation,
        )
        return Outcome(body, added=[one.path for one in done if one.path])

    @contextmanager
    def opened(self, file_slice: FileSlice) -> Iterator[tuple[MergedSlice, DataFiles]]:
        """Yield a slice and the place of its new file, with the plan's heartbeat running."""
        work, fence = self.work, Fence(self.work, 0)
        with (
            heartbeat.HeartbeatThread(work.storage, work.instant_time, interval_s=work.patience.heartbeat_interval_s),
            tempfile.TemporaryDirectory(prefix="pyhudi-") as folder,
        ):
            spills = local_spills(open_storage(folder, durable=False))
            # A plan names only complete log files, so all their blocks count.
            reader = self.files.slices(_every, spills)
            yield reader.merged(file_slice), self.files.files(new_token(work), fence)
            fence.finish()

    def result(self, file_slice: FileSlice, merged: MergedSlice, began: float, **made: Any) -> SliceResult:
        data_bytes = sum(one.content_size for one in merged.blocks if one.is_data)
        return SliceResult(file_slice, merged.counts, data_bytes, time.monotonic() - began, **made)

    def stat(self, one: SliceResult) -> WriteStat:
        raise NotImplementedError

    def _stat(self, one: SliceResult, **own: Any) -> WriteStat:
        from ....timeline.metadata.models import RuntimeStats, WriteStat  # noqa: PLC0415

        millis = int(one.seconds * 1000)
        return WriteStat(
            file_id=one.file_slice.file_id,
            path=one.path,
            prev_commit=one.file_slice.base_time,
            num_writes=one.rows,
            total_write_bytes=one.size,
            partition_path=one.file_slice.partition_path,
            total_log_records=one.logs.records,
            total_log_blocks=one.logs.blocks,
            total_corrupt_log_block=one.logs.corrupt,
            file_size_in_bytes=one.size,
            runtime_stats=RuntimeStats(total_scan_time=0, total_create_time=0, total_upsert_time=millis),
            total_log_files_compacted=len(one.file_slice.logs),
            total_log_size_compacted=one.log_data_bytes,
            **own,
        )


class SliceService(PlannedService[Settings, FileSlice, SliceResult]):
    def __init__(self, table: Table, settings: Settings, means: Means, *, insists: bool = True) -> None:
        super().__init__(table, settings, means, insists=insists)
        self.slices = FreeSlices(table.storage, self.kind)

    def missed(self, now: Timeline, made: Instant) -> bool:
        return self.slices.missed(now, made)

    def finished(self, units: Sequence[FileSlice], paths: Sequence[str]) -> Sequence[FileSlice]:
        names = ((split(path)[0], parse_data_name(split(path)[1])) for path in paths)
        groups = {FileGroupId(partition, name.file_id) for partition, name in names if name is not None}
        return [one for one in units if one.group in groups]

    def refuse_stale(self, work: Transaction, timeline: Timeline, plan: Plan) -> None:
        """Raise `CommitConflictError` where other instants undid or replaced what this plan merged."""
        since = Since.find(work, timeline)
        merged = {log.instant_time for one in plan for log in one.logs} | {one.base_time for one in plan}
        gone = {
            one.instant_time
            for one in since.undone()
            if self.forbids(ROLLBACK, {Shared.BASIS: one.instant_time in merged}, one.known)
        }
        replaced = replaced_since(timeline, (one.group for one in plan))
        beside = bool(replaced or since.writes) and self.forbids(WRITE, {Shared.REPLACED: replaced})
        lost = [*sorted(gone), *(f"{one.file_id} of {one.partition_path!r}" for one in replaced if beside)]
        restored = since.restore is not None and self.forbids(RESTORE, {}, known_of(since.restore))
        if lost or restored or beside:
            what = f"{lost[0]}, which it merged," if lost else "what it merged"
            raise CommitConflictError(
                f"The {self.name} {work.instant_time} of the table {work.path} is not completed: {what} was undone or "
                "replaced meanwhile.",
                "Compact again.",
            )

    def forbids(self, theirs: InstantKind, shared: Mapping[Shared, object], known: Known = Known.COMPLETED) -> bool:
        """Return whether an instant that came since the plan forbids completing the merge."""
        return judge(Meeting(self.kind, theirs, known, those(shared), Asked.SINCE_PLAN)) is not Verdict.GO_ON

    def waits_for(self, timeline: Timeline, instant: Instant) -> str:
        """Return the write at work that the plan waits for: its log files will come before the plan's new file."""
        waiting = older_writes(self.kind, timeline, instant.requested_time)
        one = waiting[0] if waiting else None
        return "" if one is None else f"{shown(self.table, one)}, which was there before it"

    def foretold(self, made: tuple[Instant, Plan] | None, seconds: float) -> ServiceResult:
        unplanned = ServiceResult(
            self.table.path, f"schedule_{self.name.replace(' ', '_')}", seconds=seconds, skipped=self.waiting
        )
        if made is None:
            return unplanned
        instant, plan = made
        where, time_of_plan = self.table.path, instant.requested_time
        logger.info("table %s: planned the %s %s of %d file groups", where, instant.action, time_of_plan, len(plan))
        return replace(
            unplanned,
            instant=time_of_plan,
            file_groups=len(plan),
            log_files=sum(len(one.logs) for one in plan),
            bytes_read=sum(one.size for one in plan),
        )

    def result(self, seconds: float) -> ServiceResult:
        logs = sum(len(one.file_slice.logs) for one in self.done)
        found = replace(super().result(seconds), log_files=logs)
        if self.done:
            logger.info(
                "table %s: %s of %d log files of %d file groups: %d bytes made of %d",
                self.table.path,
                self.name,
                found.log_files,
                found.file_groups,
                found.bytes,
                found.bytes_read,
            )
        return found


def older_writes(mine: InstantKind, timeline: Timeline, time_of_plan: str) -> list[Instant]:
    """Return the writes at work that were requested before a plan, which has to wait for them."""
    return [
        one
        for one in timeline.pending
        if _may_append(one) and judge(Meeting(mine, WRITE, asked=asked_of(time_of_plan, one))) is not Verdict.GO_ON
    ]


def _may_append(instant: Instant) -> bool:
    return instant.is_write and instant.action == instant.group and instant.state != State.COMPLETED


def _every(_: str) -> bool:
    return True
