"""Random histories of writes through Spark against a dict, read back by Spark twice over and by hudi-rs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyhudi import HudiTable
from pyspark.sql import DataFrame, SparkSession
from support.checks import assert_whole
from support.model import SCHEMA, Model, Step, random_history
from support.readers import rows_by_hudi_rs

COLUMNS = ("p", "id", "ts", "value")
DDL = "id string, p string, ts bigint, value bigint, _hoodie_is_deleted boolean"
OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.bucket.index.num.buckets": "3",
}


def frame(spark: SparkSession, step: Step) -> DataFrame:
    """Return a step's rows in as many Spark partitions as it says, shuffled."""
    rows = [tuple(row[name] for name in SCHEMA.names) for row in step.rows]
    random.Random(step.shuffle).shuffle(rows)
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, step.tasks), DDL)


def rows_of(df: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in df.select(*COLUMNS).collect())


def write_plainly(spark: SparkSession, path: Path, step: Step, *, creates: bool) -> None:
    mode = "overwrite" if step.operation == "insert_overwrite_table" else "append"
    options = {**(OPTIONS if creates else {}), "hoodie.datasource.write.operation": step.operation}
    frame(spark, step).write.format("pyhudi").options(**options).mode(mode).save(str(path))


def write_placed(spark: SparkSession, path: Path, step: Step, grown: int) -> None:
    table = HudiTable(spark, str(path))
    df = frame(spark, step)
    done = table.delete(df) if step.operation == "delete" else table.upsert(df)

    assert done.inserts - done.deletes == grown


@pytest.mark.parametrize("seed", range(20))
def test_a_random_history_gives_what_the_dict_says(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Plain writes and placed ones, on one table, of any number of tasks, with deletes and overwrites among them."""
    path, model, chance = tmp_path / "t", Model(), random.Random(seed)
    for number, step in enumerate(random_history(seed, steps=3, keys=20, partitions="abc")):
        before = len(model.rows)
        model.apply(step)
        if number == 0 and chance.random() < 0.5:
            HudiTable.create(spark, str(path), DDL, record_key="id", partition_by="p", order_by="ts", buckets=3)
        placed = path.exists() and step.operation != "insert_overwrite_table" and chance.random() < 0.5
        if placed:
            write_placed(spark, path, step, len(model.rows) - before)
        else:
            write_plainly(spark, path, step, creates=not path.exists())

    assert rows_of(spark.read.format("pyhudi").load(str(path))) == model.tuples()
    assert rows_of(HudiTable(spark, str(path)).to_df()) == model.tuples()
    assert rows_by_hudi_rs(path, *COLUMNS) == model.tuples()
    assert_whole(path)
