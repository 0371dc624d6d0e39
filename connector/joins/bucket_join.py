"""Joins two tables by their buckets, and aggregates a table by its buckets, with Spark's own joins and aggregates.

Rows of one key are in buckets of one number, whatever their partition. So a join is the union of the joins of these
buckets. Spark joins two single partitions without moving rows first, and spills what does not fit into memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ...errors import ColumnValueError, InvalidOptionError, OptionConflictError
from ...operations.arguments import checked
from ...reader.buckets.bucket_groups import (
    BucketChoice,
    BucketedSlices,
    BucketGroup,
    bucketed,
    group_buckets,
    numbers_of_buckets,
)
from ...reader.buckets.hashed_columns import ADVICE, Doubts, HashedColumns, doubts_of_one, doubts_of_two
from ...table.schema.fields import root_of
from ..conditions.tree import column_named
from ..placement.choice import local_cores
from ..source.believed_size import LIMIT, parse_bytes, value_of
from ..source.parquet_scan import no_rows
from ..source.parts import Part
from ..table.shown_rows import ShownRows
from .table_rows import Side, rows_of_side

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
        """Return the rows of a side with their buckets; ``call`` names the function that the user called."""
        rows = rows_of_side(side, call)
        numbers = numbers_of_buckets(rows.snapshot.seen.table, rows.snapshot.moment.timeline)
        hashed = HashedColumns.of(rows.snapshot.config, rows.snapshot.schema, rows.path)
        return cls(rows, hashed, bucketed(rows.path, rows.slices(), numbers))

    def check_shown(self, names: Sequence[str]) -> None:
        """Refuse names of columns to join or group by that the side does not show."""
        hidden_names = [name for name in names if name not in self.rows.columns.names]
        if hidden_names:
            raise InvalidOptionError(
                f"The rows of the table {self.rows.path} are to be joined or grouped by {', '.join(names)}, but do not "
                f"show {', '.join(hidden_names)}.",
                f"Name columns among {', '.join(self.rows.columns.names)}, or have TableRows show more.",
            )

    def frame(self, side_number: int, group: BucketGroup, doubts: Doubts, most: int | None = None) -> DataFrame:
        """Return a group's rows in a single partition, which Spark estimates at no more than ``most`` bytes.

        Args:
            side_number: The place of this side among the sides of the group.
            group: The buckets to read.
            doubts: The columns whose values may make a bucket uncertain; the query fails for a row with such values.
            most: None leaves Spark's estimate as it is.
        """
        rows = self.rows.with_columns(dict.fromkeys(map(root_of, (*doubts.texts, *doubts.dates))))
        # Spark's reader and Python may each read half of them.
        part = Part(group.slices[side_number], group.choice, None if most is None else most // 2)
        return rows.df(part, certain(doubts, self.rows.path)).coalesce(1)


def certain(doubts: Doubts, path: str) -> Column | None:
    """Return a condition that holds for every row whose bucket is certain, and fails for any other; None if all are.

    ``doubts`` names the columns of texts and of dates that may be uncertain; ``path`` is the table's, for the error.
    """
    texts = [sf.col(name) for name in doubts.texts]
    uncertain = [(text.contains(",") & text.contains(":")) | text.isin(*_PLACEHOLDERS) for text in texts]
    uncertain += [sf.col(name) < sf.lit(_FIRST_GREGORIAN).cast("date") for name in doubts.dates]
    if not uncertain:
        return None
    names = ", ".join((*doubts.texts, *doubts.dates))
    error = ColumnValueError(
        f"The table {path} has a row whose bucket is not certain from its columns {names}: a text with a comma and a "
        f"colon, {' or '.join(_PLACEHOLDERS)}, or a date before {_FIRST_GREGORIAN}, which writers spell or parse in "
        "several ways.",
        ADVICE,
    )
    return sf.when(reduce(Column.__or__, uncertain), sf.raise_error(sf.lit(str(error))).cast("boolean")).otherwise(True)


def groups_of(sides: Sequence[BucketedRows], tasks: int | None) -> list[BucketGroup]:
    """Return groups of the buckets of one or two tables, at most ``tasks``; None lets the size of the files decide.

    Without buckets there is a group of no files, so that `union` has a DataFrame with the columns of the result.
    """
    by_bucket = [side.by_bucket for side in sides]
    size = sum(file_slice.size for side in by_bucket for file_slice in side.slices)
    groups = group_buckets(by_bucket, wanted_groups(sides[0].rows.spark, size) if tasks is None else tasks)
    return groups or [BucketGroup(_EVERYTHING, ((),) * len(sides))]


def wanted_groups(spark: SparkSession, size: int) -> int:
    """Return how many groups files of ``size`` bytes should make: twice the cores, or more for very many bytes."""
    return min(_MOST_GROUPS, max(2 * _cores(spark), math.ceil(size / _BYTES_OF_A_GROUP)))


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of DataFrames of a single partition each; the result keeps these partitions."""
    if len(frames) == 1:
        return frames[0]
    # Since 4.1 Spark makes one partition of single partitions that it unites, unless another frame has another number
    # of partitions (spark.sql.unionOutputPartitioning).
    return reduce(DataFrame.union, [*frames, no_rows(frames[0].sparkSession, frames[0].schema)])


