"""With what planned services are carried out, and where: by this process, or by the tasks of an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TypeVar

from ...storage.process import cores
from ...table.files.logs.block_format import LogSettings
from ...table.files.output import Output
from ...timeline.writers.patience import Patience
from ..progress import Observer
from .service import Executor

Unit = TypeVar("Unit")
Done = TypeVar("Done")

_MOST_WORKERS = 8


@dataclass(frozen=True, slots=True)
class Means:
    """With what a planned service is carried out.

    Attributes:
        patience: When somebody else who carries one out counts as dead.
        output: How base files look, and how many bytes of log entries may be merged at once, in each task.
        logs: How joined log files look.
        executor: Where file slices are merged; None for this process.
        most_bytes: What is beyond so many bytes of base and log files is planned and left; None for no bound.
        application: Name of the application.
        without_tasks: With what this process does it where the executor turns out to have no tasks; None where it is
            left then.
        observer: Learns how far the units of a plan are; None for a line a minute in the log.
    """

    patience: Patience
    output: Output
    logs: LogSettings = field(default_factory=LogSettings)
    executor: Executor | None = None
    most_bytes: int | None = None
    application: str = ""
    without_tasks: Means | None = None
    observer: Observer | None = None


def here(call: Callable[[Unit], Done], units: Sequence[Unit], finished: Callable[[Unit], object]) -> list[Done]:
    """Execute units in this process, as many at once as it has cores, and tell of each that is finished."""
    workers = min(cores(), _MOST_WORKERS, len(units))
    if workers < 2:
        done = []
        for one in units:
            done.append(call(one))
            finished(one)
        return done
    with ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(call, one): one for one in units}
        try:
            for future in as_completed(futures):
                future.result()
                finished(futures[future])
        finally:
            for future in futures:
                future.cancel()
        return [future.result() for future in futures]
