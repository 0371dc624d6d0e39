"""Changed rows as one upsert takes them: the rows that are going to be there, and a delete wherever one goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from ...operations.planning.changed_rows import ChangedRows
from ...table.merging.deletes import IS_DELETED
from ..placement.key_columns import KEY, PATH
from ..placement.key_text import quoted
from ..source.spark_types import to_spark
from .changing import OLD_KEY, OLD_PATH, WAS, MergeChanges, is_delete

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def rows_to_write(changes: MergeChanges, found: ChangedRows) -> DataFrame:
    """Return rows of the table's columns, and the flag of those that are deletes where there are any.

    A delete has the ordering value of the row that it deletes, as which it wins. At a place that another row comes to
    none is needed: that row takes the place of what is there.

    Args:
        changes: The changed rows, kept.
        found: What was found among them.
    """
    rows = changes.rows
    if not found.counts.deletes and not found.left:
        return rows.select(*_columns(changes))
    if not found.replaced and not found.left:
        return rows.select(*_columns(changes, is_delete()))
    live = rows.where(~is_delete()).select(*_columns(changes, sf.lit(False)))
    places = [KEY, PATH]
    gone = rows.where(is_delete()).select(*_columns(changes, sf.lit(True)), *_old_place())
    if found.left:
        gone = gone.unionByName(rows.where(changes.leaves).select(*_as_they_were(changes), *_old_place()))
    if found.replaced:
        gone = gone.join(rows.where(~is_delete()).select(*changes.place), changes.place, "left_anti")
    return live.unionByName(gone.drop(*places))


def _columns(changes: MergeChanges, deleted: Column | None = None) -> list[Column]:
    """Return the columns of the table, and whether a row is a delete, which the table may have a column for."""
    names = changes.target.schema.names
    columns = [sf.col(quoted(name)) for name in names if deleted is None or name != IS_DELETED]
    if deleted is None:
        return columns
    kept = sf.col(IS_DELETED) if IS_DELETED in names else sf.lit(False)
    return [*columns, sf.when(deleted, sf.lit(True)).otherwise(kept).alias(IS_DELETED)]


def _as_they_were(changes: MergeChanges) -> list[Column]:
    """Return deletes of the rows that leave their places, as they were there: what a delete needs, and nothing else."""
    columns = []
    for field in to_spark(changes.target.schema).fields:
        before = f"{WAS}{field.name}"
        was = sf.col(quoted(before)) if before in changes.rows.columns else sf.lit(None).cast(field.dataType)
        columns.append(was.alias(field.name))
    rest = [column for column, name in zip(columns, changes.target.schema.names, strict=True) if name != IS_DELETED]
    return [*rest, sf.lit(True).alias(IS_DELETED)]


def _old_place() -> list[Column]:
    return [sf.col(OLD_KEY).alias(KEY), sf.col(OLD_PATH).alias(PATH)]
