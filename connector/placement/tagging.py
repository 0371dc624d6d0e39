"""Brings rows to the file groups that contain their keys, for `HudiTable` under an index that looks keys up.

The rows get their keys, and Spark persists them while they are used twice. The partitions of the rows and the number of
keys decide the method: few keys come to the driver, and tasks look them up, opening each file slice once; Spark joins
many keys with those of the table's files. Both give a table of keys, each with its file groups, or with a place for a
new key. A join with it tags the rows, which are then brought together by file group.

A query may give other rows when Spark runs it again, because the rows were not persisted or an executor with some of
them was lost. So a key without an entry in the table of keys does not count as new, but fails the write. And the write
is based on the moment of the lookup, so that commits in between are checked for conflicts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from ...errors import PlacementError
from ...index.base import LookupFigures
from ...index.lookup import TableLookup
from ...operations.indexing.notify import catch_up
from ...operations.locating.file_group_writes import shares_of
from ...operations.locating.tagger import Tagger
from ...operations.planning.operation import DELETE_PARTITION, keeps_keys_unique
from ...operations.planning.pinned import seen_moment
from ...operations.planning.row_plan import plan_rows
from ...table.schema.columns import FILE_GROUP, NEW_GROUP
from ...table.seen_table import SeenTable
from ..source.spark_types import to_arrow
from .colocate import placement_of
from .key_columns import (
    KEY,
    PATH,
    can_spell,
    has_arrow_batches,
    left_to_the_commit,
    refuse_name,
    with_keys,
    with_position,
)
from .key_places import FoundKeys, KeyLookup, KeyRanges, Tagging
from .new_places import FIRST_NEW, Places
from .shared_keys import without_shared_keys
from .table_keys import GROUP, HOME, spark_tasks
from .unique_keys import LEAVES, UniqueKeys, with_homes, written_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from ...index.base import LookupIndex
    from .slots import Placement


@dataclass(frozen=True, slots=True)
class TaggedRows:
    """Rows with their file groups in a column, those of each file group in one Spark partition.

    Attributes:
        moment: The watermark that the write is based on.
        figures: The costs of the lookup; None without a lookup.
    """

    rows: DataFrame
    moment: str
    figures: LookupFigures | None


def tag(df: DataFrame, work: Tagging) -> TaggedRows | None:
    """Return the rows of ``df`` with their file groups; None if the commit has to look their keys up.

    ``work`` is the write: the table, its index and its settings. The result is None if tasks cannot query the index or
    compute the keys, or if a decision about a key needs all its rows.
    """
    index = work.index
    seen, moment = seen_moment(work.target.table, work.settings.origin.based_on)
    # Rows get the columns that the table has now, also if they were made from an older snapshot.
    newest = SeenTable.now(work.target.table) if work.settings.origin.based_on else seen
    # Refuses key columns of a wrong type also if the commit looks the keys up.
    placement = placement_of(df, newest, number_to_text=work.settings.evolution.number_to_text)
    if index is None or not _tasks_can_tag(df, work, index, placement):
        return None
    start = time.monotonic()
    keyed = _keyed_rows(df, work, index, placement)
    lookup = KeyLookup(work, index, seen, KeyRanges.of(keyed, work.target.table.path))
    keeps_unique = keeps_keys_unique(work.target.operation.name, work.target.config)
    if work.looks_up or keeps_unique:
        # An outside index first learns of the writes that it missed.
        catch_up(index, work.target.table)
    # Rows that replace partitions must not leave copies of their keys in others; the commit refuses or deletes those.
    if keeps_unique and lookup.ranges.rows and lookup.may_have_copies(keyed):
        return None
    # Under a global index, an insert too may fold rows of one key from different partitions.
    resolves = index.is_global and (work.looks_up or work.target.operation.rules.fold)
    found_keys: FoundKeys | None = None
    if resolves or work.looks_up:
        found_keys = _resolve(keyed, lookup, newest.schema) if resolves else lookup.find(keyed)
        if found_keys is None:
            return None
    with_groups, groups = _with_file_groups(keyed, found_keys, lookup)
    figures = None
    if found_keys is not None and work.looks_up:
        figures = replace(found_keys.figures, seconds=round(time.monotonic() - start, 3))
    return TaggedRows(_by_file_group(with_groups, groups, placement), moment, figures)


def _tasks_can_tag(df: DataFrame, work: Tagging, index: LookupIndex, placement: Placement) -> bool:
    """Return whether Spark's tasks can compute the keys of the rows and look them up; log it if Spark is too old."""
    if work.target.operation.name == DELETE_PARTITION:
        return False
    # Rows of one key in several partitions are compared in Python, and an outside index has a client in Python.
    through_python = index.is_global or not isinstance(index, TableLookup)
    if not can_spell(df, placement) or (through_python and not has_arrow_batches()):
        left_to_the_commit(work.target.table.path)
        return False
    return True


