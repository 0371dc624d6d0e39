"""The request of one write, in plain values that need no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from ...index.base import LookupFigures
from ...index.settings import LookupSettings
from ...table.config.table_settings import TableSettings
from ...table.files.logs.block_format import LogSettings
from ...table.files.output import GIB, MIB, Output
from ...timeline.writers.patience import Patience
from ..metrics_settings import MetricsSettings
from ..result import NO_PAST, PastAttempts, RowCounts
from ..service_settings import Upkeep
from ..streams.batch import StreamBatch, StreamSettings

if TYPE_CHECKING:
    from ..read_rows import ReadRows

PARTIAL_UPDATE = "hoodie.pyhudi.partial.update"

__all__ = ["TableSettings", "WriteRequest", "WriteSettings"]


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Settings of one write; the table keeps none of them.

    Attributes:
        threads: How many threads of its process each task takes, and the commit; they share the memory of a task. None
            for a task in one thread, and a commit in as many as the machine has cores.
        batch_size: Bytes of buffered rows of one file group after which they are spilled.
        commit_merge_max_bytes: Bytes of spills and touched base files that ``commit`` may merge by itself.
        retry_s: Seconds for which a commit that met another write merges its rows again; with 0 it fails at once.
        wait_s: Seconds for which a commit waits for older writes of the same data before it merges.
        colocated: True where the caller promises that one task has all rows of a file group.
        combine_before_upsert: Whether an upsert that replaces the table folds rows of one key. Merges always do.
        combine_before_insert: The same for inserts and for operations that replace partitions or the table.
        insert_dup_policy: What an insert does with a row whose key exists: ``none`` (keep both), ``drop``, ``fail``.
        allow_duplicates_on_insert: Whether an insert without a lookup may add a second row of a key; else it merges.
        overwrite_mode: ``dynamic`` lets mode overwrite replace the partitions that rows belong to, not the table.
        keys_may_collide: Whether rows with different values in several key columns may have one record key.
        overwrite_moves_keys: Whether an overwrite of partitions under a global index deletes the copies of its keys in
            other partitions; else it is refused where there are any.
        based_on: Completion time of the newest instant that the rows were made from, or that moment as `spell_moment`
            spells it; empty where they were not made from the table.
        partitions_to_delete: Partition paths with ``*`` for anything; None for the partitions of the rows.
        reconcile_schema: Whether nullable columns that the rows lack become null.
        set_null_for_missing: Whether all columns that the rows lack become null, and nullable.
        number_to_text: Whether columns change their types as in Apache Hudi, where numbers become text, also in key,
            partition and ordering columns; else rows are cast to the table's types.
        int_to_double: Whether int columns become double where the rows have float or double.
        metadata_enable: None if no option says it; with False a write to a table with a metadata table is refused.
        looked_up: Figures of the lookup that placed the rows; None where no lookup did.
        counted: Counts by a merge or an update that read the table; None for other writes.
        read: The rows of the table that decided what the write does, where its isolation level makes them count.
        deletes_read: Whether the write has read the rows that it deletes, and its deletes have their ordering values.
        of_stored: Whether rows were made of stored rows, one of each, and some stored rows of their keys may be others.
        past: What was done for the write before this attempt.
        hand_over: Whether tasks leave all rows to the commit, which then merges them again as often as needed.
        batch: The micro-batch that the write is; None for other writes, and where only its tasks know it.
        metrics: Where the figures of the commit go.
    """

    threads: int | None = None
    batch_size: int = 256 * MIB
    commit_merge_max_bytes: int = 8 * GIB
    retry_s: float = 0.0
    wait_s: float = 60.0
    colocated: bool = False
    combine_before_upsert: bool = True
    combine_before_insert: bool = False
    insert_drop_duplicates: bool = False
    insert_dup_policy: str = "none"
    allow_duplicates_on_insert: bool = True
    delete_missing_ok: bool = True
    keys_may_collide: bool = False
    overwrite_moves_keys: bool = False
    overwrite_mode: str | None = None
    based_on: str = ""
    partitions_to_delete: tuple[str, ...] | None = None
    bulk_insert_sort_mode: str = "NONE"
    bulk_insert_sort_columns: tuple[str, ...] = ()
    reconcile_schema: bool = False
    set_null_for_missing: bool = False
    number_to_text: bool = False
    int_to_double: bool = False
    partial_update: bool = False
    allow_empty_commit: bool = True
    metadata_enable: bool | None = None
    patience: Patience = field(default_factory=Patience)
    output: Output = field(default_factory=Output)
    logs: LogSettings = field(default_factory=LogSettings)
    durable: bool = True
    lookup: LookupSettings = field(default_factory=LookupSettings)
    looked_up: LookupFigures | None = None
    counted: RowCounts | None = None
    read: tuple[ReadRows, ...] = ()
    deletes_read: bool = False
    of_stored: bool = False
    past: PastAttempts = NO_PAST
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    upkeep: Upkeep = field(default_factory=Upkeep)
    hand_over: bool = False
    batch: StreamBatch | None = None
    stream: StreamSettings = field(default_factory=StreamSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)

    @property
    def is_batch(self) -> bool:
        """Whether the write is a micro-batch, known by now or not."""
        return self.hand_over or self.batch is not None


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write as the caller requested it.

    Attributes:
        storage_options: Options of the store; ``repr`` leaves them out, because they hold secrets.
        operation: Hudi's name of the operation in any case; None for the default of the mode.
        overwrite: True for Spark's mode ``overwrite``.
        schema: The incoming columns.
        write_id: Identifies this write across replays.
        key: Names the notes by which the processes of the write find its instant; empty where the plan chooses it.
        application: Name of the application, for other writers' error messages.
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
