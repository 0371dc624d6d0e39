"""Slices merged by tasks that the driver plans, without a process of Spark's that asks the data source first.

For a data source Spark starts a Python process to look it up, one to make it and one to plan the read, each after the
other, before the first task has a process of its own. A session's first read waits for all of them, longer than for
the rows. `HudiTable` has planned the read already, so that tasks need be told no more than what is theirs.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from ...errors import StorageError, UnreadableTimeError
from ...reader.plan import Split
from .spark_types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .reader import HudiReader

# Every task gets what all of them are to read; Spark broadcasts what is larger than this.
MOST_BYTES = 1 << 20
# Spark takes a row to be as long as its columns' types are, and one of numbers alone has 8 bytes.
_NUMBER = 8


def takes_tasks(spark: SparkSession) -> bool:
    """Return whether tasks can be told from here: a client of Spark Connect may have another Python than they."""
    return "connect" not in type(spark).__module__


def by_tasks(spark: SparkSession, reader: HudiReader, splits: Sequence[Split]) -> DataFrame | None:
    """Return what a reader reads of some splits, one a task; None where tasks cannot be told of them.

    They cannot of more than `MOST_BYTES`, nor where Spark finds no pandas.

    Args:
        spark: A session that `takes_tasks`.
        reader: Has the columns that are shown.
        splits: At least one.
    """
    told = list(splits)
    if not _is_small(told):
        return None

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    yield from reader.read(InputPartition(told[number // each]))
                except StorageError as error:
                    if not isinstance(error.__cause__, FileNotFoundError):
                        raise
                    raise UnreadableTimeError(
                        f"The table cannot be shown any more as it was when this DataFrame was made: {error.what}",
                        "Make the DataFrame anew.",
                    ) from error

    size = sum(piece.size for split in splits for piece in split.pieces)
    # Spark tells the size of what tasks return by the size of what they are given, and broadcasts what is small in a
    # join. So it is to believe that there are as many bytes as in the files, as it does of files that it reads itself:
    # what a filter keeps of a range counts as all of it.
    each = max(1, size // len(told) // _NUMBER)
    numbers = spark.range(0, len(told) * each, 1, len(told)).where(f"id % {each} = 0")
    try:
        return numbers.mapInArrow(run, to_spark(reader.columns))
    except ImportError:
        # Spark wants pandas of some version for it, of which nothing here is used.
        return None


class _FullError(Exception):
    """More bytes came than there is room for."""


class _Room:
    """Takes some bytes, keeps none, and refuses more."""

    def __init__(self, most: int) -> None:
        self._left = most

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._left -= size
        if self._left < 0:
            raise _FullError
        return size


def _is_small(told: Sequence[Split]) -> bool:
    """Return whether splits may travel with every task; of a large table no more are packed than it takes to see."""
    try:
        pickle.Pickler(_Room(MOST_BYTES)).dump(told)
    except _FullError:
        return False
    return True
