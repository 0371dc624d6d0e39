"""Options of one write."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..operations.planning.request import PARTIAL_UPDATE, WriteSettings
from ..operations.service_settings import Upkeep
from ..operations.streams.batch import StreamSettings
from ..operations.write_settings import (
    BulkInsertSort,
    CommitSettings,
    KeySettings,
    MetricsSettings,
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
        "What the write does. The default is upsert, and insert_overwrite_table in mode overwrite.",
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
        "Fold rows of one key into one if an upsert in mode overwrite replaces the table. Merges always fold them.",
        "hoodie.combine.before.upsert",
    )
    combine_before_insert: bool | None = option(
        None,
        "Fold incoming rows of one key into one in inserts, bulk inserts and overwrites.",
        "hoodie.combine.before.insert",
        otherwise="what hoodie.datasource.write.insert.drop.duplicates says",
    )
    insert_dup_policy: DupPolicy = option(
        KEYS.insert_dup_policy,
        "What an insert does with a row whose key exists: keep both rows (none), drop the new row (drop), or fail.",
        "hoodie.datasource.insert.dup.policy",
    )
    insert_drop_duplicates: bool = option(
        KEYS.insert_drop_duplicates,
        "The older name of the policy drop. It also folds incoming rows of one key into one.",
        "hoodie.datasource.write.insert.drop.duplicates",
    )
    allow_duplicates_on_insert: bool = option(
        KEYS.allow_duplicates_on_insert,
        "Let an insert add rows without looking up their keys. Otherwise an insert merges as an upsert does.",
        "hoodie.merge.allow.duplicate.on.inserts",
    )
    delete_missing_ok: bool = option(
        KEYS.delete_missing_ok,
        "Ignore keys to be deleted that the table lacks. Otherwise the write fails.",
        "hoodie.pyhudi.delete.missing.ok",
        "missing_ok",
    )
    keys_may_collide: bool = option(
        KEYS.may_collide,
        "Accept that rows with different values in several key columns may have one record key and replace one "
        "another, as in Apache Hudi; see [Keys](keys.md#keys-of-several-columns).",
        "hoodie.pyhudi.keys.may.collide",
    )
    overwrite_moves_keys: bool = option(
        REPLACED.overwrite_moves_keys,
        "For tables with a global index: insert_overwrite deletes the rows of its keys in partitions that it does "
        "not replace. Otherwise it fails if there are such rows.",
        "hoodie.pyhudi.overwrite.moves.keys",
    )
    based_on: str = option(
        ORIGIN.based_on,
        "Completion time of the newest instant that the rows were made from. If a later commit changed the same file "
        "groups, the write conflicts with it.",
        "hoodie.pyhudi.write.based.on",
    )
    overwrite_mode: OverwriteMode | None = option(
        REPLACED.overwrite_mode,
        "What mode overwrite replaces if no operation is given: the partitions that the rows belong to (dynamic), or "
        "the whole table (static).",
        "hoodie.datasource.overwrite.mode",
        otherwise="static",
    )
    partitions_to_delete: Patterns | None = option(
        REPLACED.partitions_to_delete,
        "The partition paths that delete_partition deletes. `*` stands for any characters.",
        "hoodie.datasource.write.partitions.to.delete",
        otherwise="those of the rows",
    )
    bulk_insert_sort_mode: SortMode = option(
        SORT.mode,
        "GLOBAL_SORT and PARTITION_SORT sort the rows of each file by record key. The other modes arrange Spark's "
        "partitions, which decide nothing in a table of buckets.",
        "hoodie.bulkinsert.sort.mode",
    )
    bulk_insert_sort_columns: Fields | None = option(
        SORT.columns.of(lambda columns: columns or (), default=None),
        "Columns by which a bulk insert sorts the rows of each file, instead of the record key.",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
    )
    reconcile_schema: bool = option(
        EVOLUTION.reconcile,
        "Fill nullable columns that the rows lack with null; see [Schema](schema.md).",
        "hoodie.datasource.write.reconcile.schema",
    )
    set_null_for_missing: bool = option(
        EVOLUTION.set_null,
        "Fill every column that the rows lack with null, even a NOT NULL column; see [Schema](schema.md).",
        "hoodie.write.set.null.for.missing.columns",
    )
    number_to_text: bool = option(
        EVOLUTION.number_to_text,
        "Change column types as Apache Hudi does: numbers become text if the rows have text, and key, partition and "
        "ordering columns may become wider. Otherwise rows are converted to the table's types; see "
        "[Schema](schema.md#text-for-numbers).",
        NUMBER_TO_TEXT,
    )
    int_to_double: bool = option(
        EVOLUTION.int_to_double,
        "Change int columns to double if the rows have float or double, as Apache Hudi does. Otherwise such rows are "
        "converted to the table's types; see [Schema](schema.md#doubles-for-whole-numbers).",
        INT_TO_DOUBLE,
    )
    partial_update: bool = option(
        WRITE.partial_update,
        "Keep the values of columns that the rows of an upsert lack. Every key must then be in the table. See "
        "[Partial upserts](partial-upserts.md).",
        PARTIAL_UPDATE,
        "partial",
    )
    allow_empty_commit: bool = option(
        COMMIT.allow_empty_commit,
        "Let a write without rows leave an instant.",
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
        "What a write does beside another write of pyhudi. OPTIMISTIC_CONCURRENCY_CONTROL compares at the commit "
        "what both changed; SINGLE_WRITER is refused while the other write may be alive.",
        "hoodie.write.concurrency.mode",
        supported=["OPTIMISTIC_CONCURRENCY_CONTROL", "SINGLE_WRITER"],
    )
    heartbeat_interval_ms: Count = option(
        PATIENCE.heartbeat_interval_s.of(lambda ms: ms / 1000, default=int(Patience().heartbeat_interval_s * 1000)),
        "Milliseconds between two heartbeats of a running write.",
        "hoodie.client.heartbeat.interval_in_ms",
    )
    heartbeat_misses: Count = option(
        PATIENCE.heartbeat_misses,
        "After how many missed heartbeats a write counts as dead.",
        "hoodie.client.heartbeat.tolerable.misses",
    )
    heartbeats_alone: bool = option(
        PATIENCE.heartbeats_alone,
        "Decide by heartbeats alone whether a write is dead. Choose it if several processes may share host, boot and "
        "process number, as cloud functions do that start from one image of memory. AWS Lambda always uses it.",
        "hoodie.pyhudi.heartbeats.alone",
    )
    foreign_age_s: Annotated[float, Field(ge=0)] | None = option(
        PATIENCE.foreign_age_s,
        "Seconds without a change after which another writer's pending instant counts as dead, if it has no heartbeat.",
        "hoodie.pyhudi.foreign.pending.max.age.seconds",
        otherwise="never",
    )
    colocated: bool = option(
        WRITE.colocated,
        "Promise that one task has all rows of each file group, as after `pyhudi.colocate`.",
        "hoodie.pyhudi.colocated",
    )
    place_rows: Placing = option(
        "auto",
        "`always`: `HudiTable` brings the rows of each file group into one task, so that executors merge. `never`: "
        "the commit merges. `auto`: executors merge if they have more cores than the commit uses, and enough rows.",
        "hoodie.pyhudi.place.rows",
    )
    write_local: LocalWrites = option(
        "auto",
        "`auto`: `HudiTable` writes a few rows that are in the driver's process already without a Spark job. "
        "`never`: it always starts a job.",
        "hoodie.pyhudi.write.local",
    )
    commit_merge_max_bytes: Size = option(
        COMMIT.merge_max_bytes,
        "Bytes that the commit may merge by itself if the rows were not colocated. `HudiTable` has no bound, because "
        "it decides what the commit merges.",
        "hoodie.pyhudi.commit.merge.max.bytes",
    )
    retry_max_seconds: Annotated[float, Field(ge=0)] = option(
        COMMIT.retry_s.of(lambda seconds: seconds, default=600.0),
        "Seconds for which a write is repeated if it met another write; 0 fails at once. The commit merges the rows "
        "of its tasks again, and `HudiTable` runs the whole write again.",
        "hoodie.pyhudi.write.retry.max.seconds",
    )
    lock_wait_ms: Count = option(
        COMMIT.wait_s.of(lambda ms: ms / 1000, default=60_000),
        "Milliseconds for which a write waits, before it merges, for older writes of the same data.",
        "hoodie.write.lock.wait_time_ms",
    )
    write_id: str = option(
        "", "Name of the write. pyhudi does a write of one name only once.", "hoodie.pyhudi.write.id"
    )
    application: str = option("", "Name of the application, shown to other writers.", "hoodie.write.application.id")
    batch_size: Size = option(
        TASKS.batch_size,
        "Buffered bytes of one file group after which they are spilled, or written to its log file.",
        "hoodie.write.batch.size",
    )
    task_max_size: Size = option(
        OUTPUT.memory,
        "Buffered bytes of one task after which those of its largest file group are spilled, or written to its log "
        "file. A quarter stays free for merging.",
        "hoodie.write.task.max.size",
    )
    compression: Codec = option(
        OUTPUT.compression.of(lambda codec: "none" if codec == "uncompressed" else codec),
        "Parquet codec of base files.",
        "hoodie.parquet.compression.codec",
    )
    row_group_bytes: Size = option(
        OUTPUT.row_group_bytes, "About how many bytes a row group has.", "hoodie.parquet.block.size"
    )
    log_block_format: LogBlocks | None = option(
        LOGS.block_format,
        "Encoding of the rows in log files. It is always avro if a string column is an ordering field.",
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
        LOGS.file_bytes, "Bytes after which a log file ends and the next begins.", "hoodie.logfile.max.size"
    )
    logs_per_group: Count = option(
        LOGS.per_group,
        "How many tasks append to one file group, each with its own log files, if the rows were not colocated. The "
        "commit appends the rows of further tasks in one more log file.",
        "hoodie.pyhudi.log.files.per.group",
    )
    durable: bool = option(
        WRITE.durable,
        "Wait until the disk has the write, so that it survives a power cut. Object stores always keep it.",
        "hoodie.pyhudi.durable",
    )
    bloom_filter: bool | None = option(
        OUTPUT.bloom_filter,
        "Write a bloom filter of the keys into each base file. A bucket index needs none.",
        "hoodie.parquet.bloom.filter.enabled",
        otherwise="as the index asks",
    )
    log_level: LogLevel = option(
        "warning",
        "Which of pyhudi's log lines Spark's Python processes write to standard error; info shows phases and progress.",
        "hoodie.pyhudi.log.level",
    )
    notebook_progress: bool = option(
        True,
        "Show the progress of calls of HudiTable in a notebook, if they take over 10 seconds.",
        "hoodie.pyhudi.notebook.progress",
    )
    metadata_prefix: str = option(
        "_",
        "Options whose keys begin with this prefix are kept in the commit's extra metadata.",
        "hoodie.datasource.write.commitmeta.key.prefix",
    )

    extra_metadata: dict[str, str] = family(COMMIT.extra_metadata)

    def write_settings(self) -> WriteSettings:
        """Return how the write works, without the services that follow it."""
        # Whether incoming rows of one key become one; two options of Apache Hudi ask for it.
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
