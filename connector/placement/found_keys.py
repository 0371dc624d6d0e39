"""The keys of rows with the file groups that hold them: few looked up by tasks, many joined by Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from ...index.base import NOT_FOUND, KeyedRows, LookupFigures, LookupIndex, Tags
from ...index.lookup import TableLookup
from ...operations.locating.everywhere import AskTask
from ...operations.planning.spread_lookup import LookTask, overlapping, tag_spread
from ...storage.parallel import for_each
from ...table.keys.partition_paths import check_safe_path
from ...table.seen_table import SeenTable
from .arrow_frames import as_array, by_name, local_frame, text_fields, through
from .key_columns import KEY, PATH, has_arrow_batches, left_to_the_commit
from .table_keys import GROUP, HOME, spark_tasks, table_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ...table.files.file_group import FileSlice
    from ...table.files.view import FileView
    from ...timeline.timeline import Timeline
    from .tagging import Tagging

# So many keys come to the driver, and are looked up by tasks; more are joined.
FEW_KEYS = 1 << 18

_ROWS, _LEAST, _GREATEST = "_pyhudi_rows", "_pyhudi_least", "_pyhudi_greatest"
_FIELDS = pa.schema([pa.field(name, pa.string()) for name in (PATH, KEY, GROUP)])


@dataclass(frozen=True, slots=True)
class Met:
    """The partitions that rows belong to.

    Attributes:
        table: By partition path how many rows have a key, and the least and the greatest key.
    """

    table: pa.Table

    @classmethod
    def of(cls, keyed: DataFrame, table: str) -> Met:
        """Return the partitions of rows, which are made for it.

        Args:
            keyed: Rows with keys and paths.
            table: For messages.

        Raises:
            PartitionValueError: A path is none inside the table.
        """
        key = sf.col(KEY)
        aggregates = [sf.count(key).alias(_ROWS), sf.min(key).alias(_LEAST), sf.max(key).alias(_GREATEST)]
        found = keyed.groupBy(PATH).agg(*aggregates).toArrow()
        for path in found.column(PATH).to_pylist():  # O(partitions)
            check_safe_path(path, table)
        return cls(found)

    @property
    def counts(self) -> dict[str, int]:
        """How many rows each partition gets."""
        return by_name(self.table.column(PATH), self.table.column(_ROWS))

    @property
    def rows(self) -> int:
        """How many rows have a key."""
        return sum(self.counts.values())

    @property
    def spans(self) -> pa.Table:
        """By partition path the least and the greatest key."""
        return self.table.select([PATH, _LEAST, _GREATEST])

    @property
    def bounds(self) -> dict[str, tuple[str, str]]:
        """The least and the greatest key of each partition, in the order of their bytes."""
        columns = (self.table.column(name).to_pylist() for name in (PATH, _LEAST, _GREATEST))  # O(partitions)
        return {path: (least or "", greatest or "") for path, least, greatest in zip(*columns, strict=True)}

    @property
    def between(self) -> tuple[str, str]:
        """The least and the greatest key of all, in the order of their bytes; there must be one."""
        span = pc.min_max(self.table.column(_LEAST)), pc.min_max(self.table.column(_GREATEST))
        return span[0]["min"].as_py(), span[1]["max"].as_py()  # O(1)


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """All keys of a write, once each, or once for each file group that holds them.

    Attributes:
        keys: Partition path, key, and file id; null where the table lacks the key.
        new: How many keys of each partition the table lacks.
        groups: In how many file groups some were found.
        figures: What it took.
        is_few: Whether every executor can hold them.
        is_settled: Whether `keys` say too to which partition rows go, null for none, and whether they leave it.
        moves: Whether some may leave one.
    """

    keys: DataFrame
    new: Mapping[str, int]
    groups: int
    figures: LookupFigures
    is_few: bool
    is_settled: bool = False
    moves: bool = False

    def figures_after(self, seconds: float) -> LookupFigures:
        """Return what it took, with the seconds of all of it."""
        return replace(self.figures, seconds=round(seconds, 3))


def look_up(
    keyed: DataFrame,
    met: Met,
    index: LookupIndex,
    work: Tagging,
    view: FileView,
    timeline: Timeline,
    keep: Callable[[DataFrame], DataFrame],
) -> FoundKeys | None:
    """Return where the keys of rows are, each in its own partition; None where the commit has to find out.

    That is where this Spark cannot read the files that may hold them, and where several file groups seem to hold a key
    whose rows are appended: log files may have deleted it in some, where a row would bring it back.

    Args:
        keyed: Rows with keys and paths.
        met: Their partitions.
        index: Looks keys up.
        work: The write.
        view: The table's file slices as of `timeline`.
        timeline: What the lookup sees.
        keep: Makes Spark keep rows that are used twice.

    Raises:
        PyHudiError: A file cannot be read.
    """
    table = SeenTable(work.target.table, timeline)
    if not isinstance(index, TableLookup):
        return _asked(keyed, AskTask(table, index), work, keep)
    task = LookTask(table, index)
    if met.rows <= FEW_KEYS:
        return _few(keyed, task, work, view)
    slices = for_each(work.storage, view.slices, met.counts)
    pieces = [piece for one in slices for piece in one.values()]
    # So many keys leave no bloom filter without a hit; their ranges rule files out where keys are in order of time.
    candidates = overlapping(task, pieces, met.bounds, work.spread, spark_tasks(keyed.sparkSession))
    found = _many(keyed, met, table, candidates, keep)
    if found is None or (work.revives and _has_copies(found.keys)):
        return None
    return replace(found, figures=replace(found.figures, files=len(pieces)))


def _has_copies(keys: DataFrame) -> bool:
    return bool(keys.groupBy(PATH, KEY).agg(sf.count("*").alias(_ROWS)).where(sf.col(_ROWS) > 1).take(1))


def _asked(keyed: DataFrame, task: AskTask, work: Tagging, keep: Callable[[DataFrame], DataFrame]) -> FoundKeys | None:
    wanted = keyed.select(KEY, PATH).where(sf.col(KEY).isNotNull()).distinct()
    tagged = keep(through(wanted, task, text_fields(KEY, PATH, HOME, GROUP)).select(PATH, KEY, GROUP))
    if work.revives and _has_copies(tagged):
        return None
    new, groups = _counts(tagged)
    return FoundKeys(tagged, new, groups, LookupFigures(), is_few=False)


def _few(keyed: DataFrame, task: LookTask, work: Tagging, view: FileView) -> FoundKeys | None:
    spark = keyed.sparkSession
    wanted = keyed.select(PATH, KEY).where(sf.col(KEY).isNotNull()).distinct().toArrow()
    keys, paths = as_array(wanted, KEY), as_array(wanted, PATH)
    rows = KeyedRows(keys, paths.dictionary_encode())
    tags = tag_spread(task, rows, view, work.storage, work.spread, spark_tasks(spark))
    if work.revives and len(tags.copied):
        return None
    ids = _file_ids(tags)
    absent = paths.filter(ids.is_null()).value_counts()
    again = pa.array(tags.copied)
    found = pa.table(
        [
            pa.concat_arrays([paths, paths.take(again)]),
            pa.concat_arrays([keys, keys.take(again)]),
            pa.concat_arrays([ids, _ids_at(tags, tags.copy_codes)]),
        ],
        schema=_FIELDS,
    )
    new = by_name(absent.field("values"), absent.field("counts"))
    return FoundKeys(local_frame(keyed, found), new, len(tags.groups), tags.figures, is_few=True)


def _file_ids(tags: Tags) -> pa.StringArray:
    """Return the file id of every row's key, null where the table lacks it."""
    return _ids_at(tags, tags.codes)


