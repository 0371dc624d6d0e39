"""What to use in place of an option of another system.

The names are those of Delta Lake's, Iceberg's and Spark's own readers and writers, of Apache Hudi's Flink connector
(``FlinkOptions``) and of its tables in Spark SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

from ..errors import InvalidOptionError
from ..table.config.payloads import Payload
from ..timeline.clock import query_time
from .names import OPTIONS
from .types import CleanPolicy, CompactionTrigger

Convert = Callable[[str], "str | None"]
Ours = tuple[tuple[str, "str | Convert"], ...]
Theirs = dict[str, dict[str, tuple[str, Ours]]]

_UNITS = ((1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k"), (1, ""))
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Hint:
    """What to do in place of another system's option.

    Attributes:
        system: The system that has the option.
        words: A sentence or two with a ``{}`` for each option of pyhudi's.
        options: Those options, each with the value to give, or a function of the given value that returns None if
            pyhudi has no such value. An empty value leaves the choice to the user.
    """

    system: str
    words: str
    options: Ours = ()

    def options_with_values(self, text: str) -> list[tuple[str, str]]:
        """Return pyhudi's options, each with its value; the value is empty if the user has to choose it."""
        return [(key, value if isinstance(value, str) else value(text) or "") for key, value in self.options]

    def advice(self, text: str) -> str:
        """Return what to do about the option with this value."""
        return self.words.format(*(f"{key}={value}" if value else key for key, value in self.options_with_values(text)))


def find_hint(key: str) -> Hint | None:
    """Return what to do in place of a lower-case key of another system; None for an unknown key."""
    if key in HINTS:
        return HINTS[key]
    return next((family for prefix, family in FAMILIES.items() if key.startswith(prefix)), None)


# Each of these functions returns the value of an option of pyhudi for the value of another system's option; None if
# pyhudi has no such value.
def _same_value(text: str) -> str:
    """Return the value as it is."""
    return text.strip()


def _mebibytes(text: str) -> str | None:
    """Return a size in bytes with its unit for a number of mebibytes, which may be a fraction."""
    try:
        size = round(float(text) * _MEBIBYTE)
    except (ValueError, OverflowError):
        return None
    return (
        next((f"{size // factor}{unit}" for factor, unit in _UNITS if size % factor == 0), None) if size > 0 else None
    )


def _bytes(text: str) -> str | None:
    """Return a number of bytes above 0 as it is; None for any other text."""
    return text.strip() if text.strip().isdecimal() and int(text) > 0 else None


def _time(text: str) -> str | None:
    """Return a text as it is if pyhudi reads it as a time; None for any other text."""
    try:
        query_time(text.strip(), "UTC")
    except (InvalidOptionError, ValueError):
        return None
    return text.strip()


def _codec(text: str) -> str | None:
    """Return pyhudi's name of a codec of Parquet; None for a codec that it does not have."""
    codec = {"none": "uncompressed"}.get(text.strip().lower(), text.strip().lower())
    return codec if codec in {"zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"} else None


def _count(text: str) -> str | None:
    """Return a whole number above 0 as it is; None for any other text."""
    return text.strip() if text.strip().isascii() and text.strip().isdecimal() and int(text) > 0 else None


def _policy(text: str) -> str | None:
    """Return a policy of cleaning in upper case; None if pyhudi has no such policy."""
    return text.strip().upper() if text.strip().upper() in get_args(get_args(CleanPolicy)[0]) else None


def _trigger(text: str) -> str | None:
    """Return a trigger of compactions in upper case; None if pyhudi has no such trigger."""
    return text.strip().upper() if text.strip().upper() in get_args(get_args(CompactionTrigger)[0]) else None


def _flag(text: str) -> str | None:
    """Return true or false in lower case; None for any other text."""
    return text.strip().lower() if text.strip().lower() in {"true", "false"} else None


