"""Turns changed rows into the rows of one upsert: the new rows, and a delete at each place that becomes empty."""

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
    """Return rows of the table's columns, with the delete flag if there are deletes.

    A delete has the ordering value of the row that it deletes, so it wins. A place that another row enters needs no
    delete, because the new row replaces the old row.
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
    names = changes.target.schema.names
    columns = [sf.col(quoted(name)) for name in names if deleted is None or name != IS_DELETED]
    if deleted is None:
        return columns
    kept = sf.col(IS_DELETED) if IS_DELETED in names else sf.lit(False)
    return [*columns, sf.when(deleted, sf.lit(True)).otherwise(kept).alias(IS_DELETED)]


def _as_they_were(changes: MergeChanges) -> list[Column]:
    """Return deletes of the rows that move away, with only the columns that a delete needs."""
    columns = []
    for field in to_spark(changes.target.schema).fields:
        before = f"{WAS}{field.name}"
        was = sf.col(quoted(before)) if before in changes.rows.columns else sf.lit(None).cast(field.dataType)
        columns.append(was.alias(field.name))
    rest = [column for column, name in zip(columns, changes.target.schema.names, strict=True) if name != IS_DELETED]
    return [*rest, sf.lit(True).alias(IS_DELETED)]


def _old_place() -> list[Column]:
    return [sf.col(OLD_KEY).alias(KEY), sf.col(OLD_PATH).alias(PATH)]
