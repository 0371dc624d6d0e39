"""One task of a write: rows in, finished base files or one spill out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import pyarrow as pa

from ...errors import WriteSealedError
from ...index.registry import index_for
from ...storage import open_storage
from ...storage.base import Storage
from ...table.arrow.spill import SpillFile, SpillPiece, SpillReader, SpillWriter, local_spills
from ...table.files.names import WriteToken
from ...table.keys.generator import KeyGenerator
from ...table.schema.columns import avro_schema
from ...timeline.writers import heartbeat
from ...writer.base_output import FileFormat
from ...writer.buffer import MERGE_RESERVE, GroupRows, RowBuffers
from ...writer.foreign import ForeignRows
from ...writer.group_writer import GroupOutcome, GroupWriter
from ...writer.routes import AppendRouter, KeyRouter, LocationRouter, Route, Router
from ...writer.rows import RowReader
from ..planning.operation import DELETE, DELETE_PARTITION
from ..planning.plan import WritePlan
from ..transaction.begin import begin
from ..transaction.fence import Fence
from ..transaction.since import snapshot
from .file_groups import JobPlanner
from .phases import Phases, Progress


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one task hands to the commit: O(files), no rows.

    Attributes:
        token: The task attempt.
        outcomes: The file groups that the task finished itself.
        spill: Where the task's rows wait for the commit to merge them; None in a colocated write.
        partitions: The partitions that rows belong to, where the write deletes partitions by rows.
        rows: How many rows the task saw.
        seconds: Seconds by phase.
    """

    token: WriteToken
    outcomes: tuple[GroupOutcome, ...] = ()
    spill: SpillFile | None = None
    partitions: tuple[str, ...] = ()
    rows: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


def run_task(plan: WritePlan, batches: Iterator[pa.RecordBatch], token: WriteToken) -> TaskResult:
    """Take one task's share of a write.

    Args:
        plan: What `plan_write` returned.
        batches: The task's rows, columns of the request's schema.
        token: Spark partition, stage and task attempt id.

    Raises:
        PyHudiError: A row or the table does not allow it; the write fails as a whole.
    """
    batches = (batch for batch in batches if batch.num_rows)
    first = next(batches, None) if plan.takes_rows else None
    if first is None or plan.replays is not None:
        return TaskResult(token)
    storage = plan.transaction.storage()
    interval = plan.transaction.patience.heartbeat_interval_s
    try:
        with heartbeat.HeartbeatThread(storage, plan.instant_time, interval_s=interval):
            return _Task(plan, storage, token).run(chain([first], batches))
    except WriteSealedError:
        # Whoever sealed the write has tidied up already, this heartbeat excepted.
        heartbeat.delete(storage, plan.instant_time)
        raise