def check_tasks(tasks: int | None, call: str) -> None:
    """Refuse a number of tasks below one."""
    if tasks is not None and tasks < 1:
        raise InvalidOptionError(f"{call} got tasks={tasks}.", "Give one or more tasks.")


def _cores(spark: SparkSession) -> int:
    """Return the cores of a local Spark, or the partitions over which a cluster spreads a range."""
    cores = local_cores(spark)
    if cores is not None:
        return cores
    # A cluster does not say how many cores it has, but spreads a range over them.
    newest = spark.range(1 << 12).select(sf.max(sf.spark_partition_id())).first()
    return 1 + int(newest[0]) if newest is not None else 1


# Names of columns that both sides have, or the column of the right side for each of the left side.
OnColumns: TypeAlias = "str | Sequence[str] | Mapping[str, str]"

JOINS = ("inner", "cross", "left", "right", "full", "semi", "anti")
_SPELLINGS = {"outer": "full", **{f"{kind}outer": kind for kind in ("left", "right", "full")}}
_SPELLINGS |= {"leftsemi": "semi", "leftanti": "anti"}
NO_DOUBTS = Doubts()
# Spark would broadcast a side that it believes to be small, for each group of buckets.
_HINT = "merge"


@checked
def bucket_join(left: Side, right: Side, on: OnColumns, how: str = "inner", *, tasks: int | None = None) -> DataFrame:
    """Return the join of two tables with bucket indexes, for which Spark moves no rows of them.

    The result is that of ``left.join(right, on, how)`` with the DataFrames of both sides, each pinned to the moment of
    this call. Rows are joined bucket by bucket, in groups of buckets that are tasks. The numbers of buckets of both
    sides need a common divisor.

    Args:
        left: A `HudiTable`, of which the join has the columns without meta columns; or `TableRows` of a table.
        right: The other side.
        on: The columns whose values are equal in rows that match, among them all columns that the buckets of both
            tables are made of. A name, or a list of names, of columns that both sides have: the result has them once.
            Or a dict with a column of the right side for each column of the left side: the result has both.
        how: ``inner``, ``left``, ``right``, ``full``, ``semi``, ``anti``, or another spelling of Spark's. ``cross`` is
            an inner join, as it is in Spark with columns to join on.
        tasks: The greatest number of groups of buckets. None: twice the cores, or more for very large tables.

    Returns:
        The rows.

    Raises:
        InvalidOptionError: ``on`` lacks a column of the buckets, or names a column that a side does not show; or
            another argument has an unknown value.
        OptionConflictError: A table has no bucket index. Or the tables hash equal values differently, or have numbers
            of buckets without a common divisor.
        UnsupportedTableError: The number of buckets of a table, or the spelling of its record keys, is unknown.
        PyHudiError: A table cannot be read.

    Examples:
        >>> bucket_join(orders, customers, "customer", "left").show()  # doctest: +SKIP
    """
    check_tasks(tasks, "bucket_join()")
    kind = kind_of_join(how)
    pairs = pairs_of(on)
    sides = (BucketedRows.of(left, "bucket_join()"), BucketedRows.of(right, "bucket_join()"))
    for place, side in enumerate(sides):
        side.check_shown([pair[place] for pair in pairs])
    for side, doubts in zip(sides, doubts_of_two(sides[0].hashed, sides[1].hashed, pairs), strict=True):
        _refuse_doubts(side.rows.path, doubts)
    most = max(1, parse_bytes(value_of(sides[0].rows.spark, LIMIT)))
    frames = []
    for group in groups_of(sides, tasks):
        mine, theirs = (side.frame(place, group, NO_DOUBTS, most).hint(_HINT) for place, side in enumerate(sides))
        if kind in {"semi", "anti"}:
            # Spark would push such a join below the single partition of its left side (PushDownLeftSemiAntiJoin).
            mine = mine.where(sf.spark_partition_id() >= 0)
        frames.append(mine.join(theirs, _names_or_condition(mine, theirs, on, pairs), kind))
    return union(frames)


