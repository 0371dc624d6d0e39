"""The part of `HudiTable` that reads: rows, schema, history and state."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructType

from ...operations.inspect.activity import activity
from ...operations.inspect.bucket_sizes import bucket_sizes
from ...operations.inspect.detail import detail
from ...operations.inspect.files import files
from ...operations.inspect.history import history, last_commit
from ...operations.inspect.instants import list_instants
from ...operations.inspect.partitions import partitions
from ...operations.inspect.sizes import sizes
from ...operations.result import CommitResult
from ...options.explain import ExplainedOptions, explain
from ...options.parsing import format_value
from ...options.sources import READING, WRITING, find_config
from ...reader.snapshot import open_snapshot
from ...table.schema.columns import without_meta
from ..conditions.condition import Where
from ..source.spark_types import to_spark
from .base import TableBase
from .frames import from_arrow
from .shown_rows import AskedRows, ShownRows, shown_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableQueries(TableBase):
    """The methods of `HudiTable` that read."""

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
        """Return a snapshot of the table, a past snapshot, or the rows that changed, as a DataFrame.

        Spark's own Parquet reader reads base files. Python merges file slices that have log files, as of the same
        moment. Where Spark has no access to the table's store (S3 without hadoop-aws), the data source reads
        everything.

        The DataFrame is pinned: later writes do not change what it shows. Once a clean has deleted its files, Spark
        ends in its own error ``FAILED_READ_FILE``: retain as many commits, or hours, as the DataFrame is in use. Times
        are spelled as in the options ``as.of.instant`` and ``hoodie.datasource.read.begin.instanttime``, or are a
        ``datetime``; a ``datetime`` without a zone is in the zone of the table's timeline.

        Args:
            columns: The columns to show, in this order, as a list or as text with commas (``"id,city"``). None for all
                columns, the meta columns first.
            where: A condition: SQL text or a Column, as for `DataFrame.where`; or for each column name one value, or
                several of which any may match. As far as pyhudi understands the condition, it skips partitions, buckets
                and files without matching rows. A condition that fixes the record key also uses the key range and the
                bloom filter of each file.
            meta: Whether all columns include the five meta columns.
            as_of: Reads the table as of this time: the instants requested until then.
            since: Reads only rows of commits that completed after this time; ``earliest`` for all.
            until: With ``since``: reads only rows of commits that completed until this time, as of then. None for now.
            read_optimized: Reads base files only: the table as of the newest compaction.

        Returns:
            The rows.

        Raises:
            MissingColumnError: The table lacks a column.
            InvalidOptionError: A time is invalid, a value does not fit its column, or Spark does not understand the
                condition.
            OptionConflictError: ``as_of`` or ``read_optimized`` is given with ``since``, or ``until`` without it.
            UnreadableTimeError: The table does not keep history that far back.
        """
        return self._find_rows(AskedRows(columns, where, meta, as_of, since, until, read_optimized)).df()

    @property
    def schema(self) -> StructType:
        """The data columns of the table; `to_df` shows Hudi's meta columns before them.

        Raises:
            PyHudiError: The table cannot be read.
        """
        return to_spark(self._columns())

    def suggest_buckets(self, *, growth: float = 1.0) -> DataFrame:
        """Return for each partition its number of buckets and the number that would suit its size.

        Args:
            growth: The factor by which each partition will grow.

        Returns:
            The columns partition, buckets, files, bytes and suggested, a row for each partition. Files and bytes are
            those of the newest file slices, log files included; ``buckets`` is null where the number is unknown.

        Raises:
            UnsupportedTableError: The table's properties note no bucket index.
            InvalidOptionError: ``growth`` is not positive.
        """
        return from_arrow(self._spark, bucket_sizes(self._storage, growth))

    def detail(self) -> DataFrame:
        """Return one row that describes the table and its size.

        Returns:
            The columns name, path, type, version, record_key, partition_by, order_by, index, buckets, other_buckets,
            partitions, files, bytes, log_files, log_bytes, compaction_debt, delta_commits, wants_compaction,
            read_optimized_lacks, read_optimized_until, newest_instant, completed and properties. Partitions, files and
            bytes count what a snapshot read opens; log files are counted apart from base files. ``buckets`` is the
            number of buckets of each partition that ``other_buckets`` does not name, null for other indexes and where
            it is unknown. ``compaction_debt`` has the 20 file groups with the most bytes of log files. Read-optimized
            queries lack the rows of ``read_optimized_lacks`` writes and show everything that was complete at
            ``read_optimized_until``.

        Raises:
            PyHudiError: The table cannot be read.
        """
        return from_arrow(self._spark, detail(self._storage))

    def history(self, limit: int | None = None) -> DataFrame:
        """Return one row for each instant of the active timeline, newest first.

        Args:
            limit: The greatest number of instants to open and return; None for all.

        Returns:
            The columns instant, action, state, completed, operation, inserts, updates, deletes, files, bytes,
            log_files and log_bytes.

        Raises:
            InvalidOptionError: The limit is below zero.
            PyHudiError: The table cannot be read.
        """
        return from_arrow(self._spark, history(self._storage, limit))

    def activity(self) -> DataFrame:
        """Return one row for each pending write and table service, oldest first.

        Returns:
            The columns instant, action, phase (``planned``, ``writing``, ``committing`` or ``given up``), started,
            application, host, pid and heartbeat_age_s. What the store does not hold is null: other writers record no
            application, host or pid, and only some of them a heartbeat.

        Raises:
            PyHudiError: The table cannot be read.
        """
        return from_arrow(self._spark, activity(self._storage))

    def files(self, *, as_of: str | date | None = None) -> DataFrame:
        """Return one row for each file slice that a snapshot reads, without opening a data file.

        Args:
            as_of: The table as of this time, spelled as for `to_df`; None for now.

        Returns:
            The columns partition, file_id, bucket, instant, base_file, base_bytes, log_files, log_bytes, bytes, rows
            and log_records.

        Raises:
            InvalidOptionError: The time is invalid.
            UnreadableTimeError: The table does not keep history that far back.
            PyHudiError: The table cannot be read.
        """
        return from_arrow(self._spark, files(self._storage, None if as_of is None else format_value(as_of)))

    def timeline(self, limit: int | None = None) -> DataFrame:
        """Return one row for each instant by name and times alone, newest first, pending and archived instants too.

        Args:
            limit: The greatest number of instants to return; None for all.

        Returns:
            The columns instant, action, state, completed, seconds and archived.

        Raises:
            InvalidOptionError: The limit is below zero.
            PyHudiError: The table cannot be read.
        """
        return from_arrow(self._spark, list_instants(self._storage, limit))

    def sizes(self) -> DataFrame:
        """Return for each file group the files and bytes that readers see, and those that no reader needs.

        Returns:
            The columns partition, file_id, bucket, live_files, live_bytes, dead_files, dead_bytes, unfinished_files and
            unfinished_bytes.

        Raises:
            PyHudiError: The table cannot be read.
        """
        return from_arrow(self._spark, sizes(self._storage))

    def partitions(self) -> DataFrame:
        """Return one row for each partition, without opening a data file.

        Returns:
            The columns partition, buckets, file_groups, files, log_files, bytes, rows and newest_instant.

        Raises:
            PyHudiError: The table cannot be read.
        """
        return from_arrow(self._spark, partitions(self._storage))

    def last_commit(self) -> CommitResult | None:
        """Return the result of the newest completed write, by any writer.

        Returns:
            The result; None for a table without a write.

        Raises:
            PyHudiError: The table cannot be read.
        """
        return last_commit(self._storage)

    def explain_options(self, *, defaults: bool = True, **options: Any) -> ExplainedOptions:
        """Return the value of each option for this table, and its source.

        Sources are the call, this object, the session (``spark.conf.set("hoodie.…", …)``), ``hudi-defaults.conf``, the
        table, and the defaults.

        Args:
            defaults: Whether to list options that have their default value.
            options: Options as for a write.

        Returns:
            The options; ``print`` and a notebook show them as a table.

        Raises:
            OptionError: An option cannot be used.
        """
        given = {"path": self._path, **options}
        resolved = self._resolve(given, READING | WRITING)
        return explain(resolved, find_config(self._storage), defaults=defaults)

    def _columns(self) -> pa.Schema:
        return without_meta(open_snapshot(self._path, self.storage_options).schema)

    def _find_rows(self, asked: AskedRows) -> ShownRows:
        return shown_rows(self._spark, self._path, self._resolve(asked.query(self._path), READING), asked)
