"""Decides under a global index which row of each key is written, to which file group, and which old row it deletes.

Rows of a key are brought together with all places of the key. A task opens a file group to look at a stored row only
if a row may move or its key has several places. Only the deciding columns go through Python.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType, LongType, StructField, StructType
from pyspark.sql.window import Window

from ...index.base import LookupFigures
from ...operations.locating.global_index import FoldTask, PairStateTask, ResolveTask
from ...operations.locating.tagger import Tagger
from ...table.files.names import FileGroupId
from ...table.merging.deletes import IS_DELETED
from ...table.schema.columns import FILE_GROUP, RECORD_KEY
from .arrow_frames import text_fields, through, with_spark
from .key_columns import KEY, PATH
from .key_places import FoundKeys, KeyLookup, count_keys, has_copies
from .key_text import quoted
from .new_places import Places
from .table_keys import GROUP, HOME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from .key_places import KeyPlaces

LEAVES = "_pyhudi_leaves"
# Whether a row counts, and is a delete; whether a stored row is live, and wins against the incoming row; and since
# when its slice exists. Whether a key has several places, and the row's own path.
_GOES, _DELETED, _LIVE, _WINS = "_pyhudi_goes", "_pyhudi_deleted", "_pyhudi_live", "_pyhudi_wins"
_SINCE = "_pyhudi_since"
_SEVERAL, _OWN = "_pyhudi_several", "_pyhudi_own"
# The file group of rows that are not written.
_NOWHERE = ""


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """The rows of a write under a global index; ``tagger`` makes the decisions, in tasks."""

    lookup: KeyLookup
    tagger: Tagger

    def resolve(self, keyed: DataFrame) -> FoundKeys | None:
        """Return the target of each row with a key, of which there must be at least one.

        None if rows were made of stored rows and the table has a key several times: the commit has to find out
        whether they were made of all rows of the key.
        """
        keep = self.lookup.work.keep
        decided = keep(self._with_verdicts(keyed))
        winners = decided.where(_GOES).drop(_GOES)
        stays = sf.lit(False).alias(LEAVES)
        if self.tagger.seen is None:
            # The write does not depend on the table's keys, so each row stays in its own partition.
            figures, repeating = LookupFigures(), frozenset[FileGroupId]()
            resolved = winners.select(KEY, PATH, sf.col(PATH).alias(HOME), _null(GROUP), stays)
        else:
            places, figures, repeating = self._places_of_keys(winners)
            if self.lookup.work.settings.origin.of_stored and (repeating or has_copies(places, [KEY])):
                return None
            resolved = self._resolved(winners, places)
        # A row that loses against another row of its key gets no place, so it is not written.
        lost = decided.where(~sf.col(_GOES)).select(KEY, PATH, _null(HOME), _null(GROUP), stays)
        keys = keep(resolved.union(lost))
        new_counts, groups = count_keys(keys.where(sf.col(HOME).isNotNull()), HOME)
        moves = self.tagger.plan.moves_rows
        return FoundKeys(keys, new_counts, groups, figures, is_resolved=True, moves=moves, repeating=repeating)

    def _with_verdicts(self, keyed: DataFrame) -> DataFrame:
        """Return the columns that decide which row of a key wins, of one row for each key and path, with two flags.

        ``_GOES`` says whether the row counts: always without a fold, else if it wins against the other rows of its key.
        ``_DELETED`` says whether it is a delete.
        """
        names = [quoted(name) for name in self.tagger.spec.deciding if name != RECORD_KEY and name in keyed.columns]
        # The lookup may have missed an uncounted key. Without an entry here, the write refuses its row.
        rows = keyed.where(sf.col(KEY).between(*self.lookup.ranges.between)).select(KEY, PATH, *names)
        ordered = rows.repartition(KEY).sortWithinPartitions(KEY, PATH)
        fields = StructType([*ordered.schema.fields, *map(_flag, (_GOES, _DELETED))])
        return through(ordered, FoldTask(self.tagger), fields)

    def _places_of_keys(self, winners: DataFrame) -> tuple[DataFrame, LookupFigures, frozenset[FileGroupId]]:
        """Return the partition and file id of each file group that contains a key, and the costs of the lookup.

        The third result is the file groups that contain a key several times.
        """
        # Never None: this class runs only if Python tasks can read the files that Spark cannot.
        places = cast("KeyPlaces", self.lookup.places_of(winners.select(KEY, PATH)))
        hits = places.hits()
        if isinstance(hits, pa.Table):
            return with_spark(winners.sparkSession, hits), places.figures, places.repeating
        kept_hits = self.lookup.work.keep(hits)
        repeating = replace(places, pairs=kept_hits).all_repeating(HOME)
        kept_hits = kept_hits.select(KEY, HOME, GROUP)
        if not places.figures.candidates:
            return kept_hits, places.figures, repeating
        return kept_hits, places.final_figures(count_keys(kept_hits, HOME)[1]), repeating

    def _resolved(self, winners: DataFrame, places: DataFrame) -> DataFrame:
        """Return for each key and path the partition and file group that gets the row, and whether it moves.

        Args:
            winners: The row of each key that counts, with the flag whether it deletes.
            places: The partition and file group of each stored row of these keys; no row for a new key.
        """
        states = self._states_of_stored_rows(winners, places)
        # Where no task has looked, the stored row counts as live, and the incoming row wins.
        unknown_state = {_LIVE: sf.lit(True), _WINS: sf.lit(False), _SINCE: sf.lit(0).cast("long")}
        places_with_states = places.withColumns(unknown_state)
        if states is not None:
            place_columns = [KEY, HOME, GROUP]
            places_with_states = places.join(states, place_columns, "left").withColumns(
                {name: sf.coalesce(name, value) for name, value in unknown_state.items()}
            )
        pairs = winners.select(KEY, PATH, _DELETED).join(places_with_states, KEY, "left")
        order = (KEY, PATH, _DELETED, HOME, GROUP)
        ordered = pairs.select(*order, *unknown_state).repartition(KEY).sortWithinPartitions(*order)
        fields = StructType([*text_fields(KEY, PATH, HOME, GROUP).fields, _flag(LEAVES)])
        return through(ordered, ResolveTask(self.tagger), fields)

    def _states_of_stored_rows(self, winners: DataFrame, places: DataFrame) -> DataFrame | None:
        """Return the states of stored rows that may move or have several places; None if no stored row matters."""
        plan = self.tagger.plan
        # A stored row can win only by an ordering value, and be deleted without a new base file only in log files.
        if not (plan.moves_rows and self.tagger.spec.ordering_fields) and not self.lookup.work.appends:
            return None
        several = sf.count("*").over(Window.partitionBy(KEY, PATH)) > 1
        pairs_with_places = winners.join(places, KEY).withColumn(_SEVERAL, several)
        contested = pairs_with_places.where(~sf.col(_DELETED) & (sf.col(_SEVERAL) | (sf.col(PATH) != sf.col(HOME))))
        deciding_columns = [quoted(name) for name in winners.columns if name not in {KEY, PATH, _DELETED}]
        contested_rows = contested.select(HOME, GROUP, KEY, *deciding_columns)
        # Without a fold a key may have several incoming rows; any of them finds the stored row.
        if not plan.folds:
            contested_rows = contested_rows.dropDuplicates([HOME, GROUP, KEY])
        ordered = contested_rows.repartition(HOME, GROUP).sortWithinPartitions(HOME, GROUP)
        fields = [*text_fields(HOME, GROUP, KEY).fields, _flag(_LIVE), _flag(_WINS), StructField(_SINCE, LongType())]
        return through(ordered, PairStateTask(self.tagger), StructType(fields))


def with_homes(keys: DataFrame, places: Places) -> DataFrame:
    """Return resolved keys with the file group of their rows, and its partition in the column `HOME`.

    The file group has its partition before it, with a slash, if that is not the row's own. It is ``_NOWHERE`` for a key
    whose row is not written.
    """
    by_home = keys.withColumnRenamed(PATH, _OWN).withColumnRenamed(HOME, PATH)
    placed = places.with_file_groups(by_home, sf.col(GROUP)).drop(GROUP)
    placed = placed.withColumnRenamed(PATH, HOME).withColumnRenamed(_OWN, PATH)
    elsewhere = sf.when(sf.col(HOME) != sf.col(PATH), sf.concat(HOME, sf.lit("/"), FILE_GROUP)).otherwise(
        sf.col(FILE_GROUP)
    )
    return placed.withColumn(FILE_GROUP, sf.when(sf.col(HOME).isNull(), sf.lit(_NOWHERE)).otherwise(elsewhere))


def written_rows(rows: DataFrame, *, leaving: bool) -> DataFrame:
    """Return the rows that are written; with ``leaving``, a row that leaves a file group is a delete there."""
    rows_written = rows.where(sf.col(FILE_GROUP) != _NOWHERE)
    if leaving:
        flag: Column = sf.col(IS_DELETED) if IS_DELETED in rows.columns else sf.lit(False)
        leaves = sf.coalesce(sf.col(LEAVES), sf.lit(False))
        rows_written = rows_written.withColumn(IS_DELETED, sf.when(leaves, sf.lit(True)).otherwise(flag))
    return rows_written.drop(LEAVES)


def _flag(name: str) -> StructField:
    return StructField(name, BooleanType())


def _null(name: str) -> Column:
    return sf.lit(None).cast("string").alias(name)
