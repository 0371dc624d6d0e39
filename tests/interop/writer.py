"""pyhudi's end of a table that Apache Hudi writes too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from interop.strict import strict_schema, strictly
from pyspark.sql import SparkSession
from support.by_options import write_without_spark

__all__ = ["Writer", "write_without_spark"]


class Writer:
    """Writes one table through Spark."""

    def __init__(self, spark: SparkSession, table: Path, folder: Path) -> None:
        self.spark, self.table, self.folder = spark, table, folder

    def write(self, rows: pa.Table, options: Mapping[str, str]) -> None:
        """Run one ``df.write.format("pyhudi")`` on rows in their order."""
        path = self.folder / f"rows-{len(list(self.folder.glob('rows-*')))}.parquet"
        pq.write_table(rows, path, store_schema=False)
        frame = strictly(self.spark.read.parquet(str(path)).coalesce(1), strict_schema(rows.schema))
        frame.write.format("pyhudi").options(**options).mode("append").save(str(self.table))
