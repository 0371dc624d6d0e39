"""The methods of `Table` that show rows: as Arrow data, and to other libraries, each of which is imported on use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import InvalidOptionError
from .base import ArrowMethods
from .other_calls import TABLE_CALLS, TABLE_KEYWORDS
from .reading import ReadRequest

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from ..operations.inspect.explained_read import ExplainedRead
    from ..reader.row_filter import Where
    from .datasets import TableDataset

# From this version on DuckDB hands a dataset only conditions that pyarrow evaluates as DuckDB does, NaN and -0.0
# included.
_EXACT_DUCKDB = 2


class ReadMethods(ArrowMethods):
    """The methods that show the rows of a table."""

    _other_calls = TABLE_CALLS
    _other_keywords = TABLE_KEYWORDS

    def read(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        where: Where | None = None,
        meta: bool = False,
        as_of: str | date | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        limit: int | None = None,
        read_optimized: bool = False,
    ) -> pa.Table:
        """Return a snapshot of the table, a past snapshot, or the rows that changed, in no particular order.

        Args:
            columns: The columns to show, in this order, as a list or as text with commas (``"id,city"``). None for all
                columns.
            where: A condition: text such as ``"city = 'Rome' AND fare > 10"``, by Spark's rules, or an expression of
                ``pyarrow.compute``, by pyarrow's. Exactly the rows for which it holds are returned. As far as pyhudi
                understands a condition, it reads no partitions, buckets, files and row groups without such rows.
            meta: Whether all columns include the five meta columns.
            as_of: Reads the table as of this time: the instants requested until then.
            since: Reads only rows of commits that completed after this time; ``earliest`` for all.
            until: With ``since``: reads only rows of commits that completed until this time, as of then. None for now.
            limit: The greatest number of rows; None for all.
            read_optimized: Reads base files only: the table as of the newest compaction.

        Returns:
            The rows.

        Raises:
            MissingColumnError: The table lacks a column.
            InvalidOptionError: A time is invalid, or the condition cannot be read.
            OptionConflictError: ``as_of`` or ``read_optimized`` is given with ``since``, or ``until`` without it.
            UnreadableTimeError: The table does not keep history that far back.
        """
        rows = self._selection(ReadRequest(columns, where, meta, as_of, since, until, limit, read_optimized))
        return pa.Table.from_batches(rows.batches(), rows.schema)

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
        """Return which files `read` would open, and what leaves out the others; it opens no file but footers.

        Args:
            columns: The columns to show, as for `read`.
            where: The condition.
            as_of: The table as of this time.
            since: Only rows of commits that completed after this time.
            until: With ``since``: only rows of commits that completed until this time.
            read_optimized: Base files only.

        Returns:
            The counts; ``print`` and a notebook show them as a table.

        Raises:
            MissingColumnError: The table lacks a column.
            InvalidOptionError: A time is invalid, or the condition cannot be read.
            OptionConflictError: ``as_of`` or ``read_optimized`` is given with ``since``, or ``until`` without it.
            UnreadableTimeError: The table does not keep history that far back.
        """
        from ..operations.inspect.explained_read import explain_read  # noqa: PLC0415 (see methods/__init__.py)

        request = ReadRequest(columns, where, False, as_of, since, until, None, read_optimized)
        rows = self._selection(request)
        predicates = () if rows.condition is None else rows.condition.predicates
        compared = () if rows.condition is None else rows.condition.columns
        return explain_read(rows.snapshot, predicates, {*rows.schema.names, *compared})

    def scan(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        where: Where | None = None,
        meta: bool = False,
        as_of: str | date | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        limit: int | None = None,
        read_optimized: bool = False,
    ) -> pa.RecordBatchReader:
        """Return the same rows as `read` as a stream of record batches, which never holds the whole.

        The stream is pinned: later writes do not change what it shows.

        Args:
            columns: The columns to show.
            where: A condition.
            meta: Whether all columns include the five meta columns.
            as_of: Reads the table as of this time.
            since: Reads only rows of commits that completed after this time.
            until: With ``since``: reads only rows of commits that completed until this time.
            limit: The greatest number of rows; None for all.
            read_optimized: Reads base files only.

        Returns:
            The stream, which any library takes that knows Arrow's C stream.

        Raises:
            MissingColumnError: The table lacks a column.
            InvalidOptionError: A time is invalid, or the condition cannot be read.
            OptionConflictError: ``as_of`` or ``read_optimized`` is given with ``since``, or ``until`` without it.
            UnreadableTimeError: The table does not keep history that far back.
        """
        request = ReadRequest(columns, where, meta, as_of, since, until, limit, read_optimized)
        return self._selection(request).for_later().reader()

    def to_pandas(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        where: Where | None = None,
        meta: bool = False,
        as_of: str | date | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        limit: int | None = None,
        read_optimized: bool = False,
        types_mapper: Callable[[pa.DataType], Any] | None = None,
    ) -> pd.DataFrame:
        """Return the same rows as `read` as a DataFrame of pandas.

        Args:
            columns: The columns to show.
            where: A condition.
            meta: Whether all columns include the five meta columns.
            as_of: Reads the table as of this time.
            since: Reads only rows of commits that completed after this time.
            until: With ``since``: reads only rows of commits that completed until this time.
            limit: The greatest number of rows; None for all.
            read_optimized: Reads base files only.
            types_mapper: Returns the type of pandas for a type of Arrow, as for ``pyarrow.Table.to_pandas``.
                ``pandas.ArrowDtype`` keeps all values exactly; without it, a column of whole numbers with nulls becomes
                one of floats.

        Returns:
            The DataFrame.

        Raises:
            MissingColumnError: The table lacks a column.
            InvalidOptionError: pandas is not installed, a time is invalid, or the condition cannot be read.
            OptionConflictError: ``as_of`` or ``read_optimized`` is given with ``since``, or ``until`` without it.
            UnreadableTimeError: The table does not keep history that far back.
        """
        _require("pandas", "to_pandas", self._path)
        request = ReadRequest(columns, where, meta, as_of, since, until, limit, read_optimized)
        rows = self._selection(request).reader().read_all()
        return rows.to_pandas(types_mapper=types_mapper)  # O(columns) calls: Arrow converts each column in C++

    def to_polars(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        where: Where | None = None,
        meta: bool = False,
        as_of: str | date | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        read_optimized: bool = False,
    ) -> pl.LazyFrame:
        """Return the same rows as `read` as a lazy frame of Polars.

        The frame is pinned: later writes do not change what it shows. What a query selects, filters and limits reaches
        the scan: only the needed columns are read, and no partitions, buckets, files and row groups without wanted
        rows, as far as pyhudi understands the condition. Polars evaluates the condition on every row.

        Args:
            columns: The columns to show.
            where: A condition, which pyhudi evaluates; ``filter`` of the frame is Polars'.
            meta: Whether all columns include the five meta columns.
            as_of: Shows the table as of this time.
            since: Shows only rows of commits that completed after this time.
            until: With ``since``: shows only rows of commits that completed until this time.
            read_optimized: Reads base files only.

        Returns:
            The lazy frame, whose rows are in no particular order. It can be collected several times.

        Raises:
            MissingColumnError: The table lacks a column.
            InvalidOptionError: Polars is not installed, a time is invalid, or the condition cannot be read.
            OptionConflictError: ``as_of`` or ``read_optimized`` is given with ``since``, or ``until`` without it.
            UnreadableTimeError: The table does not keep history that far back.
        """
        _require("polars", "to_polars", self._path)
        from .lazy_frames import lazy_frame  # noqa: PLC0415 (it needs Polars)

        request = ReadRequest(columns, where, meta, as_of, since, until, None, read_optimized)
        return lazy_frame(self._selection(request).for_later())

    def to_duckdb(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        where: Where | None = None,
        meta: bool = False,
        as_of: str | date | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        read_optimized: bool = False,
    ) -> TableDataset:
        """Return the same rows as `read` as a dataset, which queries of DuckDB name like a table.

        After ``trips = table.to_duckdb()``, ``duckdb.sql("select … from trips")`` reads it, with any connection and as
        often as wanted; ``duckdb.from_arrow(trips)`` is a relation. The dataset is pinned: later writes do not change
        what it shows. The columns and conditions that DuckDB pushes down reach the scan, and are exact.

        Args:
            columns: The columns to show.
            where: A condition, which pyhudi evaluates; that of a query is DuckDB's.
            meta: Whether all columns include the five meta columns.
            as_of: Shows the table as of this time.
            since: Shows only rows of commits that completed after this time.
            until: With ``since``: shows only rows of commits that completed until this time.
            read_optimized: Reads base files only.

        Returns:
            A ``pyarrow.dataset.Dataset``, whose rows are in no particular order.

        Raises:
            MissingColumnError: The table lacks a column.
            InvalidOptionError: DuckDB is not installed, or is older than 2.0; a time is invalid, or the condition
                cannot be read.
            OptionConflictError: ``as_of`` or ``read_optimized`` is given with ``since``, or ``until`` without it.
            UnreadableTimeError: The table does not keep history that far back.
        """
        _require("duckdb", "to_duckdb", self._path)
        _check_duckdb(self._path)
        from .datasets import TableDataset  # noqa: PLC0415 (reads without DuckDB do not need datasets)

        request = ReadRequest(columns, where, meta, as_of, since, until, None, read_optimized)
        return TableDataset(self._selection(request).for_later())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows of the newest snapshot as Arrow's C stream, for other libraries."""
        return self._selection(ReadRequest()).for_later().reader().__arrow_c_stream__(requested_schema)


def _require(package: str, method: str, path: str) -> None:
    """Raise `InvalidOptionError` if a package is not installed."""
    if find_spec(package) is None:
        raise InvalidOptionError(
            f"{method}() of the table {path} needs the package {package}, which is not installed.",
            f"Run pip install {package}, or call read() or scan(), which need nothing but pyarrow.",
        )


def _check_duckdb(path: str) -> None:
    """Raise `InvalidOptionError` for a DuckDB that hands a dataset conditions which lose rows with NaN."""
    import duckdb  # noqa: PLC0415 (needed by this call alone)

    if int(duckdb.__version__.partition(".")[0]) < _EXACT_DUCKDB:
        raise InvalidOptionError(
            f"to_duckdb() of the table {path} needs DuckDB {_EXACT_DUCKDB}.0, and DuckDB {duckdb.__version__} is "
            "installed, which loses rows with NaN when it hands conditions to a dataset.",
            f"Run pip install 'duckdb>={_EXACT_DUCKDB}', or query an Arrow table that read() returns.",
        )
