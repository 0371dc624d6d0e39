"""Options that describe a table when it is created."""

from __future__ import annotations

from ..operations.planning.table_terms import NO_UPDATE_MODE
from ..table.config.key_types import split_partition_field
from ..table.config.payloads import PAYLOADS
from ..table.config.property_keys import (
    INDEXES_NOT_DONE,
    LOOKUP_INDEXES,
    TIME_INPUT_DELIMITER,
    TIME_INPUT_FORMAT,
    TIME_INPUT_ZONE,
    TIME_OPTIONS,
    TIME_OUTPUT_FORMAT,
    TIME_OUTPUT_ZONE,
    TIME_TYPE,
    TIME_UNIT,
    TIME_ZONE,
    UNAVAILABLE_OF_DEBEZIUM,
    UNAVAILABLE_VALUE,
    VERSIONS,
    older_time_option,
)
from ..table.config.table_settings import TERMS, TableSettings
from .types import (
    BucketEngine,
    Buckets,
    Fields,
    FieldsOf,
    Generator,
    IndexType,
    Isolation,
    MergeMode,
    OptionPart,
    PartialUpdateMode,
    PartitionFields,
    PayloadName,
    SortCurve,
    TableType,
    TimestampType,
    TimeUnit,
    Timezone,
    key_of,
    option,
    settings_of,
)

TABLE = FieldsOf(TableSettings, {name: term.option for name, term in TERMS.items()})


