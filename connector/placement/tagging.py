"""Rows brought to the file groups that hold their keys, under an index that looks keys up: `HudiTable`'s way.

The rows get their keys, and are kept while they are needed twice. Which partitions they belong to and how many they
are tells where to look. Few keys come to the driver, and tasks look them up, each file slice opened by one of them,
once. Many are joined by Spark with those of the table's files. What comes of either is a table of keys, each with its
file groups or the place that it gets as a new one; with that the rows are joined and brought together.

The rows may come out otherwise when Spark makes them again, because they were not kept, or because an executor was lost
that kept some. So no key counts as new because nobody looked it up: a row whose key is not in the table of keys fails
the write. And the write is pinned to the moment of the lookup: what others commit in between is held against it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from ...errors import PlacementError
from ...index.base import LookupFigures, LookupIndex
from ...index.lookup import TableLookup
from ...index.outside import OutsideIndex
from ...index.registry import lookup_for
from ...operations.indexing.telling import catch_up
from ...operations.locating.group_jobs import shares_of
from ...operations.planning.operation import DELETE, DELETE_PARTITION, INSERT, UPSERT
from ...operations.planning.plan import seen_moment
from ...operations.planning.request import WriteRequest, WriteSettings
from ...operations.planning.row_plan import plan_rows
from ...operations.planning.target import Target
from ...operations.services.service import Executor
from ...table.config.property_keys import MERGE_ON_READ
from ...table.merging.merger import Meeting
from ...table.schema.columns import FILE_GROUP, NEW_GROUP
from ...table.seen_table import SeenTable
from ..source.spark_types import to_arrow
from .colocate import placement_of
from .found_keys import FoundKeys, Met, look_up
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
from .new_places import FIRST_NEW, with_places
from .table_keys import GROUP, HOME, spark_tasks
from .unique_keys import LEAVES, UniqueKeys, sent, with_homes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ...index.small_files import Shares
    from ...storage.base import Storage
    from .slots import Placement


@dataclass(frozen=True, slots=True)
class Tagging:
    """A write whose rows are to be tagged.

    Attributes:
        target: Its table, and what it does to it.
        request: What the write was asked to do.
        spread: Runs calls as tasks.
    """

    target: Target
    request: WriteRequest
    spread: Executor

    @property
    def storage(self) -> Storage:
        """The table's store."""
        return self.target.table.storage

    @property
    def settings(self) -> WriteSettings:
        """How it goes about its work."""
        return self.request.write

    @property
    def index(self) -> LookupIndex | None:
        """The table's index; None where tasks cannot ask it, as only one of another package may say."""
        found = lookup_for(self.target.config, self.settings.lookup)
        if isinstance(found, TableLookup):
            return found
        return found if isinstance(found, OutsideIndex) and found.asked_by_tasks else None

    @property
    def looks_up(self) -> bool:
        """Whether it matters which keys the table has."""
        return self.target.operation.rules.meeting is not Meeting.ADD

    @property
    def appends(self) -> bool:
        """Whether rows of file groups that are there go to log files."""
        return self.target.config.table_type == MERGE_ON_READ

    @property
    def revives(self) -> bool:
        """Whether rows may bring back what log files have deleted: deletes do not."""
        return self.appends and self.target.operation.name != DELETE

    @property
    def fills(self) -> bool:
        """Whether new rows may join small files."""
        return self.target.operation.name in {INSERT, UPSERT}


@dataclass(frozen=True, slots=True)
class Tagged:
    """Rows that say to which file groups they go, those of each in one partition of Spark's.

    Attributes:
        rows: The rows.
        moment: What the write is to be based on.
        figures: What the lookup took; None where nothing was looked up.
    """

    rows: DataFrame
    moment: str
    figures: LookupFigures | None


