"""The commit's merge of a plain write: it merges the rows of one file group from several tasks, on this host.

Spark gives a data source no shuffle, so several tasks of a plain write may have rows of one file group. A bound on the
bytes leaves large merges to the executors.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import accumulate
from threading import Condition
from typing import TypeVar

import numpy as np

from ...errors import PlacementError
from ...index.base import LookupFigures
from ...storage import open_storage
from ...storage.base import Storage
from ...table.arrow.batches import concat
from ...table.arrow.spill import local_spills
from ...table.files.names import WriteToken
from ...table.merging.key_set import EMPTY, KeyHashes, KeySet
from ...table.merging.merger import MergeCounts, RowMeeting, folded
from ...table.schema.columns import RECORD_KEY
from ...table.seen_table import SeenTable
from ...writer.buffer import GroupRows
from ...writer.group_writer import FileGroupWrite
from ...writer.routes import Route
from ...writer.written_file import WrittenFile
from ..indexing.known_keys import KeysOfWrite, SliceName
from ..locating.routing import FileGroups, routing_of
from ..locating.tagging import tag_rows
from ..planning.plan import WritePlan
from ..transaction.fence import Fence
from ..words.progress import Progress
from .phases import PhaseProgress, Phases
from .spilled_rows import SpilledRows
from .writers import Writers, file_work, versions_of_commit, writers

_MANY_ROWS = 1 << 20


def add_written_keys(
    keys: KeysOfWrite, plan: WritePlan, job: FileGroupWrite, rows: GroupRows, written: Sequence[WrittenFile]
) -> None:
    """Add the keys of the slice that a write made of a file group to the keys of the write, if all are known.

    A later lookup of this process then need not read the slice.

    Args:
        keys: What this write knows of the table's keys.
        plan: The write.
        job: The file group, with its slice before the write.
        rows: The incoming rows of the file group.
        written: The results of the writer for these rows.
    """
    keys_before = EMPTY if job.file_slice is None else keys.keys_of(job.file_slice)
    if keys_before is None or job.rolls or rows.rows > _MANY_ROWS:
        # A job that rolls makes several file groups, and many keys take long. A later lookup reads the file instead.
        return
    files = [(file.path, file.size) for file in written if file.path]
    file_slice = plan.transaction.table.format.slices.slice_after(job.file_slice, job.group, files)
    if file_slice is None:
        return
    keys_after: KeySet | None = None
    if written[0].is_log:
        # Appended rows of keys that the slice has add no key to it.
        keys_after = keys_before if keys_before.holds(_all_keys(rows)).all() else None
    # The keys of a slice with log files include those that the log files delete, so its merge leaves unknown keys.
    elif not (job.file_slice and job.file_slice.logs):
        keys_after = _merged(plan, keys_before, rows, written[0])
    if keys_after is not None:
        keys.written[SliceName.of(file_slice)] = keys_after


def _merged(plan: WritePlan, keys_before: KeySet, rows: GroupRows, file: WrittenFile) -> KeySet | None:
    """Return the keys of a merged file; None if they are unknown, or the file holds a key several times.

    ``file`` is the base file into which the write of the ``plan`` merged the incoming ``rows`` with the stored rows,
    whose keys are ``keys_before``.
    """
    counts: MergeCounts = file.counts
    if not counts.deletes and not counts.not_found:
        return _if_one_row_each(keys_before.added(_all_keys(rows)), file.rows)
    if plan.lays_rows or plan.rules.meeting is not RowMeeting.MERGE:
        # Only in a merge of whole rows does folding tell which of the rows are deletes.
        return None
    incoming = concat(list(rows.batches(plan.spec.deciding)))
    winners = incoming.take(folded(plan.spec, incoming))
    deleted = plan.spec.deleted(winners)
    hashes = KeyHashes.of(winners.column(RECORD_KEY))
    keys_after = keys_before.added(hashes.take(~deleted))
    # A delete may have lost against the stored row. Then the file has more rows than keys, which `_if_one_row_each`
    # finds out.
    keys_after = keys_after.without(hashes.take(np.flatnonzero(deleted))) if counts.deletes else keys_after
    return _if_one_row_each(keys_after, file.rows)


def _if_one_row_each(keys: KeySet, rows: int) -> KeySet | None:
    """Return keys if the file has exactly one row for each; otherwise a lookup must read the file."""
    return keys if len(keys) == rows else None


def _all_keys(rows: GroupRows) -> KeyHashes:
    """Return the hashes of all record keys of rows."""
    return KeyHashes.joined(KeyHashes.of(batch.column(RECORD_KEY)) for batch in rows.batches([RECORD_KEY]))


logger = logging.getLogger("pyhudi")

T = TypeVar("T")

COMMIT_TOKEN = WriteToken(0, 0, 0)
# A merge warns if its bytes are more than the bound divided by this number.
_WARN_FROM = 8
MOST_WORKERS = 8
"""How many file groups the commit merges at once, at most."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The results for spilled rows.

    Attributes:
        nowhere: Counts of rows that belong to no file group, because the lookup did not find their keys.
        figures: Figures of the lookup; None without a lookup.
        gone: The results for file groups of other partitions, from which the write deleted the keys of its rows.
        replaced: The partitions that the write replaces, as in `Tagged`.
    """

    written: tuple[WrittenFile, ...] = ()
    nowhere: MergeCounts = field(default_factory=MergeCounts)
    figures: LookupFigures | None = None
    gone: tuple[WrittenFile, ...] = ()
    replaced: frozenset[str] = frozenset()


def merge_spills(
    plan: WritePlan, seen: SeenTable, spilled: SpilledRows, phases: Phases, known_keys: KeysOfWrite | None = None
) -> Merged:
    """Merge the rows that the tasks handed over, with a thread for each file group, and return the results.

    A commit may call this several times. ``plan`` may be later than the plan of the tasks. ``seen`` is the table with
    which the rows are merged. ``known_keys`` gets the keys of the written files, for later lookups of this process;
    None if it keeps none.

    Raises:
        PlacementError: The spills and the base files that they touch exceed the bound.
    """
    if known_keys is not None:
        # An earlier attempt may have added keys of files that are gone.
        known_keys.written.clear()
    if not spilled.rows:
        return Merged()
    spilled = spilled.by_plan(plan)
    with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
        work = _CommitMerge(plan, open_storage(folder, durable=False), seen, phases, known_keys)
        routing = routing_of(plan, lambda: seen)
        return work.by_routes(routing, spilled) if isinstance(routing, FileGroups) else work.look_up(spilled)


@dataclass(frozen=True, slots=True)
class _CommitMerge:
    """One merge of spilled rows with the table as ``seen``; spills of its own go to the folder ``local``."""

    plan: WritePlan
    local: Storage
    seen: SeenTable
    phases: Phases
    known_keys: KeysOfWrite | None

    def by_routes(self, groups: FileGroups, spilled: SpilledRows) -> Merged:
        """Merge rows whose routes name their file groups, and return the results."""
        rows = spilled.rows
        jobs, size = _jobs_within_bound(self.plan, spilled, {route: groups.job(route) for route in sorted(rows)})
        rows_by_job = list(zip(jobs, map(rows.__getitem__, sorted(rows)), strict=True))
        return Merged(self._write(rows_by_job, groups.known_partitions, size))

    def look_up(self, spilled: SpilledRows) -> Merged:
        """Look up the keys of rows, merge the rows with the file groups that have them, and return the results."""
        plan, size = self.plan, spilled.size
        _refuse_beyond(plan, size)
        with self.phases.phase("lookup") as facts:
            tagged = tag_rows(plan, self.local, spilled.rows, self.seen, self.known_keys)
            if tagged.figures is not None:
                facts.update({name: count for name, count in asdict(tagged.figures).items() if name != "seconds"})
        # Only rewritten file groups count: rows that are appended to log files are merged by readers.
        size += sum(job.size for job, _ in tagged.jobs if job.rewrites or not plan.appends)
        size += sum(job.size for job, _ in tagged.gone if job.rewrites or not plan.of_deletes().appends)
        _refuse_beyond(plan, size)
        _warn_of_much(plan, size)
        written = self._write((*tagged.jobs, *tagged.gone), tagged.known_partitions, size, gone=len(tagged.gone))
        groups_of_deletes = {job.group for job, _ in tagged.gone}
        return Merged(
            tuple(file for file in written if file.group not in groups_of_deletes),
            tagged.nowhere,
            tagged.figures,
            tuple(file for file in written if file.group in groups_of_deletes),
            tagged.replaced,
        )

    def _write(
        self, jobs: Sequence[tuple[FileGroupWrite, GroupRows]], known_partitions: set[str], size: int, *, gone: int = 0
    ) -> tuple[WrittenFile, ...]:
        """Write file groups, each in a thread, and return the results; ``size`` is the number of bytes to merge.

        Each of the ``jobs`` is a file group with its incoming rows. The partitions ``known_partitions`` have their
        metafile, so that the write need not make it. The write deletes keys from the last ``gone`` file groups.
        """
        plan = self.plan
        observer = PhaseProgress(self.phases, logging.WARNING if _is_much(plan, size) else logging.INFO)
        # The fence numbers tasks from 1, and the commit is 0.
        fence = Fence(plan.transaction, 0, sealed_by_us=True, partitions=known_partitions)
        workers = max(1, min(plan.settings.tasks.threads or os.cpu_count() or 1, len(jobs), MOST_WORKERS))
        with ThreadPoolExecutor(workers) as pool:
            work = file_work(plan)
            slices = work.slices(self.seen.timeline.is_committed, local_spills(self.local))
            files = work.files(COMMIT_TOKEN, fence)
            writers_by_job = [writers(plan, work, files, slices, versions_of_commit(plan))] * (len(jobs) - gone)
            writers_by_job += (
                [writers(plan.of_deletes(), work, files, slices, versions_of_commit(plan))] * gone if gone else []
            )
            fence.announce(
                writers_of_job.first_file(job) for writers_of_job, (job, _) in zip(writers_by_job, jobs, strict=True)
            )
            futures: list[Future[tuple[WrittenFile, ...]]] = []
            calls = _OpenCalls()
            try:
                for number, (job, rows) in enumerate(jobs):
                    write = partial(self._write_group, writers_by_job[number], job, rows, f"{number}")
                    futures.append(pool.submit(calls.run, write))
                _await(futures, observer)
                return tuple(file for future in futures for file in future.result())
            except BaseException:
                # An interrupt may end the pool's wait for its threads, which then must publish nothing.
                fence.close()
                raise
            finally:
                for future in futures:
                    future.cancel()
                calls.end()

    def _write_group(
        self, writers_of_job: Writers, job: FileGroupWrite, rows: GroupRows, sequence: str
    ) -> tuple[WrittenFile, ...]:
        """Write one file group, and add its keys to those that this process knows."""
        written = writers_of_job.write(job, rows, sequence)
        if self.known_keys is not None:
            add_written_keys(self.known_keys, self.plan, job, rows, written)
        return written


class _OpenCalls:
    """The calls that threads of a pool execute.

    If an interrupt strikes while a pool starts a thread, the pool does not wait for it, but the write is undone next.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._count = 0
        self._has_ended = False

    def run(self, call: Callable[[], T]) -> T:
        """Run a call and count it while it runs; raise `CancelledError` after `end`."""
        with self._changed:
            if self._has_ended:
                raise CancelledError
            self._count += 1
        try:
            return call()
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def end(self) -> None:
        """Wait for the calls that have begun, and let no other call begin."""
        with self._changed:
            self._has_ended = True
            self._changed.wait_for(lambda: not self._count)


