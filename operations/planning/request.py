"""The request of one write, in plain values that need no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from ...index.settings import LookupSettings
from ...table.config.table_settings import TableSettings
from ...table.files.logs.block_format import LogSettings
from ...table.files.output import Output
from ...table.schema.evolution import EvolutionRules
from ...timeline.writers.patience import Patience
from ..result import NO_PAST, PastAttempts
from ..service_settings import Upkeep
from ..streams.batch import StreamBatch, StreamSettings
from ..write_settings import (
    BulkInsertSort,
    CommitSettings,
    KeySettings,
    MetricsSettings,
    ReplacementSettings,
    RowOrigin,
    TaskSettings,
)

PARTIAL_UPDATE = "hoodie.pyhudi.partial.update"

__all__ = ["TableSettings", "WriteRequest", "WriteSettings"]


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Settings of one write, in groups by the modules that read them; the table keeps none of them.

    Attributes:
        colocated: Whether the caller promises that one task has all rows of a file group.
        partial_update: Whether columns that the rows of an upsert lack keep their values.
        durable: Whether the store waits until the disk has a file.
        metadata_enable: None if no option says it; with False a write to a table with a metadata table is refused.
        past: What was done for the write before this attempt.
        batch: The micro-batch that the write is; None for other writes, and while only its tasks know it.
        evolution: How far the columns of the rows may differ from the table's.
        upkeep: The table services after the write.
        metrics: Where the figures of the commit go.
    """

    colocated: bool = False
    partial_update: bool = False
    durable: bool = True
    metadata_enable: bool | None = None
    past: PastAttempts = NO_PAST
    batch: StreamBatch | None = None
    keys: KeySettings = field(default_factory=KeySettings)
    replacement: ReplacementSettings = field(default_factory=ReplacementSettings)
    evolution: EvolutionRules = field(default_factory=EvolutionRules)
    sort: BulkInsertSort = field(default_factory=BulkInsertSort)
    tasks: TaskSettings = field(default_factory=TaskSettings)
    commit: CommitSettings = field(default_factory=CommitSettings)
    origin: RowOrigin = field(default_factory=RowOrigin)
    patience: Patience = field(default_factory=Patience)
    output: Output = field(default_factory=Output)
    logs: LogSettings = field(default_factory=LogSettings)
    lookup: LookupSettings = field(default_factory=LookupSettings)
    upkeep: Upkeep = field(default_factory=Upkeep)
    stream: StreamSettings = field(default_factory=StreamSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)

    @property
    def is_batch(self) -> bool:
        """Whether the write is a micro-batch, even if only its tasks know which."""
        return self.tasks.hand_over or self.batch is not None


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write as the caller requested it.

    Attributes:
        storage_options: Options of the store; ``repr`` leaves them out, because they hold secrets.
        operation: Hudi's name of the operation in any case; None for the default of the mode.
        overwrite: True for Spark's mode ``overwrite``.
        schema: The incoming columns.
        write_id: Identifies this write across replays.
        key: Names the notes by which the processes of the write find its instant; empty if the plan chooses the key.
        application: Name of the application, for error messages of other writers.
    """

    path: str
    operation: str | None
    overwrite: bool
    schema: pa.Schema
    table: TableSettings = field(default_factory=TableSettings)
    write: WriteSettings = WriteSettings()
    write_id: str = ""
    key: str = ""
    application: str = ""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
