"""Rows that `HudiTable` places by file group, and those that it leaves to the commit: the same table in the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi import HudiTable, colocate
from pyhudi.errors import DuplicateColumnError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.seams import patch_seam, read_seam
from support.sessions import RESTLESS, said

COALESCES = "spark.sql.adaptive.coalescePartitions.enabled"
ALWAYS = {"hoodie.pyhudi.place.rows": "always"}


def tied(spark: SparkSession, key: str) -> DataFrame:
    """Return 2,000 rows in four partitions, forty of each of fifty keys, which nothing but their place tells apart."""
    return spark.range(0, 2_000, numPartitions=4).selectExpr(f"{key} key", "id n", "1 ts", "id % 2 p")


def rows(df: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.select(*columns).collect())


def create(spark: SparkSession, path: Path, df: DataFrame, **table: Any) -> HudiTable:
    return HudiTable.create(spark, str(path), df, record_key="key", partition_by="p", buckets=3, **table)


@pytest.mark.parametrize("key", ["id % 50", "concat('k', id % 50)"], ids=["number", "text"])
@pytest.mark.parametrize("order_by", ["ts", ()], ids=["event time", "commit time"])
@pytest.mark.oldest
def test_a_tie_goes_to_the_row_that_stood_later_however_rows_were_moved(
    spark: SparkSession, tmp_path: Path, key: str, order_by: Any
) -> None:
    df = tied(spark, key)
    table = create(spark, tmp_path / "t", df, order_by=order_by)
    expected = list(range(1_950, 2_000))

    # A shuffle may bring rows in any order; this is the worst.
    backwards = colocate(df, table).sortWithinPartitions(sf.desc("_pyhudi_position"))
    backwards.write.format("pyhudi").option("hoodie.pyhudi.colocated", "true").mode("append").save(table.path)
    assert sorted(row.n for row in table.to_df(["n"]).collect()) == expected
    assert table.to_df().columns[5:] == df.columns

    done = table.upsert(df.withColumn("n", -sf.col("n")), **ALWAYS)
    assert (done.updates, "tasks.spill" in done.seconds) == (50, False)
    assert sorted(-row.n for row in table.to_df(["n"]).collect()) == expected


@pytest.mark.oldest
def test_the_commit_merges_on_one_machine_and_tasks_where_they_are_told_to(spark: SparkSession, tmp_path: Path) -> None:
    df = tied(spark, "id")
    table = create(spark, tmp_path / "t", df)

    left = table.upsert(df, **{"hoodie.pyhudi.commit.merge.max.bytes": 1, "hoodie.pyhudi.colocated": True})
    told = table.upsert(df, **ALWAYS)
    again = table.upsert(colocate(df, table))

    assert "tasks.spill" in left.seconds
    assert "tasks.merge" not in left.seconds
    assert "tasks.spill" not in told.seconds
    assert "tasks.spill" not in again.seconds
    assert (told.updates, again.updates) == (2_000, 2_000)


def test_the_query_runs_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "cores of a local master", lambda spark: None)
    seen = spark.sparkContext.accumulator(0)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            seen.add(batch.num_rows)
            yield batch

    df = tied(spark, "id")
    table = create(spark, tmp_path / "t", df)
    few = table.upsert(df.mapInArrow(count, df.schema))
    patch_seam(monkeypatch, "estimated bytes of a query", lambda df: None)
    many = table.upsert(df.mapInArrow(count, df.schema))

    assert seen.value == 4_000
    assert ("tasks.spill" in few.seconds, "tasks.spill" in many.seconds) == (True, False)
    assert many.updates == 2_000


def test_spark_puts_small_slots_together_and_takes_none_apart(spark: SparkSession, tmp_path: Path) -> None:
    df = tied(spark, "id")
    table = create(spark, tmp_path / "t", df)

    with said(spark, {"spark.sql.shuffle.partitions": "40"}):
        assert colocate(df, table).rdd.getNumPartitions() == 1
    with said(spark, {"spark.sql.adaptive.enabled": "false"}):
        assert colocate(df, table).rdd.getNumPartitions() == 3
        single = HudiTable.create(spark, str(tmp_path / "single"), "id bigint", record_key="id", buckets=2)
        assert colocate(spark.range(10), single.path).rdd.getNumPartitions() == 2, "no more than the table has buckets"
    with said(spark, RESTLESS):
        skewed = df.join(df.selectExpr("key", "n other").where("key % 7 > 0"), "key", "left").select(*df.columns)
        assert colocate(skewed, table).rdd.getNumPartitions() > 1
        assert table.upsert(skewed, **ALWAYS).inserts == 2_000


def test_a_column_may_not_have_the_name_of_where_rows_stood(spark: SparkSession, tmp_path: Path) -> None:
    df = tied(spark, "id")
    table = create(spark, tmp_path / "t", df)

    with pytest.raises(DuplicateColumnError, match="_pyhudi_position"):
        colocate(df.withColumn("_PYHUDI_position", sf.lit(1)), table)


def test_rows_are_placed_again_for_a_table_that_another_writer_made_anew(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between placement and plan: two tasks hold the rows of one bucket then."""
    path, place, counts = tmp_path / "t", read_seam("place the rows of a write"), []
    table = HudiTable.create(spark, path, "id bigint", record_key="id", buckets=6)

    def placed(df: DataFrame, target: Any, *rest: Any) -> Any:
        rows_and_options = place(df, target, *rest)
        if not counts:
            shutil.rmtree(path)
            HudiTable.create(spark, path, "id bigint", record_key="id", buckets=1)
        counts.append(target.config.bucket_count)
        return rows_and_options

    patch_seam(monkeypatch, "place the rows of a write", placed)
    spark.conf.set(COALESCES, "false")
    try:
        upserted = table.upsert(spark.range(100), **ALWAYS)
    finally:
        spark.conf.unset(COALESCES)

    assert counts == [6, 1]
    assert upserted.inserts == 100
    assert table.validate().count() == 0


