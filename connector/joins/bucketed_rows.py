"""Rows of a table with a bucket index, as a DataFrame of a single partition for each group of buckets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ...errors import ColumnValueError, InvalidOptionError
from ...reader.buckets.bucket_groups import BucketChoice, BucketedSlices, BucketGroup, bucketed, group_buckets
from ...reader.buckets.hashed_columns import ADVICE, Doubts, HashedColumns
from ...reader.buckets.numbers import numbers_of_buckets
from ...table.schema.fields import root_of
from ..placement.choice import local_cores
from ..source.parquet_scan import no_rows
from ..source.parts import Part
from ..table.shown_rows import ShownRows
from .table_rows import Side, shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each group makes the plan of the query longer.
_MOST_GROUPS = 128
_BYTES_OF_A_GROUP = 1 << 30
_EVERYTHING = BucketChoice(1, (0,))
# Texts that Apache Hudi's parser of record keys takes for null and for an empty text.
_PLACEHOLDERS = ("__null__", "__empty__")
_FIRST_GREGORIAN = "1582-10-15"


@dataclass(frozen=True, slots=True)
class BucketedRows:
    """Rows of a table whose buckets are known, pinned to one moment."""

    rows: ShownRows
    hashed: HashedColumns
    by_bucket: BucketedSlices

    @classmethod
    def of(cls, side: Side, call: str) -> BucketedRows:
        rows = shown(side, call)
        numbers = numbers_of_buckets(rows.snapshot.seen.table, rows.snapshot.moment.timeline)
        hashed = HashedColumns.of(rows.snapshot.config, rows.snapshot.schema, rows.path)
        return cls(rows, hashed, bucketed(rows.path, rows.slices(), numbers))

    def check_shown(self, names: Sequence[str]) -> None:
        """Refuse names of columns to join or group by that the side does not show."""
        missing = [name for name in names if name not in self.rows.wanted.names]
        if missing:
            raise InvalidOptionError(
                f"The rows of the table {self.rows.path} are to be joined or grouped by {', '.join(names)}, but do not "
                f"show {', '.join(missing)}.",
                f"Name columns among {', '.join(self.rows.wanted.names)}, or have TableRows show more.",
            )

    def frame(self, place: int, group: BucketGroup, doubts: Doubts, most: int | None = None) -> DataFrame:
        """Return a group's rows in a single partition, which Spark estimates at no more than ``most`` bytes."""
        rows = self.rows.with_columns(dict.fromkeys(map(root_of, (*doubts.texts, *doubts.dates))))
        # Spark's reader and Python may each read half of them.
        part = Part(group.slices[place], group.choice, None if most is None else most // 2)
        return rows.df(part, certain(doubts, self.rows.path)).coalesce(1)


def certain(doubts: Doubts, path: str) -> Column | None:
    """Return a condition that holds for every row whose bucket is certain, and fails for any other."""
    texts = [sf.col(name) for name in doubts.texts]
    odd = [(text.contains(",") & text.contains(":")) | text.isin(*_PLACEHOLDERS) for text in texts]
    odd += [sf.col(name) < sf.lit(_FIRST_GREGORIAN).cast("date") for name in doubts.dates]
    if not odd:
        return None
    names = ", ".join((*doubts.texts, *doubts.dates))
    error = ColumnValueError(
        f"The table {path} has a row whose bucket is not certain from its columns {names}: a text with a comma and a "
        f"colon, {' or '.join(_PLACEHOLDERS)}, or a date before {_FIRST_GREGORIAN}, which writers spell or parse in "
        "several ways.",
        ADVICE,
    )
    return sf.when(reduce(Column.__or__, odd), sf.raise_error(sf.lit(str(error))).cast("boolean")).otherwise(True)


def groups_of(sides: Sequence[BucketedRows], tasks: int | None) -> list[BucketGroup]:
    """Return groups of buckets, at least one."""
    by_bucket = [side.by_bucket for side in sides]
    size = sum(file_slice.size for side in by_bucket for file_slice in side.slices)
    groups = group_buckets(by_bucket, wanted_groups(sides[0].rows.spark, size) if tasks is None else tasks)
    return groups or [BucketGroup(_EVERYTHING, ((),) * len(sides))]


def wanted_groups(spark: SparkSession, size: int) -> int:
    """Return twice the cores, or more if a group would have very many bytes, within bounds."""
    return min(_MOST_GROUPS, max(2 * _cores(spark), math.ceil(size / _BYTES_OF_A_GROUP)))


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of DataFrames of a single partition each, in as many partitions."""
    if len(frames) == 1:
        return frames[0]
    # Since 4.1 Spark makes one partition of single partitions that it unites, unless another frame has another number
    # of partitions (spark.sql.unionOutputPartitioning).
    return reduce(DataFrame.union, [*frames, no_rows(frames[0].sparkSession, frames[0].schema)])


def check_tasks(tasks: int | None, call: str) -> None:
    if tasks is not None and tasks < 1:
        raise InvalidOptionError(f"{call} got tasks={tasks}.", "Give one or more tasks.")


def _cores(spark: SparkSession) -> int:
    cores = local_cores(spark)
    if cores is not None:
        return cores
    # A cluster does not say how many cores it has, but spreads a range over them.
    newest = spark.range(1 << 12).select(sf.max(sf.spark_partition_id())).first()
    return 1 + int(newest[0]) if newest is not None else 1
