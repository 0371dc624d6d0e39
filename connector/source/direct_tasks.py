"""Reads of merged slices by tasks that the driver plans itself, without the planning processes of a data source.

For a data source Spark starts three Python processes one after the other, to look it up, to make it and to plan the
read, before the first task has a process. In a session's first read that takes longer than reading the rows.
`HudiTable` has planned the read already, so tasks need only their splits.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from ...errors import StorageError, UnreadableTimeError
from .believed_size import row_width
from .spark_types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ...reader.matches.sought_slices import SoughtSplit
    from ...reader.plan import Split
    from .reader import HudiReader

# Every task gets the splits of all tasks; Spark broadcasts functions above this size.
MOST_BYTES = 1 << 20
# Spark estimates the size of a row by its columns' types: a row of a single bigint has 8 bytes.
_NUMBER = 8
_NUMBERS = pa.schema([pa.field("id", pa.int64())])


def takes_tasks(spark: SparkSession) -> bool:
    """Return whether this process may plan tasks: a Spark Connect client may run another Python than the tasks."""
    return "connect" not in type(spark).__module__


def by_tasks(
    spark: SparkSession,
    reader: HudiReader,
    splits: Sequence[Split] | Sequence[SoughtSplit],
    most: int | None = None,
) -> DataFrame | None:
    """Return the rows of at least one split, one task each; Spark believes them to have ``most`` bytes.

    The result is None if the splits have more than `MOST_BYTES`, or if Spark finds no pandas.
    """
    all_splits: list[Split | SoughtSplit] = list(splits)
    if not _is_small(all_splits):
        return None

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    yield from reader.read(InputPartition(all_splits[number // each]))
                except StorageError as error:
                    if not isinstance(error.__cause__, FileNotFoundError):
                        raise
                    raise UnreadableTimeError(
                        f"The table cannot be shown as it was when this DataFrame was made: {error.what}",
                        "Make the DataFrame anew.",
                    ) from error

    size = sum(part.size for split in splits for part in split.parts)
    # Spark estimates the size of a task's output by that of its input, and broadcasts the smaller side of a join. So
    # make the input as large as the files, as in Spark's own scans: the estimate counts a filtered range as a whole.
    each = max(1, size // len(all_splits) // _NUMBER)
    if most is not None:
        # Spark scales the bytes of the numbers by the widths of the rows that go in and come out.
        each = max(1, min(each, most * row_width(_NUMBERS) // (_NUMBER * len(all_splits) * row_width(reader.columns))))
    numbers = spark.range(0, len(all_splits) * each, 1, len(all_splits)).where(f"id % {each} = 0")
    try:
        return numbers.mapInArrow(run, to_spark(reader.columns))
    except ImportError:
        # Spark requires pandas in some version, although this code does not use it.
        return None


class _FullError(Exception): ...


class _Room:
    """A file that counts bytes and raises above a limit."""

    def __init__(self, most: int) -> None:
        self._left = most

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._left -= size
        if self._left < 0:
            raise _FullError
        return size


def _is_small(all_splits: Sequence[Split | SoughtSplit]) -> bool:
    """Return whether splits are small enough to travel with every task, without pickling more than the limit."""
    try:
        pickle.Pickler(_Room(MOST_BYTES)).dump(all_splits)
    except _FullError:
        return False
    return True
