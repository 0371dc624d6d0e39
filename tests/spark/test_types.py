"""Every type of Spark's, written and read by a real Spark, in either of pyhudi's two ways to read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyhudi import HudiTable
from pyhudi.errors import UnsupportedTypeError, from_spark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812
from support.recorded.fixture_tables import unpack

pytestmark = pytest.mark.oldest

BUCKETS = "hoodie.bucket.index.num.buckets"
# A column a line: its name, then an expression for each of three rows.
VALUES = """
    bo; true; false; null
    ti; -128Y; 127Y; null
    sm; -32768S; 32767S; null
    it; -2147483648; 2147483647; null
    lo; -9223372036854775808L; 9223372036854775807L; null
    fl; float('NaN'); float('-0.0'); float('-Infinity')
    do; double('NaN'); double('-0.0'); double('Infinity')
    d5; -999.99BD; cast(0.01 as decimal(5,2)); null
    d38; cast('99999999999999999999.999999999999999999' as decimal(38,18)); cast('-1e-18' as decimal(38,18)); null
    st; ''; 'a\\u0000b\\uD83D\\uDE00'; null
    big; repeat('é', 524288); repeat(' ', 1048576); null
    bi; X''; X'00FF'; null
    da; date'0001-01-01'; date'1582-10-10'; date'9999-12-31'
    ts; timestamp'0001-01-02 03:04:05.000006'; timestamp'1883-11-18 12:00:00'; timestamp'9999-12-30 23:59:59.999999'
    nt; timestamp_ntz'0001-01-01 00:00:00'; timestamp_ntz'1899-12-31 23:59:59.999999'; null
    ar; array(1, null, 2); cast(array() as array<int>); null
    grid; array(array('a', null), null, cast(array() as array<string>)); array(cast(null as array<string>)); null
    visits; array(named_struct('day', date'2024-02-29')); array(named_struct('day', cast(null as date)), null); null
    ma; map('a', 1L, '', null); cast(map() as map<string, bigint>); null
    mar; map('a', array(double('NaN'))); map('b', cast(null as array<double>)); null
    deep; named_struct('a', named_struct('b', named_struct('c', 1, 'd', '')));
        named_struct('a', named_struct('b', cast(null as struct<c: int, d: string>))); null
