"""A snapshot as DataFrames: base files by Spark's own Parquet reader if possible, all else by the data source."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from ...errors import StorageError, UnreadableTimeError
from ...operations.carried_values import spell
from ...options.sources import DEFAULTS_ENABLED, ResolvedOptions
from ...reader.matches.sought_keys import SoughtKeys
from ...reader.matches.sought_slices import SoughtSlices
from ...reader.plan import LEAST_TASKS, Split, plan_splits
from ...reader.skipping.predicates import Predicate
from ...reader.snapshot import Snapshot
from ...table.files.file_group import FileSlice
from ..placement.choice import local_cores
from ..source.believed_size import ENDLESS, narrowed, parse_bytes, row_width, value_of
from ..source.carried_options import spell_predicates
from ..source.parquet_scan import lacks_file_system, no_rows, scan_files
from ..source.parts import Part
from ..source.paths import BUCKETS, FORMAT, PINNED, SOUGHT, WHERE, WHOLE
from ..source.reader import HudiReader
from ..source.sought_reader import SoughtReader
from ..source.spark_types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ...reader.matches.sought_slices import SoughtSplit
    from ...reader.plan import Split
    from ..source.reader import HudiReader

# Every task gets the splits of all tasks; Spark broadcasts functions above this size.
MOST_BYTES = 1 << 20
# Spark estimates the size of a row by its columns' types: a row of a single bigint has 8 bytes.
_NUMBER = 8
_NUMBERS = pa.schema([pa.field("id", pa.int64())])


def takes_tasks(spark: SparkSession) -> bool:
    """Return whether this process may plan tasks: a Spark Connect client may run another Python than the tasks."""
    return "connect" not in type(spark).__module__


def by_tasks(
    spark: SparkSession,
    reader: HudiReader,
    splits: Sequence[Split] | Sequence[SoughtSplit],
    most_bytes: int | None = None,
) -> DataFrame | None:
    """Return the rows of at least one split, one task each; Spark believes them to have no more than ``most_bytes``.

    ``reader`` reads a split in its task. The result is None if the splits have more than `MOST_BYTES`, or if Spark
    finds no pandas; the data source reads them then.
    """
    all_splits: list[Split | SoughtSplit] = list(splits)
    if not _is_small(all_splits):
        return None

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the splits of which this task got a number: the split's position times ``stride``."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    yield from reader.read(InputPartition(all_splits[number // stride]))
                except StorageError as error:
                    if not isinstance(error.__cause__, FileNotFoundError):
                        raise
                    # A clean has deleted files of the snapshot since.
                    raise UnreadableTimeError(
                        f"The table cannot be shown as it was when this DataFrame was made: {error.what}",
                        "Make the DataFrame anew.",
                    ) from error

    size = sum(part.size for split in splits for part in split.parts)
    # Spark estimates the size of a task's output by that of its input, and broadcasts the smaller side of a join. So
    # make the input as large as the files, as in Spark's own scans: the estimate counts a filtered range as a whole.
    stride = max(1, size // len(all_splits) // _NUMBER)
    if most_bytes is not None:
        # Spark scales the bytes of the numbers by the widths of the rows that go in and come out.
        stride = max(
            1,
            min(
                stride,
                most_bytes * row_width(_NUMBERS) // (_NUMBER * len(all_splits) * row_width(reader.columns)),
            ),
        )
    numbers = spark.range(0, len(all_splits) * stride, 1, len(all_splits)).where(f"id % {stride} = 0")
    try:
        return numbers.mapInArrow(run, to_spark(reader.columns))
    except ImportError:
        # Spark requires pandas in some version, although this code does not use it.
        return None


class _FullError(Exception): ...


class _ByteLimit:
    """A file that counts bytes and raises above a limit."""

    def __init__(self, most: int) -> None:
        self._bytes_left = most

    def write(self, data: Any) -> int:
        """Return the size of some bytes, and keep none of them; raise `_FullError` once all sizes exceed the limit."""
        size = memoryview(data).nbytes
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise _FullError
        return size


def _is_small(all_splits: Sequence[Split | SoughtSplit]) -> bool:
    """Return whether splits are small enough to travel with every task, without pickling more than the limit."""
    try:
        pickle.Pickler(_ByteLimit(MOST_BYTES)).dump(all_splits)
    except _FullError:
        return False
    return True


logger = logging.getLogger("pyhudi")

# For a local master, whose cores this process knows: between two tasks, the Python of a core waits for some 15 ms.
_TASKS_A_CORE = 2


@dataclass(frozen=True, slots=True)
class SnapshotFrames:
    """The DataFrames of one snapshot, which later writes do not change."""

    spark: SparkSession
    path: str
    resolved: ResolvedOptions
    snapshot: Snapshot

    def of(self, columns: pa.Schema, predicates: Sequence[Predicate] = (), part: Part | None = None) -> DataFrame:
        """Return some columns, of all rows or of ``part`` of them; ``predicates`` only leave files out."""

        def by_source(merged: Sequence[FileSlice] | None) -> DataFrame:
            """Return the rows of the slices that need a merge; of the whole snapshot for None."""
            return self._frame_by_python(columns, predicates, merged, part)

        remote = self.snapshot.storage.remote
        try:
            frame = scan_files(self.spark, self.snapshot, columns, by_source, predicates, part)
            if remote:
                # Spark Connect looks for the files only when the schema is needed.
                _ = frame.schema
        except Exception as error:
            if not (remote and lacks_file_system(error)):
                raise
            logger.info("table %s: Spark has no access to its store, so the data source reads it", self.path)
            if part is not None:
                return self._frame_by_python(columns, predicates, None, part)
            # Without the option `PINNED` the data source reads all slices, and pins the moment itself.
            return self._by_source(columns.names, _option_of_predicates(predicates))
        return frame

    def of_keys(self, columns: pa.Schema, sought: SoughtKeys, slices: SoughtSlices) -> DataFrame:
        """Return some columns of the rows of some record keys, which are in some of the slices."""
        if not slices.keyed_slices:
            return no_rows(self.spark, to_spark(columns))
        if takes_tasks(self.spark):
            reader = SoughtReader(self.snapshot, columns, self.resolved.options, sought)
            frame = by_tasks(self.spark, reader, slices.splits(self._plan(slices.slices)))
            if frame is not None:
                return frame
        query = {PINNED: spell(self.snapshot.timeline.watermark()), SOUGHT: sought.spell()}
        return self._by_source(columns.names, query, to_spark(columns))

    def _frame_by_python(
        self,
        columns: pa.Schema,
        predicates: Sequence[Predicate],
        merged: Sequence[FileSlice] | None,
        part: Part | None,
    ) -> DataFrame:
        """Return the rows of file slices that Python has to merge; of the whole snapshot if ``merged`` is None.

        ``predicates`` only leave files out, so the result, with ``columns``, may have rows that they exclude. ``part``
        limits the rows to some buckets, and Spark's estimate of their bytes.
        """
        options = self.resolved.options
        # Spark pushes filters to the data source alone.
        if merged is not None and takes_tasks(self.spark) and not options.pushes_filters:
            reader = HudiReader(self.snapshot, columns, options, predicates)
            most_bytes = None if part is None else part.most
            frame = by_tasks(self.spark, reader, self._plan(merged), most_bytes)
            if frame is not None:
                return frame
        pinned = {PINNED: spell(self.snapshot.timeline.watermark())}
        all_slices = {WHOLE: "true"} if merged is None else {}
        some_buckets = {BUCKETS: spell(part.buckets)} if part else {}
        frame = self._by_source(
            columns.names,
            {**pinned, **all_slices, **some_buckets, **_option_of_predicates(predicates)},
            to_spark(columns),
        )
        if part is None or part.most is None:
            return frame
        # Spark assumes the setting `ENDLESS` for the size of a data source, and would move such rows before a join.
        return narrowed(frame, parse_bytes(value_of(self.spark, ENDLESS)), part.most, columns)

    def _plan(self, slices: Sequence[FileSlice]) -> list[Split]:
        """Return splits for tasks, at least a few for each core of a local Spark."""
        cores = local_cores(self.spark)
        least = LEAST_TASKS if cores is None else _TASKS_A_CORE * cores
        return plan_splits(slices, {}, self.resolved.options.split_size, least)

    def _by_source(
        self, columns: Sequence[str], more: Mapping[str, str], schema: StructType | None = None
    ) -> DataFrame:
        """Return a DataFrame of the data source; a given schema saves Spark a look-up of the types.

        ``more`` has the options beside those of the table.
        """
        # The resolved options contain the defaults file already.
        options = {**self.resolved.texts, DEFAULTS_ENABLED: "false", "columns": ",".join(columns), **more}
        reader = self.spark.read.format(FORMAT).options(**options)
        return (reader if schema is None else reader.schema(schema)).load(self.path)


def _option_of_predicates(predicates: Sequence[Predicate]) -> dict[str, str]:
    """Return the option that carries predicates to the data source; no option if there are none."""
    return {WHERE: spell_predicates(predicates)} if predicates else {}
