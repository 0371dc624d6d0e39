"""A small table whose rows tests merge and update by Spark, and the rows that it holds afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyhudi import HudiTable
from pyspark.sql import DataFrame, SparkSession
from support.drive import write
from support.merge_rows import NAMES, SCHEMA, START, Values, counts, given, rows

COLUMNS = "id int, p string, ts bigint, n int, t string"


def frame(spark: SparkSession, rows: list[Values], columns: str = COLUMNS) -> DataFrame:
    return spark.createDataFrame(rows, columns)


def made(spark: SparkSession, path: Path, **terms: Any) -> HudiTable:
    terms = {"record_key": "id", "partition_by": "p", "order_by": "ts", **terms}
    if "index" not in terms:
        terms["buckets"] = 2
    table = HudiTable.create(spark, str(path), COLUMNS, **terms)
    add(table.path, *START)
    return table


def add(path: str, *rows: Values) -> None:
    """Have another writer upsert rows, which no engine carries out."""
    write(path, given(*rows))


__all__ = ["COLUMNS", "NAMES", "SCHEMA", "START", "Values", "add", "counts", "frame", "made", "rows"]