"""
LISTS = {
    1: (
        [1, 2],
        ["", "é"],
        [(1,), (None,)],
        [[1], [], [2, 3]],
        [(1, ["u", "v"]), (None, None)],
        [{"k": 1}, {}],
        {"a": [1, 2], "b": []},
        {"a": [("x",), (None,)]},
        ([0.5], ([dt.date(2024, 2, 29)],)),
    ),
    2: ([], [], [], [], [], [], {}, {}, ([], ([],))),
    3: (None,) * 9,
    4: (None,) * 9,
    5: ([], [""], [(None,)], [[]], [(None, [])], [{}], {"": []}, {"": []}, (None, (None,))),
}


def every_type(spark: SparkSession) -> DataFrame:
    """Return three rows with a column of every type."""
    columns = [[part.strip() for part in line.split(";")] for line in VALUES.replace(";\n", ";").strip().split("\n")]
    selects = [
        f"select {number} id, 1L ts_, {', '.join(f'{values[number]} {name}' for name, *values in columns)}"
        for number in range(3)
    ]
    return spark.sql(" union all ".join(selects))


def exactly(df: DataFrame) -> list[str]:
    """Return rows as texts in which nothing is rounded or equal to something else, meta columns left out."""
    shown = {"ts": "unix_micros(ts)", "nt": "cast(nt as string)", "da": "unix_date(da)"}
    names = [name for name in df.columns if not name.startswith("_hoodie")]
    return sorted(map(repr, df.selectExpr(*(f"{shown.get(name, name)} {name}" for name in names)).collect()))


@pytest.fixture
def tokyo(spark: SparkSession) -> Iterator[None]:
    """A session that shows times in another zone."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield
    spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_value_comes_back_as_it_was(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Through `df.write` and through `HudiTable`, which merges the rows with themselves, or has the read merge them."""
    df, path = every_type(spark), str(tmp_path / "t")
    options = {"recordkey": "id", "orderby": "ts_", "buckets": "2", "hoodie.datasource.write.table.type": kind}
    df.write.format("pyhudi").options(**options).mode("append").save(path)
    expected = exactly(df)

    def check() -> None:
        ours, theirs = spark.read.format("pyhudi").load(path), HudiTable(spark, path).to_df()
        assert exactly(ours) == expected
        assert exactly(theirs) == expected
        assert ours.schema == theirs.schema
        kinds = {**dict(df.dtypes), "ti": "int", "sm": "int"}
        assert {name: kind for name, kind in ours.dtypes if name in kinds} == kinds

    check()
    assert HudiTable(spark, path).upsert(df).updates == 3
    check()


def test_a_moment_is_the_same_in_every_session(spark: SparkSession, tmp_path: Path, tokyo: None) -> None:
    df = spark.sql("select 1 id, timestamp'2024-02-29 12:00:00' ts, timestamp_ntz'2024-02-29 12:00:00' nt")
    path = str(tmp_path / "t")
    df.write.format("pyhudi").options(recordkey="id", buckets="1").mode("append").save(path)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")

    for read in (spark.read.format("pyhudi").load(path), HudiTable(spark, path).to_df()):
        shown = read.selectExpr("unix_seconds(ts)", "cast(ts as string)", "cast(nt as string)").first()
        assert tuple(shown) == (1709175600, "2024-02-28 22:00:00", "2024-02-29 12:00:00")


def test_nan_is_found_where_spark_puts_it(spark: SparkSession, tmp_path: Path) -> None:
    """Above every number, which Parquet's statistics do not know."""
    path = str(tmp_path / "t")
    nan = "double('NaN') c, float('NaN') f, named_struct('d', double('NaN')) s"
    df = spark.sql(f"select 1 id, 0.1D c, 0.1F f, named_struct('d', 0.1D) s union all select 2, {nan}")
    df.write.format("pyhudi").options(recordkey="id", buckets="1").mode("append").save(path)

    for read in (spark.read.format("pyhudi").load(path), HudiTable(spark, path).to_df()):
        for condition in ("c > 1", "f >= 5", "c = double('NaN')", "s.d > 1"):
            assert [row.id for row in read.where(condition).collect()] == [2], condition


def test_two_level_lists_of_apache_hudi_are_read_and_merged(spark: SparkSession, tmp_path: Path) -> None:
    path = unpack("v9_cow_lists", tmp_path)
    table = HudiTable(spark, path)

    def check(expected: dict[int, tuple]) -> None:
        for df in (spark.read.format("pyhudi").load(path), table.to_df()):
            rows = df.drop(*df.columns[:5]).collect()
            assert sorted(rows) == sorted((number, 10, *values) for number, values in expected.items())

    check(LISTS)
    # Rows that are copied, rows that are replaced, and new ones.
    changes = table.to_df().where("id in (1, 3)").selectExpr("if(id = 1, 3, 6) id", *table.to_df().columns[6:])
    assert table.upsert(changes, **{BUCKETS: 2}).updates == 1
    check({**LISTS, 3: LISTS[1], 6: LISTS[3]})


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("null", "column c has the type void"),
        ("array(interval '1-2' year to month)", "column c.element has the type interval year to month"),
        ("named_struct('d', interval '1' day)", "column c.d has the type interval day"),
        ("parse_json('1')", "column c has the type variant"),
        ("map('a', 'x' collate UNICODE_CI)", "column c.value has the type string collate UNICODE_CI"),
        ("named_struct('m', map(1, 2))", "column c.m has the type map<int,int>"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_its_path(
    spark: SparkSession, tmp_path: Path, expression: str, words: str
) -> None:
    df, path = spark.sql(f"select 1 id, {expression} c"), tmp_path / "t"
    with pytest.raises(PySparkException) as refused:
        df.write.format("pyhudi").options(recordkey="id").mode("append").save(str(path))

    error = from_spark(refused.value)
    assert isinstance(error, UnsupportedTypeError)
    assert words in error.what
    assert not path.exists()


def test_the_length_of_a_string_is_no_part_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    schema = T.StructType([T.StructField("id", T.IntegerType()), T.StructField("c", T.CharType(3))])
    table = HudiTable.create(spark, str(tmp_path / "t"), schema, record_key="id")
    table.upsert(spark.createDataFrame([(1, "longer")], "id int, c string"))

    assert table.to_df(["id", "c"]).dtypes == [("id", "int"), ("c", "string")]
    assert table.to_df(["c"]).collect() == [("longer",)]
