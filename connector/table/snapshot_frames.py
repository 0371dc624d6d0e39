"""A snapshot as DataFrames: base files by Spark's own Parquet reader if possible, all else by the data source."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from ...options.sources import DEFAULTS_ENABLED, ResolvedOptions
from ...reader.matches.sought_keys import SoughtKeys
from ...reader.matches.sought_slices import SoughtSlices
from ...reader.plan import LEAST_TASKS, Split, plan_splits
from ...reader.skipping.predicates import Predicate
from ...reader.snapshot import Snapshot
from ...table.files.file_group import FileSlice
from ...timeline.plain_text import spell
from ..placement.choice import local_cores
from ..source.believed_size import ENDLESS, narrowed, parse_bytes, value_of
from ..source.carried_options import spell_predicates
from ..source.direct_tasks import by_tasks, takes_tasks
from ..source.parquet_scan import lacks_file_system, no_rows, scan_files
from ..source.parts import Part
from ..source.paths import BUCKETS, FORMAT, PINNED, SOUGHT, WHERE, WHOLE
from ..source.reader import HudiReader
from ..source.sought_reader import SoughtReader
from ..source.spark_types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
        """Return some columns, of all rows or a part of them; ``predicates`` only leave files out."""

        def by_source(merged: Sequence[FileSlice] | None) -> DataFrame:
            return self._merged(columns, predicates, merged, part)

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
                return self._merged(columns, predicates, None, part)
            return self._by_source(columns.names, _spelled(predicates))
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
        more = {PINNED: spell(self.snapshot.timeline.watermark()), SOUGHT: sought.spell()}
        return self._by_source(columns.names, more, to_spark(columns))

    def _merged(
        self,
        columns: pa.Schema,
        predicates: Sequence[Predicate],
        merged: Sequence[FileSlice] | None,
        part: Part | None,
    ) -> DataFrame:
        """Return the rows of file slices that Python has to merge; of the whole snapshot if ``merged`` is None."""
        options = self.resolved.options
        if merged is not None and takes_tasks(self.spark) and not options.pushes_filters:
            reader = HudiReader(self.snapshot, columns, options, predicates)
            most = None if part is None else part.most
            frame = by_tasks(self.spark, reader, self._plan(merged), most)
            if frame is not None:
                return frame
        moment = {PINNED: spell(self.snapshot.timeline.watermark())}
        whole = {WHOLE: "true"} if merged is None else {}
        chosen = {BUCKETS: spell(part.buckets)} if part else {}
        frame = self._by_source(columns.names, {**moment, **whole, **chosen, **_spelled(predicates)}, to_spark(columns))
        if part is None or part.most is None:
            return frame
        return narrowed(frame, parse_bytes(value_of(self.spark, ENDLESS)), part.most, columns)

    def _plan(self, slices: Sequence[FileSlice]) -> list[Split]:
        cores = local_cores(self.spark)
        least = LEAST_TASKS if cores is None else _TASKS_A_CORE * cores
        return plan_splits(slices, {}, self.resolved.options.split_size, least)

    def _by_source(
        self, columns: Sequence[str], more: Mapping[str, str], schema: StructType | None = None
    ) -> DataFrame:
        """Return a DataFrame of the data source; a given schema saves Spark a look-up of the types."""
        # The resolved options contain the defaults file already.
        options = {**self.resolved.texts, DEFAULTS_ENABLED: "false", "columns": ",".join(columns), **more}
        reader = self.spark.read.format(FORMAT).options(**options)
        return (reader if schema is None else reader.schema(schema)).load(self.path)


def _spelled(predicates: Sequence[Predicate]) -> dict[str, str]:
    return {WHERE: spell_predicates(predicates)} if predicates else {}
