"""Finds the file groups of a write's keys: tasks look few keys up, and Spark joins many with the table's keys.

Tasks also query an outside index, if the index permits it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from ...index.base import KeyedRows, LookupFigures, LookupIndex
from ...index.lookup import TableLookup
from ...index.outside import OutsideIndex
from ...index.registry import lookup_for
from ...index.unnoted import UnnotedIndex
from ...operations.locating.spread_lookup import AskTask, SpreadLookup, pairs_of
from ...operations.planning.operation import DELETE, INSERT, UPSERT
from ...operations.planning.request import WriteRequest, WriteSettings
from ...operations.planning.target import Target
from ...operations.services.service import Executor
from ...storage.threads import for_each
from ...table.config.property_keys import MERGE_ON_READ
from ...table.files.names import FileGroupId
from ...table.keys.partition_paths import check_safe_path
from ...table.merging.merger import RowMeeting
from ...table.seen_table import SeenTable
from .arrow_frames import as_array, counts_by_name, text_fields, through, with_spark
from .batch_keys import BatchKeys
from .key_columns import KEY, PATH, has_arrow_batches, left_to_the_commit
from .table_keys import GROUP, HOME, LOGGED, spark_tasks, table_keys

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The most keys that come to the driver for a lookup by tasks; Spark joins more keys than that.
FEW_KEYS = 1 << 18

# Whether the file group's base file holds the key several times.
REPEATS = "_pyhudi_repeats"
_ROWS, _LEAST, _GREATEST = "_pyhudi_rows", "_pyhudi_least", "_pyhudi_greatest"


@dataclass(frozen=True, slots=True)
class Tagging:
    """A write whose rows need file groups.

    Attributes:
        spread: Runs calls as Spark tasks.
        on_exit: Releases what Spark persists until the rows are written.
        batch_keys: The keys that this process knows to be in the table; None unless the write is a batch of a stream.
    """

    target: Target
    request: WriteRequest
    spread: Executor
    on_exit: ExitStack
    batch_keys: BatchKeys | None = None

    @property
    def settings(self) -> WriteSettings:
        return self.request.write

    @property
    def index(self) -> LookupIndex | None:
        """The table's index; None if tasks cannot query it, which an outside index decides."""
        lookup = lookup_for(self.target.config, self.target.lookup(self.settings.lookup))
        if isinstance(lookup, TableLookup):
            return lookup
        return lookup if isinstance(lookup, OutsideIndex) and lookup.asked_by_tasks else None

    @property
    def looks_up(self) -> bool:
        """Whether the write depends on the keys in the table."""
        return self.target.operation.rules.meeting is not RowMeeting.ADD

    @property
    def appends(self) -> bool:
        """Whether rows of existing file groups go to log files."""
        return self.target.config.table_type == MERGE_ON_READ

    @property
    def revives(self) -> bool:
        """Whether a row may bring back a key that log files have deleted."""
        return self.appends and self.target.operation.name != DELETE

    @property
    def counts(self) -> bool:
        """Whether it matters that a file group holds a key several times."""
        return self.appends or self.settings.origin.of_stored

    @property
    def fills(self) -> bool:
        """Whether rows of new keys may join small file groups."""
        return self.target.operation.name in {INSERT, UPSERT}

    def keep(self, rows: DataFrame) -> DataFrame:
        """Persist rows that are used twice, until the write is done, if the options let Spark keep them."""
        if self.settings.lookup.caches:
            rows = rows.persist()
            self.on_exit.callback(rows.unpersist)
        return rows


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """The partitions that rows belong to, with their numbers and ranges of keys.

    Attributes:
        table: By partition path, the number of rows with a key, the least key and the greatest key.
    """

    table: pa.Table

    @classmethod
    def of(cls, keyed: DataFrame, table: str) -> KeyRanges:
        """Return the partitions of rows that have the columns `KEY` and `PATH`, by running the rows' query.

        ``table`` is the path of the table, for the `PartitionValueError` that refuses an unsafe partition path.
        """
        key = sf.col(KEY)
        aggregates = [sf.count(key).alias(_ROWS), sf.min(key).alias(_LEAST), sf.max(key).alias(_GREATEST)]
        by_partition = keyed.groupBy(PATH).agg(*aggregates).toArrow()
        for path in by_partition.column(PATH).to_pylist():  # O(partitions)
            check_safe_path(path, table)
        return cls(by_partition)

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows with a key, by partition path."""
        return counts_by_name(self.table.column(PATH), self.table.column(_ROWS))

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    @property
    def is_few(self) -> bool:
        return self.rows <= FEW_KEYS

    @property
    def bounds(self) -> dict[str, tuple[str, str]]:
        """The least and the greatest key by partition path, ordered by bytes."""
        columns = (self.table.column(name).to_pylist() for name in (PATH, _LEAST, _GREATEST))  # O(partitions)
        return {path: (least or "", greatest or "") for path, least, greatest in zip(*columns, strict=True)}

    @property
    def between(self) -> tuple[str, str]:
        """The least and the greatest key of all partitions, ordered by bytes; there must be a key."""
        span = pc.min_max(self.table.column(_LEAST)), pc.min_max(self.table.column(_GREATEST))
        return span[0]["min"].as_py(), span[1]["max"].as_py()  # O(1)

    def within_bounds(self, pairs: DataFrame) -> DataFrame:
        """Return the pairs of keys and partitions that the ranges count: keys within the bounds of their partition."""
        spans = pairs.sparkSession.createDataFrame(self.table.select([PATH, _LEAST, _GREATEST]))
        return pairs.join(spans, PATH).where(sf.col(KEY).between(sf.col(_LEAST), sf.col(_GREATEST))).select(KEY, PATH)


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """All keys of a write, once for each file group that contains them, or once if none does.

    Attributes:
        keys: Partition path, key, and file id; null if the table lacks the key.
        new_counts: The number of keys that the table lacks, by partition path.
        groups: The number of file groups that contain keys.
        figures: The costs of the lookup.
        is_resolved: Whether ``keys`` also names each row's target partition, null for none, and whether the row leaves
            its own partition.
        moves: Whether rows may leave their partition.
        repeating: File groups of a merge-on-read table that hold one of the keys several times.
    """

    keys: DataFrame
    new_counts: Mapping[str, int]
    groups: int
    figures: LookupFigures
    is_resolved: bool = False
    moves: bool = False
    repeating: frozenset[FileGroupId] = frozenset()


@dataclass(frozen=True, slots=True)
class KeyPlaces:
    """Looked-up pairs of a key and a path, with the partition and file id of every file group that contains the key.

    Attributes:
        pairs: An Arrow table if they are few. The file id is null for a key that the table lacks; the partition is
            present only if it may differ from the pair's path. A DataFrame may have the column `REPEATS`.
        figures: The costs of the lookup, for a join without the false positives, which `final_figures` adds.
        repeating: File groups that hold one of the keys several times, if the pairs are few.
    """

    pairs: DataFrame | pa.Table
    figures: LookupFigures
    repeating: frozenset[FileGroupId] = frozenset()

    def all_repeating(self, partition_column: str) -> frozenset[FileGroupId]:
        """Return the file groups that hold one of the keys several times; partitions are in ``partition_column``."""
        if isinstance(self.pairs, pa.Table) or REPEATS not in self.pairs.columns:
            return self.repeating
        groups = self.pairs.where(REPEATS).select(partition_column, GROUP).distinct().toArrow()
        columns = (groups.column(name).to_pylist() for name in (partition_column, GROUP))  # O(file groups)
        return frozenset(map(FileGroupId, *columns))

    def hits(self) -> DataFrame | pa.Table:
        """Return the distinct keys that the table contains, with partition, file id and, for a join, `REPEATS`."""
        names = [KEY, HOME, GROUP]
        if isinstance(self.pairs, pa.Table):
            hits = self.pairs.filter(pc.is_valid(self.pairs.column(GROUP)))
            return hits.group_by(names).aggregate([]).select(names)
        hits = self.pairs.where(sf.col(GROUP).isNotNull())
        if REPEATS not in hits.columns:
            return hits.select(names).dropDuplicates()
        return hits.groupBy(*names).agg(sf.max(REPEATS).alias(REPEATS))

    def final_figures(self, groups: int) -> LookupFigures:
        """Return the costs of the lookup, given the number of file groups that contain keys."""
        if isinstance(self.pairs, pa.Table) or not self.figures.candidates:
            return self.figures
        return replace(self.figures, false_positives=self.figures.candidates - groups)


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """A lookup of the keys of a write, whose rows have the ranges of keys ``ranges``."""

    work: Tagging
    index: LookupIndex
    seen: SeenTable
    ranges: KeyRanges

    def find(self, keyed: DataFrame) -> FoundKeys | None:
        """Return the file groups of keys within their own partitions; None if the commit has to find them.

        The commit has to do so if this Spark cannot read the candidate files; and, on merge-on-read tables, if several
        file groups seem to contain a key: log files may have deleted it in some of them, where a row would bring it
        back. The same holds if rows were made of stored rows, which may be only some rows of a key.
        """
        places = self.places_of(keyed.select(KEY, PATH).where(sf.col(KEY).isNotNull()).distinct())
        if places is None:
            return None
        if not isinstance(places.pairs, pa.Table):
            places = replace(places, pairs=self.work.keep(places.pairs))
        pairs = places.pairs.select([PATH, KEY, GROUP])
        if (self.work.revives or self.work.settings.origin.of_stored) and has_copies(pairs, [PATH, KEY]):
            return None
        new_counts, groups = count_keys(pairs, PATH)
        repeating = places.all_repeating(PATH)
        return FoundKeys(
            with_spark(keyed.sparkSession, pairs), new_counts, groups, places.final_figures(groups), repeating=repeating
        )

    def may_have_copies(self, keyed: DataFrame) -> bool:
        """Return whether an overwrite of partitions may leave some of its keys in two partitions.

        The commit decides then, as for a write that folds its rows, or if tasks cannot look the keys up: it refuses the
        write, or deletes the copies.
        """
        if self.work.target.operation.rules.fold:
            return True
        pairs = self.work.keep(keyed.select(KEY, PATH).where(sf.col(KEY).isNotNull()).distinct())
        if pairs.groupBy(KEY).agg(sf.count("*").alias(_ROWS)).where(sf.col(_ROWS) > 1).take(1):
            return True
        places = self.places_of(pairs)
        if places is None:
            return True
        hits, replaced = places.hits(), list(self.ranges.counts)
        if isinstance(hits, pa.Table):
            outside = pc.invert(pc.is_in(hits.column(HOME), pa.array(replaced, pa.string())))
            return bool(pc.any(outside, min_count=0).as_py())  # O(1)
        return bool(hits.where(~sf.col(HOME).isin(replaced)).take(1))

    def places_of(self, pairs: DataFrame) -> KeyPlaces | None:
        """Return the file groups that contain the keys of unique pairs; None if this Spark cannot read all files.

        Tasks look few keys up. Spark joins many keys with the keys of the table's files.
        """
        if not isinstance(self.index, TableLookup):
            # Tasks query an outside index themselves, so this process knows no costs of the lookup.
            task = AskTask(self.seen, self.index)
            return KeyPlaces(through(pairs, task, text_fields(KEY, PATH, HOME, GROUP)), LookupFigures())
        batch_keys = None if self.work.batch_keys is None else self.work.batch_keys.keys
        spread = SpreadLookup(self.seen, self.index, self.work.spread, spark_tasks(pairs.sparkSession), batch_keys)
        if self.ranges.is_few:
            return self._look_up_by_tasks(pairs, spread)
        places = self._join_in_spark(pairs, spread)
        return None if places is None else self._search_other_partitions(places, spread)

    def _look_up_by_tasks(self, pairs: DataFrame, spread: SpreadLookup) -> KeyPlaces:
        """Return the places of few keys, which tasks look up; ``batch_keys`` notes them for the stream's next batch."""
        unique_pairs = pairs.toArrow()
        rows = KeyedRows(as_array(unique_pairs, KEY), as_array(unique_pairs, PATH).dictionary_encode())
        tags = spread.tag(rows)
        if self.work.batch_keys is not None:
            self.work.batch_keys.note(tags, rows, self.seen)
        places = pa.Table.from_batches([pairs_of(rows, tags)]).rename_columns([KEY, PATH, HOME, GROUP])
        repeating = frozenset(tags.groups[code] for code in tags.repeating if self.work.counts)
        return KeyPlaces(places, tags.figures, repeating)

    def _join_in_spark(self, pairs: DataFrame, spread: SpreadLookup) -> KeyPlaces | None:
        """Return the places of keys by a join with the keys of the files whose key ranges overlap theirs.

        None if this Spark cannot read all files, upon which the commit looks the keys up.

        Args:
            pairs: The keys of the write, each with its partition path, without repeats.
            spread: Finds the files whose key ranges overlap those of the keys.
        """
        view, is_global = self.seen.view, self.index.is_global
        if is_global:
            # The row of a key may be in any partition.
            file_slices = view.all_slices()
            spans = dict.fromkeys((file_slice.partition_path for file_slice in file_slices), self.ranges.between)
        else:
            slices = for_each(self.seen.storage, view.slices, self.ranges.counts)
            file_slices, spans = [file_slice for by_id in slices for file_slice in by_id.values()], self.ranges.bounds
            # An uncounted key may be in another partition or outside the bounds. Without an entry here, the write
            # refuses its row.
            pairs = self.ranges.within_bounds(pairs)
        # Among so many keys every bloom filter has a hit. Key ranges still exclude files if keys grow with time.
        candidates = spread.overlapping(file_slices, spans)
        figures = LookupFigures(len(file_slices), len(candidates))
        if not candidates:
            return KeyPlaces(pairs.withColumns({HOME: _null_text(), GROUP: _null_text()}), figures)
        between = self.ranges.between
        keys = table_keys(pairs.sparkSession, candidates, self.seen, between, in_python=has_arrow_batches())
        if keys is None:
            left_to_the_commit(self.seen.table.path)
            return None
        joined = pairs.join(keys.withColumnRenamed(PATH, HOME), KEY, "left") if is_global else None
        joined = pairs.join(keys, [PATH, KEY], "left") if joined is None else joined
        # A file may contain a key twice. Rows in log files do not count as repeats: a log file may update a key again.
        names = [PATH, KEY, *([HOME] if is_global else []), GROUP]
        if not self.work.counts:
            return KeyPlaces(joined.select(*names).distinct(), figures)
        repeats = sf.count_if(~sf.col(LOGGED)) > 1
        return KeyPlaces(joined.groupBy(*names).agg(repeats.alias(REPEATS)), figures)

    def _search_other_partitions(self, places: KeyPlaces, spread: SpreadLookup) -> KeyPlaces | None:
        """Look in other partitions for the keys that their own partitions lack, and return the places of all keys.

        None if this Spark cannot read all files. Raises as `UnnotedIndex.refuse_elsewhere`.
        """
        index, view = self.index, self.seen.view
        # Only this index, of tables that record none, refuses keys that other partitions hold.
        if not isinstance(index, UnnotedIndex):
            return places
        pairs = self.work.keep(cast("DataFrame", places.pairs))
        absent = pairs.where(sf.col(GROUP).isNull()).select(KEY, PATH)
        # A key above the limit shows that there are too many; a test may set the limit below 0.
        few_absent = absent.limit(max(FEW_KEYS, 0) + 1).toArrow()
        if not few_absent.num_rows:
            return replace(places, pairs=pairs)
        if few_absent.num_rows <= FEW_KEYS:
            rows = KeyedRows(as_array(few_absent, KEY), as_array(few_absent, PATH).dictionary_encode())
            index.refuse_elsewhere(rows, np.arange(len(rows)), view, spread.look)
            return replace(places, pairs=pairs)
        own_partitions = self.ranges.counts.keys()
        # If the rows are of several partitions, each of these may hold keys of the others.
        slices = [file_slice for file_slice in view.all_slices() if own_partitions != {file_slice.partition_path}]
        spans = dict.fromkeys((file_slice.partition_path for file_slice in slices), self.ranges.between)
        candidates = spread.overlapping(slices, spans)
        example = str(few_absent.column(KEY)[0].as_py())  # one value, for the error
        # An option limits how many files a write may read only to refuse keys of other partitions.
        if len(candidates) > index.settings.most_elsewhere:
            raise index.too_many(f"more than {FEW_KEYS:,}", example, view)
        if candidates:
            keys = table_keys(
                pairs.sparkSession, candidates, self.seen, self.ranges.between, in_python=has_arrow_batches()
            )
            if keys is None:
                left_to_the_commit(self.seen.table.path)
                return None
            for key, path, home in absent.join(keys.select(KEY, sf.col(PATH).alias(HOME)), KEY).take(1):
                raise index.key_elsewhere(key, path, home, view)
        return replace(places, pairs=pairs)


