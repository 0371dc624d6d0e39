"""One task of a write: it takes rows, and makes base files, log files and a spill."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count

import pyarrow as pa

from ...storage import open_storage
from ...storage.base import Storage
from ...storage.threads import THREADS, for_each, in_order
from ...table.arrow.batches import CHUNK_BYTES
from ...table.arrow.spill import SpillFile, SpillWriter, local_spills
from ...table.files.names import WriteToken
from ...table.keys.generator import KeyGenerator
from ...timeline.timeline import Timeline
from ...writer.buffer import MERGE_RESERVE, Flush, Gathered, GroupRows, RowBuffers
from ...writer.log_handle import LogHandle
from ...writer.routes import Route
from ...writer.rows import IncomingRowReader
from ...writer.written_file import WrittenFile
from ..locating.routing import FileGroups, Routing, routing_of
from ..locating.shared_keys import SharedKeys
from ..meeting.since import seen_by
from ..meeting.taken import given_up_as_conflicts, taken_as_conflicts
from ..planning.operation import DELETE_PARTITION
from ..planning.plan import WritePlan
from ..planning.request import WriteSettings
from ..transaction.fence import Fence
from ..words.progress import Progress
from .instant import begun
from .phases import PhaseProgress, Phases
from .writers import appending_tasks, file_work, versions_of_task, writers


class OwnGroups:
    """The file groups that a task writes itself, instead of handing their rows over to the commit."""

    def __init__(
        self,
        plan: WritePlan,
        token: WriteToken,
        groups: FileGroups,
        local: Storage,
    ) -> None:
        # The fence numbers tasks from 1, and the commit is 0.
        self._fence = Fence(plan.transaction, token.attempt + 1, partitions=groups.known_partitions)
        work = file_work(plan)
        slices = work.slices(groups.seen.timeline.is_committed, local_spills(local))
        self._writers = writers(plan, work, work.files(token, self._fence), slices, versions_of_task(plan, token))
        self._groups = groups
        self._partition = token.partition
        self._numbers = count()
        self._handles: dict[Route, LogHandle] = {}
        self.flushes = 0

    def routes(self) -> list[Route]:
        """Return the routes that have rows in log files already."""
        return list(self._handles)

    def appends(self, route: Route) -> bool:
        """Return whether the rows of a route go to log files, which any task may append to its file group."""
        return self._writers.appends(self._groups.job(route))

    def flush(self, route: Route, batches: Sequence[pa.RecordBatch]) -> bool:
        """Append rows that exceed the memory; return False, without effect, if they cannot be appended yet.

        Then the buffers spill them.
        """
        if not self.appends(route):
            return False
        handle = self._handles.get(route)
        if handle is None:
            handle = self._handles[route] = self._writers.open(self._groups.job(route), self._sequence())
        handle.append(GroupRows(memory=tuple(batches)), held=True)
        self.flushes += 1
        return True

    def announce(self, routes: Iterable[Route]) -> None:
        """Write the markers of the files of routes, in one request, before the files exist."""
        self._fence.announce(self._writers.first_file(self._groups.job(route)) for route in routes)

    def write(self, route: Route, rows: GroupRows) -> tuple[WrittenFile, ...]:
        """Write the rest of a route's rows, and publish its files."""
        handle = self._handles.get(route)
        if handle is None:
            return self._writers.write(self._groups.job(route), rows, self._sequence())
        if rows.rows:
            handle.append(rows, held=True)
        return handle.close()

    def finish(self) -> None:
        """If another process has given the write up, delete the files again and raise `WriteSealedError`."""
        self._fence.finish()

    def discard(self) -> None:
        """Discard log files that are not published."""
        for handle in self._handles.values():
            handle.discard()

    def _sequence(self) -> str:
        """Return the part of the rows' sequence numbers that tells file groups of the write from each other."""
        return f"{self._partition}_{next(self._numbers)}"


