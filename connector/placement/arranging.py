"""Distributes rows as the sort mode of a bulk insert demands, if each task opens its own file groups.

Each task sorts its rows itself. Spark only brings rows with neighbouring keys, or of one partition path, into one task.
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
    """Return the rows distributed for a sort mode; None if the mode needs no shuffle.

    ``columns`` replace the record key as sort columns under every mode. Raises `MissingColumnError` if the rows lack
    one.
    """
    config = placement.config
    if columns:
        by = list(dict.fromkeys([*map(root_of, config.partition_fields), *columns]))
        missing = [name for name in by if name not in df.columns]
        if missing:
            raise MissingColumnError(
                f"The rows lack the sort columns {', '.join(map(repr, missing))}.",
                "Correct hoodie.bulkinsert.user.defined.partitioner.sort.columns, or add the column.",
            )
        return df.repartitionByRange(*map(quoted, by))
    by_path = mode in _BY_PATH and bool(config.partition_fields)
    if config.generates_keys:
        # Generated keys follow the order of the rows. Few different values share a partition path.
        return df.repartition(*map(quoted, placement.columns)) if by_path else None
    if not (by_path or mode == GLOBAL_SORT) or not can_spell(df, placement):
        return None
    keyed = with_keys(df, placement)
    moved = keyed.repartitionByRange(PATH, KEY) if mode == GLOBAL_SORT else keyed.repartition(PATH)
    return moved.drop(KEY, PATH)
