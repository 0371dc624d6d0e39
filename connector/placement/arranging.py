"""Rows brought to the tasks that a bulk insert's sort mode asks for, where each task opens file groups of its own.

Each task sorts its rows by itself. What Spark has to do is to bring the rows of neighbouring keys, or of one partition
path, into one task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import MissingColumnError
from ...table.schema.fields import root_of
from .key_columns import KEY, PATH, can_spell, with_keys
from .key_text import quoted
from .slots import Placement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

GLOBAL_SORT = "GLOBAL_SORT"
_BY_PATH = frozenset({"PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"})


def arrange(df: DataFrame, placement: Placement, mode: str, columns: Sequence[str]) -> DataFrame | None:
    """Return the rows as a sort mode brings them together; None where they stay where they are.

    Args:
        df: The rows.
        placement: Names the columns of their keys and partition paths.
        mode: Hudi's name of the sort mode.
        columns: Columns to sort by in place of the record key, whatever the mode; none for the key.

    Raises:
        MissingColumnError: The rows lack a column.
    """
    config = placement.config
    if columns:
        by = list(dict.fromkeys([*map(root_of, config.partition_fields), *columns]))
        missing = [name for name in by if name not in df.columns]
        if missing:
            raise MissingColumnError(
                f"The rows to be written lack {', '.join(map(repr, missing))}, by which they are to be sorted.",
                "Correct hoodie.bulkinsert.user.defined.partitioner.sort.columns, or add the column.",
            )
        return df.repartitionByRange(*map(quoted, by))
    by_path = mode in _BY_PATH and bool(config.partition_fields)
    if config.generates_keys:
        # Keys are in the order of the rows. Of values that make one path few are apart.
        return df.repartition(*map(quoted, placement.columns)) if by_path else None
    if not (by_path or mode == GLOBAL_SORT) or not can_spell(df, placement):
        return None
    keyed = with_keys(df, placement)
    moved = keyed.repartitionByRange(PATH, KEY) if mode == GLOBAL_SORT else keyed.repartition(PATH)
    return moved.drop(KEY, PATH)
