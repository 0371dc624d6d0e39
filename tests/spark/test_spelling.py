"""One thing said in several ways: where a table is, when, and what its rows are."""

from __future__ import annotations

import datetime
import logging
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyhudi import HudiTable, colocate
from pyhudi.connector.source.paths import absolute_for
from pyhudi.errors import InvalidOptionError, UnsupportedTypeError
from pyspark.sql import SparkSession
from support.seams import patch_seam

UTC = datetime.timezone.utc


@pytest.mark.oldest
def test_what_a_relative_path_means_is_settled_by_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process has another folder and another home than the one that Spark was started with."""
    start_folder, home = Path.cwd(), Path.home()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert absolute_for(spark, "a/b") == f"{start_folder}/a/b"
    assert absolute_for(spark, Path("a/b")) == f"{start_folder}/a/b"
    assert absolute_for(spark, "~/a") == f"{home}/a"
    assert absolute_for(spark, tmp_path / "a") == str(tmp_path / "a")


def test_a_relative_path_is_one_table_for_df_write_and_for_hudi_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relative = os.path.relpath(tmp_path / "t")
    monkeypatch.chdir("/")

    spark.range(5).write.format("pyhudi").option("record_key", "id").mode("append").save(relative)

    assert (tmp_path / "t" / ".hoodie").is_dir()
    table = HudiTable(spark, relative)
    assert (table.path, table.to_df().count()) == (str(tmp_path / "t"), 5)
    assert spark.read.format("pyhudi").option("path", Path(relative)).load().count() == 5  # type: ignore[arg-type]
    assert colocate(spark.range(5), Path(relative), tasks=2).count() == 5


@pytest.mark.oldest
def test_a_table_says_whether_it_is_there_and_what_it_is(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "data.csv").write_text("a,b")
    assert not HudiTable.exists(spark, tmp_path / "t")
    assert not HudiTable.exists(spark, tmp_path / "other")

    table = HudiTable.create(spark, tmp_path / "t", "id int, p string, v array<int>", record_key="id", partition_by="p")
    empty = table.detail().first()
    upserted = table.upsert(spark.createDataFrame([(1, "a", [1]), (2, "b", None)], table.schema))

    assert HudiTable.exists(spark, str(tmp_path / "t"))
    assert table.schema.simpleString() == "struct<id:int,p:string,v:array<int>>"
    assert empty is not None
    assert (empty.files, empty.bytes, empty.newest_instant) == (0, 0, None)
    row = table.detail().first()
    assert row is not None
    assert (row.record_key, row.partition_by, row.buckets, row.partitions, row.files) == (["id"], ["p"], 8, 2, 2)
    assert (row.newest_instant, row.bytes) == (upserted.instant, upserted.bytes)
    assert row.properties["hoodie.table.name"] == "t"
    assert [one.instant for one in table.history(1).collect()] == [upserted.instant]


def test_times_may_be_of_python(spark: SparkSession, tmp_path: Path) -> None:
    """The table's timeline is in UTC, the session and this process are elsewhere."""
    table = HudiTable.create(spark, tmp_path / "t", "id bigint", record_key="id", buckets=1)
    first = table.upsert(spark.range(1))
    table.upsert(spark.range(2))
    naive = datetime.datetime.strptime(first.instant + "000", "%Y%m%d%H%M%S%f")
    before = (naive - datetime.timedelta(milliseconds=1)).replace(tzinfo=UTC)
    tokyo = naive.replace(tzinfo=UTC).astimezone(datetime.timezone(datetime.timedelta(hours=9)))

    assert table.to_df(as_of=naive).count() == 1
    assert table.to_df(as_of=tokyo + datetime.timedelta(microseconds=999)).count() == 1
    assert table.to_df(since=before).count() == 2
    assert table.to_df(since=datetime.date(2000, 1, 1), until=before + datetime.timedelta(days=1)).count() == 2
    options = {"as_of": tokyo.isoformat(timespec="microseconds")}
    assert spark.read.format("pyhudi").options(**options).load(table.path).count() == 1


@pytest.mark.oldest
def test_rows_may_be_of_pandas_or_arrow(spark: SparkSession, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"id": [1, 2], "name": ["a", None], "kind": pd.Categorical(["x", "y"]), "v": [1.5, float("nan")]},
        index=["one", "two"],
    )
    table = HudiTable.create(spark, tmp_path / "t", frame, record_key="id", buckets=1)

    assert table.schema.simpleString() == "struct<id:bigint,name:string,kind:string,v:double>"
    assert table.upsert(frame).inserts == 2
    done = table.upsert(pa.table({"id": [2, 3], "name": ["b", "c"], "kind": ["z", "z"], "v": [2.5, 3.5]}))
    assert (done.inserts, done.updates) == (1, 1)
    assert table.delete(pa.table({"id": [3], "more": [0]})).deletes == 1
    found = table.to_df(["id", "name", "kind", "v"]).orderBy("id").collect()
    assert list(map(tuple, found)) == [(1, "a", "x", 1.5), (2, "b", "z", 2.5)]
    assert table.insert(pd.DataFrame({"id": [4], "name": [None], "kind": [None], "v": [None]})).inserts == 1
    with pytest.raises(UnsupportedTypeError, match="The column 'v' of the DataFrame of pandas"):
        table.upsert(pd.DataFrame({"id": [1, 2], "v": [1, "x"]}))
    with pytest.raises(UnsupportedTypeError, match="uint8"):
        table.upsert(pa.table({"id": pa.array([1], pa.uint8())}))
    with pytest.raises(InvalidOptionError, match="as a list"):
        table.upsert([(1, "a", "x", 1.0)])


def test_the_buckets_of_a_table_suit_the_rows_that_it_is_made_for(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:

    caplog.set_level(logging.INFO, logger="pyhudi.tables")
    patch_seam(monkeypatch, "bytes of rows as Parquet", lambda rows: (6 << 30) * (rows.limit(1).count()))
    rows = spark.range(9).selectExpr("id", "id % 3 p")

    def made(name: str, schema: object, **more: object) -> int:
        table = HudiTable.create(spark, tmp_path / name, schema, record_key="id", partition_by="p", **more)
        row = table.detail().first()
        assert row is not None
        return int(row.buckets)

    assert made("suggested", rows) == 4
    assert made("said", rows, buckets=3) == 3
    assert made("said-by-option", rows, options={"hoodie.bucket.index.num.buckets": 5}) == 5
    assert made("no-rows", rows.where("false")) == 8
    assert made("schema", rows.schema) == 8
    said = [record.getMessage() for record in caplog.records]
    assert ["suggest_buckets chose" in line for line in said] == [True, False, False, False, False]
    assert ["the number where none is given" in line for line in said] == [False, False, False, True, True]
