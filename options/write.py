"""Options of one write."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..operations.metrics_settings import MetricsSettings
from ..operations.planning.request import PARTIAL_UPDATE, WriteSettings
from ..operations.service_settings import Upkeep
from ..operations.streams.batch import StreamSettings
from ..operations.write_settings import (
    BulkInsertSort,
    CommitSettings,
    KeySettings,
    ReplacementSettings,
    RowOrigin,
    TaskSettings,
)
from ..table.files.logs.block_format import LogSettings
from ..table.files.output import Output
from ..table.schema.casts import INT_TO_DOUBLE, NUMBER_TO_TEXT
from ..table.schema.evolution import EvolutionRules
from ..timeline.writers.patience import Patience
from .types import (
    Codec,
    ConcurrencyMode,
    Count,
    DupPolicy,
    FailedWrites,
    Fields,
    FieldsOf,
    LocalWrites,
    LogBlocks,
    LogLevel,
    Operation,
    OptionPart,
    OverwriteMode,
    Patterns,
    Placing,
    Size,
    SortMode,
    family,
    option,
    settings_of,
)

WRITE, OUTPUT, LOGS, PATIENCE = map(FieldsOf, (WriteSettings, Output, LogSettings, Patience))
KEYS, REPLACED, EVOLUTION, SORT = map(FieldsOf, (KeySettings, ReplacementSettings, EvolutionRules, BulkInsertSort))
TASKS, COMMIT, ORIGIN = map(FieldsOf, (TaskSettings, CommitSettings, RowOrigin))


class WriteOptions(OptionPart):
    """How one write works; the table keeps none of these options."""

    operation: Operation | None = option(
        None,
        "What the write does; upsert without it, insert_overwrite_table in mode overwrite.",
        "hoodie.datasource.write.operation",
        "operation",
        supported=[
            "upsert",
            "insert",
            "bulk_insert",
            "delete",
            "insert_overwrite",
            "insert_overwrite_table",
            "delete_partition",
        ],
        instead={
            **{f"{name}_prepped": name for name in ("upsert", "insert", "bulk_insert", "delete")},
            "bootstrap": "bulk_insert on the rows of the old table",
            "bucket_rescale": "mode overwrite on the table's own rows, with a new number of buckets",
        },
        otherwise="upsert",
    )
    combine_before_upsert: bool = option(
        KEYS.combine_before_upsert,
        "Whether rows of one key are folded into one where an upsert in mode overwrite replaces the table; where rows "
        "are merged they always are.",
        "hoodie.combine.before.upsert",
    )
    combine_before_insert: bool | None = option(
        None,
        "Whether incoming rows of one key are folded into one by inserts, bulk inserts and overwrites.",
        "hoodie.combine.before.insert",
        otherwise="what hoodie.datasource.write.insert.drop.duplicates says",
    )
    insert_dup_policy: DupPolicy = option(
        KEYS.insert_dup_policy,
        "What an insert does with a row whose key exists: keep both rows, drop the new row, or fail.",
        "hoodie.datasource.insert.dup.policy",
    )
    insert_drop_duplicates: bool = option(
        KEYS.insert_drop_duplicates,
        "The older name of the policy drop, which folds incoming rows of one key too.",
        "hoodie.datasource.write.insert.drop.duplicates",
    )
    allow_duplicates_on_insert: bool = option(
        KEYS.allow_duplicates_on_insert,
        "Whether an insert adds rows without looking their keys up; it merges as an upsert does otherwise.",
        "hoodie.merge.allow.duplicate.on.inserts",
    )
    delete_missing_ok: bool = option(
        KEYS.delete_missing_ok,
        "Whether a key to be deleted may be absent; the write fails otherwise.",
        "hoodie.pyhudi.delete.missing.ok",
        "missing_ok",
    )
    keys_may_collide: bool = option(
        KEYS.may_collide,
        "Whether rows with different values in several key columns may have one record key and replace one another, as "
        "in Apache Hudi; see [Keys](keys.md#keys-of-several-columns).",
        "hoodie.pyhudi.keys.may.collide",
    )
    overwrite_moves_keys: bool = option(
        REPLACED.overwrite_moves_keys,
        "Whether insert_overwrite, in a table with a global index, deletes the rows of its keys in partitions that it "
        "does not replace; it fails where there are such rows otherwise.",
        "hoodie.pyhudi.overwrite.moves.keys",
    )
    based_on: str = option(
        ORIGIN.based_on,
        "Completion time of the newest instant that the rows were made from; a commit since then that changed the same "
        "file groups is a conflict.",
        "hoodie.pyhudi.write.based.on",
    )
    overwrite_mode: OverwriteMode | None = option(
        REPLACED.overwrite_mode,
        "What mode overwrite replaces when no operation is given: the partitions that rows belong to (dynamic), or the "
        "whole table, which is the default.",
        "hoodie.datasource.overwrite.mode",
        otherwise="static",
    )
    partitions_to_delete: Patterns | None = option(
        REPLACED.partitions_to_delete,
        "The partition paths that delete_partition deletes, with `*` for anything; those of the rows without it.",
        "hoodie.datasource.write.partitions.to.delete",
        otherwise="those of the rows",
    )
    bulk_insert_sort_mode: SortMode = option(
        SORT.mode,
        "GLOBAL_SORT and PARTITION_SORT order the rows of each file by record key; the others concern Spark's "
        "partitions, which decide nothing in a table of buckets.",
        "hoodie.bulkinsert.sort.mode",
    )
    bulk_insert_sort_columns: Fields | None = option(
        SORT.columns.of(lambda columns: columns or (), default=None),
        "Columns by which a bulk insert orders the rows of each file, in place of the record key.",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
    )
    reconcile_schema: bool = option(
        EVOLUTION.reconcile,
        "Whether nullable columns that the rows lack become null; see [Schema](schema.md).",
        "hoodie.datasource.write.reconcile.schema",
    )
    set_null_for_missing: bool = option(
        EVOLUTION.set_null,
        "Whether every column that the rows lack becomes null, NOT NULL or not; see [Schema](schema.md).",
        "hoodie.write.set.null.for.missing.columns",
    )
    number_to_text: bool = option(
        EVOLUTION.number_to_text,
        "Whether columns change their types as in Apache Hudi: numbers become text where the rows have text, and key, "
        "partition and ordering columns may become wider. Without it rows are brought to the table's types, see "
        "[Schema](schema.md#text-for-numbers).",
        NUMBER_TO_TEXT,
    )
    int_to_double: bool = option(
        EVOLUTION.int_to_double,
        "Whether int columns become double where the rows have float or double, as in Apache Hudi. Without it such "
        "rows are brought to the table's types, see [Schema](schema.md#doubles-for-whole-numbers).",
        INT_TO_DOUBLE,
    )
    partial_update: bool = option(
        WRITE.partial_update,
        "Whether columns that the rows of an upsert lack keep their values; the table must have every key then. See "
        "[Partial upserts](partial-upserts.md).",
        PARTIAL_UPDATE,
        "partial",
    )
    allow_empty_commit: bool = option(
        COMMIT.allow_empty_commit,
        "Whether a write without rows leaves an instant.",
        "hoodie.allow.empty.commit",
    )
    failed_writes: FailedWrites | None = option(
        PATIENCE.eager.of(lambda policy: policy == "EAGER", default=None),
        "EAGER counts pending instants of other writers as dead at once.",
        "hoodie.clean.failed.writes.policy",
        "hoodie.cleaner.policy.failed.writes",
    )
    concurrency_mode: ConcurrencyMode = option(
        PATIENCE.single_writer.of(lambda mode: mode == "SINGLE_WRITER", default="OPTIMISTIC_CONCURRENCY_CONTROL"),
        "What a write does beside another write of pyhudi: OPTIMISTIC_CONCURRENCY_CONTROL compares at the commit what "
        "both changed, SINGLE_WRITER is refused while the other may live.",
        "hoodie.write.concurrency.mode",
        supported=["OPTIMISTIC_CONCURRENCY_CONTROL", "SINGLE_WRITER"],
    )
    heartbeat_interval_ms: Count = option(
        PATIENCE.heartbeat_interval_s.of(lambda ms: ms / 1000, default=int(Patience().heartbeat_interval_s * 1000)),
        "Milliseconds between two signs of life of a running write.",
        "hoodie.client.heartbeat.interval_in_ms",
    )
    heartbeat_misses: Count = option(
        PATIENCE.heartbeat_misses,
        "After how many missed signs of life a write counts as dead.",
        "hoodie.client.heartbeat.tolerable.misses",
    )
    heartbeats_alone: bool = option(
        PATIENCE.heartbeats_alone,
        "Whether signs of life alone decide if a write is dead, because several processes may share host, boot and "
        "process number, as functions in the cloud do that begin from one image of memory; always so on AWS Lambda.",
        "hoodie.pyhudi.heartbeats.alone",
    )
    foreign_age_s: Annotated[float, Field(ge=0)] | None = option(
        PATIENCE.foreign_age_s,
        "Seconds without a change after which another writer's pending instant without a heartbeat counts as dead.",
        "hoodie.pyhudi.foreign.pending.max.age.seconds",
        otherwise="never",
    )
    colocated: bool = option(
        WRITE.colocated,
        "Promises that the rows of each file group are in one task, as after `pyhudi.colocate`.",
        "hoodie.pyhudi.colocated",
    )
    place_rows: Placing = option(
        "auto",
        "Whether `HudiTable` brings the rows of each file group into one task first, so that executors merge, or "
        "leaves that to the commit; `auto` where the executors have more cores and rows enough for them.",
        "hoodie.pyhudi.place.rows",
    )
    write_local: LocalWrites = option(
        "auto",
        "Whether `HudiTable` writes few rows that lie in the driver's process already in that process, without a Spark "
        "job; `never` for a job always.",
        "hoodie.pyhudi.write.local",
    )
    commit_merge_max_bytes: Size = option(
        COMMIT.merge_max_bytes,
        "Bytes that the commit of a write that was not colocated may merge by itself; no bound for `HudiTable`, which "
        "decides by itself what the commit merges.",
        "hoodie.pyhudi.commit.merge.max.bytes",
    )
    retry_max_seconds: Annotated[float, Field(ge=0)] = option(
        COMMIT.retry_s.of(lambda seconds: seconds, default=600.0),
        "Seconds for which a write that met another is carried out again: the commit merges rows that it got from the "
        "tasks, and `HudiTable` runs the whole write; 0 for a failure at once.",
        "hoodie.pyhudi.write.retry.max.seconds",
    )
    lock_wait_ms: Count = option(
        COMMIT.wait_s.of(lambda ms: ms / 1000, default=60_000),
        "Milliseconds for which a write waits, before it merges, for older writes of the same data.",
        "hoodie.write.lock.wait_time_ms",
    )
    write_id: str = option(
        "", "Name of the write: pyhudi does a write of one name only once.", "hoodie.pyhudi.write.id"
    )
    application: str = option("", "Name of the application, shown to other writers.", "hoodie.write.application.id")
    batch_size: Size = option(
        TASKS.batch_size,
        "Buffered bytes of one file group before they are spilled, or written to its log file.",
        "hoodie.write.batch.size",
    )
    task_max_size: Size = option(
        OUTPUT.memory,
        "Buffered bytes of one task before the largest file group's are spilled, or written to its log file; a quarter "
        "of it stays free for merging.",
        "hoodie.write.task.max.size",
    )
    compression: Codec = option(
        OUTPUT.compression.of(lambda codec: "none" if codec == "uncompressed" else codec),
        "Parquet codec of base files.",
        "hoodie.parquet.compression.codec",
    )
    row_group_bytes: Size = option(
        OUTPUT.row_group_bytes, "Bytes that a row group aims at.", "hoodie.parquet.block.size"
    )
    log_block_format: LogBlocks | None = option(
        LOGS.block_format,
        "What the rows in log files are encoded as; always avro where a string column is an ordering field.",
        "hoodie.logfile.data.block.format",
        supported=["parquet", "avro"],
        otherwise="parquet",
    )
    log_block_bytes: Size = option(
        LOGS.block_bytes,
        "Bytes of rows, in memory, after which a block of a log file ends.",
        "hoodie.logfile.data.block.max.size",
    )
    log_file_bytes: Size = option(
        LOGS.file_bytes, "Bytes after which a log file ends and another begins.", "hoodie.logfile.max.size"
    )
    logs_per_group: Count = option(
        LOGS.per_group,
        "How many tasks of a write that was not colocated append to one file group, each with log files of its own; "
        "the commit appends the rows of further tasks in one more log file.",
        "hoodie.pyhudi.log.files.per.group",
    )
    durable: bool = option(
        WRITE.durable,
        "Whether a write waits until the disk has it, so that it outlasts a power cut; object stores always keep it.",
        "hoodie.pyhudi.durable",
    )
    bloom_filter: bool | None = option(
        OUTPUT.bloom_filter,
        "Whether base files carry a bloom filter of their keys; a bucket index needs none.",
        "hoodie.parquet.bloom.filter.enabled",
        otherwise="as the index asks",
    )
    log_level: LogLevel = option(
        "warning",
        "Which of pyhudi's log lines appear on the standard error of Spark's Python processes; info shows phases and "
        "progress.",
        "hoodie.pyhudi.log.level",
    )
    notebook_progress: bool = option(
        True,
        "Whether calls of HudiTable that take over 10 seconds show their progress in a notebook.",
        "hoodie.pyhudi.notebook.progress",
    )
    metadata_prefix: str = option(
        "_",
        "Options that begin with it are kept in the commit's extra metadata.",
        "hoodie.datasource.write.commitmeta.key.prefix",
    )

    extra_metadata: dict[str, str] = family(COMMIT.extra_metadata)

    def write_settings(self) -> WriteSettings:
        """Return how the write works, without the services that follow it."""
        fold = self.combine_before_insert
        fold = self.insert_drop_duplicates if fold is None else fold
        return settings_of(
            WriteSettings,
            self,
            keys=settings_of(KeySettings, self, combine_before_insert=fold),
            upkeep=Upkeep(),
            stream=StreamSettings(),
            metrics=MetricsSettings(),
        )
