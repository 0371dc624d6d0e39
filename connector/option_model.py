"""Every option of pyhudi, once: its Hudi key, its other names, its type, its default and what it means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ..errors import UnsupportedTableError
from ..operations.settings import MIB, TableSettings, WriteRequest, WriteSettings
from ..table.keys import KeyGeneratorType

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+)\s*([bkmgt]?)(?:i?b)?", re.IGNORECASE)


def _split(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _parse_size(value: object) -> object:
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError("a size is a number of bytes, or a number with one of the units k, m, g, t")
    return int(match[1]) * _UNITS[match[2].lower()]


def _upper(value: object) -> object:
    return value.strip().upper() if isinstance(value, str) else value


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


# Apache Hudi's older way to name a merge mode.
_PAYLOADS = {
    "OverwriteWithLatestAvroPayload": "COMMIT_TIME_ORDERING",
    "DefaultHoodieRecordPayload": "EVENT_TIME_ORDERING",
    "EventTimeAvroPayload": "EVENT_TIME_ORDERING",
}


def _parse_payload(value: object) -> object:
    return _PAYLOADS.get(value.strip().rpartition(".")[2], "CUSTOM") if isinstance(value, str) else value


def _parse_generator(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return KeyGeneratorType.parse(value)
    except UnsupportedTableError as error:
        raise ValueError("it is no key generator that pyhudi knows") from error


Fields = Annotated[tuple[str, ...], BeforeValidator(_split)]
Size = Annotated[int, BeforeValidator(_parse_size), Field(gt=0)]
Count = Annotated[int, Field(gt=0)]
# The bucket is the first eight digits of a file id.
Buckets = Annotated[int, Field(gt=0, le=10**8)]

Generator = Annotated[KeyGeneratorType, BeforeValidator(_parse_generator)]
TableType = Annotated[Literal["COPY_ON_WRITE", "MERGE_ON_READ"], BeforeValidator(_upper)]
Operation = Annotated[
    Literal[
        "upsert",
        "delete",
        "insert_overwrite_table",
        "insert",
        "bulk_insert",
        "insert_overwrite",
        "delete_partition",
        "upsert_prepped",
        "insert_prepped",
        "bulk_insert_prepped",
        "delete_prepped",
        "bootstrap",
        "cluster",
        "compact",
    ],
    BeforeValidator(_lower),
]
IndexType = Annotated[
    Literal[
        "BUCKET",
        "SIMPLE",
        "GLOBAL_SIMPLE",
        "BLOOM",
        "GLOBAL_BLOOM",
        "RECORD_INDEX",
        "RECORD_LEVEL_INDEX",
        "GLOBAL_RECORD_LEVEL_INDEX",
        "INMEMORY",
        "HBASE",
        "FLINK_STATE",
    ],
    BeforeValidator(_upper),
]
BucketEngine = Annotated[Literal["SIMPLE", "CONSISTENT_HASHING"], BeforeValidator(_upper)]
MergeMode = Annotated[Literal["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM"], BeforeValidator(_upper)]
Payload = Annotated[Literal["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM"], BeforeValidator(_parse_payload)]
Timezone = Annotated[Literal["UTC", "LOCAL"], BeforeValidator(_upper)]
FailedWrites = Annotated[Literal["EAGER", "LAZY", "NEVER"], BeforeValidator(_upper)]
QueryType = Annotated[Literal["snapshot", "read_optimized", "incremental"], BeforeValidator(_lower)]
Codec = Annotated[Literal["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"], BeforeValidator(_lower)]

_WRITE = WriteSettings()
_SINCE = "0.1.0"


def _option(
    default: Any,
    doc: str,
    key: str,
    *aliases: str,
    supported: Sequence[object] | None = None,
    instead: str | None = None,
    since: str = _SINCE,
) -> Any:
    """Describe one option.

    Args:
        default: Its value when nothing is said; None leaves the choice to the table.
        doc: One sentence for people.
        key: Hudi's own name, or ours below ``hoodie.pyhudi``.
        aliases: Other names, Hudi's first.
        supported: The values that pyhudi does, where Apache Hudi has more of them.
        instead: What to use in place of a value that is not supported; the supported ones without it.
        since: The version of pyhudi that has it first.
    """
    extra: Any = {"key": key, "aliases": list(aliases), "since": since}
    if supported is not None:
        extra |= {"supported": list(supported), "instead": instead}
    return Field(default, description=doc, json_schema_extra=extra)


class HudiOptions(BaseModel):
    """The options of one read or write, typed; None where nothing was said."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    path: str | None = _option(None, "Where the table is.", "path", "hoodie.base.path")
    table_name: str | None = _option(
        None,
        "Name of a new table; without it the last part of the path.",
        "hoodie.table.name",
        "hoodie.datasource.write.table.name",
    )
    database: str | None = _option(None, "Database that a new table belongs to.", "hoodie.database.name")
    table_type: TableType | None = _option(
        None,
        "Type of a new table.",
        "hoodie.datasource.write.table.type",
        "hoodie.table.type",
        "hoodie.datasource.write.storage.type",
        supported=["COPY_ON_WRITE"],
    )
    table_version: int | None = _option(
        None,
        "Version of a new table; 9 without it. An existing table keeps its own.",
        "hoodie.write.table.version",
        "hoodie.table.version",
        supported=[9],
    )
    record_key: Fields | None = _option(
        None,
        "The columns whose values identify a row within its partition; a new table needs them.",
        "hoodie.datasource.write.recordkey.field",
        "hoodie.table.recordkey.fields",
        "recordkey",
    )
    partition_fields: Fields | None = _option(
        None,
        "The columns that a new table is partitioned by; none without it.",
        "hoodie.datasource.write.partitionpath.field",
        "hoodie.table.partition.fields",
        "partitionby",
    )
    ordering_fields: Fields | None = _option(
        None,
        "The column whose greater value wins when two rows have one key; without it the later row wins.",
        "hoodie.table.ordering.fields",
        "hoodie.datasource.write.precombine.field",
        "hoodie.datasource.write.ordering.fields",
        "hoodie.table.precombine.field",
        "hoodie.payload.ordering.field",
        "orderby",
    )
    key_generator_type: Generator | None = _option(
        None,
        "How keys and partition paths are made of columns: SIMPLE, COMPLEX or NON_PARTITION; follows from the columns.",
        "hoodie.datasource.write.keygenerator.type",
        "hoodie.table.keygenerator.type",
    )
    key_generator_class: Generator | None = _option(
        None,
        "The same, named by Apache Hudi's Java class.",
        "hoodie.datasource.write.keygenerator.class",
        "hoodie.table.keygenerator.class",
    )
    hive_style: bool | None = _option(
        None,
        "Whether a new table's folders read `column=value`; false without it.",
        "hoodie.datasource.write.hive_style_partitioning",
    )
    url_encode: bool | None = _option(
        None,
        "Whether a new table escapes special characters in its folders; false without it.",
        "hoodie.datasource.write.partitionpath.urlencode",
    )
    operation: Operation | None = _option(
        None,
        "What the write does; upsert without it, insert_overwrite_table in mode overwrite.",
        "hoodie.datasource.write.operation",
        "operation",
        supported=["upsert", "delete", "insert_overwrite_table"],
    )
    index_type: IndexType | None = _option(None, "The index.", "hoodie.index.type", supported=["BUCKET"])
    buckets: Buckets | None = _option(
        None,
        "Number of buckets in every partition, fixed when the table is made; 8 without it.",
        "hoodie.bucket.index.num.buckets",
        "buckets",
    )
    hash_fields: Fields | None = _option(
        None,
        "The record key columns that choose the bucket; all of them without it.",
        "hoodie.bucket.index.hash.field",
    )
    bucket_engine: BucketEngine | None = _option(
        None, "The kind of buckets.", "hoodie.index.bucket.engine", supported=["SIMPLE"]
    )
    merge_mode: MergeMode | None = _option(
        None,
        "Who wins when two rows have one key; event time with an ordering field, commit time without.",
        "hoodie.write.record.merge.mode",
        "hoodie.record.merge.mode",
        supported=["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"],
    )
    payload_mode: Payload | None = _option(
        None,
        "The merge mode, named by one of Apache Hudi's older payload classes.",
        "hoodie.datasource.write.payload.class",
        "hoodie.compaction.payload.class",
        supported=["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"],
        instead="DefaultHoodieRecordPayload or OverwriteWithLatestAvroPayload",
    )
    timezone: Timezone | None = _option(
        None, "The zone of a new table's instant times; UTC without it.", "hoodie.table.timeline.timezone"
    )
    combine_before_upsert: bool = _option(
        _WRITE.combine_before_upsert,
        "Whether incoming rows of one key are folded into one.",
        "hoodie.combine.before.upsert",
    )
    combine_before_insert: bool = _option(
        _WRITE.combine_before_insert, "The same when the table is overwritten.", "hoodie.combine.before.insert"
    )
    combine_before_delete: bool = _option(
        _WRITE.combine_before_delete, "The same for deletes.", "hoodie.combine.before.delete"
    )
    allow_empty_commit: bool = _option(
        _WRITE.allow_empty_commit, "Whether a write without rows leaves an instant.", "hoodie.allow.empty.commit"
    )
    metadata_enable: bool | None = _option(
        None,
        "False agrees to a write taking Apache Hudi's metadata table away; pyhudi keeps none yet.",
        "hoodie.metadata.enable",
    )
    failed_writes: FailedWrites | None = _option(
        None,
        "EAGER counts pending instants of other writers as dead at once.",
        "hoodie.clean.failed.writes.policy",
        "hoodie.cleaner.policy.failed.writes",
    )
    heartbeat_interval_ms: Count = _option(
        int(_WRITE.heartbeat_interval_s * 1000),
        "Milliseconds between two signs of life of a running write.",
        "hoodie.client.heartbeat.interval_in_ms",
    )
    heartbeat_misses: Count = _option(
        _WRITE.heartbeat_misses,
        "After how many missed signs of life a write counts as dead.",
        "hoodie.client.heartbeat.tolerable.misses",
    )
    foreign_age_s: Annotated[float, Field(ge=0)] = _option(
        _WRITE.foreign_age_s,
        "Seconds after which another writer's pending instant without a heartbeat counts as dead.",
        "hoodie.pyhudi.foreign.pending.max.age.seconds",
    )
    colocated: bool = _option(
        _WRITE.colocated,
        "Promises that every file group's rows sit in one task, as `pyhudi.colocate` leaves them.",
        "hoodie.pyhudi.colocated",
    )
    commit_merge_max_bytes: Size = _option(
        _WRITE.commit_merge_max_bytes,
        "Bytes that the commit of a write that was not colocated may merge by itself.",
        "hoodie.pyhudi.commit.merge.max.bytes",
    )
    write_id: str = _option(
        "", "Names the write: done once, it is not done again under the same name.", "hoodie.pyhudi.write.id"
    )
    application: str = _option("", "Name of the application, shown to other writers.", "hoodie.write.application.id")
    batch_size: Size = _option(
        _WRITE.batch_size, "Buffered bytes of one file group before they are spilled.", "hoodie.write.batch.size"
    )
    task_max_size: Size = _option(
        _WRITE.task_max_size, "Buffered bytes of one task before they are spilled.", "hoodie.write.task.max.size"
    )
    compression: Codec = _option(_WRITE.compression, "Parquet codec of base files.", "hoodie.parquet.compression.codec")
    row_group_bytes: Size = _option(
        _WRITE.row_group_bytes, "Bytes that a row group aims at.", "hoodie.parquet.block.size"
    )
    bloom_filter: bool | None = _option(
        None,
        "Whether base files carry a bloom filter of their keys; a bucket index needs none.",
        "hoodie.parquet.bloom.filter.enabled",
    )
    metadata_prefix: str = _option(
        "_",
        "Options that begin with it are kept in the commit's extra metadata.",
        "hoodie.datasource.write.commitmeta.key.prefix",
    )
    columns: Fields | None = _option(
        None, "The columns to read, in this order; all without it.", "columns", "hoodie.pyhudi.read.columns"
    )
    query_type: QueryType = _option(
        "snapshot",
        "What a read shows.",
        "hoodie.datasource.query.type",
        "hoodie.datasource.view.type",
        supported=["snapshot"],
    )
    split_size: Size = _option(128 * MIB, "Bytes of files that one task reads.", "hoodie.pyhudi.read.split.size")

    # Filled from families of keys, not from keys of their own.
    storage_options: dict[str, str] = Field(default_factory=dict)
    extra_metadata: dict[str, str] = Field(default_factory=dict)

    @property
    def key_generator(self) -> KeyGeneratorType | None:
        """The key generator that was named, by type or by class."""
        return self.key_generator_type or self.key_generator_class

    def to_write_request(self, path: str, schema: pa.Schema, *, overwrite: bool) -> WriteRequest:
        """Return what these options ask a write to do.

        Args:
            path: The table's path.
            schema: The incoming columns.
            overwrite: True for Spark's mode ``overwrite``.
        """
        return WriteRequest(
            path=path,
            operation=self.operation,
            overwrite=overwrite,
            schema=schema,
            table=self._table_settings(),
            write=self._write_settings(),
            write_id=self.write_id,
            application=self.application,
            storage_options=dict(self.storage_options),
        )

    def _table_settings(self) -> TableSettings:
        return TableSettings(
            name=self.table_name,
            database=self.database,
            table_type=self.table_type,
            version=self.table_version,
            record_key_fields=self.record_key,
            partition_fields=self.partition_fields,
            ordering_fields=self.ordering_fields,
            merge_mode=self.merge_mode or self.payload_mode,
            key_generator=self.key_generator,
            hive_style=self.hive_style,
            url_encode=self.url_encode,
            timezone=self.timezone,
            index_type=self.index_type,
            bucket_count=self.buckets,
            hash_fields=self.hash_fields,
        )

    def _write_settings(self) -> WriteSettings:
        return WriteSettings(
            batch_size=self.batch_size,
            task_max_size=self.task_max_size,
            commit_merge_max_bytes=self.commit_merge_max_bytes,
            colocated=self.colocated,
            combine_before_upsert=self.combine_before_upsert,
            combine_before_insert=self.combine_before_insert,
            combine_before_delete=self.combine_before_delete,
            allow_empty_commit=self.allow_empty_commit,
            metadata_enable=self.metadata_enable,
            eager_rollback=self.failed_writes == "EAGER",
            foreign_age_s=self.foreign_age_s,
            heartbeat_interval_s=self.heartbeat_interval_ms / 1000,
            heartbeat_misses=self.heartbeat_misses,
            compression="none" if self.compression == "uncompressed" else self.compression,
            row_group_bytes=self.row_group_bytes,
            bloom_filter=self.bloom_filter,
            extra_metadata=dict(self.extra_metadata),
        )
