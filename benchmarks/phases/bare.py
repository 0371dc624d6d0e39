"""A Python data source that does nothing with its rows: what Spark itself asks of one that does more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

BARE = "bare"


# Rows of a stream for each file that has landed.
ROWS = 1_000


def bare(spark: SparkSession, schema: StructType | str, files: Sequence[str] = (), landed: Path | None = None) -> None:
    """Register a source of that name, which forwards the batches of Parquet files and drops the rows it is given.

    As a stream its rows are the next numbers, `ROWS` of them for each file of JSON in the folder ``landed``, in three
    columns.
    """
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        InputPartition,
        WriterCommitMessage,
    )

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(path) for path in files]

        def read(self, partition: InputPartition) -> Iterator[Any]:
            import pyarrow.parquet as pq

            yield from pq.ParquetFile(partition.value).iter_batches(batch_size=65_536, use_threads=False)

    class StreamReader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
            return {"files": 0}

        def latestOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
            return {"files": 0 if landed is None else len(list(landed.glob("*.json")))}

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
            return [InputPartition((start["files"], end["files"]))]

        def read(self, partition: InputPartition) -> Iterator[tuple[int, int, int]]:
            first, last = partition.value
            return ((number, 0, number) for number in range(first * ROWS, last * ROWS))

    class Dropping:
        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class Writer(Dropping, DataSourceArrowWriter):
        pass

    class StreamWriter(Dropping, DataSourceStreamWriter):
        def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
            pass

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

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
            return StreamReader()

        def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 (Spark's name)
            return StreamWriter()

    spark.dataSource.register(Source)
