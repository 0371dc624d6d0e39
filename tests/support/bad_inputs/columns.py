"""Columns that a healthy table refuses before there are rows."""

from __future__ import annotations

import pyarrow as pa
from pyhudi import errors
from support.bad_inputs.case import COMPOSITE, GOOD, Case, added, changed, upsert

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
LIST_OF_A = pa.list_(pa.struct([("a", pa.int32())]))
LIST_OF_A_AND_B = pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))
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
    Case(
        "column that Apache Hudi keeps for itself",
        errors.UnsupportedTypeError,
        ("'_hoodie_operation'", "one of Hudi's own"),
        upsert(added("_hoodie_operation", pa.string())),
    ),
    Case("two columns of one name", errors.DuplicateColumnError, ("'value'",), upsert(added("value", pa.int64()))),
    Case("two columns but for case", errors.DuplicateColumnError, ("'Value'",), upsert(added("Value", pa.int64()))),
    Case("key column twice", errors.DuplicateColumnError, ("'id'",), upsert(added("ID", pa.string()))),
    Case(
        "two fields of one name in a list",
        errors.DuplicateColumnError,
        ("'s.a'",),
        upsert(added("s", pa.list_(pa.struct([("a", pa.int32()), ("a", pa.int64())])))),
    ),
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
        ("value | bigint | absent | add it]", "hoodie.datasource.write.reconcile.schema=true", "{path}"),
        upsert(GOOD.drop_columns(["value"])),
    ),
    Case(
        "column in another case",
        errors.SchemaMismatchError,
        ("value | bigint | absent | rename Value", "{path}"),
        upsert(GOOD.rename_columns(["id", "p", "ts", "Value"])),
    ),
    Case(
        "column of another type",
        errors.SchemaMismatchError,
        ("value | bigint | boolean | cast it to bigint", "{path}"),
        upsert(changed("value", [True, False], pa.bool_())),
    ),
    Case(
        "two columns that do not fit",
        errors.SchemaMismatchError,
        ("ts | bigint | double | cast it to bigint; value | bigint | boolean | cast it to bigint", "{path}"),
        upsert(changed("value", [True, False], pa.bool_()).set_column(2, "ts", pa.array([1.0, 2.0]))),
    ),
    Case(
        "column of a type that would change the table's values",
        errors.SchemaMismatchError,
        ("value | bigint | timestamp | cast it to bigint", "{path}"),
        upsert(changed("value", [1, 2], pa.timestamp("us", "UTC"))),
    ),
    Case(
        "key column of a type that would spell keys otherwise",
        errors.SchemaMismatchError,
        ("value | int | double | cast it to int, on which keys depend", "{path}"),
        upsert(changed("value", [1.0, 2.0], pa.float64())),
        good=changed("value", [1, 2], pa.int32()),
        table=COMPOSITE,
    ),
    Case(
        "ordering column of a type that would order rows otherwise",
        errors.SchemaMismatchError,
        ("ts | bigint | double | cast it to bigint", "{path}"),
        upsert(changed("ts", [1.0, 2.0], pa.float64())),
    ),
    Case(
        "field missing in a struct in a list",
        errors.SchemaMismatchError,
        ("value.element.b | string | absent | add it", "{path}"),
        upsert(changed("value", [[{"a": 1}], None], LIST_OF_A)),
        good=changed("value", [[{"a": 1, "b": "x"}], None], LIST_OF_A_AND_B),
    ),
    Case(
        "mark of deletes that is no boolean",
        errors.SchemaMismatchError,
        ("'_hoodie_is_deleted'", "bool"),
        upsert(added("_hoodie_is_deleted", pa.string())),
    ),
]