# The chunks of all threads, each with its rows before and after they are keyed and cut, take this share of the memory.
_SHARES_OF_CHUNKS = 24


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of one task for the commit; its size is O(files), and it has no rows.

    Attributes:
        instant_time: Requested time of the write; empty if the task got no rows.
        written: File groups, or log files of file groups, that the task wrote itself.
        spill: The other rows, which the commit merges; None without any.
        partitions: The partitions of the rows, if the write deletes the partitions of its rows.
        seconds: By phase.
        missing: How many values were missing among floats that became whole numbers, by column.
    """

    token: WriteToken
    instant_time: str = ""
    written: tuple[WrittenFile, ...] = ()
    spill: SpillFile | None = None
    partitions: tuple[str, ...] = ()
    rows: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)


def run_task(plan: WritePlan, batches: Iterator[pa.RecordBatch], token: WriteToken) -> TaskResult:
    """Run one task of a write, on batches with the columns of the request's schema, and return its result.

    It takes no rows if the plan is a replay, because the table has them.
    """
    batches = (batch for batch in batches if batch.num_rows)
    first_batch = next(batches, None) if plan.takes_rows else None
    if first_batch is None or plan.replays is not None:
        return TaskResult(token)
    start_s = time.monotonic()
    with given_up_as_conflicts(plan.transaction), begun(plan) as work, taken_as_conflicts(work.plan.transaction):
        task = _Task(work.plan, token)
        # The first task of a write rolls dead writes back, and may wait for the decisions of other writers.
        task.phases.add("begin", time.monotonic() - start_s)
        result = task.run(chain([first_batch], batches), work.timeline)
        return replace(result, instant_time=work.plan.instant_time, missing=dict(task.missing))


class _Task:
    """The work of one task, once its write is on the timeline."""

    def __init__(self, plan: WritePlan, token: WriteToken) -> None:
        self._plan = plan
        self._storage = plan.storage
        self._token = token
        self.phases = Phases(plan.path, plan.instant_time, str(token))
        self.missing: Mapping[str, int] = {}

    def run(self, batches: Iterator[pa.RecordBatch], timeline: Timeline) -> TaskResult:
        """Write the file groups of the rows, or hand rows over to the commit; return the result.

        The commit gets them if other tasks may share their file groups, or a lookup has to find these.
        """
        plan = self._plan
        if plan.operation == DELETE_PARTITION:
            return self._result_with_partitions(batches)
        self._seen = partial(seen_by, plan.transaction, timeline)
        routing = routing_of(plan, self._seen)
        # Spark gives a data source no shuffle, so several tasks may have rows of one file group.
        if (
            plan.settings.tasks.hand_over
            or not isinstance(routing, FileGroups)
            or not (routing.alone or self._shares_groups())
        ):
            return self._hand_over(batches, routing)
        with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
            return self._write_own_groups(batches, routing, open_storage(folder, durable=False))

    def _shares_groups(self) -> bool:
        """Return whether the task appends to file groups for which other tasks may have rows, too."""
        plan = self._plan
        # A partial merge takes all rows of a key at once, so that the result does not depend on their tasks.
        needs_all_rows = plan.lays_rows or plan.counts_copies
        return plan.appends and not needs_all_rows and self._token.partition < appending_tasks(plan)

    def _result_with_partitions(self, batches: Iterator[pa.RecordBatch]) -> TaskResult:
        """Return a result that has only the partitions of the rows, for a write that deletes these partitions."""
        keys = KeyGenerator(self._plan.config, self._plan.schema)
        paths: set[str] = set()
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            paths.update(keys.partition_paths(batch).dictionary.to_pylist())  # O(partitions)
        return TaskResult(self._token, partitions=tuple(sorted(paths)), rows=rows)

    def _hand_over(self, batches: Iterator[pa.RecordBatch], routing: Routing) -> TaskResult:
        """Spill all rows for the commit, and return the result with the spill."""
        buffers = self._gather(batches, routing, self._open_hand_over)
        with self.phases.phase("spill") as facts:
            try:
                spill = buffers.spill_all()
            except BaseException:
                buffers.discard()
                raise
            facts["bytes"] = 0 if spill is None else spill.size
        return TaskResult(self._token, spill=spill, rows=buffers.rows, seconds=self.phases.seconds)

    def _write_own_groups(self, batches: Iterator[pa.RecordBatch], groups: FileGroups, local: Storage) -> TaskResult:
        """Write the file groups of this task, hand over the rows of the others, and return the result.

        If other tasks may have rows for the same new file groups, the commit writes those. ``batches`` are the incoming
        rows of the task, ``groups`` finds their file groups, and spills go to the temporary folder ``local``.
        """
        own_groups, has_all_rows = OwnGroups(self._plan, self._token, groups, local), groups.alone
        # `_pyhudi_position` breaks ties between shuffled rows, but log files do not keep it, so fold before flushing.
        plan = self._plan
        flushes_early = plan.appends and not (plan.positioned or plan.lays_rows or plan.counts_copies)
        flush = own_groups.flush if flushes_early else None
        try:
            buffers = self._gather(batches, groups, lambda: SpillWriter(local, "rows.spill", ""), flush)
            gathered = Gathered(buffers, local)
            routes = sorted({*gathered.routes(), *own_groups.routes()})
            with self.phases.phase("merge") as facts:
                written = self._write(
                    own_groups, [route for route in routes if has_all_rows or own_groups.appends(route)], gathered.take
                )
                own_groups.finish()
                files = sum(bool(file.path) for file in written)
                facts |= {"files": files, "bytes": sum(file.size for file in written), "flushes": own_groups.flushes}
        except BaseException:
            own_groups.discard()
            raise
        other_rows = (
            {} if has_all_rows else {route: gathered.take(route) for route in routes if not own_groups.appends(route)}
        )
        spill = self._hand_over_rest(other_rows)
        return TaskResult(self._token, written=written, spill=spill, rows=buffers.rows, seconds=self.phases.seconds)

    def _write(
        self, own_groups: OwnGroups, routes: Sequence[Route], rows_of_route: Callable[[Route], GroupRows]
    ) -> tuple[WrittenFile, ...]:
        """Write the file groups of routes, and return their results; `rows_of_route` returns the rows of each.

        Small appends run in parallel, because each needs several requests.
        """
        own_groups.announce(routes)
        observer, size = PhaseProgress(self.phases), 0
        written: list[WrittenFile] = []
        small_bytes = int(self._plan.settings.output.memory * MERGE_RESERVE) // THREADS
        small_appends: list[tuple[Route, GroupRows]] = []

        # The loop below writes these jobs; small appends are put aside meanwhile, and come after it.
        def jobs() -> Iterator[tuple[Route, GroupRows]]:
            """Yield the routes that are no small appends, with their rows."""
            for route in routes:
                group_rows = rows_of_route(route)
                if own_groups.appends(route) and group_rows.nbytes <= small_bytes:
                    small_appends.append((route, group_rows))
                else:
                    yield route, group_rows

        threads = self._plan.settings.tasks.threads or 1
        for number, files in enumerate(in_order(lambda job: own_groups.write(*job), jobs(), threads)):
            written += files
            size += sum(file.size for file in files)
            observer(Progress("merge", number + 1, len(routes), size))
        return (
            *written,
            *chain.from_iterable(for_each(self._storage, lambda job: own_groups.write(*job), small_appends)),
        )

    def _hand_over_rest(self, other_rows: Mapping[Route, GroupRows]) -> SpillFile | None:
        """Spill the rows of some routes for the commit, and return the spill; None if no route is given."""
        if not other_rows:
            return None
        with self.phases.phase("spill") as facts:
            spill = self._open_hand_over()
            try:
                for route, rows in other_rows.items():
                    for batches in rows.flushes():
                        spill.append({route: batches})
                published = spill.publish()
            except BaseException:
                spill.discard()
                raise
            facts["bytes"] = published.size
        return published

    def _open_hand_over(self) -> SpillWriter:
        """Open the spill that the commit reads."""
        work = self._plan.transaction
        return SpillWriter(self._storage, f"{work.spills}/{self._token}.spill", work.aside)

    def _gather(
        self,
        batches: Iterator[pa.RecordBatch],
        routing: Routing,
        open_spill: Callable[[], SpillWriter],
        flush: Flush | None = None,
    ) -> RowBuffers:
        """Return all rows in buffers by route, with their keys; the buffers spill if they fill the memory.

        A route is what names a row's destination before a lookup: its partition, and a number in it. ``routing``
        computes it for each of the incoming ``batches``. `flush` appends the rows of a route to log files, if it can;
        `open_spill` opens the file for all other rows.
        """
        settings = self._plan.settings
        buffers = RowBuffers(settings.tasks.batch_size, settings.output.memory, open_spill, flush)
        # As `pyhudi.colocate` numbers rows: the partition in the upper bits, the position in it in the lower 33 bits.
        partition = self._token.partition
        # No row may take the key of a row with other values in its key columns.
        check = SharedKeys.of(self._plan, self._seen)
        reader = IncomingRowReader(self._plan.spec, routing.router(partition), partition << 33, check)
        with self.phases.phase("gather") as facts:
            try:
                for route, rows in reader.routed(batches, settings.tasks.threads or 1, _bytes_at_once(settings)):
                    buffers.add(route, rows)
            except BaseException:
                buffers.discard()
                raise
            facts["rows"] = buffers.rows
        self.missing = reader.missing
        return buffers


def _bytes_at_once(settings: WriteSettings) -> int:
    """Return how many bytes each thread of a task takes at once; the thread holds them several times."""
    if settings.tasks.threads is None:
        return CHUNK_BYTES
    return min(CHUNK_BYTES, settings.output.memory // (_SHARES_OF_CHUNKS * (settings.tasks.threads + 1)))
