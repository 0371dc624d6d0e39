"""pyhudi's end of a table that Apache Hudi writes too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from interop.strict import strict_schema, strictly
from pyhudi.connector.options.parsing import parse_options
from pyhudi.operations.result import CommitResult
from pyspark.sql import SparkSession
from support.drive import write


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


def write_without_spark(table: Path, rows: pa.Table, options: Mapping[str, str]) -> CommitResult:
    """Run one write by the options that ``df.write`` would take, rows in their order, in milliseconds."""
    asked = parse_options(options).to_write_request(str(table), rows.schema, overwrite=False)
    return write(table, rows, operation=asked.operation, table=asked.table, settings=asked.write)
