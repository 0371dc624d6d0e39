"""The part of `HudiTable` that reads: rows and schema, beside what `QueryMethods` shows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from ...methods.queries import QueryMethods
from ...operations.inspect.explained_read import ExplainedRead, explain_read
from ...options.sources import READING
from ..conditions.condition import Where
from ..source.spark_types import to_spark
from .base import TableBase
from .shown_rows import AskedRows, ShownRows, shown_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableQueries(TableBase, QueryMethods["DataFrame"]):
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

    def explain(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        where: Where | None = None,
        as_of: str | date | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        read_optimized: bool = False,
    ) -> ExplainedRead:
        """Return which files `to_df` would open, and what leaves out the others; it opens no file but footers.

        Args:
            columns: The columns to show, as for `to_df`.
            where: The condition.
            as_of: The table as of this time.
            since: Only rows of commits that completed after this time.
            until: With ``since``: only rows of commits that completed until this time.
            read_optimized: Base files only.

        Returns:
            The counts; ``print`` and a notebook show them as a table.

        Raises:
            MissingColumnError: The table lacks a column.
            InvalidOptionError: A time is invalid, a value does not fit its column, or Spark does not understand the
                condition.
            OptionConflictError: ``as_of`` or ``read_optimized`` is given with ``since``, or ``until`` without it.
            UnreadableTimeError: The table does not keep history that far back.
        """
        rows = self._find_rows(AskedRows(columns, where, False, as_of, since, until, read_optimized))
        return explain_read(rows.snapshot, rows.predicates, rows.read_columns.names)

    @property
    def schema(self) -> StructType:
        """The data columns of the table; `to_df` shows Hudi's meta columns before them.

        Raises:
            PyHudiError: The table cannot be read.
        """
        return to_spark(self._columns())

    def _find_rows(self, request: AskedRows) -> ShownRows:
        """Return the rows that a call asks for, pinned to this moment."""
        return shown_rows(self._spark, self._path, self._resolve(request.query(self._path), READING), request)