def _await(futures: Sequence[Future[tuple[WrittenFile, ...]]], observer: PhaseProgress) -> None:
    """Wait until all threads have ended or a thread has failed, and log the progress every few seconds."""
    running = set(futures)
    while running:
        finished, running = wait(running, timeout=observer.every_s, return_when=FIRST_EXCEPTION)
        if any(future.exception() for future in finished):
            # The caller raises the error.
            return
        size = sum(file.size for future in futures if future not in running for file in future.result())
        observer(Progress("merge", len(futures) - len(running), len(futures), size))


def _is_much(plan: WritePlan, size: int) -> bool:
    """Return whether a merge of ``size`` bytes is large enough for a warning."""
    return size > plan.settings.commit.merge_max_bytes // _WARN_FROM


def _jobs_within_bound(
    plan: WritePlan, spilled: SpilledRows, jobs: Mapping[Route, FileGroupWrite]
) -> tuple[list[FileGroupWrite], int]:
    """Return the jobs in the order of ``jobs``, and the bytes to merge; raise `PlacementError` if these are too many.

    In a merge-on-read table the largest new file groups beyond the bound begin with log files, for readers and
    compactions to merge.

    Args:
        plan: The write, whose settings have the bound.
        spilled: The rows that the tasks handed over.
        jobs: The file group for the rows of each route.
    """
    bound = plan.settings.commit.merge_max_bytes
    size = spilled.size
    if plan.appends:
        if _is_much(plan, size):
            logger.warning(
                "table %s: the commit appends %d bytes on the driver's host; HudiTable lets the executors do it, and "
                "so does a greater hoodie.pyhudi.log.files.per.group, at the price of more log files",
                plan.path,
                size,
            )
        bytes_by_route = {
            route: sum(file_slice.length for _, file_slice in spilled.rows[route].pieces) for route in jobs
        }
        new_routes = sorted(
            (route for route, job in jobs.items() if job.file_slice is None), key=bytes_by_route.__getitem__
        )
        running_totals = dict(zip(new_routes, accumulate(map(bytes_by_route.__getitem__, new_routes)), strict=True))
        return [replace(job, logs_only=running_totals.get(route, 0) > bound) for route, job in jobs.items()], size
    size += sum(job.size for job in jobs.values())
    _refuse_beyond(plan, size)
    _warn_of_much(plan, size)
    return list(jobs.values()), size


def _refuse_beyond(plan: WritePlan, size: int) -> None:
    """Raise `PlacementError` if the bytes to merge exceed the bound of the commit."""
    bound = plan.settings.commit.merge_max_bytes
    if size > bound:
        raise PlacementError(
            f"The write to {plan.path} left {size:,} bytes of rows and touched files for the commit to merge; "
            f"hoodie.pyhudi.commit.merge.max.bytes allows {bound:,}.",
            f"{_advice(plan)}, so that Spark's executors merge; or raise the bound.",
        )


def _warn_of_much(plan: WritePlan, size: int) -> None:
    """Warn of a merge of many bytes, which executors would do sooner than the driver."""
    if _is_much(plan, size):
        logger.warning(
            "table %s: the commit merges %d bytes on the driver's host; HudiTable lets the executors do it",
            plan.path,
            size,
        )


def _advice(plan: WritePlan) -> str:
    """Return how a user lets the executors merge."""
    if plan.creates_table:
        return "Make the table with HudiTable.create(spark, path, df, record_key=…) and write through what it returns"
    return "Write through HudiTable(spark, path), or with pyhudi.colocate(df, path) and hoodie.pyhudi.colocated=true"
