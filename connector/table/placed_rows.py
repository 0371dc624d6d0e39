"""The placement of rows for a write of `HudiTable`: by file group, if that is faster than the commit's merge."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ...errors import MissingColumnError
from ...index.registry import index_for
from ...operations.carried_values import spell
from ...operations.planning.operation import opens_alone
from ...operations.planning.request import WriteRequest
from ...operations.planning.target import Target
from ...operations.write_settings import BulkInsertSort
from ...options.model import HudiOptions
from ...options.names import OPTIONS
from ...table.config.property_keys import MERGE_ON_READ
from ...table.schema.columns import POSITION
from ...table.schema.fields import root_of
from ...table.seen_table import SeenTable
from ..placement.batch_keys import BatchKeys
from ..placement.choice import places
from ..placement.colocate import can_place, place, placement_of, with_numbers
from ..placement.key_columns import KEY, PATH, can_spell, check_columns, with_keys
from ..placement.key_places import Tagging
from ..placement.key_text import quoted
from ..placement.slots import Placement
from ..placement.tagging import tag
from ..source.paths import LOOKED_UP
from .service_tasks import SparkTasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

GLOBAL_SORT = "GLOBAL_SORT"
_BY_PATH = frozenset({"PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"})


def arrange(df: DataFrame, placement: Placement, mode: str, columns: Sequence[str]) -> DataFrame | None:
    """Return the rows distributed for a sort mode; None if it needs no shuffle, or Spark cannot compute the keys.

    ``mode`` is a sort mode of Hudi's bulk insert. With ``columns`` the rows are distributed by ranges of the partition
    columns and these, whatever the mode. Raises `MissingColumnError` if the rows lack a column.
    """
    config = placement.config
    if columns:
        sort_columns = list(dict.fromkeys([*map(root_of, config.partition_fields), *columns]))
        absent_columns = [name for name in sort_columns if name not in df.columns]
        if absent_columns:
            raise MissingColumnError(
                f"The rows lack the sort columns {', '.join(map(repr, absent_columns))}.",
                "Correct hoodie.bulkinsert.user.defined.partitioner.sort.columns, or add the column.",
            )
        return df.repartitionByRange(*map(quoted, sort_columns))
    by_path = mode in _BY_PATH and bool(config.partition_fields)
    if config.generates_keys:
        # Generated keys follow the order of the rows, which no sort changes.
        if not by_path:
            return None
        check_columns(df, placement)
        # Few different values share a path.
        return df.repartition(*map(quoted, placement.columns))
    if not (by_path or mode == GLOBAL_SORT) or not can_spell(df, placement):
        return None
    keyed = with_keys(df, placement)
    moved = keyed.repartitionByRange(PATH, KEY) if mode == GLOBAL_SORT else keyed.repartition(PATH)
    return moved.drop(KEY, PATH)


logger = logging.getLogger("pyhudi")

# The commit merges any number of rows in bounded memory; the option limits df.write only.
NO_BOUND = 1 << 62
_MERGED_BY_THE_COMMIT = (
    "The commit of the write to %s merges its rows, because Spark 4.0 places rows of tables whose keys are not whole "
    "numbers only if pandas is installed."
)


def placed_rows(
    df: DataFrame,
    target: Target,
    options: HudiOptions,
    request: WriteRequest,
    on_exit: ExitStack,
    batch_keys: BatchKeys | None = None,
) -> tuple[DataFrame, dict[str, str]]:
    """Return the rows in the placement for the write, and the options that describe it.

    The placement brings all rows of a file group into one task, if that is faster than a merge by the commit. Rows that
    stay as they are come with an option that lets the commit merge any number of them. ``target`` is the table of the
    write ``request``, and ``batch_keys`` are the keys that this process knows from earlier batches of a stream; None
    for other writes. ``on_exit`` releases, once the rows are written, what Spark persists.
    """
    unplaced = {OPTIONS["commit_merge_max_bytes"].key: str(NO_BOUND)}
    if opens_alone(target.operation.name, target.operation.rules, target.config):
        return _sorted_for_insert(df, target, options, request.write.sort), unplaced
    # Only a task that has all rows of a file group can count their copies; otherwise the commit does.
    counts = request.write.origin.of_stored and target.config.table_type == MERGE_ON_READ
    needs_whole_groups = counts and not index_for(target.config).needs_lookup
    if target.config.generates_keys or not (
        # Rows that colocate() placed carry their position.
        POSITION in df.columns or places(df, options.place_rows, needs_whole_groups=needs_whole_groups)
    ):
        return df, unplaced
    if index_for(target.config).needs_lookup:
        work = Tagging(target, request, SparkTasks(df.sparkSession, "lookup"), on_exit, batch_keys)
        tagged_rows = tag(df, work)
        if tagged_rows is None:
            # The commit has to look the keys up.
            return df, unplaced
        lookup_options = {OPTIONS["colocated"].key: "true", OPTIONS["based_on"].key: tagged_rows.moment}
        if tagged_rows.figures is not None:
            lookup_options[LOOKED_UP] = spell(tagged_rows.figures)
        return tagged_rows.rows, lookup_options
    to_text = options.number_to_text
    seen = SeenTable.now(target.table)
    placement = with_numbers(placement_of(df, seen, number_to_text=to_text), seen)
    if not can_place(df, placement):
        logger.warning(_MERGED_BY_THE_COMMIT, request.path)
        return df, unplaced
    rows = place(df, placement, breaks_ties=target.operation.breaks_ties)
    return rows, {OPTIONS["colocated"].key: "true"}


def _sorted_for_insert(df: DataFrame, target: Target, options: HudiOptions, sort: BulkInsertSort) -> DataFrame:
    """Return the rows of a bulk insert distributed as its sort mode asks; as they are if nothing is to be sorted."""
    if not target.operation.sorts or options.place_rows == "never":
        return df
    config = target.config
    if config.generates_keys:
        placement = Placement(config, None, 1)
    else:
        placement = placement_of(df, SeenTable.now(target.table), number_to_text=options.number_to_text)
    arranged = arrange(df, placement, sort.mode, sort.columns)
    return df if arranged is None else arranged
