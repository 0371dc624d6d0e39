"""With what compactions are carried out, and where: by this process, or by whatever an engine has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from ....storage.process import cores
from ....table.files.bloom_filter import BloomSettings
from ....table.files.logs.log_blocks import BlockType
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
        compression: Parquet codec of base files.
        row_group_bytes: Uncompressed bytes that one row group aims at.
        memory: Arrow bytes of log entries that may be merged at once, in each task.
        bloom: What kind of bloom filter base files get, where they get one.
        bloom_filter: Whether they get one; None where the table's index decides.
        executor: Where file slices are merged; None for this process.
        most_bytes: What is beyond so many bytes of base and log files is planned and left; None for no bound.
        application: Name of the application.
        without_tasks: With what this process does it where the executor turns out to have no tasks; None where it is
            left then.
        data_format: What the rows of joined log files are encoded as, where no ordering field forbids it.
        block_bytes: Arrow bytes of rows after which a block of such a file ends.
    """

    patience: Patience
    compression: str
    row_group_bytes: int
    memory: int
    executor: Executor | None = None
    most_bytes: int | None = None
    application: str = ""
    bloom: BloomSettings = field(default_factory=BloomSettings)
    bloom_filter: bool | None = None
    without_tasks: Means | None = None
    data_format: BlockType = BlockType.PARQUET
    block_bytes: int = 256 << 20


def here(call: Callable[[Unit], Done], units: Sequence[Unit]) -> list[Done]:
    """Execute units in this process, as many at once as it has cores."""
    workers = min(cores(), _MOST_WORKERS, len(units))
    if workers < 2:
        return [call(one) for one in units]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(call, units))
