"""Tables whose columns changed, read by Spark's own Parquet reader, by the data source, and written by both."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyhudi import HudiTable, from_spark
from pyhudi.errors import ColumnValueError, SchemaMismatchError
from pyhudi.operations.planning.request import TableSettings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.drawn.evolving import read_rows
from support.drive import write
from support.recorded.ddl import columns
from support.write_settings import write_settings

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
    newer = pa.Table.from_pylist([{"id": "k3", "p": "b", **SHOWN, "ts": 2}], columns(NEW))
    write(table, newer, settings=write_settings(number_to_text=True))
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
    to_text = {"hoodie.pyhudi.schema.number.to.text": "true"}
    table.upsert(spark.createDataFrame([("1", "x", 0.5)], "id string, v string, w double"), **to_text)
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


def test_frames_with_missing_whole_numbers_and_with_literals_leave_the_columns_as_they_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    """pandas makes doubles of whole numbers beside a missing one, and Spark NaN of that; `lit` is not nullable."""
    where = str(tmp_path / "t")
    table = HudiTable.create(spark, where, "id int, n int, m bigint", record_key="id", buckets=2)
    table.upsert(spark.createDataFrame([(1, 1, 1), (2, 2, 2), (3, 3, 3)], "id int, n int, m bigint"))
    frame = pd.DataFrame({"id": [1, 2], "n": [10, None], "m": [None, 20]})
    assert str(frame["n"].dtype) == "float64"
    table.upsert(frame)
    with_nan = spark.createDataFrame([(3, float("nan"), -0.0)], "id int, n double, m double")
    with_nan.write.format("pyhudi").mode("append").save(where)

    assert table.to_df(["n", "m"]).dtypes == [("n", "int"), ("m", "bigint")]
    found = [tuple(row) for row in table.to_df(["id", "n", "m"]).orderBy("id").collect()]
    assert found == [(1, 10, None), (2, None, 20), (3, None, 0)]
    with pytest.raises(ColumnValueError, match=r"Column 'n' is double .* 7\.5 .* key '1'.*int\.to\.double=true"):
        table.upsert(pd.DataFrame({"id": [1], "n": [7.5], "m": [1]}))

    more = spark.createDataFrame([(4, 4, 4)], "id int, n int, m bigint")
    more = more.withColumn("origin", sf.lit("web")).withColumn("s", sf.struct(sf.lit(1).alias("a")))
    assert not more.schema["origin"].nullable
    table.upsert(more)
    nested = more.withColumn("s", sf.struct(sf.lit(1).alias("a"), sf.lit("x").alias("b")))
    nested.write.format("pyhudi").mode("append").save(where)
    assert [tuple(row) for row in table.to_df(where="id > 2").orderBy("id").select("origin", "s.b").collect()] == [
        (None, None),
        ("web", "x"),
    ]


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


def csv(spark: SparkSession, folder: Path, text: str) -> DataFrame:
    """Return what Spark's CSV reader makes of a file, in which everything is text."""
    folder.mkdir(exist_ok=True)
    (folder / "rows.csv").write_text(text, encoding="utf-8")
    frame = spark.read.csv(str(folder)).toDF("id", "p", "ts", "n")
    assert {kind for _, kind in frame.dtypes} == {"string"}
    return frame


