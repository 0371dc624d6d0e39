"""A small table whose rows are merged and updated by Spark, and what is asked of it afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyhudi import HudiTable
from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id int, p string, ts bigint, n int, t string"
NAMES = ("id", "p", "ts", "n", "t")
Values = tuple[object, ...]

START: list[Values] = [(1, "a", 5, 1, "one"), (2, "a", 5, 2, "two"), (3, "b", 5, 3, "three"), (4, "b", 9, 4, None)]


def frame(spark: SparkSession, rows: list[Values], columns: str = COLUMNS) -> DataFrame:
    return spark.createDataFrame(rows, columns)


def rows(table: HudiTable) -> list[Values]:
    return sorted(tuple(row) for row in table.to_df(NAMES).collect())


def counts(done: Any) -> tuple[int, int, int, int]:
    return done.inserts, done.updates, done.deletes, done.moved


def made(spark: SparkSession, path: Path, **terms: Any) -> HudiTable:
    terms = {"record_key": "id", "partition_by": "p", "order_by": "ts", **terms}
    if "index" not in terms:
        terms["buckets"] = 2
    table = HudiTable.create(spark, str(path), COLUMNS, **terms)
    table.upsert(frame(spark, START))
    return table
