"""One write of rows in this process: planned, carried out by its threads, and run again if another came first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ..methods.writes import timed
from ..operations.result import CommitResult, PastAttempts, with_services
from ..operations.write_settings import RowOrigin
from ..options.model import HudiOptions
from ..options.sources import ResolvedOptions
from ..storage.base import Storage
from ..storage.threads import SharedItems
from ..table.files.output import MIB
from ..timeline.timeline import Timeline
from .hudi_types import HudiTypes
from .rows import GivenRows, RowsComingOnce, SourceFailedError, first_bytes, from_source

if TYPE_CHECKING:
    from ..operations.planning.plan import WritePlan

# Up to so many bytes one task hands its rows to the commit, which merges them again if another write came first.
_FEW_BYTES = 16 * MIB
# So many bytes pay for a task of their own if each task opens files.
_BYTES_OF_A_TASK = 64 * MIB
# The commit merges any number of rows in bounded memory.
_NO_BOUND = 1 << 62


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Rows in the types of a table.

    Attributes:
        open_rows: Opens the rows; each call returns all of them.
        nbytes: Their bytes; None if that is not known before they came.
    """

    schema: pa.Schema
    open_rows: Callable[[], Iterator[pa.RecordBatch]]
    nbytes: int | None

    @classmethod
    def of(cls, rows: GivenRows, types: HudiTypes, open_files: ExitStack) -> TypedRows:
        """Return a user's rows; rows that come once stay until ``open_files`` is closed."""

        def typed() -> Iterator[pa.RecordBatch]:
            """Yield the rows in the types of the table."""
            first_row = 0
            for batch in from_source(rows.open):
                yield from types.batches(batch, first_row)
                first_row += batch.num_rows

        if not rows.once:
            return cls(types.schema, typed, rows.nbytes)
        coming = open_files.enter_context(RowsComingOnce(typed()))
        return cls(types.schema, coming.open, None)


@dataclass(frozen=True, slots=True)
class RowWrite:
    """One write.

    Attributes:
        threads: How many threads it takes at most.
        creates: Whether the write may make its table.
        overwrite: Whether it replaces the table, as Spark's mode overwrite does.
        origin: What the caller found out about the rows.
    """

    path: str
    storage: Storage
    resolved: ResolvedOptions
    threads: int
    creates: bool = False
    overwrite: bool = False
    origin: RowOrigin = field(default_factory=RowOrigin)

    def run(self, rows: TypedRows) -> CommitResult:
        """Write rows, again and again until the write completes or its time is over."""
        from ..operations.write.turns import Turn  # noqa: PLC0415 (see methods/__init__.py)

        # Small writes of several threads at once would take longer than one after another, and meet each other.
        few = rows.nbytes is not None and rows.nbytes <= _FEW_BYTES
        with Turn(self.storage.path) if few else nullcontext():
            return run_again(self.storage, self.resolved, lambda write_id, past: self.attempt(rows, write_id, past))

    def attempt(self, rows: TypedRows, write_id: str, past: PastAttempts) -> CommitResult:
        """Write rows once, and run the services that are due.

        All attempts of a write have one ``write_id``, and ``past`` says what became of the earlier attempts.
        """
        from ..operations.planning.plan import plan_seen  # noqa: PLC0415 (see methods/__init__.py)
        from ..operations.planning.target import find_target  # noqa: PLC0415

        options = self.resolved.options
        request = options.to_write_request(self.path, rows.schema, overwrite=self.overwrite)
        # Raises if there is no table and the write may not make one, or if the options do not fit the table.
        find_target(request, self.storage, creates=self.creates)
        settings = replace(
            request.write,
            commit=replace(request.write.commit, merge_max_bytes=_NO_BOUND),
            upkeep=request.write.upkeep.called_for(),
            origin=replace(self.origin, based_on=request.write.origin.based_on),
            past=past,
        )
        plan, seen = plan_seen(replace(request, write=settings, write_id=write_id))
        result = self._carry_out(plan, rows)
        # No service follows if nothing was written, or if an earlier call completed the write.
        if not result.instant or plan.replays is not None:
            return result
        return with_services_after(result, plan.storage, seen.timeline, options)

    def _carry_out(self, plan: WritePlan, rows: TypedRows) -> CommitResult:
        """Write and commit rows as planned.

        A replay writes nothing. Rows that no other row meets are written by many tasks, all others by one.
        """
        from ..operations.write.run import LocalRun  # noqa: PLC0415 (see methods/__init__.py)

        if plan.replays is not None or not plan.takes_rows:
            return LocalRun(plan).write([])
        batches, are_few = first_bytes(rows.open_rows(), _FEW_BYTES)
        if plan.opens_alone:
            return self._by_tasks(plan, batches, are_few)
        # One task has all rows of each file group. It merges them itself, unless they are few: the commit merges few
        # rows, again if another write came first. Its threads keep their order, by which the later of two rows wins.
        has_whole_groups = not are_few and not plan.looks_up and not plan.names_places
        output = plan.settings.output
        threads = output.threads(self.threads)
        tasks = replace(plan.settings.tasks, threads=threads)
        settings = replace(plan.settings, tasks=tasks, colocated=has_whole_groups, output=output.shared_by(threads))
        return LocalRun(replace(plan, settings=settings)).write([batches])

    def _by_tasks(self, plan: WritePlan, batches: Iterator[pa.RecordBatch], are_few: bool) -> CommitResult:
        """Write rows that no other row meets: each task opens files of its own.

        ``are_few`` says that a single task is enough; otherwise the size of the rows decides.
        """
        from ..operations.write.run import LocalRun  # noqa: PLC0415 (see methods/__init__.py)

        batches, are_few = (batches, True) if are_few else first_bytes(batches, _BYTES_OF_A_TASK)
        tasks = 1 if are_few else plan.settings.output.threads(self.threads)
        output = plan.settings.output.shared_by(tasks)
        settings = replace(plan.settings, output=replace(output, memory=output.memory // tasks))
        shared = SharedItems(batches)
        return LocalRun(replace(plan, settings=settings)).write([shared] * tasks, threads=tasks)


def run_again(
    storage: Storage,
    resolved: ResolvedOptions,
    attempt: Callable[[str, PastAttempts], CommitResult],
    *,
    reads_first: bool = False,
) -> CommitResult:
    """Attempt a write until it completes, or the time of its options is over; log its result.

    An attempt that ``reads_first`` makes its rows of the table's, see `Retries.run`. Raises the own error of a source
    of rows that fails.
    """
    from ..operations.write.retries import Retries  # noqa: PLC0415 (see methods/__init__.py)

    options, start = resolved.options, time.monotonic()
    retries = Retries.of(storage, options.write_settings(), write_id=options.write_id, application=options.application)
    try:
        return timed(retries.run(attempt, reads_first=reads_first), start, resolved.notices)
    except SourceFailedError as failure:
        raise failure.error from failure.error.__cause__


def with_services_after(
    commit_result: CommitResult, storage: Storage, timeline: Timeline, options: HudiOptions
) -> CommitResult:
    """Run the services that are due after a write, as many as fit into their seconds, and return all results."""
    from ..operations.upkeep.after_write import means_of, run_within  # noqa: PLC0415 (see methods/__init__.py)

    means = means_of(options.write_settings(), application=options.application)
    return with_services(
        commit_result, run_within(storage, timeline, options.upkeep_after_write(), means, options.upkeep_seconds)
    )