def _keyed_rows(df: DataFrame, work: Tagging, index: LookupIndex, placement: Placement) -> DataFrame:
    """Return rows with their keys and partition paths, persisted, and with positions if these decide between rows."""
    rows = with_position(df) if work.target.operation.breaks_ties else df
    for name in (FILE_GROUP, GROUP, HOME, LEAVES):
        refuse_name(rows, name)
    keyed = with_keys(rows, placement)
    return work.keep(without_shared_keys(keyed, work) if index.is_global else keyed)


def _resolve(keyed: DataFrame, lookup: KeyLookup, table_schema: pa.Schema) -> FoundKeys | None:
    """Return the places of keys that are unique in the whole table; None if the commit has to find them."""
    if not lookup.ranges.rows:
        return None
    work = lookup.work
    # Once the rows have their file groups, one task gets all rows of a file group, so the plan is made for such rows.
    schema, settings = to_arrow(keyed.drop(KEY, PATH).schema), replace(work.settings, colocated=True)
    request = replace(work.request, schema=schema, write=settings)
    plan = plan_rows(request, work.target, table_schema)
    return UniqueKeys(lookup, Tagger(plan, lookup.seen if work.looks_up else None)).resolve(keyed)


def _with_file_groups(keyed: DataFrame, found_keys: FoundKeys | None, lookup: KeyLookup) -> tuple[DataFrame, int]:
    """Return rows with their file groups, and how many file groups get rows.

    The rows are of new keys if nothing was looked up, else they are joined with the found keys.
    """
    work = lookup.work
    new_counts = lookup.ranges.counts if found_keys is None else found_keys.new_counts
    # Without a view, new keys join no existing file group.
    view = lookup.seen.view if work.fills else None
    shares = shares_of(work.target.config, work.settings.lookup.sizes, view, lookup.seen.timeline, new_counts)
    new_groups = sum(len(share.shares) for share in shares.values())
    if found_keys is None:
        return Places(shares, work.appends, frozenset()).with_file_groups(keyed), new_groups
    places = Places(shares, work.appends, found_keys.repeating if work.appends else frozenset())
    groups = new_groups + found_keys.groups
    if found_keys.is_resolved:
        joined = _joined_with_keys(keyed, with_homes(found_keys.keys, places), lookup)
        return written_rows(joined, leaving=found_keys.moves), groups
    keys = places.with_file_groups(found_keys.keys, sf.col(GROUP)).drop(GROUP)
    return _joined_with_keys(keyed, keys, lookup), groups


def _joined_with_keys(keyed: DataFrame, keys: DataFrame, lookup: KeyLookup) -> DataFrame:
    """Return rows joined with ``keys`` and their file groups: one row for each file group that contains the key."""
    error = PlacementError(
        f"Rows for the table {lookup.seen.table.path} have other keys now than at the lookup: their query does not "
        "give the same rows each time, and Spark ran it again.",
        "Write the rows to files first, or persist them, and upsert those.",
    )
    # The line break separates the text that Spark appends.
    refusal = sf.raise_error(sf.lit(f"{error}\n"))
    joined = keyed.join(sf.broadcast(keys) if lookup.ranges.is_few else keys, [PATH, KEY], "left")
    # The task that writes a row without a key refuses it and names it.
    group: Column = sf.when(sf.col(KEY).isNull(), sf.lit(FIRST_NEW)).otherwise(sf.coalesce(sf.col(FILE_GROUP), refusal))
    return joined.withColumn(FILE_GROUP, group)


def _by_file_group(rows: DataFrame, groups: int, placement: Placement) -> DataFrame:
    """Return rows with those of each file group in one Spark partition, without the columns of the lookup.

    ``groups`` is the number of file groups that get rows.
    """
    home = sf.coalesce(HOME, PATH) if HOME in rows.columns else sf.col(PATH)
    columns = [home, sf.expr(f"ltrim('{NEW_GROUP}', substring_index({FILE_GROUP}, '/', -1))")]
    # With a fixed number of tasks, Spark does not join small partitions.
    tasks = min(spark_tasks(rows.sparkSession), max(groups, 1)) if placement.exactly else None
    shuffled = rows.repartition(*columns) if tasks is None else rows.repartition(tasks, *columns)
    return shuffled.drop(KEY, PATH, HOME)
