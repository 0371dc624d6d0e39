"""Converts Arrow tables to DataFrames, and applies Arrow functions to DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def with_spark(spark: SparkSession, table: DataFrame | pa.Table) -> DataFrame:
    """Return an Arrow table of texts as a DataFrame, and a DataFrame as it is.

    An empty table gets an explicit schema, for Spark Connect.
    """
    if not isinstance(table, pa.Table):
        return table
    if table.num_rows:
        return spark.createDataFrame(table)
    return spark.createDataFrame([], ", ".join(f"{name} string" for name in table.schema.names))


def through(rows: DataFrame, task: Task, fields: StructType) -> DataFrame:
    """Return the batches that ``task`` makes of each Spark partition, as columns of ``fields``."""
    names = fields.names

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in task(batches):
            yield pa.RecordBatch.from_arrays(batch.columns, names=names)

    return rows.mapInArrow(run, fields)


def text_fields(*names: str) -> StructType:
    return StructType([StructField(name, StringType()) for name in names])


def as_array(table: pa.Table, name: str) -> pa.StringArray:
    """Return a column as one array of texts."""
    column = table.column(name).cast(pa.string()).combine_chunks()
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def counts_by_name(names: Any, counts: Any) -> dict[str, int]:
    """Return a dict of the values of the Arrow column ``counts`` by the names in the Arrow column ``names``."""
    return dict(zip(names.to_pylist(), counts.to_pylist(), strict=True))  # O(partitions)
