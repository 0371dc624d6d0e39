"""Where rows go whose keys are unique in the whole table: which of each key goes on, to where, and what it leaves.

Rows of a key are brought together with the places of the key, wherever these are. Only where a row could move, or has
several places, is the row that is there looked at, by the task that opens its file group. Columns that decide are all
that goes through Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType, LongType, StructField, StructType
from pyspark.sql.window import Window

from ...index.base import NOT_FOUND, KeyedRows, LookupFigures, LookupIndex
from ...index.lookup import TableLookup
from ...operations.locating.everywhere import AskTask, FoldTask, SettleTask, StandingTask, places_of
from ...operations.planning.row_plan import RowPlan
from ...operations.planning.spread_lookup import LookTask, overlapping, tag_spread
from ...table.files.view import FileView
from ...table.merging.deletes import IS_DELETED
from ...table.merging.merger import Meeting
from ...table.schema.columns import FILE_GROUP, RECORD_KEY
from ...table.seen_table import SeenTable
from .arrow_frames import as_array, by_name, local_frame, text_fields, through
from .found_keys import FEW_KEYS, FoundKeys, Met
from .key_columns import KEY, PATH
from .key_text import quoted
from .new_places import with_places
from .table_keys import GROUP, HOME, spark_tasks, table_keys

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ...index.small_files import Shares
    from .tagging import Tagging

LEAVES = "_pyhudi_leaves"
_GOES, _DELETED, _LIVE, _WINS = "_pyhudi_goes", "_pyhudi_deleted", "_pyhudi_live", "_pyhudi_wins"
_SINCE = "_pyhudi_since"
_ROWS, _SEVERAL, _OWN = "_pyhudi_rows", "_pyhudi_several", "_pyhudi_own"
# What rows say that go nowhere.
_NOWHERE = ""


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """The rows of a write to a table whose keys are unique in all of it.

    Attributes:
        work: The write.
        plan: The same, as it would be carried out now.
        index: The table's index.
        table: The table, for tasks.
        view: Its file slices; None where nothing is looked for in it.
        met: What partitions and keys the rows have.
        keep: Makes Spark keep rows that are used twice.
    """

    work: Tagging
    plan: RowPlan
    index: LookupIndex
    table: SeenTable
    view: FileView | None
    met: Met
    keep: Callable[[DataFrame], DataFrame]

    def settle(self, keyed: DataFrame) -> FoundKeys:
        """Return where rows go.

        Args:
            keyed: Rows with keys and paths, among which there is a key.

        Raises:
            PyHudiError: A file cannot be read, or a row has no ordering value.
        """
        decided = self.keep(self._decided(keyed))
        winners = decided.where(_GOES).drop(_GOES)
        stays = sf.lit(False).alias(LEAVES)
        if self.view is None:
            figures = LookupFigures()
            settled = winners.select(KEY, PATH, sf.col(PATH).alias(HOME), _null(GROUP), stays)
        else:
            places, figures = self._places(winners, self.view)
            settled = self._settled(winners, places)
        lost = decided.where(~sf.col(_GOES)).select(KEY, PATH, _null(HOME), _null(GROUP), stays)
        keys = self.keep(settled.union(lost))
        counted = keys.where(sf.col(HOME).isNotNull()).groupBy(HOME, GROUP).agg(sf.count("*").alias(_ROWS)).toArrow()
        absent = counted.filter(pc.is_null(counted.column(GROUP)))
        new = by_name(absent.column(HOME), absent.column(_ROWS))
        groups = counted.num_rows - absent.num_rows
        is_few = self.met.rows <= FEW_KEYS
        return FoundKeys(keys, new, groups, figures, is_few, is_settled=True, moves=self.plan.moves_rows)

    def _decided(self, keyed: DataFrame) -> DataFrame:
        """Return what decides of one row of each key and partition path, with whether that row goes on."""
        spec = self.plan.spec
        names = [quoted(name) for name in spec.deciding if name != RECORD_KEY and name in keyed.columns]
        # A key that was not among those counted need not have been looked for; without a word of it its row is refused.
        rows = keyed.where(sf.col(KEY).between(*self.met.between)).select(KEY, PATH, *names)
        ordered = rows.repartition(KEY).sortWithinPartitions(KEY, PATH)
        fields = StructType([*ordered.schema.fields, *map(_flag, (_GOES, _DELETED))])
        deletes = self.plan.rules.meeting is Meeting.MERGE
        return through(ordered, FoldTask(spec, self.plan.folds, deletes), fields)

    def _places(self, winners: DataFrame, view: FileView) -> tuple[DataFrame, LookupFigures]:
        """Return the partition and the file id of each file group that holds a key, and what it took."""
        if not isinstance(self.index, TableLookup):
            asked = through(
                winners.select(KEY, PATH), AskTask(self.table, self.index), text_fields(KEY, PATH, HOME, GROUP)
            )
            found = asked.where(sf.col(GROUP).isNotNull()).select(KEY, HOME, GROUP).dropDuplicates()
            return self.keep(found), LookupFigures()
        if self.met.rows <= FEW_KEYS:
            return self._few(winners, self.index, view)
        pieces = view.all_slices()
        spans = dict.fromkeys((piece.partition_path for piece in pieces), self.met.between)
        task = LookTask(self.table, self.index)
        candidates = overlapping(task, pieces, spans, self.work.spread, self._tasks(winners))
        if not candidates:
            return local_frame(winners, _NO_PLACES), LookupFigures(len(pieces))
        spark, between = winners.sparkSession, self.met.between
        keys = table_keys(spark, candidates, self.table, between, in_python=True)
        # What Spark cannot read Python does.
        met = cast("DataFrame", keys).withColumnRenamed(PATH, HOME).join(winners.select(KEY).dropDuplicates(), KEY)
        # A file may hold a key twice.
        found = self.keep(met.select(KEY, HOME, GROUP).dropDuplicates())
        hits = found.select(HOME, GROUP).distinct().count()
        return found, LookupFigures(len(pieces), len(candidates), len(candidates) - hits)

    def _few(self, winners: DataFrame, index: TableLookup, view: FileView) -> tuple[DataFrame, LookupFigures]:
        """Return the same of few keys, which come to the driver, and which tasks look up as the commit does."""
        wanted = winners.select(KEY, PATH).toArrow()
        keys = as_array(wanted, KEY)
        rows = KeyedRows(keys, as_array(wanted, PATH).dictionary_encode())
        task = LookTask(self.table, index)
        tags = tag_spread(task, rows, view, self.work.storage, self.work.spread, self._tasks(winners))
        there = np.flatnonzero(tags.codes != NOT_FOUND)
        of_row = pa.array(np.append(there, tags.copied))
        partitions, ids = places_of(tags.groups, np.append(tags.codes[there], tags.copy_codes))
        found = pa.table([keys.take(of_row), partitions, ids], schema=_NO_PLACES.schema)
        return local_frame(winners, found).dropDuplicates(), tags.figures

    def _settled(self, winners: DataFrame, places: DataFrame) -> DataFrame:
        """Return where rows go, given the places of their keys."""
        held = self._held(winners, places)
        untold = {_LIVE: sf.lit(True), _WINS: sf.lit(False), _SINCE: sf.lit(0).cast("long")}
        known = places.withColumns(untold)
        if held is not None:
            on = [KEY, HOME, GROUP]
            known = places.join(held, on, "left").withColumns(
                {name: sf.coalesce(name, value) for name, value in untold.items()}
            )
        pairs = winners.select(KEY, PATH, _DELETED).join(known, KEY, "left")
        order = (KEY, PATH, _DELETED, HOME, GROUP)
        ordered = pairs.select(*order, *untold).repartition(KEY).sortWithinPartitions(*order)
        fields = StructType([*text_fields(KEY, PATH, HOME, GROUP).fields, _flag(LEAVES)])
        return through(ordered, SettleTask(self.plan.moves_rows), fields)

    def _held(self, winners: DataFrame, places: DataFrame) -> DataFrame | None:
        """Return how rows that could move, or have several places, stand with those there; None where it is all one."""
        judges = self.plan.moves_rows and bool(self.plan.spec.ordering_fields)
        if not judges and not self.work.appends:
            return None
        several = sf.count("*").over(Window.partitionBy(KEY, PATH)) > 1
        met = winners.join(places, KEY).withColumn(_SEVERAL, several)
        asked = met.where(~sf.col(_DELETED) & (sf.col(_SEVERAL) | (sf.col(PATH) != sf.col(HOME))))
        rest = [quoted(name) for name in winners.columns if name not in {KEY, PATH, _DELETED}]
        wanted = asked.select(HOME, GROUP, KEY, *rest)
        if not self.plan.folds:
            wanted = wanted.dropDuplicates([HOME, GROUP, KEY])
        ordered = wanted.repartition(HOME, GROUP).sortWithinPartitions(HOME, GROUP)
        fields = [*text_fields(HOME, GROUP, KEY).fields, _flag(_LIVE), _flag(_WINS), StructField(_SINCE, LongType())]
        return through(ordered, StandingTask(self.table, self.plan), StructType(fields))

    def _tasks(self, rows: DataFrame) -> int:
        return spark_tasks(rows.sparkSession)


def with_homes(keys: DataFrame, shares: Mapping[str, Shares], *, appends: bool) -> DataFrame:
    """Return keys with what their rows say of the file group that they go to, if any, and of its partition.

    Args:
        keys: As `UniqueKeys.settle` returns them.
        shares: The places of new keys.
        appends: Whether rows of file groups that are there go to log files, but for those that new keys join.
    """
    by_home = keys.withColumnRenamed(PATH, _OWN).withColumnRenamed(HOME, PATH)
    placed = with_places(by_home, shares, FILE_GROUP, sf.col(GROUP), appends=appends).drop(GROUP)
    placed = placed.withColumnRenamed(PATH, HOME).withColumnRenamed(_OWN, PATH)
    elsewhere = sf.when(sf.col(HOME) != sf.col(PATH), sf.concat(HOME, sf.lit("/"), FILE_GROUP)).otherwise(
        sf.col(FILE_GROUP)
    )
    return placed.withColumn(FILE_GROUP, sf.when(sf.col(HOME).isNull(), sf.lit(_NOWHERE)).otherwise(elsewhere))


def sent(rows: DataFrame, *, leaving: bool) -> DataFrame:
    """Return rows without those that go nowhere, and with what leaves a file group as a delete.

    Args:
        rows: Rows with what `with_homes` says of their keys.
        leaving: Whether some may leave one.
    """
    going = rows.where(sf.col(FILE_GROUP) != _NOWHERE)
    if leaving:
        flag: Column = sf.col(IS_DELETED) if IS_DELETED in rows.columns else sf.lit(False)
        leaves = sf.coalesce(sf.col(LEAVES), sf.lit(False))
        going = going.withColumn(IS_DELETED, sf.when(leaves, sf.lit(True)).otherwise(flag))
    return going.drop(LEAVES)


def _flag(name: str) -> StructField:
    return StructField(name, BooleanType())


def _null(name: str) -> Column:
    return sf.lit(None).cast("string").alias(name)


_NO_PLACES = pa.schema([pa.field(name, pa.string()) for name in (KEY, HOME, GROUP)]).empty_table()