def _ids_at(tags: Tags, codes: Any) -> pa.StringArray:
    ids = pa.array([one.file_id for one in tags.groups], pa.string())
    return ids.take(pa.array(codes, pa.int32(), mask=np.asarray(codes) == NOT_FOUND))


def _many(
    keyed: DataFrame,
    met: Met,
    table: SeenTable,
    pieces: Sequence[FileSlice],
    keep: Callable[[DataFrame], DataFrame],
) -> FoundKeys | None:
    spark = keyed.sparkSession
    # A key that was not among those counted is in none of these partitions, or not between their bounds: it is left
    # out, so that its row is refused.
    asked = keyed.select(PATH, KEY).distinct().join(spark.createDataFrame(met.spans), PATH)
    asked = asked.where(sf.col(KEY).between(sf.col(_LEAST), sf.col(_GREATEST))).select(PATH, KEY)
    if pieces:
        keys = table_keys(spark, pieces, table, met.between, in_python=has_arrow_batches())
        if keys is None:
            left_to_the_commit(table.table.path)
            return None
        # A file may hold a key twice.
        asked = asked.join(keys, [PATH, KEY], "left").select(PATH, KEY, GROUP).distinct()
    else:
        asked = asked.withColumn(GROUP, sf.lit(None).cast("string"))
    tagged = keep(asked)
    new, hits = _counts(tagged)
    figures = LookupFigures(candidates=len(pieces), false_positives=len(pieces) - hits)
    return FoundKeys(tagged, new, hits, figures, is_few=False)


def _counts(tagged: DataFrame) -> tuple[dict[str, int], int]:
    """Return how many keys of each partition the table lacks, and in how many file groups others were found."""
    counted = tagged.groupBy(PATH, GROUP).agg(sf.count("*").alias(_ROWS)).toArrow()
    absent = counted.filter(pc.is_null(counted.column(GROUP)))
    return by_name(absent.column(PATH), absent.column(_ROWS)), counted.num_rows - absent.num_rows
