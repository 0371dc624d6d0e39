"""Writes and reads where no table is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyhudi import errors
from pyhudi.operations.inspect.history import history, last_commit
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config.key_types import KeyGeneratorType, PartitionType
from pyhudi.table.config.payloads import PAYLOADS
from pyhudi.table.config.property_keys import TIME_INPUT_FORMAT, TIME_OUTPUT_FORMAT, TIME_OUTPUT_ZONE, TIME_TYPE
from support.bad_inputs.case import COMPOSITE, GOOD, KEYED, Act, Case, added, ask, changed, upsert
from support.drive import write
from support.write_settings import write_settings

RECORD_KEY = "hoodie.datasource.write.recordkey.field"
TIMES = {TIME_TYPE: "EPOCHMILLISECONDS", TIME_OUTPUT_FORMAT: "yyyy/MM/dd", TIME_OUTPUT_ZONE: "UTC"}
TIMED = replace(KEYED, partition_fields=("ts",), key_generator=KeyGeneratorType.TIMESTAMP, time_options=TIMES)


def below_a_file(path: Path) -> Act:
    (path.parent / "mine").write_text("mine")
    return lambda: write(path.parent / "mine" / "t", GOOD, table=KEYED)


def through_a_link_to_itself(path: Path) -> Act:
    (path.parent / "loop").symlink_to("loop")
    return lambda: write(path.parent / "loop" / "t", GOOD, table=KEYED)


CREATIONS = [
    *(
        Case(f"no record key, {name}", errors.MissingOptionError, ("{path}", RECORD_KEY), act)
        for name, act in {
            "nothing said": upsert(GOOD),
            "overwrite": upsert(GOOD, overwrite=True),
            "else all said": upsert(GOOD, table=replace(KEYED, record_key_fields=None)),
            "an empty text": ask({"recordkey": ""}),
            "commas": ask({RECORD_KEY: " , ", "orderby": "ts"}),
        }.items()
    ),
    *(
        Case(name, errors.TableNotFoundError, ("{path}",), act)
        for name, act in {
            "delete": upsert(GOOD, table=KEYED, operation="delete"),
            "delete of keys": upsert(GOOD.select(["id", "p"]), operation="delete"),
            "read": lambda path: lambda: open_snapshot(str(path)),
            "history": lambda path: lambda: history(open_storage(str(path))),
            "last commit": lambda path: lambda: last_commit(open_storage(str(path))),
        }.items()
    ),
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
            ("table_type", "MERGE_ON_WRITE", "hoodie.datasource.write.table.type"),
            ("version", 7, "hoodie.write.table.version"),
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
            f"{key} with an index without buckets",
            errors.OptionConflictError,
            ("{path}", key, "hoodie.index.type=BLOOM"),
            upsert(GOOD, table=replace(KEYED, **{"index_type": "BLOOM", "bucket_count": None, **said})),
        )
        for key, said in (
            ("hoodie.bucket.index.num.buckets", {"bucket_count": 3}),
            ("hoodie.bucket.index.hash.field", {"hash_fields": ("id",)}),
        )
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
    *(
        Case(
            f"{attribute} twice",
            errors.OptionConflictError,
            ("{path}", key, "'value,value'"),
            upsert(GOOD, table=replace(KEYED, **{attribute: ("value", "value")})),
        )
        for attribute, key in (
            ("record_key_fields", RECORD_KEY),
            ("partition_fields", "hoodie.datasource.write.partitionpath.field"),
        )
    ),
    *(
        Case(
            f"times without {option}",
            errors.MissingOptionError,
            ("{path}", option),
            upsert(GOOD, table=replace(TIMED, time_options={k: v for k, v in TIMES.items() if k != option})),
        )
        for option in (TIME_TYPE, TIME_OUTPUT_FORMAT)
    ),
    *(
        Case(
            f"times with {option}={value}",
            errors.InvalidOptionError,
            ("{path}", f"{option}={value!r}"),
            upsert(GOOD, table=replace(TIMED, time_options={**TIMES, option: value})),
        )
        for option, value in (
            (TIME_OUTPUT_FORMAT, "yyyy-MM-dd zzzz"),
            (TIME_OUTPUT_ZONE, "Europe/Atlantis"),
            (TIME_TYPE, "EPOCH"),
        )
    ),
    Case(
        "times of texts that are numbers",
        errors.UnsupportedTypeError,
        ("'ts'", "int64", "DATE_STRING"),
        upsert(GOOD, table=replace(TIMED, time_options={**TIMES, TIME_TYPE: "DATE_STRING", TIME_INPUT_FORMAT: "yyyy"})),
    ),
    Case(
        "times of a key generator without times",
        errors.OptionConflictError,
        ("{path}", TIME_TYPE, "SIMPLE"),
        upsert(GOOD, table=replace(TIMED, key_generator=None)),
    ),
    Case(
        "types of partition columns without CUSTOM",
        errors.OptionConflictError,
        ("{path}", "TIMESTAMP", "'ts:SIMPLE'"),
        upsert(GOOD, table=replace(TIMED, partition_types=(PartitionType.SIMPLE,))),
    ),
    Case(
        "second ordering field that is no column",
        errors.MissingColumnError,
        ("{path}", "ordering column 'version'"),
        upsert(GOOD, table=replace(KEYED, ordering_fields=("ts", "version"))),
    ),
    Case(
        "two ordering fields in version 8",
        errors.OptionConflictError,
        ("{path}", "'ts,value'", "version 8"),
        upsert(GOOD, table=replace(KEYED, version=8, ordering_fields=("ts", "value"))),
    ),
    Case(
        "delete marker of a payload class in version 8",
        errors.OptionConflictError,
        ("{path}", "hoodie.datasource.write.payload.class", "AWSDmsAvroPayload", "version 8"),
        upsert(GOOD, table=replace(KEYED, version=8, payload=PAYLOADS["AWSDmsAvroPayload"])),
    ),
    *(
        Case(
            f"{given} alone",
            errors.MissingOptionError,
            ("{path}", f"hoodie.payload.{given}", f"without hoodie.payload.{missing}"),
            upsert(GOOD, table=replace(KEYED, **{given.replace(".", "_"): "value"})),
        )
        for given, missing in (("delete.field", "delete.marker"), ("delete.marker", "delete.field"))
    ),
    Case(
        "delete marker in no column",
        errors.MissingColumnError,
        ("{path}", "hoodie.payload.delete.field", "'op'", "'D'"),
        upsert(GOOD, table=replace(KEYED, delete_field="op", delete_marker="D")),
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
    *(
        Case(
            f"delete marker of type {kind}",
            errors.UnsupportedTypeError,
            ("'op'", str(kind)),
            upsert(added("op", kind), table=replace(KEYED, delete_field="op", delete_marker="D")),
        )
        for kind in (
            pa.float64(),
            pa.date32(),
            pa.decimal128(5, 2),
            pa.binary(),
            pa.list_(pa.field("element", pa.string())),
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
        ("{path}", "hoodie.pyhudi.commit.merge.max.bytes allows 1.", "HudiTable.create(spark, path, df, record_key=…)"),
        upsert(GOOD, table=KEYED, settings=write_settings(merge_max_bytes=1)),
    ),
    Case("below a file", errors.StorageError, ("mine/t",), below_a_file),
    Case("through a link to itself", errors.StorageError, ("loop/t",), through_a_link_to_itself),
    *(
        Case(name, errors.StorageError, says, lambda path, place=place: lambda: write(place(path), GOOD, table=KEYED))
        for name, says, place in (
            ("name too long", ("n" * 300,), lambda path: path / ("n" * 300)),
            ("read-only scheme", ("local://{path}", "scheme local"), lambda path: f"local://{path}"),
        )
    ),
    Case(
        "scheme that nobody knows",
        errors.InvalidOptionError,
        ("nope://somewhere/t", "scheme nope"),
        lambda path: lambda: write("nope://somewhere/t", GOOD, table=KEYED),
    ),
]
