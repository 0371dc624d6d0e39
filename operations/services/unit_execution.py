"""Executes the units of a plan in the tasks of an engine, or in this process if that is faster or the only way."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from ...storage import open_storage
from ...storage.base import Storage
from ...table.files.output import MIB
from ...writer.data_files import DataFiles
from ...writer.written_file import WrittenFile
from ..meeting.transaction import Transaction
from ..transaction.fence import Fence
from ..transaction.file_work import FileWork
from ..words.progress import LoggedProgress, Steps, polling
from .execution import naming_who_took_over, new_token
from .means import Means, execute_here
from .service import NoTasksError

logger = logging.getLogger("pyhudi")

# This process executes so few and small units sooner than a job of the engine would begin.
_FEW_UNITS, _SMALL_BYTES = 32, 16 * MIB


class PlanUnit(Protocol):
    """A part of a plan that any process may do, in any order."""

    @property
    def size(self) -> int:
        """Bytes of the files that it reads."""

    @property
    def partition_path(self) -> str:
        """The partition whose files it changes."""


Unit = TypeVar("Unit", bound=PlanUnit)
Done = TypeVar("Done")
Self = TypeVar("Self", bound="FileWorker")


@dataclass(frozen=True, slots=True)
class UnitResult(Generic[Unit]):
    """The new data files of a plan's unit; ``skipped`` says why there are none."""

    unit: Unit
    written: tuple[WrittenFile, ...] = ()
    skipped: str = ""

    @property
    def paths(self) -> Sequence[str]:
        """The paths of the new files."""
        return [file.path for file in self.written]

    @property
    def size(self) -> int:
        """The bytes of the new files."""
        return sum(file.size for file in self.written)


class UnitWorker(Protocol[Unit, Done]):
    """Executes the units of one instant that this process has claimed; an engine gets it with every task."""

    @property
    def work(self) -> Transaction:
        """The instant whose units it executes."""

    def execute(self, unit: Unit) -> Done:
        """Execute one unit; each attempt makes its own files, and the completed instant names those of one attempt."""

    def within(self, memory: int) -> UnitWorker[Unit, Done]:
        """Return the same worker with another bound of memory for a task."""


@dataclass(frozen=True, slots=True)
class FileWorker:
    """Makes the data files of units; an engine sends it with every task."""

    files: FileWork

    @property
    def work(self) -> Transaction:
        """The instant whose files it makes."""
        return self.files.transaction

    def within(self: Self, memory: int) -> Self:
        """Return the same worker with another bound of memory for a task."""
        return replace(self, files=replace(self.files, output=replace(self.files.output, memory=memory)))

    @contextmanager
    def attempt(self) -> Iterator[tuple[DataFiles, Storage]]:
        """Yield the maker of an attempt's files and a folder for its spills, while the heartbeat runs.

        After the block, raise `WriteSealedError` if another process has given the work up meanwhile.
        """
        token, work = new_token(self.work), self.work
        fence = Fence(work, token.attempt)
        with work.heartbeat(), tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
            yield self.files.files(token, fence), open_storage(folder, durable=False)
            fence.finish()


def execute_units(
    worker: UnitWorker[Unit, Done],
    plan: Sequence[Unit],
    means: Means,
    name: str,
    finished: Callable[[Sequence[Unit], Sequence[str]], Sequence[Unit]],
) -> list[Done]:
    """Execute units in the engine's tasks, or in this process if the engine has none and the units are small enough.

    Returns the results of the units, not in the order of the plan.

    Args:
        worker: Executes one unit, and travels to the engine's tasks.
        plan: The units of a service's plan.
        means: The memory, time and executor that the service may use. Without an executor, this process executes all.
        name: The service in messages.
        finished: Returns those of some units to which the new data files of some paths belong.
    """
    if not plan:
        return []
    # Small units come last, so that no task runs long after the others.
    work, units = worker.work, sorted(plan, key=lambda unit: -unit.size)
    steps = Steps(means.observer or LoggedProgress(work.path), name, len(units))

    def in_process(chosen_worker: UnitWorker[Unit, Done]) -> list[Done]:
        """Execute all units in this process, and count each finished unit."""
        return execute_here(chosen_worker.execute, units, lambda unit: steps.add(unit.size))

    def count_published() -> None:
        """Count the units whose files the tasks have published, or are about to publish."""
        # Markers name files right before they are published.
        published_units = finished(units, [marker.path for marker in work.markers.read()])
        steps.seen(len(published_units), sum(result.size for result in published_units))

    with naming_who_took_over(work):
        if means.executor is None:
            return in_process(worker)
        # Whether this process may execute the units itself, and what does so in its own share of memory.
        own_means, size = means.without_tasks, sum(unit.size for unit in units)
        may_merge = own_means is not None and (own_means.most_bytes is None or size <= own_means.most_bytes)
        near_worker = worker.within(own_means.output.memory) if own_means is not None and may_merge else None
        if near_worker is not None and len(units) <= _FEW_UNITS and size <= _SMALL_BYTES:
            return in_process(near_worker)
        try:
            with polling(count_published):
                return means.executor(worker.execute, units)
        except NoTasksError as error:
            if near_worker is None:
                raise
            logger.warning(
                "table %s: this process merges the %d file groups of the %s %s itself, because %s",
                work.path,
                len(units),
                name,
                work.instant_time,
                error,
            )
            return in_process(near_worker)
