"""Refuses new rows that could share a record key if Spark folds the rows of a key, before a task sees them.

Tasks check all rows that they get (`operations/locating/shared_keys`).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType

from ...operations.locating.shared_keys import OPTION, refusal
from ...operations.planning.operation import DELETE
from ...table.keys.generator import EMPTY_KEY, NULL_KEY
from ...table.merging.deletes import IS_DELETED
from .key_columns import KEY
from .key_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .key_places import Tagging

_ROW = "\ue000"


def text_keys(rows: DataFrame, fields: tuple[str, ...]) -> dict[str, Column]:
    """Return the columns of texts among those of a key of several columns; none of a key of a single column."""
    columns: dict[str, Column] = {}
    for name in fields if len(fields) > 1 else ():
        column = reduce(Column.__getitem__, name.split(".")[1:], sf.col(quoted(name.split(".")[0])))
        if rows.select(column).schema.fields[0].dataType == StringType():
            columns[name] = column
    return columns


def without_shared_keys(keyed: DataFrame, work: Tagging) -> DataFrame:
    """Return keyed rows, whose query fails with `DataError` for a new row that could share its key.

    Rows with different values in the key columns can have one key as text; Spark would drop one of them as a repeat.
    ``work`` is the write that the rows belong to.
    """
    config, settings = work.target.config, work.settings
    # For deletes, merges and updates, tasks compare the stored rows; merges and updates are known by their counts.
    if settings.keys.may_collide or settings.origin.counted is not None or work.target.operation.name == DELETE:
        return keyed
    fields = config.record_key_fields
    texts = text_keys(keyed, fields)
    # A key has these texts in the place of a null and of an empty text.
    may_share = [column.isin(NULL_KEY, EMPTY_KEY) for column in texts.values()]
    for name, column in texts.items():
        # A key is ``a:1,b:2``, so a text with ``,b:`` in it can make the key of other texts.
        may_share += [column.contains(f",{later}:") for later in fields[fields.index(name) + 1 :]]
    if not may_share:
        return keyed
    # A delete adds no row.
    live = ~sf.coalesce(sf.col(IS_DELETED), sf.lit(False)) if IS_DELETED in keyed.columns else sf.lit(True)
    if config.delete_marker is not None and config.delete_marker.field in keyed.columns:
        marker = sf.col(quoted(config.delete_marker.field)).cast("string")
        live = live & ~marker.eqNullSafe(config.delete_marker.value)
    # The line break separates the text that Spark appends.
    text_before, text_after = (
        f"{refusal(work.target.table.path, f'the record key {_ROW}', f'the option {OPTION}')}\n".split(_ROW)
    )
    failing = sf.raise_error(sf.concat(sf.lit(text_before), sf.col(KEY), sf.lit(text_after)))
    any_may_share = sf.coalesce(
        reduce(Column.__or__, (sf.coalesce(part, sf.lit(False)) for part in may_share)), sf.lit(False)
    )
    return keyed.withColumn(KEY, sf.when(any_may_share & live, failing).otherwise(sf.col(KEY)))
