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


def _names(fields: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if fields is None else tuple(split_partition_field(field)[0] for field in fields)


class TableOptions(OptionPart):
    """Options that describe a new table. Later writes need none; an option that contradicts the table is an error."""

    table_name: str | None = option(
        TABLE.name,
        "Name of a new table; without it the last part of the path.",
        "hoodie.datasource.write.table.name",
        otherwise="the last part of the path",
    )
    database: str | None = option(TABLE.database, "Database that a new table belongs to.")
    table_type: TableType | None = option(
        TABLE.table_type,
        "Type of a new table, also as `cow` or `mor`.",
        "hoodie.table.type",
        "hoodie.datasource.write.storage.type",
        "type",
        otherwise="COPY_ON_WRITE",
    )
    table_version: int | None = option(
        TABLE.version,
        "Version of a new table, see [Table versions](versions.md); 9 without it. An existing table keeps its own.",
        "hoodie.table.version",
        supported=list(VERSIONS),
        otherwise="9",
    )
    record_key: Fields | None = option(
        TABLE.record_key_fields,
        "The columns whose values identify a row within its partition; a new table needs them.",
        "hoodie.table.recordkey.fields",
        "recordkey",
        "record_key",
    )
    partition_fields: PartitionFields | None = option(
        TABLE.partition_fields.of(_names),
        "The columns that a new table is partitioned by; none without it. The key generator CUSTOM wants each as "
        "`column:SIMPLE` or `column:TIMESTAMP`.",
        "hoodie.table.partition.fields",
        "partitionby",
        "partition_by",
    )
    ordering_fields: Fields | None = option(
        TABLE.ordering_fields,
        "The columns whose greater values win when two rows have one key, compared one after another; without them the "
        "later row wins.",
        "hoodie.datasource.write.precombine.field",
        "hoodie.datasource.write.ordering.fields",
        "hoodie.table.precombine.field",
        "hoodie.payload.ordering.field",
        "orderby",
        "order_by",
    )
    key_generator_type: Generator | None = option(
        TABLE.key_generator,
        "How keys and partition paths are made of columns; without it SIMPLE, COMPLEX, NON_PARTITION or CUSTOM, as the "
        "columns ask for.",
        "hoodie.table.keygenerator.type",
        otherwise="as the columns ask",
    )
    key_generator_class: Generator | None = option(
        None,
        "The same, named by Apache Hudi's Java class.",
        "hoodie.datasource.write.keygenerator.class",
        "hoodie.table.keygenerator.class",
    )
    hive_style: bool | None = option(
        TABLE.hive_style,
        "Whether a new table's folders read `column=value`; false without it.",
        otherwise="false",
    )
    url_encode: bool | None = option(
        TABLE.url_encode,
        "Whether a new table escapes special characters in its folders; false without it.",
        otherwise="false",
    )
    index_type: IndexType | None = option(
        TABLE.index_type,
        "Index of a new table, see [Indexes](indexes.md): BUCKET computes a key's file group, the others look it up.",
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
        "Unit of the numbers where the type is SCALAR; seconds without it.",
        TIME_UNIT,
        older_time_option(TIME_UNIT),
        otherwise="SECONDS",
    )
    time_input_format: str | None = option(
        None,
        "The Joda-Time patterns of values that are texts; the first that fits a text reads it.",
        TIME_INPUT_FORMAT,
        older_time_option(TIME_INPUT_FORMAT),
    )
    time_input_delimiter: str | None = option(
        None,
        "The regular expression that separates those patterns; a comma without it.",
        TIME_INPUT_DELIMITER,
        older_time_option(TIME_INPUT_DELIMITER),
        otherwise=",",
    )
    time_input_zone: str | None = option(
        None,
        "The time zone of texts that name none; without it the path shows the time as it is written.",
        TIME_INPUT_ZONE,
        older_time_option(TIME_INPUT_ZONE),
        otherwise="none",
    )
    time_output_format: str | None = option(
        None, "The Joda-Time pattern of the partition path.", TIME_OUTPUT_FORMAT, older_time_option(TIME_OUTPUT_FORMAT)
    )
    time_output_zone: str | None = option(
        None,
        "The time zone in which the path shows the time; UTC without it where the values are numbers.",
        TIME_OUTPUT_ZONE,
        older_time_option(TIME_OUTPUT_ZONE),
        otherwise="UTC",
    )
    time_zone: str | None = option(
        None, "Sets both time zones; it takes precedence over each of them.", TIME_ZONE, older_time_option(TIME_ZONE)
    )
    buckets: Buckets | None = option(
        TABLE.bucket_count,
        "Number of buckets in every partition under the index BUCKET, which a rescale changes later; 8 without it.",
        "buckets",
        otherwise="8",
    )
    hash_fields: Fields | None = option(
        TABLE.hash_fields,
        "The record key columns that choose the bucket; all of them without it.",
        otherwise="the record key",
    )
    bucket_engine: BucketEngine | None = option(
        None,
        "The kind of buckets.",
        "hoodie.index.bucket.engine",
        supported=["SIMPLE"],
        otherwise="SIMPLE",
    )
    merge_mode: MergeMode | None = option(
        TABLE.merge_mode,
        "Which row wins when two rows have one key: event time with an ordering field, commit time without.",
        "hoodie.record.merge.mode",
        supported=["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"],
        otherwise="as the ordering fields ask",
    )
    payload: PayloadName | None = option(
        TABLE.payload,
        "The merge mode, named by one of Apache Hudi's older payload classes. AWSDmsAvroPayload brings the delete "
        "marker `Op` = `D` along.",
        "hoodie.compaction.payload.class",
        supported=list(PAYLOADS),
    )
    delete_field: str = option(
        TABLE.delete_field.of(lambda text: text or None, default=""),
        "The column by which rows of an upsert are deletes, beside `_hoodie_is_deleted`; goes with the marker.",
    )
    delete_marker: str = option(
        TABLE.delete_marker.of(lambda text: text or None, default=""),
        "The column's value, as text, in rows that are deletes. A table keeps field and marker from its creation; for "
        "a table without them, they hold for this write alone.",
    )
    partial_update_mode: PartialUpdateMode | None = option(
        TABLE.partial_update_mode,
        "Which values of a row leave a column to the older row of its key: null (IGNORE_DEFAULTS), or a text that "
        "marks an unavailable value (FILL_UNAVAILABLE); see [Merge-on-read](merge-on-read.md#partial-updates).",
        supported=["IGNORE_DEFAULTS", "FILL_UNAVAILABLE", "NONE"],
        otherwise="NONE",
    )
    unavailable: str = option(
        TABLE.unavailable.of(lambda text: text or None, default=""),
        "The text, or bytes, that marks an unavailable value under FILL_UNAVAILABLE; Debezium's without it.",
        UNAVAILABLE_VALUE,
        otherwise=UNAVAILABLE_OF_DEBEZIUM,
    )
    isolation: Isolation | None = option(
        TABLE.isolation,
        "Whether a merge, an update or a delete by a condition conflicts with commits that changed which rows satisfy "
        "its conditions, or only with those that changed the same file groups; see [Isolation](isolation.md). A write "
        "may differ from its table.",
        otherwise="serializable",
    )
    sort_by: Fields | None = option(
        TABLE.sort_by,
        "The columns by which the rows of each base file of a new table are sorted, so that a query reads fewer of "
        "them; see [Sorting](sorting.md). `HudiTable.sort` changes them later.",
        otherwise="unsorted",
    )
    sort_curve: SortCurve | None = option(
        TABLE.sort_curve,
        "How several sort columns make an order: one after the other, or along a curve that does them equal justice.",
        otherwise="linear",
    )
    timezone: Timezone | None = option(
        TABLE.timezone,
        "The zone of a new table's instant times; UTC without it.",
        otherwise="UTC",
    )

    @property
    def time_options(self) -> dict[str, str]:
        """The options of times in partition paths, by Hudi's keys."""
        said = {key_of(type(self), name): getattr(self, name) for name in TableOptions.model_fields}
        return {key: said[key] for key in TIME_OPTIONS if said.get(key)}

    def table_settings(self) -> TableSettings:
        payload = PAYLOADS.get(self.payload or "")
        by_payload = None if payload is None else payload.partial_update_mode or NO_UPDATE_MODE
        kinds = (split_partition_field(text)[1] for text in self.partition_fields or ())
        return settings_of(
            TableSettings,
            self,
            partition_types=tuple(kind for kind in kinds if kind is not None) or None,
            merge_mode=self.merge_mode or (payload.merge_mode if payload else None),
            payload=payload,
            partial_update_mode=self.partial_update_mode or by_payload,
            key_generator=self.key_generator_type or self.key_generator_class,
            time_options=self.time_options,
        )
