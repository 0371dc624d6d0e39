"""Tables whose columns changed, read by Spark's own Parquet reader, by the data source, and written by both."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi import HudiTable, from_spark
from pyhudi.errors import SchemaMismatchError
from pyhudi.operations.planning.request import TableSettings
from pyspark.sql import DataFrame, SparkSession
from support.drawn.evolving import read_rows
from support.drive import write
from support.recorded.ddl import columns

TABLE = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=1)
OLD = (
    "id string, p string, ts bigint, i int, t int, f float, g float, d float, n decimal(5,2), b binary, "
    "s struct<a:int,f:float>, l array<struct<x:int>>, m map<string,int>, k array<int>, q map<string,struct<y:float>>"
)
NEW = (
    "id string, p string, ts bigint, i bigint, t string, f double, g string, d string, n decimal(9,4), b binary, "
    "s struct<a:string,f:double,c:date>, l array<struct<x:string,z:double>>, m map<string,bigint>, k array<double>, "
    "q map<string,struct<y:double,w:int>>, e timestamp"
)
OLD_ROW = {
    **{"ts": 1, "i": 7, "t": -7, "f": 1.1, "g": 1e10, "d": 1e-5, "n": decimal.Decimal("1.50"), "b": b"\xff"},
    **{"s": {"a": 3, "f": 0.3}, "l": [{"x": 1}, None], "m": {"u": 5}, "k": [1, None]},
    **{"q": {"v": {"y": 1.1}, "w": None}},
}
SHOWN = {
    **{"ts": 1, "i": 7, "t": "-7", "f": 1.1, "g": "1.0E10", "d": "1.0E-5", "b": b"\xff"},
    **{"n": decimal.Decimal("1.5000"), "s": {"a": "3", "f": 0.3, "c": None}},
    **{"l": [{"x": "1", "z": None}, None], "m": {"u": 5}, "k": [1.0, None]},
    **{"q": {"v": {"y": 1.1, "w": None}, "w": None}, "e": None},
}
ROWS_IN_FILES = "spark.sql.parquet.enableVectorizedReader"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table whose partition a holds old files and partition b new ones."""
    table = tmp_path / "t"
    empty = dict.fromkeys(columns(OLD).names) | {"id": "k2", "p": "a", "ts": 1}
    write(table, pa.Table.from_pylist([{"id": "k1", "p": "a", **OLD_ROW}, empty], columns(OLD)), table=TABLE)
    write(table, pa.Table.from_pylist([{"id": "k3", "p": "b", **SHOWN, "ts": 2}], columns(NEW)))
    return table


@pytest.fixture(params=["true", "false"], ids=["vectorized", "row-by-row"])
def spark_reading(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Spark with either of its two Parquet readers."""
    spark.conf.set(ROWS_IN_FILES, request.param)
    yield spark
    spark.conf.unset(ROWS_IN_FILES)


def shown(frame: DataFrame) -> list[dict[str, object]]:
    rows = frame.drop(*(name for name in frame.columns if name.startswith("_hoodie"))).orderBy("id").collect()
    return [row.asDict(recursive=True) for row in rows]


def expected() -> list[dict[str, object]]:
    empty = dict.fromkeys(columns(NEW).names)
    return [
        {**empty, "id": "k1", "p": "a", **SHOWN},
        {**empty, "id": "k2", "p": "a", "ts": 1},
        {**empty, "id": "k3", "p": "b", **SHOWN, "ts": 2},
    ]


def test_old_files_are_shown_in_the_newest_columns(spark_reading: SparkSession, path: Path) -> None:
    frame = HudiTable(spark_reading, str(path)).to_df()

    assert shown(frame) == expected()
    assert frame.schema == spark_reading.read.format("pyhudi").load(str(path)).schema
    assert shown(spark_reading.read.format("pyhudi").load(str(path))) == expected()
    assert [row["t"] for row in read_rows(path)] == ["-7", None, "-7"]


def test_columns_that_did_not_change_are_read_by_one_scan(spark: SparkSession, path: Path) -> None:
    """So are those that Spark's reader widens by itself, and those that older files lack."""
    table = HudiTable(spark, str(path))
    plain = table.to_df(["id", "i", "n", "m", "k", "e", "_hoodie_record_key"])

    assert plain._jdf.queryExecution().executedPlan().toString().count("FileScan parquet") == 1
    assert [tuple(row) for row in plain.orderBy("id").select("id", "i", "n", "e").collect()] == [
        ("k1", 7, decimal.Decimal("1.5000"), None),
        ("k2", None, None, None),
        ("k3", 7, decimal.Decimal("1.5000"), None),
    ]
    cast = table.to_df(["t", "id"])
    assert cast._jdf.queryExecution().executedPlan().toString().count("FileScan parquet") == 2
    assert [tuple(row) for row in cast.orderBy("id").collect()] == [("-7", "k1"), (None, "k2"), ("-7", "k3")]


def test_files_of_an_archived_instant_are_asked_themselves(spark: SparkSession, path: Path) -> None:
    for file in sorted((path / ".hoodie/timeline").iterdir())[:3]:
        file.unlink()

    assert shown(HudiTable(spark, str(path)).to_df()) == expected()


def test_a_table_evolves_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Through the session's way and the plain one; what does not fit comes back with its differences from both."""
    where = str(tmp_path / "t")
    table = HudiTable.create(spark, where, "id int, v int", record_key="id", buckets=2)
    table.upsert(spark.createDataFrame([(1, 10), (2, 20)], "id int, v int"))
    table.upsert(spark.createDataFrame([("1", "x", 0.5)], "id string, v string, w double"))
    fewer = spark.createDataFrame([("3",)], "id string")
    with pytest.raises(SchemaMismatchError) as raised:
        table.upsert(fewer)
    with pytest.raises(Exception, match="SCHEMA_MISMATCH") as wrapped:
        fewer.write.format("pyhudi").mode("append").save(where)
    fewer.write.format("pyhudi").option("hoodie.write.set.null.for.missing.columns", "true").mode("append").save(where)

    again = from_spark(wrapped.value)
    assert isinstance(again, SchemaMismatchError)
    assert raised.value.differences == again.differences
    assert [(one.column, one.table, one.incoming) for one in again.differences] == [
        ("v", "string", "absent"),
        ("w", "double", "absent"),
    ]
    rows = [tuple(row) for row in table.to_df(["id", "v", "w"]).orderBy("id").collect()]
    assert rows == [("1", "x", 0.5), ("2", "20", None), ("3", None, None)]


def test_some_fields_of_a_struct_are_read_from_old_files_and_new(spark: SparkSession, path: Path) -> None:
    frame = spark.read.format("pyhudi").schema("id string, s struct<c:date,a:string>").load(str(path))

    assert [tuple(row) for row in frame.orderBy("id").selectExpr("id", "s.a", "s.c").collect()] == [
        ("k1", "3", None),
        ("k2", None, None),
        ("k3", "3", None),
    ]


def test_a_filter_finds_the_rows_of_older_types(spark: SparkSession, path: Path) -> None:
    """Their statistics are those of the older type, by which a text or a moved float must not be left out."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for condition in ("t = '-7' AND d = '1.0E-5' AND i = 7", "f = 1.1 AND n = 1.5"):
            taking = spark.read.format("pyhudi").option("hoodie.pyhudi.read.filter.pushdown", "true")
            for frame in (taking.load(str(path)), HudiTable(spark, str(path)).to_df()):
                assert [row.id for row in frame.where(condition).orderBy("id").collect()] == ["k1", "k3"], condition
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