def count_keys(keys: DataFrame | pa.Table, partition_column: str) -> tuple[dict[str, int], int]:
    """Return the number of keys that the table lacks, by partition, and the number of file groups that contain others.

    Partitions are in ``partition_column``. The file id in ``keys`` is null if the table lacks the key.
    """
    if isinstance(keys, pa.Table):
        by_group = (
            keys.group_by([partition_column, GROUP])
            .aggregate([([], "count_all")])
            .select([partition_column, GROUP, "count_all"])
        )
    else:
        by_group = keys.groupBy(partition_column, GROUP).agg(sf.count("*").alias(_ROWS)).toArrow()
    absent = by_group.filter(pc.is_null(by_group.column(GROUP)))
    # The third column has the numbers of keys.
    return counts_by_name(absent.column(partition_column), absent.column(2)), by_group.num_rows - absent.num_rows


def has_copies(keys: DataFrame | pa.Table, key_columns: list[str]) -> bool:
    """Return whether a key, by the columns ``key_columns``, has several rows in ``keys``: one for each file group."""
    if isinstance(keys, pa.Table):
        return bool(keys.group_by(key_columns).aggregate([]).num_rows < keys.num_rows)
    return bool(keys.groupBy(*key_columns).agg(sf.count("*").alias(_ROWS)).where(sf.col(_ROWS) > 1).take(1))


def _null_text() -> Column:
    return sf.lit(None).cast("string")
