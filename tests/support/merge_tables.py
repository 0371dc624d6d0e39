"""A small table whose rows are merged and updated by Spark, and what is asked of it afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyhudi import HudiTable
from pyspark.sql import DataFrame, SparkSession
from support.drive import rows_of, write

COLUMNS = "id int, p string, ts bigint, n int, t string"
SCHEMA = pa.schema([("id", pa.int32()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("t", pa.string())])
NAMES = tuple(SCHEMA.names)
Values = tuple[object, ...]

START: list[Values] = [(1, "a", 5, 1, "one"), (2, "a", 5, 2, "two"), (3, "b", 5, 3, "three"), (4, "b", 9, 4, None)]


def frame(spark: SparkSession, rows: list[Values], columns: str = COLUMNS) -> DataFrame:
    return spark.createDataFrame(rows, columns)


def rows(table: HudiTable) -> list[Values]:
    """Return what a table holds, read without Spark."""
    return rows_of(table.path, *NAMES)


def counts(done: Any) -> tuple[int, int, int, int]:
    return done.inserts, done.updates, done.deletes, done.moved


def made(spark: SparkSession, path: Path, **terms: Any) -> HudiTable:
    terms = {"record_key": "id", "partition_by": "p", "order_by": "ts", **terms}
    if "index" not in terms:
        terms["buckets"] = 2
    table = HudiTable.create(spark, str(path), COLUMNS, **terms)
    add(table.path, *START)
    return table


def add(path: str, *rows: Values) -> None:
    """Have another writer upsert rows, which no engine carries out."""
    write(path, pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in rows], SCHEMA))
