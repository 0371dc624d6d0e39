"""The keys of ``hoodie.properties`` and the values that have a meaning, by Hudi's own names (``HoodieTableConfig``)."""

from __future__ import annotations

NAME = "hoodie.table.name"
DATABASE = "hoodie.database.name"
TYPE = "hoodie.table.type"
VERSION = "hoodie.table.version"
INITIAL_VERSION = "hoodie.table.initial.version"
LAYOUT_VERSION = "hoodie.timeline.layout.version"
LOCK = "hoodie.write.lock."
LOCK_PROVIDER = f"{LOCK}provider"
CHECKSUM = "hoodie.table.checksum"
RECORD_KEY_FIELDS = "hoodie.table.recordkey.fields"
PARTITION_FIELDS = "hoodie.table.partition.fields"
ORDERING_FIELDS = "hoodie.table.ordering.fields"
PRECOMBINE_FIELD = "hoodie.table.precombine.field"
MERGE_MODE = "hoodie.record.merge.mode"
MERGE_PROPERTY_PREFIX = "hoodie.record.merge.property."
DELETE_FIELD = f"{MERGE_PROPERTY_PREFIX}hoodie.payload.delete.field"
DELETE_MARKER = f"{MERGE_PROPERTY_PREFIX}hoodie.payload.delete.marker"
LEGACY_PAYLOAD_CLASS = "hoodie.table.legacy.payload.class"
PAYLOAD_CLASS = "hoodie.compaction.payload.class"
MERGE_STRATEGY = "hoodie.record.merge.strategy.id"
OLD_MERGE_STRATEGY = "hoodie.compaction.record.merger.strategy"
PARTIAL_UPDATE_MODE = "hoodie.table.partial.update.mode"
UNAVAILABLE_VALUE = f"{MERGE_PROPERTY_PREFIX}hoodie.write.partial.update.unavailable.value"
IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
FILL_UNAVAILABLE = "FILL_UNAVAILABLE"
# Debezium's placeholder for an unchanged value that is too large to send.
UNAVAILABLE_OF_DEBEZIUM = "__debezium_unavailable_value"
KEY_GENERATOR_TYPE = "hoodie.table.keygenerator.type"
KEY_GENERATOR_CLASS = "hoodie.table.keygenerator.class"
# Written by releases of Apache Hudi after 1.2, and by pyhudi if a table of version 8 needs it.
COMPLEX_KEY_ENCODING = "hoodie.table.complex.keygen.encoding"
FIELD_PREFIXED, VALUE_ONLY = "FIELD_PREFIXED", "VALUE_ONLY"
CONSISTENT_TIMESTAMPS = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
SLASH_DATES = "hoodie.datasource.write.slash.separated.date.partitioning"
DROP_PARTITION_COLUMNS = "hoodie.datasource.write.drop.partition.columns"
PARTITION_EXTRACTOR = "hoodie.table.partition_extractor_class"
PARTITION_METAFILE_BASE_FORMAT = "hoodie.partition.metafile.use.base.format"
BASE_FILE_FORMAT = "hoodie.table.base.file.format"
MULTIPLE_BASE_FILE_FORMATS = "hoodie.table.multiple.base.file.formats.enable"
TABLE_FORMAT = "hoodie.table.format"
POPULATE_META_FIELDS = "hoodie.populate.meta.fields"
TIMEZONE = "hoodie.table.timeline.timezone"
TIMELINE_PATH = "hoodie.timeline.path"
HISTORY_PATH = "hoodie.timeline.history.path"
ARCHIVE_FOLDER = "hoodie.archivelog.folder"
CDC_ENABLED = "hoodie.table.cdc.enabled"
METADATA_PARTITIONS = "hoodie.table.metadata.partitions"
METADATA_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
INDEX_DEFINITIONS = "hoodie.table.index.defs.path"
CREATE_SCHEMA = "hoodie.table.create.schema"
BOOTSTRAP_BASE_PATH = "hoodie.bootstrap.base.path"

# How the TIMESTAMP key generator reads times and writes them into paths (``TimestampKeyGeneratorConfig``).
TIME_TYPE = "hoodie.keygen.timebased.timestamp.type"
TIME_UNIT = "hoodie.keygen.timebased.timestamp.scalar.time.unit"
TIME_INPUT_FORMAT = "hoodie.keygen.timebased.input.dateformat"
TIME_INPUT_DELIMITER = "hoodie.keygen.timebased.input.dateformat.list.delimiter.regex"
TIME_INPUT_ZONE = "hoodie.keygen.timebased.input.timezone"
TIME_OUTPUT_FORMAT = "hoodie.keygen.timebased.output.dateformat"
TIME_OUTPUT_ZONE = "hoodie.keygen.timebased.output.timezone"
TIME_ZONE = "hoodie.keygen.timebased.timezone"
TIME_PARSER = "hoodie.keygen.datetime.parser.class"
TIME_ZONES = (TIME_INPUT_ZONE, TIME_OUTPUT_ZONE)
TIME_OPTIONS = (
    TIME_TYPE,
    TIME_UNIT,
    TIME_INPUT_FORMAT,
    TIME_INPUT_DELIMITER,
    TIME_INPUT_ZONE,
    TIME_OUTPUT_FORMAT,
    TIME_OUTPUT_ZONE,
    TIME_ZONE,
    TIME_PARSER,
)

