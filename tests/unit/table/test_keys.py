"""Record keys and partition paths of batches: those that Apache Hudi 1.2.0 wrote, and a model that goes row by row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyhudi.errors import (
    DataError,
    MissingColumnError,
    NullKeyError,
    PartitionValueError,
    SchemaMismatchError,
    UnsupportedTableError,
    UnsupportedTypeError,
)
from pyhudi.table.config import TableConfig
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.keys.generator import KeyGenerator, KeyGeneratorType

D = Decimal
UTC = dt.timezone.utc

# The rows below and the keys in the tests were written and read back with Apache Hudi 1.2.0 (upsert).
ROWS = pa.table(
    {
        "id": ["1", "2", "3", "4", "5"],
        "s": ["é x/=%:y", "a b}|&+\"#\\*?{[]^'", "", None, "a,b:c"],
        "i": pa.array([-7, 0, None, 2147483647, 1], pa.int32()),
        "l": pa.array([-8, 0, None, 9223372036854775807, 1], pa.int64()),
        "bo": [True, False, None, True, True],
        "dt": [dt.date(2024, 2, 29), dt.date(1969, 12, 31), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)],
        "ts": pa.array([1709210096789123, -1, None, -62135596800000000, 253402300799000000], pa.timestamp("us", "UTC")),
        "ntz": pa.array([1709210096789123, 0, None, -62135596800000000, 1709210096000000], pa.timestamp("us")),
        "d5": pa.array([D("12.30"), D("-0.05"), None, D("0.00"), D("100.00")], pa.decimal128(5, 2)),
        "d18": pa.array([D("1E-10"), D("0E-10"), None, D("-0.00000123"), D("12345678.5")], pa.decimal128(18, 10)),
        "d30": pa.array([D("9" * 38), D(0), None, D(-1), D(1000)], pa.decimal128(38, 0)),
        "by": pa.array([-3, 0, None, 1, 1], pa.int8()),
    }
).to_batches()[0]
HIVE = "__HIVE_DEFAULT_PARTITION__"


def generator(
    keys: str,
    partitions: str = "",
    schema: pa.Schema | None = None,
    kind: KeyGeneratorType | None = None,
    **flags: bool,
) -> KeyGenerator:
    config = TableConfig.new(
        TableSettings(
            name="t",
            record_key_fields=keys.split(","),
            partition_fields=partitions.split(",") if partitions else (),
            key_generator=kind,
            **flags,
        )
    )
    return KeyGenerator(config, schema)


def plain(array: pa.Array) -> list[Any]:
    return array.to_pylist()


def test_composite_keys_are_those_of_java() -> None:
    keys = generator("id,s,i,l,bo,dt,ts,ntz,d5,d18,d30,by").record_keys(ROWS)

    assert keys.type == pa.string()
    assert plain(keys) == [
        "id:1,s:é x/=%:y,i:-7,l:-8,bo:true,dt:2024-02-29,ts:1709210096789123,ntz:1709210096789123,d5:12.30,d18:1E-10,"
        "d30:99999999999999999999999999999999999999,by:-3",
        "id:2,s:a b}|&+\"#\\*?{[]^',i:0,l:0,bo:false,dt:1969-12-31,ts:-1,ntz:0,d5:-0.05,d18:0E-10,d30:0,by:0",
        "id:3,s:__empty__,i:__null__,l:__null__,bo:__null__,dt:__null__,ts:__null__,ntz:__null__,d5:__null__,"
        "d18:__null__,d30:__null__,by:__null__",
        "id:4,s:__null__,i:2147483647,l:9223372036854775807,bo:true,dt:0001-01-01,ts:-62135596800000000,"
        "ntz:-62135596800000000,d5:0.00,d18:-0.0000012300,d30:-1,by:1",
        "id:5,s:a,b:c,i:1,l:1,bo:true,dt:9999-12-31,ts:253402300799000000,ntz:1709210096000000,d5:100.00,"
        "d18:12345678.5000000000,d30:1000,by:1",
    ]


def test_partition_paths_are_those_of_java() -> None:
    paths = generator("id", "s,i,l,bo,dt,d5,d18,d30,by", hive_style=True, url_encode=True).partition_paths(ROWS)

    assert paths.type == pa.dictionary(pa.int32(), pa.string())
    assert plain(paths) == [
        "s=é x%2F%3D%25%3Ay/i=-7/l=-8/bo=true/dt=2024-02-29/d5=12.30/d18=1E-10/"
        "d30=99999999999999999999999999999999999999/by=-3",
        "s=a b}|&+%22%23%5C%2A%3F%7B%5B%5D%5E%27/i=0/l=0/bo=false/dt=1969-12-31/d5=-0.05/d18=0E-10/d30=0/by=0",
        "/".join(f"{field}={HIVE}" for field in ("s", "i", "l", "bo", "dt", "d5", "d18", "d30", "by")),
        f"s={HIVE}/i=2147483647/l=9223372036854775807/bo=true/dt=0001-01-01/d5=0.00/d18=-0.0000012300/d30=-1/by=1",
        "s=a,b%3Ac/i=1/l=1/bo=true/dt=9999-12-31/d5=100.00/d18=12345678.5000000000/d30=1000/by=1",
    ]


@pytest.mark.parametrize(
    ("keys", "partitions", "expected"),
    [
        ("id", "", ["1", "2", "3", "4", "5"]),
        ("id", "bo", ["1", "2", "3", "4", "5"]),
        ("id", "i,bo", ["id:1", "id:2", "id:3", "id:4", "id:5"]),
        ("id,i", "", ["id:1,i:-7", "id:2,i:0", "id:3,i:__null__", "id:4,i:2147483647", "id:5,i:1"]),
    ],
)
def test_one_field_makes_a_plain_key_unless_the_generator_is_complex(
    keys: str, partitions: str, expected: list[str]
) -> None:
    """Version 9 writes `id:1` where earlier ones wrote `1`."""
    assert plain(generator(keys, partitions).record_keys(ROWS)) == expected


@pytest.mark.parametrize(
    ("made_in", "version", "noted", "expected"),
    [
        ("8", "8", None, "1"),
        ("8", "8", "FIELD_PREFIXED", "id:1"),
        ("8", "9", "VALUE_ONLY", "1"),
        ("9", "9", None, "id:1"),
    ],
)
def test_a_key_of_one_field_is_spelt_as_the_table_notes(
    made_in: str, version: str, noted: str | None, expected: str
) -> None:
    """By releases after 1.2, or by pyhudi; without a note as Apache Hudi 1.0.2 does."""
    made = TableConfig.new(
        TableSettings(
            name="t", version=int(made_in), record_key_fields=("id",), partition_fields=("i", "bo"), index_type="BUCKET"
        )
    )
    properties = {**made.properties, "hoodie.table.version": version}
    properties.pop("hoodie.table.complex.keygen.encoding", None)
    if noted:
        properties["hoodie.table.complex.keygen.encoding"] = noted.lower()
    assert plain(KeyGenerator(TableConfig(properties)).record_keys(ROWS))[0] == expected


def test_unpartitioned_rows_lie_in_the_root() -> None:
    paths = generator("id").partition_paths(ROWS)

    assert plain(paths) == [""] * 5
    assert plain(paths.dictionary) == [""]


def test_null_empty_and_hives_default_share_one_partition() -> None:
    batch = pa.RecordBatch.from_pydict({"id": ["1", "2", "3", "4"], "p": [None, "", HIVE, "x"]})

    paths = generator("id", "p").partition_paths(batch)

    assert plain(paths) == [HIVE, HIVE, HIVE, "x"]
    assert plain(paths.dictionary) == [HIVE, "x"]


@pytest.mark.parametrize("partitions", ["", "p", "p,q"])
def test_no_rows_have_no_keys_and_no_paths(partitions: str) -> None:
    batch = pa.RecordBatch.from_pydict(
        {"id": pa.array([], pa.int64()), "p": pa.array([], pa.string()), "q": pa.array([], "bool")}
    )
    made = generator("id", partitions)

    assert (len(made.record_keys(batch)), len(made.partition_paths(batch))) == (0, 0)


@pytest.mark.parametrize(
    "layout",
    [
        pa.large_string(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
)
def test_the_layout_of_strings_does_not_matter(layout: pa.DataType) -> None:
    texts = pa.array(["a", "b", "a", "", "c"])
    batch = pa.RecordBatch.from_pydict({"id": ROWS.column("id").cast(layout), "p": texts.cast(layout)})
    made = generator("id", "p")

    assert plain(made.record_keys(batch.slice(1, 3))) == ["2", "3", "4"]
    assert plain(made.partition_paths(batch.slice(1, 3))) == ["b", "a", HIVE]


def test_a_column_of_nulls_without_a_type_is_a_null_part() -> None:
    batch = pa.RecordBatch.from_pydict({"id": ["1", "2"], "p": pa.nulls(2)})

    assert plain(generator("id,p", "p").record_keys(batch)) == ["id:1,p:__null__", "id:2,p:__null__"]
    assert plain(generator("id,p", "p").partition_paths(batch)) == [HIVE, HIVE]


def test_given_the_tables_columns_values_are_spelt_in_its_types() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"id": pa.array([D("1.5")], pa.decimal128(3, 1)), "p": pa.array([7], pa.int16())}
    )
    schema = pa.schema([pa.field("id", pa.decimal128(10, 3), nullable=False), ("p", pa.string())])
    made = generator("id", "p", schema)

    assert (plain(made.record_keys(batch)), plain(made.partition_paths(batch))) == (["1.500"], ["7"])


def test_given_the_tables_columns_a_misfit_is_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"id": [dt.date(2024, 2, 29)]})

    with pytest.raises(SchemaMismatchError, match="id"):
        generator("id", "", pa.schema([("id", pa.int64())])).record_keys(batch)


def test_times_of_any_unit_are_microseconds() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"a": pa.array([1], pa.timestamp("s")), "b": pa.array([2_000], pa.timestamp("ns", "Asia/Tokyo"))}
    )

    assert plain(generator("a,b").record_keys(batch)) == ["a:1000000,b:2"]


def test_times_finer_than_microseconds_are_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"a": pa.array([1], pa.timestamp("ns"))})

    with pytest.raises(DataError, match="'a'"):
        generator("a").record_keys(batch)


def test_dates_beyond_four_digits_are_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"a": pa.array([2_932_897], pa.int32()).view(pa.date32())})

    with pytest.raises(DataError, match="'a'"):
        generator("a").record_keys(batch)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.binary(), pa.time64("us"), pa.list_(pa.int32())])
def test_types_without_a_common_spelling_are_refused(kind: pa.DataType) -> None:
    batch = pa.RecordBatch.from_pydict({"a": pa.nulls(1, kind)})

    with pytest.raises(UnsupportedTypeError, match="record key column 'a'"):
        generator("a").record_keys(batch)
    with pytest.raises(UnsupportedTypeError, match="partition column 'a'"):
        generator("id", "a").partition_paths(batch)
    with pytest.raises(UnsupportedTypeError, match="record key column 'a'"):
        generator("a").check(batch.schema)


@pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.timestamp("ms", "UTC")])
def test_a_table_that_keeps_a_key_in_another_unit_is_refused(kind: pa.DataType) -> None:
    """Its writer may spell milliseconds, where rows of Spark have microseconds."""
    table_schema = pa.schema([("id", pa.string()), ("ts", kind)])

    with pytest.raises(UnsupportedTypeError, match=r"keeps the record key column 'ts' as timestamp\[ms"):
        generator("ts", schema=table_schema).check(ROWS.schema)
    generator("id", schema=table_schema).check(ROWS.schema)


@pytest.mark.parametrize("field", ["ts", "ntz"])
def test_timestamps_are_refused_as_partitions(field: str) -> None:
    """Apache Hudi 1.2 names the folder by epoch microseconds and cannot read the column back from it."""
    with pytest.raises(UnsupportedTypeError, match=field):
        generator("id", field).partition_paths(ROWS)


def test_a_missing_column_is_named_with_those_there_are() -> None:
    with pytest.raises(MissingColumnError, match=r"'ID'.*'id'"):
        generator("ID").record_keys(ROWS)
    with pytest.raises(MissingColumnError, match=r"partition column 'q'"):
        generator("id", "q").partition_paths(ROWS)
    with pytest.raises(MissingColumnError, match=r"partition column 'q'"):
        generator("id", "q").check(ROWS.schema)


def test_columns_that_make_keys_pass_the_check() -> None:
    generator("id,ts", "dt,s").check(ROWS.schema)


def test_a_null_key_is_counted_and_the_first_one_shown() -> None:
    batch = pa.RecordBatch.from_pydict({"id": ["a", None, "", "b"], "p": ["w", "x", "y", "z"]})

    with pytest.raises(NullKeyError) as raised:
        generator("id", "p").record_keys(batch)

    assert "'id'" in raised.value.what
    assert "2 of 4 rows" in raised.value.what
    assert "row 1" in raised.value.what
    assert "p='x'" in raised.value.what


def test_a_composite_key_may_not_be_null_as_a_whole() -> None:
    batch = pa.RecordBatch.from_pydict({"a": ["1", None, ""], "b": pa.array([None, 2, None], pa.int32())})

    with pytest.raises(NullKeyError) as raised:
        generator("a,b").record_keys(batch)

    assert "'a', 'b'" in raised.value.what
    assert "1 of 3 rows" in raised.value.what
    assert "row 2" in raised.value.what
    assert "a='', b=None" in raised.value.what


@pytest.mark.parametrize("partitions", ["p", "p,q"])
def test_a_dangerous_partition_value_is_refused(partitions: str) -> None:
    batch = pa.RecordBatch.from_pydict({"id": ["1", "2"], "p": ["x", "../y"], "q": ["x", "x"]})

    with pytest.raises(PartitionValueError, match=r"\.\./y"):
        generator("id", partitions).partition_paths(batch)


@pytest.mark.parametrize(("keys", "partitions"), [("a,b", "p"), ("a", "p,q")])
@pytest.mark.parametrize("kind", [KeyGeneratorType.SIMPLE, KeyGeneratorType.TIMESTAMP])
def test_some_generators_take_one_field_of_each(keys: str, partitions: str, kind: KeyGeneratorType) -> None:
    with pytest.raises(UnsupportedTableError, match=kind.value):
        generator(keys, partitions, kind=kind)


def test_keys_and_partitions_are_taken_from_within_columns() -> None:
    inner = pa.array([{"b": {"c": "x"}}, {"b": None}, None], pa.struct([("b", pa.struct([("c", pa.string())]))]))
    batch = pa.RecordBatch.from_pydict({"a": inner, "id": [1, 2, 3]})
    made = generator("a.b.c,id", "a.b.c", hive_style=True)

    assert plain(made.record_keys(batch)) == ["a.b.c:x,id:1", "a.b.c:__null__,id:2", "a.b.c:__null__,id:3"]
    assert plain(made.partition_paths(batch)) == ["a.b.c=x", f"a.b.c={HIVE}", f"a.b.c={HIVE}"]


@pytest.mark.parametrize("field", ["a.c", "a.b.c", "b.b"])
def test_a_field_that_is_not_within_a_column_is_missing(field: str) -> None:
    batch = pa.RecordBatch.from_pydict({"a": pa.array([{"b": 1}]), "id": [1]})

    with pytest.raises(MissingColumnError, match=field):
        generator("id", field).check(batch.schema)


def test_a_table_without_key_fields_makes_no_keys_of_columns() -> None:
    made = KeyGenerator(
        TableConfig.new(
            TableSettings(name="keyless", record_key_fields=(), partition_fields=("bo",), index_type="BUCKET")
        )
    )

    assert plain(made.partition_paths(ROWS)) == ["true", "false", HIVE, "true", "true"]
    with pytest.raises(UnsupportedTableError, match="keyless"):
        made.record_keys(ROWS)


TEXTS = st.none() | st.text(st.sampled_from("ab,:/_ é😀%"), max_size=4)
NUMBERS = st.none() | st.integers(-(2**63), 2**63 - 1)
MODEL_ROWS = st.lists(st.tuples(TEXTS, NUMBERS, st.none() | st.booleans()), max_size=12)


def text_of(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value).lower()


def key_of(fields: list[str], row: dict[str, Any]) -> str:
    parts = {field: text_of(row[field]) for field in fields}
    named = {field: "__null__" if text is None else text or "__empty__" for field, text in parts.items()}
    return ",".join(f"{field}:{text}" for field, text in named.items())


@given(MODEL_ROWS, st.permutations(["s", "n", "b"]), st.integers(2, 3))
def test_composite_keys_are_those_of_the_model(rows: list[Any], order: list[str], count: int) -> None:
    fields = order[:count]
    named = [dict(zip("snb", row, strict=True)) for row in rows]
    assume(all(any(text_of(row[field]) for field in fields) for row in named))
    batch = pa.RecordBatch.from_pylist(named, pa.schema([("s", pa.string()), ("n", pa.int64()), ("b", pa.bool_())]))

    assert plain(generator(",".join(fields)).record_keys(batch)) == [key_of(fields, row) for row in named]


@given(MODEL_ROWS, st.lists(st.sampled_from("snb"), min_size=1, max_size=3, unique=True), st.booleans())
def test_partition_paths_are_those_of_the_model(rows: list[Any], fields: list[str], hive_style: bool) -> None:
    from pyhudi.table.keys.partition_paths import escape

    named = [dict(zip("snb", row, strict=True)) for row in rows]
    batch = pa.RecordBatch.from_pylist(named, pa.schema([("s", pa.string()), ("n", pa.int64()), ("b", pa.bool_())]))
    expected = [
        "/".join((f"{f}=" if hive_style else "") + (escape(text_of(row[f]) or "") or HIVE) for f in fields)
        for row in named
    ]

    paths = generator("id", ",".join(fields), hive_style=hive_style, url_encode=True).partition_paths(batch)

    assert plain(paths) == expected
    assert sorted(plain(paths.dictionary)) == sorted(set(expected))
