"""Rows that a healthy table refuses, whether the commit merges them or the tasks do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from pyhudi import errors
from support.bad_inputs.case import COMPOSITE, GOOD, KEYED, SCHEMA, Act, Case, changed, upsert
from support.write_settings import write_settings

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
NO_UTF8 = pa.array([b"a", b"\xff"]).view(pa.string())
CUT_OFF = pa.array([b"a", "€".encode()[:2]]).view(pa.string())
BLANK_VALUES = [pa.array(["a", ""]), pa.array([1, None])]


def merged(*tables: pa.Table) -> pa.Table:
    return pa.concat_tables(tables)


def composite(values: list[pa.Array]) -> pa.Table:
    return changed("id", values[0]).set_column(3, SCHEMA.field("value"), values[1])


NEW = pa.table([["c"], ["x"], [1], [30]], schema=SCHEMA)
FAIL = write_settings(insert_dup_policy="fail")
FOUND = write_settings(delete_missing_ok=False)


def insert(rows: pa.Table | list[pa.Table], **options: object) -> Callable[[Path], Act]:
    return upsert(rows, **{"operation": "insert", "settings": FAIL, **options})


def delete(*keys: tuple[str, str]) -> Callable[[Path], Act]:
    ids, partitions = zip(*keys, strict=True)
    return upsert(pa.table({"id": ids, "p": partitions}), operation="delete", settings=FOUND)


# Keys that an insert may not find, and keys that a delete must find.
KEYS = [
    Case("insert of keys that are there", errors.DuplicateKeyError, ("'a'", "'x'", "{path}"), insert(GOOD.slice(0, 1))),
    Case("insert of new keys and one that is there", errors.DuplicateKeyError, ("'a'",), insert(merged(NEW, GOOD))),
    Case("upsert that may not update", errors.DuplicateKeyError, ("'b'", "=drop"), insert(GOOD[1:], operation=None)),
    Case(
        "insert of several rows of a key that is there",
        errors.DuplicateKeyError,
        ("'a'",),
        insert(merged(GOOD[:1], GOOD[:1]), settings=write_settings(FAIL, combine_before_insert=True)),
    ),
    Case(
        "insert of a composite key that is there",
        errors.DuplicateKeyError,
        ("'id:a,value:10'",),
        insert(merged(changed("value", [11, 21]), GOOD[:1])),
        table=COMPOSITE,
    ),
    Case("delete of a key that is not there", errors.KeyNotFoundError, ("'c'", "'x'", "{path}"), delete(("c", "x"))),
    Case("delete of a key of another partition", errors.KeyNotFoundError, ("'a'", "'y'"), delete(("a", "y"))),
    Case("delete from a partition that is not there", errors.KeyNotFoundError, ("'a'", "'z'"), delete(("a", "z"))),
    Case(
        "delete of keys that are there and of some that are not",
        errors.KeyNotFoundError,
        ("missing.ok",),
        delete(("a", "x"), ("c", "x"), ("d", "x"), ("b", "y")),
    ),
    Case(
        "delete of a composite key that is not there",
        errors.KeyNotFoundError,
        ("'id:a,value:11'",),
        upsert(changed("value", [11, 20]), operation="delete", settings=FOUND),
        table=COMPOSITE,
    ),
]

# Values that the table's types have no exact place for.
VALUES = [
    Case(
        "text that is spelt otherwise than the number of its column",
        errors.ColumnValueError,
        ("'value'", "'07'", 'col("value").cast("bigint")', "hoodie.pyhudi.schema.number.to.text=true"),
        upsert(changed("value", ["10", "07"], pa.string())),
    ),
    Case(
        "double with a fraction for a column of whole numbers",
        errors.ColumnValueError,
        ("'value' is double in the rows and bigint", "2^53", "7.5", "record key 'b'", "mode overwrite"),
        upsert(changed("value", [None, 7.5], pa.float64())),
    ),
    Case(
        "ordering column with text that is no number",
        errors.ColumnValueError,
        ("'ts'", "''", 'col("ts").cast("bigint")'),
        upsert(changed("ts", ["1", ""], pa.string())),
    ),
    Case(
        "key column with text that is spelt otherwise than its number",
        errors.ColumnValueError,
        ("'value'", "' 1'", 'col("value").cast("int")'),
        upsert(changed("value", [" 1", "2"], pa.string())),
        good=changed("value", [1, 2], pa.int32()),
        table=COMPOSITE,
    ),
    Case(
        "key column with a number that its type does not hold",
        errors.ColumnValueError,
        ("'value'", "2147483648", "make the table anew"),
        upsert(changed("value", [1, 1 << 31], pa.int64())),
        good=changed("value", [1, 2], pa.int32()),
        table=COMPOSITE,
    ),
    Case(
        "field of a struct with text that is no number",
        errors.ColumnValueError,
        ("'value.a'", "'7.0'", "Cast value.a to int"),
        upsert(changed("value", [{"a": "7.0"}, None], pa.struct([("a", pa.string())]))),
        good=changed("value", [{"a": 1}, None], pa.struct([("a", pa.int32())])),
    ),
]
ROWS = [
    *KEYS,
    *VALUES,
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
    Case("null ordering values", errors.NullOrderingError, ("'ts'", "2 of 2"), upsert(changed("ts", [None, None]))),
    Case(
        "null ordering value of a delete",
        errors.NullOrderingError,
        ("'ts'", "'b'"),
        upsert(changed("ts", [5, None]).append_column("_hoodie_is_deleted", pa.array([False, True]))),
    ),
    *(
        Case(
            f"null ordering value of type {kind}",
            errors.NullOrderingError,
            ("'ts'", "'a'"),
            upsert(changed("ts", pa.array([None, *values], kind))),
            good=changed("ts", pa.array([*values, *values], kind)),
        )
        for kind, values in (
            (pa.string(), ["x"]),
            (pa.timestamp("us", "UTC"), [7]),
            (pa.decimal128(9, 2), [Decimal(1)]),
        )
    ),
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
        "date before the year 1 in a partition",
        errors.DataError,
        ("'p'", "partition", "years 1 to 9999"),
        upsert(changed("p", [-719_163, 0], pa.date32())),
        good=changed("p", [-719_162, 0], pa.date32()),
    ),
    Case("key that is no UTF-8", errors.DataError, ("UTF-8", "'id'"), upsert(changed("id", NO_UTF8))),
    Case(
        "key that is no UTF-8, to be looked up",
        errors.DataError,
        ("UTF-8", "'id'"),
        upsert(changed("id", NO_UTF8)),
        table=replace(KEYED, bucket_count=None, index_type="SIMPLE"),
    ),
    Case(
        "partition that is no UTF-8",
        errors.DataError,
        ("'p'", "partition", "UTF-8"),
        upsert(changed("p", NO_UTF8)),
        good=changed("p", ["a", "b"]),
    ),
    Case(
        "cut off character in one part of a key",
        errors.DataError,
        ("UTF-8", "'id'"),
        upsert(composite([CUT_OFF, pa.array([10, 20])])),
        table=COMPOSITE,
    ),
    Case(
        "delete of a key that is no UTF-8",
        errors.DataError,
        ("UTF-8", "Repair the column"),
        upsert(changed("id", NO_UTF8).select(["id", "p"]), operation="delete"),
    ),
    Case(
        "time finer than a microsecond",
        errors.SchemaMismatchError,
        ("'value'", "timestamp[us]"),
        upsert(changed("value", [1000, 1001], pa.timestamp("ns"))),
        good=changed("value", [1, 2], pa.timestamp("us")),
    ),
    Case(
        "text that is no date",
        errors.SchemaMismatchError,
        ("'value'", "date32", "soon"),
        upsert(changed("value", ["2024-02-29", "soon"], pa.string())),
        good=changed("value", [1, 2], pa.date32()),
    ),
    Case(
        "number too large for a decimal",
        errors.SchemaMismatchError,
        ("'value'", "decimal128(5, 2)"),
        upsert(changed("value", [1, 1000], pa.int64())),
        good=changed("value", [1, 2], pa.decimal128(5, 2)),
    ),
    Case(
        "bytes that are no text",
        errors.SchemaMismatchError,
        ("'value'", "string"),
        upsert(changed("value", [b"a", b"\xff"], pa.binary())),
        good=changed("value", ["a", "b"], pa.string()),
    ),
]
