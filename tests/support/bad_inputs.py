"""Bad inputs as data: what a user may ask of a table and be refused, each with the error that says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyhudi import errors
from pyhudi.connector.options import parse_options
from pyhudi.errors import PyHudiError
from pyhudi.operations.plan import plan_write
from pyhudi.operations.settings import TableSettings, WriteSettings
from pyhudi.operations.write import abort_write
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.table.key_types import KeyGeneratorType
from support.drive import carry_out, plan, task, write

TIMELINE = ".hoodie/timeline"

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
GOOD = pa.table([["a", "b"], ["x", "y"], [1, 1], [10, 20]], schema=SCHEMA)
KEYED = TableSettings(
    name="bad_inputs", record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2
)
COMPOSITE = replace(KEYED, record_key_fields=("id", "value"))

Act = Callable[..., object]


@dataclass(frozen=True)
class Case:
    """One bad input.

    Attributes:
        name: Says what is bad.
        error: The class that refuses it.
        says: What the message must name; ``{path}`` stands for the table's path.
        prepare: Gets the table's path, may change what is there, and returns the bad act.
        good: Rows that the table takes.
        table: The options that make it.
    """

    name: str
    error: type[PyHudiError]
    says: tuple[str, ...]
    prepare: Callable[[Path], Act]
    good: pa.Table = field(default_factory=lambda: GOOD)
    table: TableSettings = KEYED


def upsert(rows: pa.Table, **options: object) -> Callable[[Path], Act]:
    """Write rows; the act takes further options."""
    return lambda path: lambda **more: write(path, rows, **options, **more)


def ask(given: Mapping[str, object], *, overwrite: bool = False) -> Callable[[Path], Act]:
    """Write good rows with the options that a user types."""

    def prepare(path: Path) -> Act:
        def act() -> object:
            options = parse_options(given)
            return carry_out(plan_write(options.to_write_request(str(path), SCHEMA, overwrite=overwrite)), [GOOD])

        return act

    return prepare


def changed(name: str, values: list[object] | pa.Array, kind: pa.DataType | None = None) -> pa.Table:
    """Return the good rows with other values in one column."""
    at = SCHEMA.get_field_index(name)
    column = pa.array(values, kind or SCHEMA.field(name).type) if isinstance(values, list) else values
    return GOOD.set_column(at, pa.field(name, column.type), column)


def added(name: str, kind: pa.DataType) -> pa.Table:
    """Return the good rows with a column of nulls more."""
    return GOOD.append_column(pa.field(name, kind), pa.nulls(GOOD.num_rows, kind))


PARTITION_VALUES = {
    "..": "'..' are no folders",
    ".": "'.' and",
    "a/../../b": "urlencode=true",
    ".hoodie": "Hudi's own",
    ".hoodie_x/y": "Hudi's own",
    "a//b": "empty folder name",
    "/etc": "empty folder name",
    "s3:b": "colon",
    "a\0b": "NUL",
    "é" * 128: "255 bytes",
}
NULL_VALUES = [pa.array(["a", None]), pa.array([1, None])]
BLANK_VALUES = [pa.array(["a", ""]), pa.array([1, None])]


def composite(values: list[pa.Array]) -> pa.Table:
    return changed("id", values[0]).set_column(3, SCHEMA.field("value"), values[1])


# Rows that a healthy table refuses, whether the commit merges them or the tasks do.
ROWS = [
    Case("null key", errors.NullKeyError, ("'id'", "row 1", "p='y'"), upsert(changed("id", ["a", None]))),
    Case("empty key", errors.NullKeyError, ("'id'", "row 0", "p='x'"), upsert(changed("id", ["", "b"]))),
    Case(
        "composite key of nulls",
        errors.NullKeyError,
        ("'id', 'value'", "row 1"),
        upsert(composite(NULL_VALUES)),
        table=COMPOSITE,
    ),
    Case(
        "composite key of null and empty",
        errors.NullKeyError,
        ("'id', 'value'", "row 1"),
        upsert(composite(BLANK_VALUES)),
        table=COMPOSITE,
    ),
    Case(
        "delete of a null key",
        errors.NullKeyError,
        ("'id'", "row 0"),
        upsert(changed("id", [None, "b"]).select(["id", "p"]), operation="delete"),
    ),
    Case("null ordering value", errors.NullOrderingError, ("'ts'", "1 of 2"), upsert(changed("ts", [5, None]))),
    *(
        Case(
            f"partition value {number}",
            errors.PartitionValueError,
            ("'p'", repr(value), why),
            upsert(changed("p", ["x", value])),
        )
        for number, (value, why) in enumerate(PARTITION_VALUES.items())
    ),
    Case(
        "partition inside another",
        errors.PartitionValueError,
        ("'x/deeper'", "'x'", "{path}", "urlencode=true"),
        upsert(changed("p", ["x", "x/deeper"])),
    ),
    Case(
        "date of five digits in a key",
        errors.DataError,
        ("'id'", "years 1 to 9999"),
        upsert(changed("id", [0, 2_932_897], pa.date32())),
        good=changed("id", [0, 2_932_896], pa.date32()),
    ),
    Case(
        "key that is no UTF-8",
        errors.DataError,
        ("UTF-8",),
        upsert(changed("id", pa.array([b"a", b"\xff"]).view(pa.string()))),
    ),
    Case(
        "time finer than a microsecond",
        errors.SchemaMismatchError,
        ("'value'", "timestamp[us]"),
        upsert(changed("value", [1000, 1001], pa.timestamp("ns"))),
        good=changed("value", [1, 2], pa.timestamp("us")),
    ),
    Case(
        "null in a column that may not be null",
        errors.SchemaMismatchError,
        ("'value'", "may not be null", "1 of 2"),
        upsert(changed("value", [1, None])),
        good=GOOD.cast(SCHEMA.set(3, pa.field("value", pa.int64(), nullable=False))),
    ),
]

# Columns that it refuses before there are rows.
UNSUPPORTED_TYPES = [
    pa.uint8(),
    pa.uint64(),
    pa.float16(),
    pa.null(),
    pa.time32("ms"),
    pa.time64("us"),
    pa.duration("us"),
    pa.month_day_nano_interval(),
    pa.decimal256(50, 2),
    pa.map_(pa.int32(), pa.string()),
    pa.struct([]),
]
COLUMNS = [
    *(
        Case(
            f"no {role} column",
            errors.MissingColumnError,
            (f"{role} column {name!r}", "{path}"),
            upsert(GOOD.drop_columns([name])),
        )
        for role, name in {"record key": "id", "partition": "p", "ordering": "ts"}.items()
    ),
    Case(
        "key column in another case",
        errors.MissingColumnError,
        ("'id'", "ID, p, ts, value"),
        upsert(GOOD.rename_columns(["ID", "p", "ts", "value"])),
    ),
    Case(
        "delete without the partition column",
        errors.MissingColumnError,
        ("'p'", "{path}"),
        upsert(GOOD.select(["id"]), operation="delete"),
    ),
    Case("two columns of one name", errors.DuplicateColumnError, ("'value'",), upsert(added("value", pa.int64()))),
    Case("two columns but for case", errors.DuplicateColumnError, ("'Value'",), upsert(added("Value", pa.int64()))),
    Case(
        "two fields but for case",
        errors.DuplicateColumnError,
        ("'s.a'", "'s.A'"),
        upsert(added("s", pa.struct([("a", pa.int32()), ("A", pa.int32())]))),
    ),
    *(
        Case(f"column of type {kind}", errors.UnsupportedTypeError, ("'odd'",), upsert(added("odd", kind)))
        for kind in UNSUPPORTED_TYPES
    ),
    Case(
        "nested column of an unsupported type",
        errors.UnsupportedTypeError,
        ("'odd.element.day'", "duration[s]"),
        upsert(added("odd", pa.list_(pa.struct([("day", pa.duration("s"))])))),
    ),
    *(
        Case(f"column named {name!r}", errors.UnsupportedTypeError, (repr(name),), upsert(added(name, pa.int32())))
        for name in ("", "a b", "a-b", "a.b", "1a")
    ),
    Case(
        "column missing",
        errors.SchemaMismatchError,
        ("value: int64 in the table, absent here", "{path}"),
        upsert(GOOD.drop_columns(["value"])),
    ),
    Case(
        "column too many",
        errors.SchemaMismatchError,
        ("extra: absent in the table, string here", "{path}"),
        upsert(added("extra", pa.string())),
    ),
    Case(
        "column of another type",
        errors.SchemaMismatchError,
        ("value: int64 in the table, string here", "{path}"),
        upsert(changed("value", ["10", "20"], pa.string())),
    ),
    Case(
        "column of a narrower type",
        errors.SchemaMismatchError,
        ("value: int32 in the table, int64 here", "{path}"),
        upsert(GOOD),
        good=changed("value", [1, 2], pa.int32()),
    ),
    Case(
        "mark of deletes that is no boolean",
        errors.SchemaMismatchError,
        ("'_hoodie_is_deleted'", "bool"),
        upsert(added("_hoodie_is_deleted", pa.string())),
    ),
]

# Options that it refuses.

CONFLICTS = {
    "name": ("other", "hoodie.table.name", "'bad_inputs'"),
    "database": ("other", "hoodie.database.name", "''"),
    "table_type": ("MERGE_ON_READ", "hoodie.datasource.write.table.type", "'COPY_ON_WRITE'"),
    "version": (8, "hoodie.write.table.version", "9"),
    "record_key_fields": (("value",), "hoodie.datasource.write.recordkey.field", "'id'"),
    "partition_fields": ((), "hoodie.datasource.write.partitionpath.field", "'p'"),
    "ordering_fields": (("value",), "hoodie.table.ordering.fields", "'ts'"),
    "merge_mode": ("COMMIT_TIME_ORDERING", "hoodie.write.record.merge.mode", "'EVENT_TIME_ORDERING'"),
    "key_generator": (KeyGeneratorType.COMPLEX, "hoodie.datasource.write.keygenerator.type", "SIMPLE"),
    "hive_style": (True, "hoodie.datasource.write.hive_style_partitioning", "false"),
    "url_encode": (True, "hoodie.datasource.write.partitionpath.urlencode", "false"),
    "timezone": ("LOCAL", "hoodie.table.timeline.timezone", "'UTC'"),
    "index_type": ("BLOOM", "hoodie.index.type", "'BUCKET'"),
    "bucket_count": (3, "hoodie.bucket.index.num.buckets", "2"),
    "hash_fields": (("value",), "hoodie.bucket.index.hash.field", "'id'"),
}
OPERATION = "hoodie.datasource.write.operation"
OPTIONS = [
    *(
        Case(
            f"another {name}",
            errors.OptionConflictError,
            (f"{key} is", f"and {kept} in the table", "{path}"),
            upsert(GOOD, table=TableSettings(**{name: said})),
        )
        for name, (said, key, kept) in CONFLICTS.items()
    ),
    Case(
        "two names of one option with two values",
        errors.OptionConflictError,
        ("hoodie.datasource.write.precombine.field", "orderby", "'ts'", "'value'"),
        ask({"hoodie.datasource.write.precombine.field": "ts", "orderby": "value"}),
    ),
    Case(
        "payload class against merge mode",
        errors.OptionConflictError,
        ("hoodie.datasource.write.payload.class", "hoodie.write.record.merge.mode"),
        ask(
            {
                "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
                "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
            }
        ),
    ),
    Case(
        "option that nobody knows",
        errors.UnknownOptionError,
        ("'hoodie.bucket.index.num.bucket'", "hoodie.bucket.index.num.buckets"),
        ask({"hoodie.bucket.index.num.bucket": "2"}),
    ),
    *(
        Case(f"value of {key}", errors.InvalidOptionError, (f"{key}={value!r}",), ask({key: value}))
        for key, value in {
            "buckets": "0",
            "hoodie.bucket.index.num.buckets": "100000001",
            "hoodie.datasource.write.hive_style_partitioning": "perhaps",
            OPERATION: "merge",
            "hoodie.write.batch.size": "12 parsecs",
            "hoodie.datasource.write.keygenerator.class": "com.example.OwnKeys",
            "hoodie.parquet.compression.codec": "zip",
        }.items()
    ),
    *(
        Case(
            f"operation {name}",
            errors.UnsupportedOptionError,
            (f"{OPERATION}={name!r}", "upsert, delete or"),
            ask({OPERATION: name}),
        )
        for name in ("insert", "bulk_insert", "insert_overwrite", "delete_partition")
    ),
    *(
        Case(f"unsupported {key}", errors.UnsupportedOptionError, (key,), ask({key: value}))
        for key, value in {
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": "8",
            "hoodie.index.type": "BLOOM",
            "hoodie.write.record.merge.mode": "CUSTOM",
            "hoodie.table.cdc.enabled": "true",
            "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
            "hoodie.schema.on.read.enable": "true",
            "hoodie.parquet.bloom.filter.enabled": "true",
            "hoodie.combine.before.upsert": "false",
        }.items()
    ),
    Case(
        "delete and mode overwrite",
        errors.UnsupportedOptionError,
        ("delete", "overwrite", 'mode("append")'),
        ask({OPERATION: "delete"}, overwrite=True),
    ),
    Case(
        "combining deletes is switched off",
        errors.UnsupportedOptionError,
        ("hoodie.combine.before.delete=false",),
        upsert(GOOD, operation="delete", settings=WriteSettings(combine_before_delete=False)),
    ),
    Case(
        "more to merge than one commit may",
        errors.PlacementError,
        ("{path}", "hoodie.pyhudi.commit.merge.max.bytes allows 1,000", "HudiTable", "pyhudi.colocate"),
        upsert(GOOD, settings=WriteSettings(commit_merge_max_bytes=1000)),
    ),
    Case(
        "colocated rows that are not",
        errors.PlacementError,
        ("{path}", "bucket 0 of partition 'x'", "hoodie.pyhudi.colocated"),
        lambda path: lambda: write(path, [GOOD, GOOD], settings=WriteSettings(colocated=True)),
    ),
]

# Somebody else at work.


def overtaken(path: Path) -> Act:
    """Commit another write between this one's plan and its tasks."""
    planned = plan(path, SCHEMA)
    write(path, GOOD)
    return lambda: carry_out(planned, [GOOD])


