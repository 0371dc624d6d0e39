"""Schemas in Arrow and Avro: those that Apache Hudi 1.2.0 wrote, and the way there and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import CorruptInstantError, DuplicateColumnError, UnsupportedTypeError
from pyhudi.table.schema.columns import (
    META_COLUMNS,
    arrow_schema,
    avro_schema,
    canonical,
    check_storable,
    with_meta,
    without_meta,
)

FIXTURE = Path(__file__).parents[2] / "fixtures" / "apache_hudi_1_2_types"
TABLE = "9my-tab.x"

UTC = pa.timestamp("us", "UTC")


def element(kind: Any, nullable: bool = True) -> pa.DataType:
    return pa.list_(pa.field("element", kind, nullable=nullable))


def mapping(kind: Any, nullable: bool = True) -> pa.DataType:
    return pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", kind, nullable=nullable))


OF_JAVA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("by", pa.int32()),
        ("sh", pa.int32()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("bo", pa.bool_()),
        ("st", pa.string()),
        ("bi", pa.binary()),
        ("d5", pa.decimal128(5, 2)),
        ("d15", pa.decimal128(15, 3)),
        ("d30", pa.decimal128(30, 10)),
        ("dt", pa.date32()),
        ("ts", UTC),
        ("ntz", pa.timestamp("us")),
        ("al", element(pa.int64())),
        ("als", element(pa.struct([("x", pa.int32()), ("y", pa.string())]))),
        ("aal", element(element(pa.int32()))),
        ("m", mapping(pa.int32())),
        ("ms", mapping(pa.struct([("v", pa.decimal128(10, 2)), ("w", element(pa.string()))]))),
        (
            "st1",
            pa.struct(
                [
                    ("a", pa.int32()),
                    ("b", pa.struct([("c", pa.string()), ("d", pa.decimal128(20, 4))])),
                    ("e", pa.decimal128(9, 1)),
                ]
            ),
        ),
        pa.field("nn", pa.int32(), nullable=False),
        pa.field("req", pa.struct([pa.field("z", pa.int32(), nullable=False)]), nullable=False),
    ]
)


def avro(*fields: Any, **record: Any) -> str:
    return json.dumps({"type": "record", "name": "r", "namespace": "n", "fields": list(fields), **record})


def test_the_schema_of_javas_commit_is_read() -> None:
    schema = arrow_schema((FIXTURE / "schema.avsc").read_text(encoding="utf-8"))

    assert schema.equals(OF_JAVA)
    assert str(schema) == str(OF_JAVA)  # names and nullability inside lists and maps, which equality leaves out


def test_the_schema_of_a_commit_is_written_to_the_letter_as_java_writes_it() -> None:
    assert avro_schema(OF_JAVA, TABLE) == (FIXTURE / "schema.avsc").read_text(encoding="utf-8").strip()


def test_the_schema_of_a_footer_is_written_to_the_letter_as_java_writes_it() -> None:
    footer = pq.read_metadata(FIXTURE / "types.parquet").metadata[b"parquet.avro.schema"].decode()

    assert avro_schema(OF_JAVA, TABLE, meta=True) == footer
    assert avro_schema(with_meta(OF_JAVA), TABLE, meta=True) == footer
    assert arrow_schema(footer).equals(OF_JAVA)


@pytest.mark.parametrize(
    ("table", "name"),
    [("t", "t"), ("trips_v2", "trips_v2"), ("9t", "__t"), ("a-b.c d", "a__b__c__d"), ("9-t", "____t"), ("é", "__")],
)
def test_a_tables_name_is_made_fit_for_avro(table: str, name: str) -> None:
    record = json.loads(avro_schema(pa.schema([("id", pa.int32())]), table))

    assert (record["name"], record["namespace"]) == (f"{name}_record", f"hoodie.{name}")


def test_meta_columns_stand_in_front_once() -> None:
    schema = pa.schema([("a", pa.int32()), ("_hoodie_record_key", pa.string())])

    assert with_meta(schema).names == [*META_COLUMNS, "a"]
    assert without_meta(with_meta(schema)).names == ["a"]
    assert [field["name"] for field in json.loads(avro_schema(schema, "t"))["fields"]] == ["a"]


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("int", pa.int32()),
        ({"type": "int"}, pa.int32()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}, pa.decimal128(12, 3)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 12}, pa.decimal128(12, 0)),
        (
            {"type": "fixed", "name": "f", "size": 9, "logicalType": "decimal", "precision": 18, "scale": 0},
            pa.decimal128(18),
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "timestamp-micros"}, UTC),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("ms")),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us")),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": {"type": "array", "items": "long"}}, element(pa.int64(), nullable=False)),
    ],
)
def test_a_type_by_another_writer_is_read(type_: Any, expected: pa.DataType) -> None:
    schema = arrow_schema(
        avro(
            {"name": "a", "type": type_}, {"name": "b", "type": ["null", type_]}, {"name": "c", "type": [type_, "null"]}
        )
    )

    assert [field.type for field in schema] == [expected] * 3
    assert [field.nullable for field in schema] == [False, True, True]


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ms", "UTC"), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("us")]
)
def test_timestamps_keep_their_unit(kind: pa.DataType) -> None:
    schema = pa.schema([("a", kind)])

    assert arrow_schema(avro_schema(schema, "t")) == schema


def test_a_named_type_may_be_used_again_by_its_name() -> None:
    point = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}
    money = {"type": "fixed", "name": "m.money", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}

    schema = arrow_schema(
        avro(
            {"name": "a", "type": point},
            {"name": "b", "type": ["null", "point"]},
            {"name": "c", "type": "n.point"},
            {"name": "d", "type": money},
            {"name": "e", "type": "m.money"},
        )
    )

    struct = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    assert schema.types == [struct, struct, struct, pa.decimal128(9, 2), pa.decimal128(9, 2)]


@pytest.mark.parametrize(
    "type_",
    [
        {"type": "enum", "name": "e", "symbols": ["A"]},
        {"type": "fixed", "name": "f", "size": 4},
        {"type": "int", "logicalType": "time-millis"},
        {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 0},
        ["int", "string"],
        ["null", "int", "string"],
        ["null"],
        "null",
        "n.unknown",
        {"type": "record", "name": "r", "fields": []},
    ],
)
def test_a_type_that_is_not_read_is_refused_by_the_columns_name(type_: Any) -> None:
    inner = {"type": "record", "name": "i", "fields": [{"name": "odd", "type": {"type": "array", "items": type_}}]}

    with pytest.raises(UnsupportedTypeError, match=r"'s\.odd\.element'"):
        arrow_schema(avro({"name": "s", "type": inner}))


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", '"int"', '{"type": "string"}', '{"type": "record", "name": "r"}', avro({"name": "a"})],
)
def test_what_is_no_record_schema_is_refused(text: str) -> None:
    with pytest.raises(CorruptInstantError, match="commit 7"):
        arrow_schema(text, "commit 7")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.int8(), pa.int32()),
        (pa.int16(), pa.int32()),
        (pa.large_string(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary(4), pa.binary()),
        (pa.dictionary(pa.int32(), pa.large_string()), pa.string()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns", "Europe/Paris"), UTC),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.decimal256(20, 4), pa.decimal128(20, 4)),
        (pa.large_list(pa.int8()), element(pa.int32())),
        (pa.list_(pa.field("array", pa.int16(), nullable=False)), element(pa.int32(), nullable=False)),
        (pa.list_(pa.int64(), 3), element(pa.int64())),
        (pa.map_(pa.large_string(), pa.int16()), mapping(pa.int32())),
        (pa.struct([pa.field("a", pa.int8(), nullable=False)]), pa.struct([pa.field("a", pa.int32(), nullable=False)])),
    ],
)
def test_a_type_becomes_the_one_that_a_table_keeps(kind: pa.DataType, expected: pa.DataType) -> None:
    schema = canonical(pa.schema([pa.field("a", kind, nullable=False, metadata={"k": "v"})], metadata={"k": "v"}))

    assert str(schema) == str(pa.schema([pa.field("a", expected, nullable=False)]))
    assert schema.equals(canonical(schema), check_metadata=True)


@pytest.mark.parametrize(
    "kind",
    [
        pa.uint32(),
        pa.float16(),
        pa.time64("us"),
        pa.duration("us"),
        pa.null(),
        pa.decimal256(39, 0),
        pa.decimal128(3, -1),
        pa.struct([]),
        pa.map_(pa.int32(), pa.string()),
        pa.dictionary(pa.int8(), pa.uint8()),
    ],
)
def test_a_type_that_no_table_keeps_is_refused_by_the_columns_name(kind: pa.DataType) -> None:
    schema = pa.schema([("s", pa.struct([("odd", pa.list_(kind))]))])

    with pytest.raises(UnsupportedTypeError, match=r"'s\.odd\.element'"):
        check_storable(schema)


@pytest.mark.parametrize("name", ["a b", "a.b", "9a", "a-b", "", "é!", "\U00020bb7野家"])
def test_a_name_that_avro_forbids_is_refused(name: str) -> None:
    for schema in (pa.schema([(name, pa.int32())]), pa.schema([("s", pa.list_(pa.struct([(name, pa.int32())])))])):
        with pytest.raises(UnsupportedTypeError) as raised:
            check_storable(schema)
        assert name in raised.value.what


@pytest.mark.parametrize("name", ["a", "_a9", "A_b", "naïve", "日本"])
def test_a_name_that_java_takes_is_taken(name: str) -> None:
    check_storable(pa.schema([(name, pa.int32())]))


@pytest.mark.parametrize("twin", ["id", "ID"])
def test_two_columns_of_one_name_are_refused(twin: str) -> None:
    with pytest.raises(DuplicateColumnError, match=twin):
        check_storable(pa.schema([("id", pa.int32()), (twin, pa.string())]))
    with pytest.raises(DuplicateColumnError, match=rf"'m\.{twin}'"):
        check_storable(pa.schema([("m", pa.map_(pa.string(), pa.struct([("id", pa.int32()), (twin, pa.int32())])))]))


@pytest.mark.parametrize("name", ["_hoodie_record_key", "_HOODIE_RECORD_KEY"])
def test_a_meta_column_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedTypeError, match=name):
        check_storable(pa.schema([(name, pa.string())]))


def test_equal_names_at_different_places_are_no_twins() -> None:
    check_storable(pa.schema([("a", pa.struct([("a", pa.int32())])), ("b", pa.struct([("a", pa.int32())]))]))


LEAVES = st.sampled_from(
    [
        *(pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary(), pa.date32(), UTC),
        *(pa.timestamp("us"), pa.decimal128(1, 0), pa.decimal128(18, 18), pa.decimal128(38, 5)),
    ]
)
NAMES = st.lists(st.from_regex(r"[a-z_][a-z0-9_]{0,3}", fullmatch=True), min_size=1, max_size=3, unique=True)


def structs(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return NAMES.flatmap(
        lambda names: st.tuples(*(st.tuples(kinds, st.booleans()) for _ in names)).map(
            lambda types: pa.struct([pa.field(n, *t) for n, t in zip(names, types, strict=True)])
        )
    )


TYPES = st.recursive(
    LEAVES,
    lambda kinds: st.builds(element, kinds, st.booleans()) | st.builds(mapping, kinds, st.booleans()) | structs(kinds),
    max_leaves=5,
)


@given(structs(TYPES), st.text(min_size=1, max_size=5))
def test_any_schema_is_read_back_from_its_avro_form(struct: pa.StructType, table: str) -> None:
    import fastavro

    schema = pa.schema([struct.field(position) for position in range(struct.num_fields)])

    text = avro_schema(schema, table)

    assert str(arrow_schema(text)) == str(schema)
    assert str(canonical(schema)) == str(schema)
    check_storable(schema)
    fastavro.parse_schema(json.loads(text))  # every name is legal, and none is defined twice