@pytest.mark.parametrize(
    "index", ["BUCKET", *(pytest.param(one, marks=pytest.mark.slow) for one in ("SIMPLE", "GLOBAL_BLOOM"))]
)
def test_texts_of_a_csv_file_come_into_columns_of_numbers(spark: SparkSession, tmp_path: Path, index: str) -> None:
    """By `df.write` and by `HudiTable`, which places rows by their text; a delete finds them by it too."""
    where = str(tmp_path / "t")
    placed = {"hoodie.pyhudi.place.rows": "always"}
    ddl = "id int, p int, ts int, n int"
    table = HudiTable.create(spark, where, ddl, record_key="id", partition_by="p", order_by="ts", index=index)
    table.upsert(spark.createDataFrame([(n, n % 2, 1, 99) for n in range(7, 11)], ddl))
    csv(spark, tmp_path / "a", "7,1,5,9\n8,0,5,10\n-3,1,5,\n").write.format("pyhudi").mode("append").save(where)
    done = table.upsert(csv(spark, tmp_path / "b", "8,0,6,11\n9,1,6,12\n"), **placed)

    assert done.schema_changes == ()
    assert table.to_df(["id", "p", "ts", "n"]).dtypes == [(name, "int") for name in ("id", "p", "ts", "n")]
    rows = [tuple(row) for row in table.to_df(["id", "n"]).orderBy("id").collect()]
    assert rows == [(-3, None), (7, 9), (8, 11), (9, 12), (10, 99)]
    for name, bad in (("id", "07,1,7,1"), ("p", "7,01,7,1"), ("ts", "7,1,7.0,1"), ("n", "7,1,7,x")):
        refusing = csv(spark, tmp_path / f"bad_{name}", f"11,1,7,1\n{bad}\n")
        with pytest.raises(ColumnValueError, match=f"Column '{name}' is string") as refused:
            table.upsert(refusing, **placed)
        assert "withColumn" in str(refused.value)
        with pytest.raises(Exception, match="COLUMN_VALUE") as wrapped:
            refusing.write.format("pyhudi").mode("append").save(where)
        assert isinstance(from_spark(wrapped.value), ColumnValueError)
    with pytest.raises(ColumnValueError, match="Column 'id'"):
        table.delete(csv(spark, tmp_path / "bad", "07,1,7,1\n"), **placed)
    assert [tuple(row) for row in table.to_df(["id", "n"]).orderBy("id").collect()] == rows
    table.delete(csv(spark, tmp_path / "gone", "-3,1,9,\n"), missing_ok=False, **placed)
    assert [row.id for row in table.to_df(["id"]).orderBy("id").collect()] == [7, 8, 9, 10]
    with pytest.raises(ColumnValueError, match="does not fit"):
        table.delete(spark.createDataFrame([(1 << 40, 1)], "id bigint, p int"), **placed)


def test_merges_take_keys_given_as_text(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), "id int, n int", record_key="id", buckets=2)
    table.upsert(spark.createDataFrame([(7, 9), (8, 9)], "id int, n int"))
    text = spark.createDataFrame([("7", "10"), ("9", "-1")], "id string, n string")
    table.merge(text).when_matched_update_all().when_not_matched_insert_all().execute()

    assert [tuple(row) for row in table.to_df(["id", "n"]).orderBy("id").collect()] == [(7, 10), (8, 9), (9, -1)]
    for rows in ([("07", "1")], [("7", "01")]):
        spelt_otherwise = spark.createDataFrame(rows, "id string, n string")
        with pytest.raises((ColumnValueError, SchemaMismatchError), match=r"0[17]"):
            table.merge(spelt_otherwise).when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.to_df().count() == 3


def test_the_way_back_that_the_page_shows_makes_a_column_numbers_again(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = HudiTable.create(spark, path, "id int, n int", record_key="id", buckets=2)
    table.upsert(spark.createDataFrame([(1, 9), (2, 10)], "id int, n int"))
    text = spark.createDataFrame([("2", "10")], "id string, n string")
    changed = table.upsert(text, **{"hoodie.pyhudi.schema.number.to.text": "true"})
    assert [str(one) for one in changed.schema_changes] == ["id int -> string", "n int -> string"]
    assert table.last_commit().schema_changes == changed.schema_changes
    assert table.to_df().agg({"n": "max"}).first()[0] == "9"

    page = (Path(__file__).parents[2] / "docs/schema.md").read_text(encoding="utf-8")
    snippet = page.partition("<!-- the way back: run by tests/spark/test_evolution_spark.py -->")[2]
    snippet = snippet.partition("```python\n")[2].partition("```")[0]
    exec(compile(snippet, "docs/schema.md", "exec"), {"spark": spark, "table": table, "path": path})  # noqa: S102

    assert table.to_df(["id", "n"]).dtypes == [("id", "string"), ("n", "int")]
    assert [tuple(row) for row in table.to_df(["id", "n"]).orderBy("id").collect()] == [("1", 9), ("2", 10)]
    assert spark.read.format("pyhudi").load(path).agg({"n": "max"}).first()[0] == 10
    table.upsert(spark.createDataFrame([("1", "11")], "id string, n string"))
    assert table.to_df(["n"]).dtypes == [("n", "int")]
