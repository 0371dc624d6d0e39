"""The snapshot that a merge or an update changes, as a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from ...methods.merging.changed_table import ChangedTable
from ...table.config.property_keys import IGNORE_DEFAULTS
from ...table.merging.deletes import IS_DELETED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ..table.shown_rows import ShownRows


@dataclass(frozen=True)
class MergeTarget(ChangedTable):
    """One snapshot of a table.

    Attributes:
        rows_to_show: The rows, of which a part can be read.
    """

    rows_to_show: ShownRows

    @cached_property
    def rows(self) -> DataFrame:
        """The rows, with the meta columns first; made at its first use, as many merges read a part alone."""
        return self.rows_to_show.df()

    @property
    def marks_of_deletes(self) -> list[Column]:
        """Conditions over the table's columns that mark a row as a delete."""
        flag = [sf.coalesce(sf.col(IS_DELETED), sf.lit(False))] if IS_DELETED in self.schema.names else []
        marker = self.config.delete_marker
        if marker is None or marker.field not in self.schema.names:
            return flag
        return [*flag, sf.col(marker.field).cast("string").eqNullSafe(marker.value)]

    def left_open(self, name: str, value: Column) -> Column | None:
        """Return the condition that a value of a column is a placeholder for the stored value; None if it has none.

        The columns of keys, partitions and order have none, nor has the delete flag.
        """
        mode = self.config.partial_update_mode
        if mode is None or name in self.kept_of_deletes:
            return None
        word, data_type = self.config.unavailable_value, self.schema.field(name).type
        if mode == IGNORE_DEFAULTS:
            return value.isNull()
        if word is None or not (pa.types.is_string(data_type) or pa.types.is_binary(data_type)):
            return None
        return sf.coalesce(value.cast("binary") == sf.lit(word).cast("binary"), sf.lit(False))
