"""Estimates the number of buckets for rows in Spark, by the Parquet size of a sample."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from ...errors import InvalidOptionError
from ...index import sizing
from ...operations.arguments import checked
from ...table.config.property_keys import COPY_ON_WRITE
from ..source.spark_types import to_arrow

SAMPLE_ROWS = 20_000


@checked
def suggest_buckets(
    rows: DataFrame | int,
    *,
    partitions: int = 1,
    partition_by: str | Sequence[str] = (),
    growth: float = 1.0,
    table_type: str = COPY_ON_WRITE,
) -> int:
    """Return the number of buckets that each partition of a table of these rows should have.

    `HudiTable.rescale_buckets` changes the number later. The target is half a gigabyte of Parquet for each bucket of a
    copy-on-write table, and three gigabytes for a merge-on-read table; see `pyhudi.index.sizing` for the reasons.
    pyhudi counts the rows of a DataFrame, and writes its first 20,000 rows to memory.

    Args:
        rows: The table's first rows, or the number of Parquet bytes that it will hold.
        partitions: The number of partitions that share the bytes; with a DataFrame use ``partition_by`` instead.
        partition_by: The columns that the table is partitioned by; their distinct values are counted.
        growth: The factor by which the table will grow.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.

    Returns:
        The number of buckets, at least one.

    Raises:
        InvalidOptionError: The value of an argument is invalid, the rows lack a column of ``partition_by``, or it comes
            with a number of bytes.
        UnsupportedTypeError: A column has a type that a Hudi table cannot hold.
    """
    columns = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    if not isinstance(rows, int):
        partitions = _count_partitions(rows, columns) if columns else partitions
        rows = parquet_bytes(rows)
    elif partition_by:
        raise InvalidOptionError(
            "suggest_buckets() got a number of bytes with partition_by, but cannot count partitions without rows.",
            "Give partitions instead of partition_by.",
        )
    return sizing.suggest_buckets(rows, partitions=partitions, growth=growth, table_type=table_type)


def measured_buckets(rows: DataFrame, partition_by: Sequence[str], table_type: str) -> int | None:
    """Return the number of buckets that suits rows; None without rows."""
    size = parquet_bytes(rows)
    if not size:
        return None
    partitions = _count_partitions(rows, partition_by) if partition_by else 1
    return sizing.suggest_buckets(size, partitions=partitions, table_type=table_type)


def _count_partitions(rows: DataFrame, columns: Sequence[str]) -> int:
    """Return the number of distinct values of columns; raises `InvalidOptionError` if the rows lack one."""
    try:
        return max(1, rows.select(*columns).distinct().count())
    except AnalysisException as error:
        raise InvalidOptionError(
            f"The rows cannot be partitioned by {', '.join(columns)}: {str(error).strip().splitlines()[0]}",
            f"Name columns of the rows: {', '.join(rows.columns)}.",
        ) from error


def parquet_bytes(df: DataFrame) -> int:
    """Return the bytes of rows as Parquet, estimated by a sample; 0 without rows."""
    # Raises for a type that a Hudi table cannot hold.
    to_arrow(df.schema)
    sample = df.limit(SAMPLE_ROWS).toArrow()
    if not sample.num_rows:
        return 0
    sink = pa.BufferOutputStream()
    pq.write_table(sample, sink, compression="zstd")
    size = int(sink.getvalue().size)
    return size if sample.num_rows < SAMPLE_ROWS else size * df.count() // sample.num_rows