def test_rows_are_placed_again_for_a_partition_that_was_rescaled(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between placement and plan: rows placed by the old number would lie where the new number does not look."""
    path, place, calls = tmp_path / "t", read_seam("place the rows of a write"), []
    table = HudiTable.create(spark, path, "id bigint", record_key="id", buckets=2)
    table.upsert(spark.range(50))

    def placed(df: DataFrame, target: Any, *rest: Any) -> Any:
        rows_and_options = place(df, target, *rest)
        if not calls:
            table.rescale_buckets(3)
        calls.append(1)
        return rows_and_options

    patch_seam(monkeypatch, "place the rows of a write", placed)
    spark.conf.set(COALESCES, "false")
    try:
        upserted = table.upsert(spark.range(100), **ALWAYS)
    finally:
        spark.conf.unset(COALESCES)

    assert (upserted.updates, upserted.inserts) == (50, 50)
    assert table.to_df().count() == 100
    assert table.validate(deep=True).count() == 0
    assert calls == [1, 1], "two tasks have rows of one new bucket"


def test_options_of_buckets_that_a_reader_gives_lose_no_row(spark: SparkSession, tmp_path: Path) -> None:
    """Apache Hudi prunes by a number and a hash field that a reader names, and loses rows where they are wrong."""
    table = HudiTable.create(spark, tmp_path / "t", "id bigint, n bigint", record_key="id", buckets=4)
    table.upsert(spark.range(40).withColumn("n", sf.col("id")))
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.hash.field": "id"}

    for number in ("4", "8", "1"):
        given = {**options, "hoodie.bucket.index.num.buckets": number}
        frame = spark.read.format("pyhudi").options(**given).load(str(tmp_path / "t"))
        assert frame.count() == 40
        assert frame.where("n = 7").count() == 1, "a filter off the hash field"
        assert [frame.where(f"id = {key}").count() for key in range(5)] == [1] * 5