def _column_names(fields: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the names of partition columns without their types, such as ``ts`` of ``ts:TIMESTAMP``."""
    return None if fields is None else tuple(split_partition_field(field)[0] for field in fields)


class TableOptions(OptionPart):
    """Options that describe a new table. Later writes need none; an option that contradicts the table is an error."""

    table_name: str | None = option(
        TABLE.name,
        "Name of a new table.",
        "hoodie.datasource.write.table.name",
        otherwise="the last part of the path",
    )
    database: str | None = option(TABLE.database, "Database of a new table.")
    table_type: TableType | None = option(
        TABLE.table_type,
        "Type of a new table: COPY_ON_WRITE (`cow`) or MERGE_ON_READ (`mor`).",
        "hoodie.table.type",
        "hoodie.datasource.write.storage.type",
        "type",
        otherwise="COPY_ON_WRITE",
    )
    table_version: int | None = option(
        TABLE.version,
        "Version of a new table; see [Table versions](versions.md). An existing table keeps its version.",
        "hoodie.table.version",
        supported=list(VERSIONS),
        otherwise="9",
    )
    record_key: Fields | None = option(
        TABLE.record_key_fields,
        "The columns whose values identify a row within its partition. A new table needs them.",
        "hoodie.table.recordkey.fields",
        "recordkey",
        "record_key",
    )
    partition_fields: PartitionFields | None = option(
        TABLE.partition_fields.of(_column_names),
        "The columns by which a new table is partitioned; without them it has no partitions. The key generator "
        "CUSTOM wants each as `column:SIMPLE` or `column:TIMESTAMP`.",
        "hoodie.table.partition.fields",
        "partitionby",
        "partition_by",
    )
    ordering_fields: Fields | None = option(
        TABLE.ordering_fields,
        "If two rows have one key, the row with the greater values in these columns wins; they are compared one "
        "after another. Without them the later row wins.",
        "hoodie.datasource.write.precombine.field",
        "hoodie.datasource.write.ordering.fields",
        "hoodie.table.precombine.field",
        "hoodie.payload.ordering.field",
        "orderby",
        "order_by",
    )
    key_generator_type: Generator | None = option(
        TABLE.key_generator,
        "How keys and partition paths are made of columns. The default is SIMPLE, COMPLEX, NON_PARTITION or CUSTOM, "
        "depending on the columns.",
        "hoodie.table.keygenerator.type",
        otherwise="as the columns ask",
    )
    key_generator_class: Generator | None = option(
        None,
        "The key generator, named by Apache Hudi's Java class.",
        "hoodie.datasource.write.keygenerator.class",
        "hoodie.table.keygenerator.class",
    )
    hive_style: bool | None = option(
        TABLE.hive_style,
        "Name a new table's partition folders `column=value`.",
        otherwise="false",
    )
    url_encode: bool | None = option(
        TABLE.url_encode,
        "Escape special characters in the names of a new table's partition folders.",
        otherwise="false",
    )
    index_type: IndexType | None = option(
        TABLE.index_type,
        "Index of a new table; see [Indexes](indexes.md). BUCKET computes a key's file group, the others look it up.",
        "index",
        supported=["BUCKET", *LOOKUP_INDEXES],
        unsupported=sorted(INDEXES_NOT_DONE),
        otherwise="BUCKET",
    )
    time_type: TimestampType | None = option(
        None,
        "Kind of the values from which the key generator TIMESTAMP makes partition paths.",
        TIME_TYPE,
        older_time_option(TIME_TYPE),
    )
    time_unit: TimeUnit | None = option(
        None,
        "Unit of the numbers if the type is SCALAR.",
        TIME_UNIT,
        older_time_option(TIME_UNIT),
        otherwise="SECONDS",
    )
    time_input_format: str | None = option(
        None,
        "Joda-Time patterns of values that are texts. The first pattern that fits a text reads it.",
        TIME_INPUT_FORMAT,
        older_time_option(TIME_INPUT_FORMAT),
    )
    time_input_delimiter: str | None = option(
        None,
        "Regular expression that separates the patterns of hoodie.keygen.timebased.input.dateformat.",
        TIME_INPUT_DELIMITER,
        older_time_option(TIME_INPUT_DELIMITER),
        otherwise=",",
    )
    time_input_zone: str | None = option(
        None,
        "Time zone of texts that name none. Without it the path shows the time as it is written.",
        TIME_INPUT_ZONE,
        older_time_option(TIME_INPUT_ZONE),
        otherwise="none",
    )
    time_output_format: str | None = option(
        None, "Joda-Time pattern of the partition path.", TIME_OUTPUT_FORMAT, older_time_option(TIME_OUTPUT_FORMAT)
    )
    time_output_zone: str | None = option(
        None,
        "Time zone of the time in the partition path. The default holds for values that are numbers.",
        TIME_OUTPUT_ZONE,
        older_time_option(TIME_OUTPUT_ZONE),
        otherwise="UTC",
    )
    time_zone: str | None = option(
        None,
        "Time zone of both input and output. It takes precedence over the separate options.",
        TIME_ZONE,
        older_time_option(TIME_ZONE),
    )
    buckets: Buckets | None = option(
        TABLE.bucket_count,
        "Number of buckets in each partition of a new table with the index BUCKET. `rescale_buckets` changes it later.",
        "buckets",
        otherwise="8",
    )
    hash_fields: Fields | None = option(
        TABLE.hash_fields,
        "The record key columns that choose the bucket.",
        otherwise="the record key",
    )
    bucket_engine: BucketEngine | None = option(
        None,
        "Kind of the buckets.",
        "hoodie.index.bucket.engine",
        supported=["SIMPLE"],
        otherwise="SIMPLE",
    )
    merge_mode: MergeMode | None = option(
        TABLE.merge_mode,
        "Which row wins if two rows have one key: the row with the greater ordering value (EVENT_TIME_ORDERING) or "
        "the later row (COMMIT_TIME_ORDERING).",
        "hoodie.record.merge.mode",
        supported=["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"],
        otherwise="as the ordering fields ask",
    )
    payload: PayloadName | None = option(
        TABLE.payload,
        "The merge mode, named by one of Apache Hudi's older payload classes. AWSDmsAvroPayload also sets the delete "
        "marker `Op` = `D`.",
        "hoodie.compaction.payload.class",
        supported=list(PAYLOADS),
    )
    delete_field: str = option(
        TABLE.delete_field.of(lambda text: text or None, default=""),
        "Column that marks rows of an upsert as deletes, beside `_hoodie_is_deleted`. It is given together with the "
        "marker.",
    )
    delete_marker: str = option(
        TABLE.delete_marker.of(lambda text: text or None, default=""),
        "Value of the delete column, as text, in rows that are deletes. A new table keeps column and marker; for a "
        "table without them, they hold for this write alone.",
    )
    partial_update_mode: PartialUpdateMode | None = option(
        TABLE.partial_update_mode,
        "Which values of a row leave the value of the older row of its key in place: null (IGNORE_DEFAULTS), or a "
        "text that marks an unavailable value (FILL_UNAVAILABLE); see "
        "[Merge-on-read](merge-on-read.md#partial-updates).",
        supported=["IGNORE_DEFAULTS", "FILL_UNAVAILABLE", "NONE"],
        otherwise="NONE",
    )
    unavailable: str = option(
        TABLE.unavailable.of(lambda text: text or None, default=""),
        "Text, or bytes, that marks an unavailable value under FILL_UNAVAILABLE. The default is Debezium's.",
        UNAVAILABLE_VALUE,
        otherwise=UNAVAILABLE_OF_DEBEZIUM,
    )
    isolation: Isolation | None = option(
        TABLE.isolation,
        "What a merge, an update or a delete by a condition conflicts with. `snapshot`: commits that changed the "
        "same file groups. `serializable`: also commits that changed which rows satisfy its conditions. A write may "
        "differ from its table; see [Isolation](isolation.md).",
        otherwise="serializable",
    )
    sort_by: Fields | None = option(
        TABLE.sort_by,
        "The columns by which the rows of each base file of a new table are sorted, so that queries read fewer rows; "
        "see [Sorting](sorting.md). `HudiTable.sort` changes them later.",
        otherwise="unsorted",
    )
    sort_curve: SortCurve | None = option(
        TABLE.sort_curve,
        "Order of several sort columns: one after the other (linear), or along a curve that serves them equally "
        "(zorder, hilbert).",
        otherwise="linear",
    )
    timezone: Timezone | None = option(
        TABLE.timezone,
        "Time zone of a new table's instant times.",
        otherwise="UTC",
    )

    @property
    def time_options(self) -> dict[str, str]:
        """The options of times in partition paths, by Hudi's keys."""
        values_by_key = {key_of(type(self), name): getattr(self, name) for name in TableOptions.model_fields}
        return {key: values_by_key[key] for key in TIME_OPTIONS if values_by_key.get(key)}

    def table_settings(self) -> TableSettings:
        """Return the settings of a table that the options name; a payload class implies some of them."""
        payload = PAYLOADS.get(self.payload or "")
        # A payload class without a partial update mode means that there is none.
        by_payload = None if payload is None else payload.partial_update_mode or NO_UPDATE_MODE
        partition_types = (split_partition_field(text)[1] for text in self.partition_fields or ())
        return settings_of(
            TableSettings,
            self,
            partition_types=tuple(kind for kind in partition_types if kind is not None) or None,
            merge_mode=self.merge_mode or (payload.merge_mode if payload else None),
            payload=payload,
            partial_update_mode=self.partial_update_mode or by_payload,
            key_generator=self.key_generator_type or self.key_generator_class,
            time_options=self.time_options,
        )
