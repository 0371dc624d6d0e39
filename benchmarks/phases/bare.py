"""A Python data source that does nothing with its rows: what Spark itself asks of one that does more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

BARE = "bare"


def bare(spark: SparkSession, schema: StructType, files: Sequence[str] = ()) -> None:
    """Register a source of that name, which forwards the batches of Parquet files and drops the rows it is given."""
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        InputPartition,
        WriterCommitMessage,
    )

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(path) for path in files]

        def read(self, partition: InputPartition) -> Iterator[Any]:
            import pyarrow.parquet as pq

            yield from pq.ParquetFile(partition.value).iter_batches(batch_size=65_536, use_threads=False)

    class Writer(DataSourceArrowWriter):
        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return BARE

        def schema(self) -> Any:
            return schema

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

        def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
            return Writer()

    spark.dataSource.register(Source)