class _Task:
    def __init__(self, plan: WritePlan, storage: Storage, token: WriteToken) -> None:
        self._plan = plan
        self._storage = storage
        self._token = token
        self._phases = Phases(plan.path, plan.instant_time, str(token))

    def run(self, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        # The first task of a write undoes those that died, and may meet others who decide.
        with self._phases.phase("begin"):
            begin(self._plan.transaction, self._storage, self._plan.requested)
        if self._plan.operation == DELETE_PARTITION:
            return self._name_partitions(batches)
        generates_keys = self._plan.config.generates_keys
        # No other task writes to file groups that are opened for generated keys.
        alone = self._plan.operation != DELETE if generates_keys else self._plan.settings.colocated
        if not alone:
            return self._hand_over(batches)
        with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
            return self._finish(batches, open_storage(folder, durable=False))

    def _name_partitions(self, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        keys = KeyGenerator(self._plan.config, self._plan.schema)
        found: set[str] = set()
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            found.update(keys.partition_paths(batch).dictionary.to_pylist())  # O(partitions)
        return TaskResult(self._token, partitions=tuple(sorted(found)), rows=rows)

    def _hand_over(self, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        work = self._plan.transaction
        name = f"{work.spills}/{self._token}.spill"
        buffers = self._gather(batches, lambda: SpillWriter(self._storage, name, work.aside))
        with self._phases.phase("spill") as facts:
            try:
                spill = buffers.spill_all()
            except BaseException:
                buffers.discard()
                raise
            facts["bytes"] = 0 if spill is None else spill.size
        return TaskResult(self._token, spill=spill, rows=buffers.rows, seconds=self._phases.seconds)

    def _finish(self, batches: Iterator[pa.RecordBatch], local: Storage) -> TaskResult:
        buffers = self._gather(batches, lambda: SpillWriter(local, "rows.spill", ""))
        with self._phases.phase("merge") as facts:
            outcomes = self._merge(buffers, local)
            facts |= {"files": sum(one.path is not None for one in outcomes), "bytes": sum(o.size for o in outcomes)}
        return TaskResult(self._token, tuple(outcomes), rows=buffers.rows, seconds=self._phases.seconds)

    def _merge(self, buffers: RowBuffers, local: Storage) -> list[GroupOutcome]:
        spill = buffers.finish_spill()
        reader = None if spill is None else SpillReader(local, spill.path)
        spilled: dict[Route, list[tuple[SpillReader, SpillPiece]]] = {}
        if reader is not None:
            for piece in reader.pieces:
                spilled.setdefault(Route(*piece.key), []).append((reader, piece))
        routes = sorted({*buffers.routes(), *spilled})
        jobs = [self._planner.job(route) for route in routes]
        fence = Fence(
            self._plan.transaction, self._storage, self._token.attempt + 1, partitions=self._planner.known_partitions
        )
        writer = group_writer(
            self._plan,
            self._storage,
            self._token,
            fence,
            local_spills(local),
            memory=int(self._plan.settings.task_max_size * MERGE_RESERVE),
        )
        fence.announce((writer.path_of(job), job.marker) for job in jobs)
        progress = Progress(self._phases, "merge", len(jobs))
        outcomes: list[GroupOutcome] = []
        for number, (route, job) in enumerate(zip(routes, jobs, strict=True)):
            progress.tell(number)
            rows = GroupRows(tuple(spilled.get(route, ())), tuple(buffers.take(route)))
            outcomes.append(writer.write(job, rows, f"{self._token.partition}_{number}"))
        return outcomes

    def _gather(self, batches: Iterator[pa.RecordBatch], open_spill: Callable[[], SpillWriter]) -> RowBuffers:
        settings = self._plan.settings
        buffers = RowBuffers(settings.batch_size, settings.task_max_size, open_spill)
        reader = RowReader(self._plan.spec, self._router())
        with self._phases.phase("gather") as facts:
            try:
                for route, rows in reader.routed(batches):
                    buffers.add(route, rows)
            except BaseException:
                buffers.discard()
                raise
            facts["rows"] = buffers.rows
        return buffers

    def _router(self) -> Router:
        plan = self._plan
        keys = KeyGenerator(plan.config, plan.schema)
        if not plan.config.generates_keys:
            return KeyRouter(keys, index_for(plan.config))
        if plan.operation != DELETE:
            return AppendRouter(keys, plan.instant_time, self._token.partition)
        return LocationRouter(self._planner.file_ids, plan.path)

    @cached_property
    def _planner(self) -> JobPlanner:
        return JobPlanner(self._plan, self._storage, snapshot(self._plan.transaction, self._storage))


def group_writer(
    plan: WritePlan,
    storage: Storage,
    token: WriteToken,
    fence: Fence,
    open_spill: Callable[[], tuple[SpillWriter, Storage]],
    *,
    memory: int,
) -> GroupWriter:
    """Return the writer of file groups that a task or the commit uses for one write."""
    keys = None if plan.config.generates_keys else KeyGenerator(plan.config, plan.schema)
    return GroupWriter(
        storage=storage,
        instant_time=plan.instant_time,
        token=token,
        spec=plan.spec,
        file_format=_file_format(plan),
        foreign=ForeignRows(index_for(plan.config), keys),
        rules=plan.rules,
        memory=memory,
        aside=plan.transaction.aside,
        publisher=fence,
        open_spill=open_spill,
    )


def _file_format(plan: WritePlan) -> FileFormat:
    return FileFormat(
        schema=plan.schema,
        avro_schema=avro_schema(plan.schema, plan.config.name, meta=True),
        compression=plan.settings.compression,
        row_group_bytes=plan.settings.row_group_bytes,
        sort_columns=plan.sort_columns,
    )