def _overwrite_mode(text: str) -> str:
    """Return the mode of overwriting, which is dynamic for any text but static."""
    return "static" if text.strip().lower() == "static" else "dynamic"


def _operation(text: str) -> str | None:
    """Return a write operation in lower case; None if pyhudi does not do it."""
    return text.strip().lower() if text.strip().lower() in (OPTIONS["operation"].supported or ()) else None


def _table_type(text: str) -> str | None:
    """Return the table type of any of its spellings: ``cow``, ``mor``, ``merge-on-read``, ``MERGE_ON_READ``."""
    name = text.strip().upper().replace("-", "_")
    types_by_short_name = {"COW": "COPY_ON_WRITE", "MOR": "MERGE_ON_READ"}
    return (
        types_by_short_name.get(name, name)
        if types_by_short_name.get(name, name) in types_by_short_name.values()
        else None
    )


def _index(text: str) -> str | None:
    """Return the index of that name; None for an index in Flink's state."""
    return text.strip().upper() if text.strip().upper() in (OPTIONS["index_type"].supported or ()) else None


def _payload(text: str) -> str | None:
    """Return a payload class as it is; None for a class that pyhudi does not know."""
    return text.strip() if Payload.find(text.strip()) else None


_DELTA, _ICEBERG, _SPARK = "Delta Lake", "Iceberg", "Spark's file sources"
_FLINK, _SQL = "Apache Hudi's Flink connector", "Apache Hudi's tables in Spark SQL"

_AS_OF, _BEGIN, _END, _QUERY = (OPTIONS[name].key for name in ("as_of", "begin_time", "end_time", "query_type"))
_KEY, _ORDER, _TYPE = (OPTIONS[name].key for name in ("record_key", "ordering_fields", "table_type"))
_BUCKETS, _CODEC, _BLOCK = (OPTIONS[name].key for name in ("buckets", "compression", "row_group_bytes"))
_INDEX, _LARGEST = (OPTIONS[name].key for name in ("index_type", "max_file_size"))
_CLEANS, _ARCHIVES = (OPTIONS[name].key for name in ("clean_automatic", "archive_automatic"))
_LEAST, _MOST = (OPTIONS[name].key for name in ("keep_min_commits", "keep_max_commits"))
_OVERWRITE, _OPERATION = (OPTIONS[name].key for name in ("overwrite_mode", "operation"))
_POLICY, _COMMITS, _HOURS, _VERSIONS = (
    OPTIONS[name].key for name in ("clean_policy", "clean_commits", "clean_hours", "clean_file_versions")
)
_START = OPTIONS["stream_start"].key
_CHANGES = (_QUERY, "incremental")
_NOTE = "_note"

_BY_AGE = "A clean goes by the age of commits with {} and {}."
_BY_NUMBER = "The number of commits decides how long the timeline is: {}."
_AT = "{} shows the table as it was then."
_BY_INSTANT = "A table has no such numbers: {} takes the instant of a commit, which HudiTable.history() lists."
_NO_BRANCH = "A table has one line of instants: {} takes an instant, which HudiTable.history() lists."
_SINCE = "{} with {} shows the rows that later commits changed, without deletes."
_UNTIL = "{} with {} and {} shows the rows that commits changed between two times, without deletes."
_STREAM = (
    "Leave it out: a stream reads the rows that commits write, and nothing of what they take away. {} says where it "
    "begins."
)
_STARTS = "{} says where a stream begins."
_PER_BATCH = "A batch of a stream has whole commits: {} limits their number."
_COLUMNS = "Leave it out: a write adds columns and makes types wider by itself. {} lets its rows lack columns."
_FILES = (
    "Leave it out: files are as large as buckets are, and {} is the number of buckets of a new table. If another index "
    "looks keys up, {} is the size up to which files are filled."
)
_IN_PLACE = "{} does that here."
_TYPED = "{} does that here, when the table is made."
_ANY_ORDER = "Leave it out: rows may come in any order, and HudiTable brings those of one file group together."
_KEPT = "Options that begin with _ are kept with the commit, such as {}."
_SPARK_TASKS = "Leave it out: Spark decides how many tasks there are."
_NO_CATALOG = "Leave it out: pyhudi registers tables in no catalog."