# pyhudi's own: what counts as a conflict.
ISOLATION = "hoodie.pyhudi.isolation"
SERIALIZABLE, SNAPSHOT = "serializable", "snapshot"

# pyhudi's own: the order of the rows of each base file.
SORT_BY, SORT_CURVE = "hoodie.pyhudi.sort.by", "hoodie.pyhudi.sort.curve"

# pyhudi's own: the types of the partition fields of the key generator CUSTOM in tables of version 6, where Apache Hudi
# stores the names alone.
PARTITION_TYPES = "hoodie.pyhudi.partition.types"

# pyhudi's own: the index that finds the keys of a record index which went out of use. Apache Hudi refuses a job whose
# index differs from INDEX_TYPE, and its jobs name the record index.
RECORD_INDEX_LOOKUP = "hoodie.pyhudi.record.index.lookup"

# For Apache Hudi these are write options, which it does not store; pyhudi keeps them with the table.
INDEX_TYPE = "hoodie.index.type"
BUCKET_COUNT = "hoodie.bucket.index.num.buckets"
BUCKET_HASH_FIELDS = "hoodie.bucket.index.hash.field"
BUCKET_ENGINE = "hoodie.index.bucket.engine"
# Apache Hudi's procedures read the table's properties as options of theirs. If these name the index BUCKET, Apache
# Hudi fails without the option that names the record key: the property of the same meaning has another name.
RECORD_KEY_OPTION = "hoodie.datasource.write.recordkey.field"
# Properties that some releases of pyhudi add and others do not; they repeat what other properties say.
ADDED_BY_PYHUDI = frozenset({BUCKET_ENGINE, RECORD_KEY_OPTION})

BUCKET = "BUCKET"
SIMPLE, GLOBAL_SIMPLE, BLOOM, GLOBAL_BLOOM = "SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM"
LOOKUP_INDEXES = (SIMPLE, GLOBAL_SIMPLE, BLOOM, GLOBAL_BLOOM)
GLOBAL_INDEXES = frozenset({GLOBAL_SIMPLE, GLOBAL_BLOOM})
# These indexes live in the metadata table, in another system, or in the memory of a job.
INDEXES_NOT_DONE = frozenset(
    {"RECORD_INDEX", "RECORD_LEVEL_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", "INMEMORY", "HBASE", "FLINK_STATE"}
)

NEWEST_VERSION = 9
VERSIONS = (9, 8, 6)
"""The versions whose tables pyhudi reads and writes; of version 6 it writes those of `COPY_ON_WRITE` alone."""
NEWEST_LAYOUT = 2
LAYOUT_OF_OLD_TABLES = 1
# Until this version instants lie in ``.hoodie`` itself, and the archive is a folder beside them.
NEWEST_FLAT_VERSION = 6
COPY_ON_WRITE = "COPY_ON_WRITE"
MERGE_ON_READ = "MERGE_ON_READ"
EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
CUSTOM = "CUSTOM"

CONSTANT_OF_NEW_TABLES = {
    DROP_PARTITION_COLUMNS: "false",
    PARTITION_METAFILE_BASE_FORMAT: "false",
    BASE_FILE_FORMAT: "PARQUET",
    MULTIPLE_BASE_FILE_FORMATS: "false",
    POPULATE_META_FIELDS: "true",
    CDC_ENABLED: "false",
}
"""Properties that Apache Hudi gives every new table by default."""
FOLDERS_OF_NEW_TABLES = {
    LAYOUT_OF_OLD_TABLES: {LAYOUT_VERSION: str(LAYOUT_OF_OLD_TABLES), ARCHIVE_FOLDER: "archived"},
    NEWEST_LAYOUT: {
        LAYOUT_VERSION: str(NEWEST_LAYOUT),
        TIMELINE_PATH: "timeline",
        HISTORY_PATH: "history",
        ARCHIVE_FOLDER: "history",
    },
}
"""Where Apache Hudi has a new table's instants and archive by default, by the timeline's layout."""


def older_time_option(option: str) -> str:
    """Return the name that an option of `TIME_OPTIONS` had before release 0.14."""
    return option.replace("hoodie.keygen.", "hoodie.deltastreamer.keygen.")