def tag(df: DataFrame, work: Tagging, kept: ExitStack) -> Tagged | None:
    """Return rows with the file groups that they go to; None where the commit has to look their keys up.

    Args:
        df: The rows, of an operation of which tasks do not open file groups of their own.
        work: The write.
        kept: Forgets on its end what Spark keeps until the rows are written.

    Raises:
        PyHudiError: The rows or the table do not allow the write.
    """
    index = work.index
    seen, moment = seen_moment(work.target.table, work.settings.based_on)
    # Rows are written with the columns that the table has now, whatever they were made from.
    newest = SeenTable.now(work.target.table) if work.settings.based_on else seen
    placement = placement_of(df, newest, number_to_text=work.settings.number_to_text)
    if index is None or work.target.operation.name == DELETE_PARTITION:
        return None
    through_python = index.is_global or not isinstance(index, TableLookup)
    if not can_spell(df, placement) or (through_python and not has_arrow_batches()):
        left_to_the_commit(work.storage.path)
        return None
    began = time.monotonic()
    rows = with_position(df) if work.target.operation.breaks_ties else df
    for name in (FILE_GROUP, GROUP, HOME, LEAVES):
        refuse_name(rows, name)
    keep = _keeper(kept, caches=work.settings.lookup.caches)
    keyed = keep(with_keys(rows, placement))
    met = Met.of(keyed, work.target.table.path)
    view, timeline = seen.view, seen.timeline
    found: FoundKeys | None = None
    if work.looks_up:
        catch_up(index, work.target.table)
    # Of rows that are added, those of one key may be folded into one, whatever their partitions.
    settles = index.is_global and (work.looks_up or work.target.operation.rules.fold)
    if settles:
        found = _unique(rows, work, index, newest.schema, met, seen, keep).settle(keyed) if met.rows else None
    elif work.looks_up:
        found = look_up(keyed, met, index, work, view, timeline, keep)
    if found is None and (work.looks_up or settles):
        return None
    new = met.counts if found is None else found.new
    shares = shares_of(work.target.config, work.settings.lookup.sizes, view if work.fills else None, timeline, new)
    groups = sum(len(one.shares) for one in shares.values()) + (0 if found is None else found.groups)
    figures = None if found is None or not work.looks_up else found.figures_after(time.monotonic() - began)
    return Tagged(_together(_said(keyed, found, shares, work), groups, placement), moment, figures)


def _unique(
    rows: DataFrame,
    work: Tagging,
    index: LookupIndex,
    known: pa.Schema | None,
    met: Met,
    seen: SeenTable,
    keep: Callable[[DataFrame], DataFrame],
) -> UniqueKeys:
    """Return what settles rows whose keys are unique in the whole table."""
    request = replace(work.request, schema=to_arrow(rows.schema), write=replace(work.settings, colocated=True))
    plan = plan_rows(request, work.target, known)
    return UniqueKeys(work, plan, index, seen, seen.view if work.looks_up else None, met, keep)


def _said(keyed: DataFrame, found: FoundKeys | None, shares: Mapping[str, Shares], work: Tagging) -> DataFrame:
    """Return rows that say to which file groups they go."""
    if found is None:
        return with_places(keyed, shares, FILE_GROUP, None, appends=work.appends)
    if found.is_settled:
        keys = with_homes(found.keys, shares, appends=work.appends)
        return sent(_joined(keyed, keys, found, work.target.table.path), leaving=found.moves)
    keys = with_places(found.keys, shares, FILE_GROUP, sf.col(GROUP), appends=work.appends).drop(GROUP)
    return _joined(keyed, keys, found, work.target.table.path)


def _keeper(kept: ExitStack, *, caches: bool) -> Callable[[DataFrame], DataFrame]:
    """Return what makes Spark keep rows from their first use on, until the end of a stack."""

    def keep(rows: DataFrame) -> DataFrame:
        if caches:
            rows = rows.persist()
            kept.callback(rows.unpersist)
        return rows

    return keep


def _joined(keyed: DataFrame, keys: DataFrame, found: FoundKeys, table: str) -> DataFrame:
    """Return rows with what their keys say; one row for each of several file groups that hold its key."""
    changed = PlacementError(
        f"Rows for the table {table} have other keys now than when these were looked up: their query does not give the "
        "same rows each time, and Spark ran it again.",
        "Write the rows somewhere first, or persist them, and upsert what was written.",
    )
    # Spark ends the line with a code of its own otherwise.
    refusal = sf.raise_error(sf.lit(f"{changed}\n"))
    said = keyed.join(sf.broadcast(keys) if found.is_few else keys, [PATH, KEY], "left")
    # A row without a key is refused by the task that writes it, which says which one it is.
    said_or_not: Column = sf.when(sf.col(KEY).isNull(), sf.lit(FIRST_NEW)).otherwise(
        sf.coalesce(sf.col(FILE_GROUP), refusal)
    )
    return said.withColumn(FILE_GROUP, said_or_not)


def _together(rows: DataFrame, groups: int, placement: Placement) -> DataFrame:
    """Return rows with those of each file group in one partition, and without what was found out of their keys."""
    home = sf.coalesce(HOME, PATH) if HOME in rows.columns else sf.col(PATH)
    by = [home, sf.expr(f"ltrim('{NEW_GROUP}', substring_index({FILE_GROUP}, '/', -1))")]
    # Where a number is asked for, Spark puts no small partitions together by itself.
    tasks = min(spark_tasks(rows.sparkSession), max(groups, 1)) if placement.exactly else None
    placed = rows.repartition(*by) if tasks is None else rows.repartition(tasks, *by)
    return placed.drop(KEY, PATH, HOME)