def given_up(path: Path) -> Act:
    planned = plan(path, SCHEMA)
    abort_write(planned)
    return lambda: task(planned, GOOD, 0)


def under_way(path: Path) -> Act:
    task(plan(path, SCHEMA), GOOD, 0)
    return lambda: write(path, GOOD)


def foreign(name: str) -> Callable[[Path], Act]:
    """Put an instant of somebody else on the timeline."""

    def prepare(path: Path) -> Act:
        (path / TIMELINE / name).write_bytes(b"")
        return lambda: write(path, GOOD)

    return prepare


OTHERS = [
    Case("overtaken by a commit", errors.CommitConflictError, ("{path}", "file group", "write again"), overtaken),
    Case("task after the abort", errors.WriteSealedError, ("{path}", "given up"), given_up),
    Case("write under way", errors.ConcurrentWriteError, ("{path}", "last heartbeat"), under_way),
    Case(
        "write of Apache Hudi under way",
        errors.ConcurrentWriteError,
        ("{path}", "20260101000000000", "no heartbeat", "hoodie.clean.failed.writes.policy=EAGER"),
        foreign("20260101000000000.commit.requested"),
    ),
]

# Writes and reads where no table is.

CREATIONS = [
    Case(
        "no record key",
        errors.MissingOptionError,
        ("{path}", "hoodie.datasource.write.recordkey.field"),
        upsert(GOOD),
    ),
    Case("delete", errors.TableNotFoundError, ("{path}",), upsert(GOOD, table=KEYED, operation="delete")),
    Case("read", errors.TableNotFoundError, ("{path}",), lambda path: lambda: open_snapshot(str(path))),
    *(
        Case(
            f"key column {column!r}",
            errors.MissingColumnError,
            (f"'{column}'", "{path}"),
            upsert(GOOD, table=replace(KEYED, record_key_fields=(column,))),
        )
        for column in ("nope", "ID", "id.x")
    ),
    *(
        Case(
            f"new {name} {said}",
            errors.UnsupportedOptionError,
            ("{path}", f"{key}={said}"),
            upsert(GOOD, table=replace(KEYED, **{name: said})),
        )
        for name, said, key in (
            ("table_type", "MERGE_ON_READ", "hoodie.datasource.write.table.type"),
            ("version", 6, "hoodie.write.table.version"),
            ("version", 10, "hoodie.write.table.version"),
            ("index_type", "RECORD_INDEX", "hoodie.index.type"),
            ("merge_mode", "CUSTOM", "hoodie.write.record.merge.mode"),
        )
    ),
    Case(
        "event time without an ordering field",
        errors.OptionConflictError,
        ("{path}", "EVENT_TIME_ORDERING", "hoodie.table.ordering.fields"),
        upsert(GOOD, table=replace(KEYED, ordering_fields=None, merge_mode="EVENT_TIME_ORDERING")),
    ),
    Case(
        "hash field outside the key",
        errors.OptionConflictError,
        ("{path}", "hoodie.bucket.index.hash.field", "'value'", "'id'"),
        upsert(GOOD, table=replace(KEYED, hash_fields=("value",))),
    ),
    *(
        Case(
            f"key generator {generator.value}",
            errors.OptionConflictError,
            ("{path}", generator.value, "hoodie.datasource.write.keygenerator.type"),
            upsert(GOOD, table=replace(COMPOSITE, key_generator=generator)),
        )
        for generator in KeyGeneratorType
        if generator is not KeyGeneratorType.COMPLEX
    ),
    Case(
        "two ordering fields",
        errors.UnsupportedTableError,
        ("{path}", "ts, value"),
        upsert(GOOD, table=replace(KEYED, ordering_fields=("ts", "value"))),
    ),
    *(
        Case(
            f"{role} of type {column.schema.field(name).type}",
            errors.UnsupportedTypeError,
            (f"'{name}'", str(column.schema.field(name).type)),
            upsert(column, table=KEYED),
        )
        for role, name, column in (
            ("key", "id", changed("id", [1.5, 2.5], pa.float64())),
            ("key", "id", changed("id", [b"a", b"b"], pa.binary())),
            ("key", "id", changed("id", [["a"], ["b"]], pa.list_(pa.field("element", pa.string())))),
            ("partition", "p", changed("p", [1, 2], pa.timestamp("us", "UTC"))),
            ("partition", "p", changed("p", [1.5, 2.5], pa.float32())),
            ("ordering", "ts", changed("ts", [{"a": 1}, {"a": 2}], pa.struct([("a", pa.int32())]))),
        )
    ),
    Case(
        "mark of deletes that is a number",
        errors.UnsupportedTypeError,
        ("'_hoodie_is_deleted'", "int32"),
        upsert(added("_hoodie_is_deleted", pa.int32()), table=KEYED),
    ),
    Case("null key in the first rows", errors.NullKeyError, ("'id'",), upsert(changed("id", ["a", None]), table=KEYED)),
    Case(
        "first partition value",
        errors.PartitionValueError,
        ("'p'",),
        upsert(changed("p", ["x", "../y"]), table=KEYED),
    ),
    Case(
        "first commit too large",
        errors.PlacementError,
        ("{path}",),
        upsert(GOOD, table=KEYED, settings=WriteSettings(commit_merge_max_bytes=1)),
    ),
    Case(
        "scheme that nobody knows",
        errors.InvalidOptionError,
        ("nope://somewhere/t", "scheme nope"),
        lambda path: lambda: write("nope://somewhere/t", GOOD, table=KEYED),
    ),
]
