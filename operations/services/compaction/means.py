"""With what compactions are carried out, and where: by this process, or by whatever an engine has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from ....storage.process import cores
from ....table.files.logs.block_format import LogSettings
from ....table.files.output import Output
from ....timeline.writers.patience import Patience
from ..service import Executor

Unit = TypeVar("Unit")
Done = TypeVar("Done")

_MOST_WORKERS = 8


@dataclass(frozen=True, slots=True)
class Means:
    """With what a compaction is carried out.

    Attributes:
        patience: When somebody else who carries one out counts as dead.
        output: How base files look, and how many bytes of log entries may be merged at once, in each task.
        logs: How joined log files look.
        executor: Where file slices are merged; None for this process.
        most_bytes: What is beyond so many bytes of base and log files is planned and left; None for no bound.
        application: Name of the application.
        without_tasks: With what this process does it where the executor turns out to have no tasks; None where it is
            left then.
    """

    patience: Patience
    output: Output
    logs: LogSettings = field(default_factory=LogSettings)
    executor: Executor | None = None
    most_bytes: int | None = None
    application: str = ""
    without_tasks: Means | None = None


def here(call: Callable[[Unit], Done], units: Sequence[Unit]) -> list[Done]:
    """Execute units in this process, as many at once as it has cores."""
    workers = min(cores(), _MOST_WORKERS, len(units))
    if workers < 2:
        return [call(one) for one in units]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(call, units))