@checked
def bucket_agg(
    table: Side, by: str | Sequence[str], *aggregates: Column | Mapping[str, str], tasks: int | None = None
) -> DataFrame:
    """Return aggregates of a table with a bucket index, for which Spark moves no rows.

    The result is that of ``df.groupBy(by).agg(*aggregates)`` with the DataFrame of the table, pinned to the moment of
    this call.

    Args:
        table: A `HudiTable`, or `TableRows` of a table.
        by: The columns to group by, among them all columns that the table's buckets are made of.
        aggregates: As for ``GroupedData.agg``: columns, or one dict of names of functions by column.
        tasks: The greatest number of groups of buckets. None: twice the cores, or more for a very large table.

    Returns:
        A row for each combination of values.

    Raises:
        InvalidOptionError: ``by`` is no name or list of names, lacks a column of the buckets, or names a column that
            the side does not show; or there are no aggregates.
        OptionConflictError: The table has no bucket index, or hashes equal values differently, or has numbers of
            buckets without a common divisor.
        UnsupportedTableError: The number of buckets, or the spelling of the record keys, is unknown.
        PyHudiError: The table cannot be read.

    Examples:
        >>> bucket_agg(orders, "customer", sf.sum("price").alias("paid")).show()  # doctest: +SKIP
    """
    check_tasks(tasks, "bucket_agg()")
    if not aggregates:
        raise InvalidOptionError(
            "bucket_agg() got no aggregates.", "Give some, such as functions.sum('price') or {'price': 'sum'}."
        )
    names = [by] if isinstance(by, str) else [*by] if _is_list(by) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidOptionError(
            f"bucket_agg() got by={by!r}, which names no columns.",
            "Give names of columns of the table, or group by other values with Spark.",
        )
    side = BucketedRows.of(table, "bucket_agg()")
    side.check_shown(names)
    doubts = doubts_of_one(side.hashed, names)
    return union(
        [
            side.frame(0, group, doubts).groupBy(*map(column_named, names)).agg(*aggregates)  # type: ignore[arg-type]
            for group in groups_of([side], tasks)
        ]
    )


def kind_of_join(how: str) -> str:
    """Return a kind of join in Spark's shortest spelling; InvalidOptionError for an unknown kind."""
    spelling = how.lower().replace("_", "") if isinstance(how, str) else ""
    kind = _SPELLINGS.get(spelling, spelling)
    if kind not in JOINS:
        raise InvalidOptionError(f"bucket_join() got how={how!r}.", f"Give one of {', '.join(JOINS)}.")
    return kind


def pairs_of(on: OnColumns) -> list[tuple[str, str]]:
    """Return the column of each side for each pair of columns that are equal in rows that match."""
    if isinstance(on, str):
        return [(on, on)]
    pairs = list(on.items()) if isinstance(on, Mapping) else [(name, name) for name in on] if _is_list(on) else []
    if not pairs or not all(isinstance(name, str) for pair in pairs for name in pair):
        raise InvalidOptionError(
            f"bucket_join() got on={on!r}, which names no columns.",
            "Give names of columns that both sides have, or a dict with a column of the right side for each of the "
            "left side. Put other conditions into where(), or join by Spark.",
        )
    return pairs


def _refuse_doubts(path: str, doubts: Doubts) -> None:
    """Refuse a join whose rows need a check: if the other side has no rows, Spark skips rows without checking them."""
    names = (*doubts.texts, *doubts.dates)
    if names:
        raise OptionConflictError(
            f"The record keys of the table {path} contain {', '.join(names)}. These are texts, in keys of other fields "
            "than the other table's, or dates: some of their values have another hash than equal values there.",
            ADVICE,
        )


def _is_list(on: object) -> bool:
    return isinstance(on, Sequence) and not isinstance(on, Column)


def _names_or_condition(
    left: DataFrame, right: DataFrame, on: OnColumns, pairs: Sequence[tuple[str, str]]
) -> list[str] | Column:
    """Return the names to join on, which the result has once, or for a dict the equality of each pair of columns."""
    if not isinstance(on, Mapping):
        return [name for name, _ in pairs]
    return reduce(Column.__and__, [left[_quoted(mine)] == right[_quoted(theirs)] for mine, theirs in pairs])


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