_THEIRS: Theirs = {
    _DELTA: {
        "mergeschema": (_COLUMNS, ((OPTIONS["reconcile_schema"].key, "true"),)),
        "overwriteschema": ("Leave it out: mode overwrite replaces the columns together with the rows.", ()),
        "timestampasof": (_AT, ((_AS_OF, _time),)),
        "versionasof": (_BY_INSTANT, ((_AS_OF, ""),)),
        "readchangefeed readchangedata startingversion": (_SINCE, (_CHANGES, (_BEGIN, ""))),
        "startingtimestamp": (_SINCE, (_CHANGES, (_BEGIN, _time))),
        "endingversion": (_UNTIL, (_CHANGES, (_BEGIN, ""), (_END, ""))),
        "endingtimestamp": (_UNTIL, (_CHANGES, (_BEGIN, ""), (_END, _time))),
        "replacewhere": (
            "{} with mode overwrite replaces the partitions that its rows belong to. For other conditions there is "
            "HudiTable.delete, before the rows are written.",
            ((_OPERATION, "insert_overwrite"),),
        ),
        "partitionoverwritemode": (_IN_PLACE, ((_OVERWRITE, _overwrite_mode),)),
        "datachange": ("Leave it out: every commit counts as a change of the rows that it writes.", ()),
        "txnappid txnversion": (
            "{} names a write, which pyhudi then does only once: combine both values into the name.",
            ((OPTIONS["write_id"].key, ""),),
        ),
        "usermetadata": (_KEPT, ((_NOTE, _same_value),)),
        "optimizewrite autocompact": (_FILES, ((_BUCKETS, ""), (_LARGEST, ""))),
        "ignorechanges ignoredeletes skipchangecommits failondataloss": (_STREAM, ((_START, ""),)),
        "delta.deletedfileretentionduration": (_BY_AGE, ((_POLICY, "KEEP_LATEST_BY_HOURS"), (_HOURS, ""))),
        "delta.logretentionduration": (_BY_NUMBER, ((_MOST, ""),)),
    },
    _ICEBERG: {
        "merge-schema": (_COLUMNS, ((OPTIONS["reconcile_schema"].key, "true"),)),
        "snapshot-id": (_BY_INSTANT, ((_AS_OF, ""),)),
        "branch tag": (_NO_BRANCH, ((_AS_OF, ""),)),
        "as-of-timestamp": (_AT, ((_AS_OF, _time),)),
        "start-snapshot-id": (_SINCE, (_CHANGES, (_BEGIN, ""))),
        "start-timestamp": (_SINCE, (_CHANGES, (_BEGIN, _time))),
        "end-snapshot-id": (_UNTIL, (_CHANGES, (_BEGIN, ""), (_END, ""))),
        "end-timestamp": (_UNTIL, (_CHANGES, (_BEGIN, ""), (_END, _time))),
        "stream-from-timestamp": (_STARTS, ((_START, _time),)),
        "write-format write.format.default": ("Leave it out: base files are Parquet.", ()),
        "delete-format write.delete.format.default": ("Leave it out: there are no delete files.", ()),
        "fanout-enabled write.spark.fanout.enabled distribution-mode write.distribution-mode "
        "use-table-distribution-and-ordering check-ordering": (_ANY_ORDER, ()),
        "check-nullability": ("Leave it out: a write looks for nulls in NOT NULL columns alone.", ()),
        "isolation-level validate-from-snapshot-id": (
            "Leave it out: of two writes that change a file group at once one fails. {} takes the completion time of "
            "the newest commit that the rows were made from.",
            ((OPTIONS["based_on"].key, ""),),
        ),
        "overwrite-mode": (_IN_PLACE, ((_OVERWRITE, _overwrite_mode),)),
        "target-file-size-bytes write.target-file-size-bytes": (_FILES, ((_BUCKETS, ""), (_LARGEST, _bytes))),
        "compression-codec write.parquet.compression-codec": (_IN_PLACE, ((_CODEC, _codec),)),
        "write.parquet.row-group-size-bytes": (_IN_PLACE, ((_BLOCK, _bytes),)),
        "split-size read.split.target-size": (_IN_PLACE, ((OPTIONS["split_size"].key, _bytes),)),
        "file-open-cost lookback vectorization-enabled batch-size": ("Leave it out: it tunes Iceberg's readers.", ()),
        "write.delete.mode write.update.mode write.merge.mode": (_TYPED, ((_TYPE, _table_type),)),
        "history.expire.min-snapshots-to-keep": (_IN_PLACE, ((_COMMITS, _count),)),
        "history.expire.max-snapshot-age-ms": (_BY_AGE, ((_POLICY, "KEEP_LATEST_BY_HOURS"), (_HOURS, ""))),
        "format-version": ("Leave it out: a table is made in Apache Hudi's newest version.", ()),
    },
    _SPARK: {
        "compression": (_IN_PLACE, ((_CODEC, _codec),)),
        "maxrecordsperfile": (_FILES, ((_BUCKETS, ""), (_LARGEST, ""))),
        "maxfilespertrigger": (_PER_BATCH, ((OPTIONS["stream_commits"].key, _count),)),
        "recursivefilelookup pathglobfilter modifiedafter modifiedbefore basepath": (
            "Leave it out: the table knows its files. Say with .where(…) which rows are wanted.",
            (),
        ),
    },
    _FLINK: {
        "write.batch.size": (
            "{} does that here, in bytes or with a unit; Flink counts in MiB.",
            ((OPTIONS["batch_size"].key, _mebibytes),),
        ),
        "write.task.max.size": (
            "{} does that here, in bytes or with a unit; Flink counts in MiB.",
            ((OPTIONS["task_max_size"].key, _mebibytes),),
        ),
        "write.parquet.block.size": (
            "{} does that here, in bytes or with a unit; Flink counts in MiB.",
            ((_BLOCK, _mebibytes),),
        ),
        "write.parquet.max.file.size": (_FILES, ((_BUCKETS, ""), (_LARGEST, _mebibytes))),
        "write.operation": (_IN_PLACE, ((_OPERATION, _operation),)),
        "write.precombine": (
            "An upsert does so by itself; {} does for inserts.",
            ((OPTIONS["combine_before_insert"].key, _flag),),
        ),
        "precombine.field write.precombine.field ordering.fields": (_IN_PLACE, ((_ORDER, _same_value),)),
        "write.partition.overwrite.mode": (_IN_PLACE, ((_OVERWRITE, _overwrite_mode),)),
        "payload.class write.payload.class": (_IN_PLACE, ((OPTIONS["payload"].key, _payload),)),
        "table.type": (_TYPED, ((_TYPE, _table_type),)),
        "index.type": (
            "{} does that here, when the table is made: one of BUCKET, the default, whose number of buckets in every "
            "partition is {}, and of SIMPLE, BLOOM, GLOBAL_SIMPLE and GLOBAL_BLOOM, which look keys up in the table "
            "and keep no state.",
            ((_INDEX, _index), (_BUCKETS, "")),
        ),
        "index.global.enabled": (
            "The indexes {} and GLOBAL_SIMPLE keep a key once in the whole table, the others once in its partition.",
            ((_INDEX, "GLOBAL_BLOOM"),),
        ),
        "index.partition.regex": ("Leave it out: a lookup reads the partitions that the rows belong to.", ()),
        "clean.policy": (_IN_PLACE, ((_POLICY, _policy),)),
        "clean.retain_commits": (_IN_PLACE, ((_COMMITS, _count),)),
        "clean.retain_hours": (_IN_PLACE, ((_HOURS, _count),)),
        "clean.retain_file_versions": (_IN_PLACE, ((_VERSIONS, _count),)),
        "clean.async.enabled": ("A write cleans once it is complete, unless {}.", ((_CLEANS, "false"),)),
        "archive.max_commits": (_IN_PLACE, ((_MOST, _count),)),
        "archive.min_commits": (_IN_PLACE, ((_LEAST, _count),)),
        "compaction.delta_commits": (_IN_PLACE, ((OPTIONS["compact_delta_commits"].key, _count),)),
        "compaction.delta_seconds": (_IN_PLACE, ((OPTIONS["compact_delta_seconds"].key, _count),)),
        "compaction.trigger.strategy": (_IN_PLACE, ((OPTIONS["compact_trigger"].key, _trigger),)),
        "compaction.target_io": (_IN_PLACE, ((OPTIONS["compaction_target_io"].key, _count),)),
        "compaction.async.enabled": (
            "A write compacts once it is complete, if that is due, unless {}.",
            ((OPTIONS["compact_inline"].key, "false"),),
        ),
        "compaction.schedule.enabled": (
            "{} plans compactions after writes that do not compact.",
            ((OPTIONS["compact_schedule_inline"].key, _flag),),
        ),
        "metadata.enabled": (_IN_PLACE, ((OPTIONS["metadata_enable"].key, _flag),)),
        "read.start-commit": (_SINCE, (_CHANGES, (_BEGIN, _time))),
        "read.end-commit": (_UNTIL, (_CHANGES, (_BEGIN, ""), (_END, _time))),
        "write.tasks write.bucket_assign.tasks write.index_bootstrap.tasks read.tasks": (_SPARK_TASKS, ()),
    },
    _SQL: {
        "primarykey": (_IN_PLACE, ((_KEY, _same_value),)),
        "precombinefield orderingfields": (_IN_PLACE, ((_ORDER, _same_value),)),
    },
}

