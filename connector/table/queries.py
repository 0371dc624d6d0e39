"""What `HudiTable` tells about a table: its rows, its columns, its past, its state."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructType

from ...errors import OptionConflictError
from ...operations.inspect.activity import activity
from ...operations.inspect.detail import detail
from ...operations.inspect.history import history, last_commit
from ...operations.result import CommitResult
from ...options.explain import ExplainedOptions, explain
from ...options.read import QUERY_TYPE
from ...options.sources import DEFAULTS_ENABLED, READING, WRITING, ResolvedOptions, find_config
from ...reader.plan import plan_splits
from ...reader.predicates import Predicate
from ...reader.query import AS_OF, BEGIN, END
from ...reader.snapshot import Snapshot, open_snapshot
from ...table.files.file_group import FileSlice
from ...table.schema.columns import without_meta
from ...timeline.plain_text import spell
from ..conditions.condition import Where, parse_condition
from ..conditions.tree import named
from ..source.carried_options import spell_predicates
from ..source.datasource import PyHudiDataSource
from ..source.direct_tasks import by_tasks, takes_tasks
from ..source.parquet_scan import lacks_file_system, scan_files
from ..source.paths import PINNED, WHERE, WHOLE
from ..source.reader import HudiReader
from ..source.spark_types import select, to_spark
from .base import TableBase
from .frames import from_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("pyhudi")


class TableQueries(TableBase):
    """What can be asked of a table; nothing here changes it."""

    def to_df(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        where: Where | None = None,
        meta: bool = True,
        as_of: str | date | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        read_optimized: bool = False,
    ) -> DataFrame:
        """Return the table, as it was, or what changed in it, read by Spark's own Parquet reader.

        File slices of a merge-on-read table that have log files are merged by Python, as of the same moment.

        The DataFrame is fixed: it shows the table as it is now, whatever is written later. Times are spelled as in the
        options ``as.of.instant`` and ``hoodie.datasource.read.begin.instanttime``, or are a ``datetime``, of which a
        naive one is written in the zone of the table's timeline. Where Spark itself has no access to
        the table's store (S3 without hadoop-aws), the data source reads instead.

        Args:
            columns: The columns to show, in this order, as a list or as text with commas (``"id,city"``); None for
                all, the meta columns first.
            where: Shows those rows alone for which a condition holds: SQL text, or a column, as for `DataFrame.where`;
                or by the name of a column one value, or several of which it may have any. Partitions, buckets and files
                that certainly hold no such row are left out before Spark sees them, as far as the condition is
                understood; where it fixes the record key, by the range and the bloom filter of each file's keys too.
            meta: Whether the five meta columns are among all columns.
            as_of: Shows the table with what was requested until this time.
            since: Shows the rows alone that commits wrote which completed after this time; ``earliest`` for all.
            until: Shows those that completed until this time, as they were then; None for now.
            read_optimized: Passes log files over: shows what base files hold, as old as the newest compaction.

        Raises:
            MissingColumnError: The table has no such column.
            InvalidOptionError: A time is none, a value is none of its column, or Spark cannot make out the condition.
            OptionConflictError: ``as_of`` or ``read_optimized`` is given with ``since``, or ``until`` without it.
            UnreadableTimeError: The table's past is not kept so far back.
        """
        if read_optimized and since is not None:
            raise OptionConflictError(
                f"What changed in the table {self._path} since {since} was asked for with read_optimized, which shows "
                "the table as the newest compaction left it.",
                "Leave one of them out.",
            )
        kind = "read_optimized" if read_optimized else since and "incremental"
        resolved = self._resolve({QUERY_TYPE: kind, AS_OF: as_of, BEGIN: since, END: until}, READING)
        options = resolved.options
        snapshot = open_snapshot(
            self._path, options.storage_options, query=options.to_query(), bases_alone=options.bases_alone
        )
        whole = snapshot.schema if meta else without_meta(snapshot.schema)
        wanted = whole if columns is None else select(snapshot.schema, _listed(columns, snapshot.schema), self._path)
        if where is None or (isinstance(where, Mapping) and not where):
            return self._shown(resolved, snapshot, wanted)
        asked = parse_condition(self._spark, where, snapshot)
        read = asked.read_with(self._spark, wanted, snapshot.schema)
        frame = self._shown(resolved, snapshot, read, asked.predicates, {WHERE: spell_predicates(asked.predicates)})
        return frame.where(asked.condition).select(*map(named, wanted.names))

    def _shown(
        self,
        resolved: ResolvedOptions,
        snapshot: Snapshot,
        columns: pa.Schema,
        predicates: Sequence[Predicate] = (),
        told: Mapping[str, str] = MappingProxyType({}),
    ) -> DataFrame:
        """Return some columns of what a snapshot shows, less what certainly does not satisfy some predicates.

        Args:
            resolved: The options of the read.
            snapshot: The table at one moment.
            columns: Which of its columns.
            predicates: Conjuncts.
            told: Options by which the data source knows them.
        """

        def by_source(merged: Sequence[FileSlice] | None) -> DataFrame:
            options = resolved.options
            if merged is not None and takes_tasks(self._spark) and not options.pushes_filters:
                reader = HudiReader(snapshot, columns, options, predicates)
                frame = by_tasks(self._spark, reader, plan_splits(merged, {}, options.split_size))
                if frame is not None:
                    return frame
            moment = {
                PINNED: spell(snapshot.timeline.watermark()),
                **({WHOLE: "true"} if merged is None else {}),
                **told,
            }
            return self._read(resolved, columns.names, moment, to_spark(columns))

        if not self._storage.remote:
            return scan_files(self._spark, snapshot, columns, by_source, predicates)
        try:
            frame = scan_files(self._spark, snapshot, columns, by_source, predicates)
            # Spark Connect looks for the files no earlier than somebody asks.
            _ = frame.schema
        except Exception as error:
            if not lacks_file_system(error):
                raise
            logger.info("table %s: Spark has no access to its store, so that the data source reads it", self._path)
            return self._read(resolved, columns.names, told)
        return frame

    @property
    def schema(self) -> StructType:
        """The columns that rows of the table have; `to_df` shows Hudi's meta columns before them."""
        return to_spark(self._columns())

    def detail(self) -> DataFrame:
        """Return one row that says what the table is and how large.

        Returns:
            The columns name, path, type, version, record_key, partition_by, order_by, index, buckets, partitions,
            files, bytes, log_files, log_bytes, compaction_debt, delta_commits, wants_compaction, read_optimized_lacks,
            read_optimized_until, newest_instant, completed and properties. Partitions, files and bytes are those that a
            read of the table as it is now meets, log files beside the base files; buckets are those of one partition,
            null where there are none. ``compaction_debt`` has the 20 file groups with the most bytes of log files.
            Read-optimized queries lack rows of ``read_optimized_lacks`` writes, and show all that was complete at
            ``read_optimized_until``.
        """
        return from_arrow(self._spark, detail(self._storage))

    def history(self, limit: int | None = None) -> DataFrame:
        """Return one row for every instant of the active timeline, newest first.

        Args:
            limit: How many to return at most, and how many instants are opened for it; None for all.

        Returns:
            The columns instant, action, state, completed, operation, inserts, updates, deletes, files, bytes,
            log_files and log_bytes.

        Raises:
            InvalidOptionError: The limit is below zero.
        """
        return from_arrow(self._spark, history(self._storage, limit))

    def activity(self) -> DataFrame:
        """Return one row for every write and table service that is at work, oldest first.

        Returns:
            The columns instant, action, phase (``planned``, ``writing``, ``committing`` or ``given up``), started,
            application, host, pid and heartbeat_age_s. What the store does not hold is null: writers of other software
            leave no application, host and pid, and a heartbeat only where they have one.
        """
        return from_arrow(self._spark, activity(self._storage))

    def last_commit(self) -> CommitResult | None:
        """Return what the newest completed write did, whoever made it; None where there is none."""
        return last_commit(self._storage)

    def explain_options(self, *, defaults: bool = True, **options: Any) -> ExplainedOptions:
        """Return each option as it stands for this table, and where its value comes from.

        Printed it is a table; a notebook shows it as one. Values come from what was given here, from the session
        (``spark.conf.set("hoodie.…", …)``), from ``hudi-defaults.conf``, from the table, or are defaults.

        Args:
            defaults: Whether options that nobody set are listed too.
            options: Options as one would give them to a write.

        Raises:
            OptionError: One of the options cannot be used.
        """
        given = {"path": self._path, **options}
        resolved = self._resolve(given, READING | WRITING)
        return explain(resolved, find_config(self._storage), defaults=defaults)

    def _columns(self) -> pa.Schema:
        return without_meta(open_snapshot(self._path, self.storage_options).schema)

    def _read(
        self,
        resolved: ResolvedOptions,
        columns: Sequence[str],
        more: Mapping[str, str] | None = None,
        schema: StructType | None = None,
    ) -> DataFrame:
        """Return a DataFrame of the data source, which need not look the columns' types up where it is given them."""
        # The defaults file is in what was resolved.
        options = {**resolved.texts, DEFAULTS_ENABLED: "false", "columns": ",".join(columns), **(more or {})}
        reader = self._spark.read.format(PyHudiDataSource.name()).options(**options)
        return (reader if schema is None else reader.schema(schema)).load(self._path)


def _listed(columns: str | Sequence[str], schema: pa.Schema) -> Sequence[str]:
    """Return the names of columns that were given as a list, or as text with commas."""
    if not isinstance(columns, str):
        return columns
    return [columns] if columns in schema.names else [name.strip() for name in columns.split(",")]
