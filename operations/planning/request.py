"""What one write is asked to do, in plain values that need no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from ...index.base import LookupFigures
from ...index.settings import LookupSettings
from ...table.config.table_settings import TableSettings
from ...table.files.logs.block_format import LogSettings
from ...table.files.output import GIB, MIB, Output
from ...timeline.writers.patience import Patience
from ..result import RowCounts
from ..services.settings import Upkeep

__all__ = ["TableSettings", "WriteRequest", "WriteSettings"]


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """How this one write goes about its work; nothing here is kept in the table.

    Attributes:
        batch_size: Bytes of buffered rows of one file group after which they are spilled.
        commit_merge_max_bytes: Bytes of spills and touched base files that ``commit`` may merge by itself.
        colocated: True when every file group's rows are promised to sit in one task.
        combine_before_upsert: Whether rows of one key are folded into one where an upsert replaces the table; where
            rows are merged they always are.
        combine_before_insert: The same for inserts and for rows that replace others as a whole.
        insert_drop_duplicates: Whether an insert leaves out rows whose key is there.
        insert_dup_policy: What an insert makes of a row whose key is there: ``none`` (both stay), ``drop``, ``fail``.
        allow_duplicates_on_insert: Whether an insert that looks no key up may add a second row of one; merged
            otherwise.
        delete_missing_ok: Whether a key to be deleted may be absent.
        overwrite_mode: ``dynamic`` lets mode overwrite replace the partitions that rows belong to, else the table.
        based_on: Completion time of the newest instant that the caller had seen when the rows were made, or that moment
            as `spell_moment` spells it; empty where they were not made from the table.
        partitions_to_delete: Partition paths with ``*`` for anything; None for the partitions of the rows.
        bulk_insert_sort_mode: One of Hudi's sort modes.
        bulk_insert_sort_columns: Columns by which a bulk insert orders the rows of each file.
        reconcile_schema: Whether nullable columns that the rows lack become null.
        set_null_for_missing: Whether all columns that the rows lack do; they and new ones may be null from then on.
        number_to_text: Whether columns change their types as in Apache Hudi, where numbers become text and the columns
            of keys, partitions and the order change too; else rows are brought to the table's types.
        partial_update: Whether an upsert leaves columns that the rows lack as they are, in rows that are there.
        allow_empty_commit: Whether a write without rows still makes an instant.
        metadata_enable: None when not said; False lets a write retire an expensive metadata table.
        patience: When another writer counts as dead.
        output: How files look, and how many bytes of rows one task buffers before it spills.
        logs: How log files look.
        durable: Whether the write outlasts a power cut once it is done.
        lookup: How keys are looked up and where new ones go, under an index that has to.
        looked_up: What it took to find the file groups of rows that say them; None where the rows do not.
        counted: What becomes of the rows; None where nobody has counted, as nobody does who did not look at the table.
        extra_metadata: Additional key-values for the instant's extraMetadata.
        upkeep: What is done to the table after the write.
    """

    batch_size: int = 256 * MIB
    commit_merge_max_bytes: int = 8 * GIB
    colocated: bool = False
    combine_before_upsert: bool = True
    combine_before_insert: bool = False
    insert_drop_duplicates: bool = False
    insert_dup_policy: str = "none"
    allow_duplicates_on_insert: bool = True
    delete_missing_ok: bool = True
    overwrite_mode: str | None = None
    based_on: str = ""
    partitions_to_delete: tuple[str, ...] | None = None
    bulk_insert_sort_mode: str = "NONE"
    bulk_insert_sort_columns: tuple[str, ...] = ()
    reconcile_schema: bool = False
    set_null_for_missing: bool = False
    number_to_text: bool = False
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
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    upkeep: Upkeep = field(default_factory=Upkeep)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write as the caller asked for it.

    Attributes:
        path: The table's path.
        storage_options: Options of the store; not shown, because secrets are among them.
        operation: Hudi's name of the operation in any case; None for the default of the mode.
        overwrite: True for Spark's mode ``overwrite``.
        schema: The incoming columns, Arrow.
        table: What was said of the table.
        write: How to go about the work.
        write_id: Identifies this write across replays; made by the caller.
        application: Name of the application, for other writers' error messages.
    """

    path: str
    operation: str | None
    overwrite: bool
    schema: pa.Schema
    table: TableSettings = field(default_factory=TableSettings)
    write: WriteSettings = WriteSettings()
    write_id: str = ""
    application: str = ""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
