"""Tables of this process as DataFrames, and DataFrames of what tasks make of whole batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def with_spark(spark: SparkSession, table: DataFrame | pa.Table) -> DataFrame:
    """Return a table of this process as a DataFrame; Spark Connect looks at no types where there are no rows."""
    if not isinstance(table, pa.Table):
        return table
    if table.num_rows:
        return spark.createDataFrame(table)
    return spark.createDataFrame([], ", ".join(f"{name} string" for name in table.schema.names))


def through(
    rows: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], fields: StructType
) -> DataFrame:
    """Return what tasks make of the rows of each of Spark's partitions, in columns of these names and types."""
    names = fields.names

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in task(batches):
            yield pa.RecordBatch.from_arrays(batch.columns, names=names)

    return rows.mapInArrow(run, fields)


def text_fields(*names: str) -> StructType:
    """Return columns of texts."""
    return StructType([StructField(name, StringType()) for name in names])


def as_array(table: pa.Table, name: str) -> pa.StringArray:
    """Return a column of texts as one array."""
    column = table.column(name).cast(pa.string()).combine_chunks()
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def by_name(names: Any, counts: Any) -> dict[str, int]:
    """Return counts by name; there are as many as partitions."""
    return dict(zip(names.to_pylist(), counts.to_pylist(), strict=True))  # O(partitions)
