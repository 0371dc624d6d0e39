"""One write in this process, without an engine: plan, tasks, and commit or abort."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from threading import Event

import pyarrow as pa

from ...errors import WriteSealedError
from ...table.files.names import WriteToken
from ...timeline.writers import heartbeat
from ..planning.plan import WritePlan, plan_write
from ..planning.request import WriteRequest
from ..result import CommitResult
from ..transaction.life import given_up_on_error
from .commit import commit_write
from .instant import abort_write
from .task import TaskResult, run_task


def write(request: WriteRequest, parts: Iterable[Iterable[pa.RecordBatch]] = (), *, threads: int = 1) -> CommitResult:
    """Carry out one write in this process.

    Each part becomes the rows of one task, like a Spark partition, in this order. A task takes its part when it begins,
    and each batch when it has buffered the previous batch. Each of ``threads`` tasks may hold `Output.memory` bytes. If
    it raises PyHudiError, the table is unchanged.
    """
    return LocalRun(plan_write(request)).write(parts, threads=threads)


class LocalRun:
    """A planned write whose tasks run in this process."""

    def __init__(self, plan: WritePlan) -> None:
        self.plan = plan

    def task(self, batches: Iterable[pa.RecordBatch], number: int) -> TaskResult:
        """Run the task of the part with this number."""
        return run_task(self.plan, iter(batches), WriteToken(number, 0, number))

    def write(self, parts: Iterable[Iterable[pa.RecordBatch]], *, threads: int = 1) -> CommitResult:
        """Run the tasks of all parts, and commit."""
        task_results = self._one_by_one(parts) if threads < 2 else self._at_once(parts, threads)
        return self.finish(lambda: self._results_of(task_results))

    def finish(self, results: Callable[[], Sequence[TaskResult]]) -> CommitResult:
        """Commit the results of tasks; abort the write if the tasks or the commit fail."""
        with given_up_on_error(self.plan.transaction, lambda _: abort_write(self.plan)):
            return commit_write(self.plan, results())

    def _results_of(self, task_results: Generator[TaskResult, None, None]) -> list[TaskResult]:
        """Return the results of all tasks, in the order of the parts."""
        results: list[TaskResult] = []
        instant_time = ""
        try:
            with ExitStack() as stack:
                for result in stack.enter_context(closing(task_results)):
                    if result.rows and not instant_time:
                        instant_time = result.instant_time
                        # Tasks touch the heartbeat while they have rows, but the next part may take long to come.
                        stack.enter_context(self.plan.transaction.at(instant_time).heartbeat())
                    results.append(result)
        except WriteSealedError:
            if instant_time:
                # The process that sealed the write has removed all its files but this heartbeat.
                heartbeat.Heartbeat(self.plan.storage, instant_time).delete()
            raise
        return sorted(results, key=lambda result: result.token)

    def _one_by_one(self, parts: Iterable[Iterable[pa.RecordBatch]]) -> Generator[TaskResult, None, None]:
        """Yield the results of the tasks, one after another."""
        for number, batches in enumerate(parts):
            yield self.task(batches, number)

    def _at_once(self, parts: Iterable[Iterable[pa.RecordBatch]], threads: int) -> Generator[TaskResult, None, None]:
        """Yield the results of tasks as they end; after a failure the other tasks end with their next batch.

        Each of the ``parts`` has the batches of one task, and at most ``threads`` tasks run at once.
        """
        has_failed = Event()
        running_tasks: set[Future[TaskResult]] = set()
        with ThreadPoolExecutor(threads, thread_name_prefix="pyhudi-write") as pool:
            try:
                for number, batches in enumerate(parts):
                    running_tasks.add(pool.submit(self.task, _until_failure(has_failed, batches), number))
                    if len(running_tasks) == threads:
                        ended_tasks, running_tasks = wait(running_tasks, return_when=FIRST_COMPLETED)
                        yield from (task.result() for task in ended_tasks)
                while running_tasks:
                    ended_tasks, running_tasks = wait(running_tasks, return_when=FIRST_COMPLETED)
                    yield from (task.result() for task in ended_tasks)
            finally:
                has_failed.set()


def _until_failure(has_failed: Event, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches; raise `WriteSealedError` once another task has failed."""
    for batch in batches:
        if has_failed.is_set():
            raise WriteSealedError("Another task of this write failed.", "See the error of that task.")
        yield batch