# Families of keys: a single key's hint comes before its family's.
_NEVER_DONE: Theirs = {
    _DELTA: {"delta.": ("Leave it out: it is a property of Delta's tables.", ())},
    _ICEBERG: {"snapshot-property.": (_KEPT, ((_NOTE, _same_value),))},
    _FLINK: {
        "compaction.": ("Leave it out: it tunes Flink's compaction.", ()),
        "clean.": ("Leave it out: a write cleans once it is complete, unless {}.", ((_CLEANS, "false"),)),
        "archive.": ("Leave it out: a write archives once it is complete, unless {}.", ((_ARCHIVES, "false"),)),
        "clustering.": ("Leave it out: file groups stay as the writes leave them.", ()),
        "hive_sync.": (_NO_CATALOG, ()),
        "index.": ("Leave it out: no index has a state, which would have to be loaded or to expire.", ()),
        "metadata.": ("Leave it out: it tunes how Flink keeps a metadata table.", ()),
        "cdc. changelog.": ("Leave it out: tables keep no change data.", ()),
        "read.streaming.": (_STREAM, ((_START, ""),)),
        "read.": ("Leave it out: it tunes Flink's readers.", ()),
        "write.": ("Leave it out: it tunes Flink's writers.", ()),
    },
}


def _hints_by_key(hints: Theirs) -> Iterator[tuple[str, Hint]]:
    """Yield each key of another system with its hint."""
    for system, hints_of_system in hints.items():
        for keys, (words, options) in hints_of_system.items():
            for key in keys.split():
                yield key, Hint(system, words, options)


HINTS: dict[str, Hint] = dict(_hints_by_key(_THEIRS))
FAMILIES: dict[str, Hint] = dict(_hints_by_key(_NEVER_DONE))
