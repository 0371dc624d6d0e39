"""The resources with which planned services run: in this process, or in the tasks of an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TypeVar

from ...storage.process import cores
from ...table.files.logs.block_format import LogSettings
from ...table.files.output import Output
from ...timeline.writers.patience import Patience
from ..words.progress import Observer
from .service import Executor

Unit = TypeVar("Unit")
Done = TypeVar("Done")

_MOST_WORKERS = 8


@dataclass(frozen=True, slots=True)
class Means:
    """The resources with which a planned service runs.

    Attributes:
        output: The format of base files, and the bytes of log entries that each task may hold at once.
        executor: Where units are executed; None for this process.
        most_bytes: Plans that read more bytes than this stay pending; None for no bound.
        within_s: Seconds in which this process should carry a plan out: it makes no larger plans, and leaves larger
            plans pending; None for no bound.
        without_tasks: What this process uses if the executor cannot run tasks; None to leave the plan pending.
        observer: Receives the progress of a plan's units; None for a line a minute in the log.
        wait_s: For how long a rescale waits for instants that were at work before it.
    """

    patience: Patience
    output: Output
    logs: LogSettings = field(default_factory=LogSettings)
    executor: Executor | None = None
    most_bytes: int | None = None
    within_s: float | None = None
    application: str = ""
    without_tasks: Means | None = None
    observer: Observer | None = None
    wait_s: float = 60.0


def units_at_once() -> int:
    """Return how many units this process executes at once, at most."""
    return min(cores(), _MOST_WORKERS)


def execute_here(call: Callable[[Unit], Done], units: Sequence[Unit], finished: Callable[[Unit], object]) -> list[Done]:
    """Execute units by `call` in this process, as many at once as it has cores; return the results in their order.

    `finished` gets each unit right after its execution. The first error of a unit is raised.
    """
    workers = min(units_at_once(), len(units))
    if workers < 2:
        results = []
        for unit in units:
            results.append(call(unit))
            finished(unit)
        return results
    with ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(call, unit): unit for unit in units}
        try:
            for future in as_completed(futures):
                future.result()
                finished(futures[future])
        finally:
            # After an error, the units that have not begun are not executed.
            for future in futures:
                future.cancel()
        return [future.result() for future in futures]
