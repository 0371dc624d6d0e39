"""The part of `HudiTable` for Spark SQL: temporary views, and statements that name the table."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import date
from string import Formatter
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from ...errors import InvalidOptionError, OptionConflictError
from .frames import to_frame
from .queries import TableQueries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = "table"
# The method that replaces each SQL statement.
_METHODS = {
    "delete": "delete",
    "update": "update",
    "merge": "merge",
    "insert": "insert or upsert",
    "truncate": "delete",
}
_CHANGE = re.compile(rf"\s*({'|'.join(_METHODS)})\s+(?:(?:from|into|overwrite|table)\s+)*\{{{TABLE}\}}", re.IGNORECASE)

logger = logging.getLogger("pyhudi")


class TableSql(TableQueries):
    """The methods of `HudiTable` for Spark SQL."""

    def create_view(
        self,
        name: str,
        *,
        newest: bool = False,
        columns: Sequence[str] | None = None,
        as_of: str | date | None = None,
    ) -> None:
        """Create or replace a temporary view of the table in this session.

        Args:
            name: The name of the view.
            newest: Whether the view follows the table: this object replaces it after each of its writes, rollbacks and
                restores, and `refresh_views` does so on demand. Otherwise the view is pinned to the table as it is now.
            columns: The columns to show, in this order; None for all columns, the meta columns first.
            as_of: Pins the view to the table as of this time: the instants requested until then.

        Raises:
            InvalidOptionError: The name or the time is invalid.
            MissingColumnError: The table lacks a column.
            OptionConflictError: ``as_of`` is given with ``newest``.
            UnreadableTimeError: The table does not keep history that far back.
        """
        if newest and as_of is not None:
            raise OptionConflictError(
                f"create_view() of the table {self._path} got as_of={as_of!r} and newest=True; it takes one of both.",
                "Leave as_of or newest out.",
            )
        with self._views_lock:
            rows = self._make_view(name, self.to_df(columns, as_of=as_of))
            self._following.pop(name, None)
            if newest:
                self._following[name] = (columns, rows)

    def refresh_views(self) -> None:
        """Update the views that follow the table to its newest snapshot.

        Views that the session has dropped, or replaced by another view of the same name, stay as they are.

        Raises:
            PyHudiError: The table cannot be read.
        """
        with self._views_lock:
            for name, (columns, rows) in list(self._following.items()):
                if self._spark.catalog.tableExists(name) and self._spark.table(name).sameSemantics(rows):
                    self._following[name] = (columns, self._make_view(name, self.to_df(columns)))
                else:
                    del self._following[name]

    def sql(
        self,
        query: str,
        *,
        as_of: str | date | None = None,
        args: Mapping[str, Any] | Sequence[Any] | None = None,
        **frames: Any,
    ) -> DataFrame:
        """Run a statement of Spark SQL in which ``{table}`` is the newest snapshot of this table.

        Args:
            query: The statement. Other names in braces refer to ``frames``; write a literal brace twice.
            as_of: Reads the table as of this time: the instants requested until then.
            args: Values of the statement's parameters, as for ``spark.sql``.
            frames: By name: a `HudiTable`, whose newest snapshot is read, or rows as `upsert` takes them.

        Returns:
            The rows that the statement selects.

        Raises:
            InvalidOptionError: The statement lacks ``{table}``, names something that is not in ``frames`` or would
                change the table; or the time is invalid.
            UnreadableTimeError: The table does not keep history that far back.

        Examples:
            >>> table.sql("select city, count(*) from {table} group by city")  # doctest: +SKIP
            >>> table.sql("select * from {table} join {cities} using (city)", cities=cities)  # doctest: +SKIP
        """
        self._check_names(query, frames)
        named_frames = {name: self._rows_of(name, rows) for name, rows in frames.items()}
        arguments = {} if args is None else {"args": args}
        return self._spark.sql(query, **arguments, **named_frames, **{TABLE: self.to_df(as_of=as_of)})  # type: ignore[arg-type]

    def _make_view(self, name: str, rows: DataFrame) -> DataFrame:
        """Create or replace a temporary view of the rows, and return them; InvalidOptionError for an invalid name."""
        try:
            rows.createOrReplaceTempView(name)
            return rows
        except AnalysisException as error:
            raise InvalidOptionError(
                f"{name!r} is no name that a temporary view of Spark can have.", "Choose one without dots and spaces."
            ) from error

    def _changed(self) -> None:
        """Refresh the views; a failure is logged, because the change itself succeeded."""
        try:
            self.refresh_views()
        except Exception:
            logger.warning("table %s: its views show it as it was before", self._path, exc_info=True)

    def _rows_of(self, name: str, value: Any) -> DataFrame:
        """Return what a statement names, as a DataFrame; InvalidOptionError if it is neither a table nor rows."""
        if isinstance(value, TableQueries):
            return value.to_df()
        try:
            return to_frame(self._spark, value)
        except InvalidOptionError as error:
            raise InvalidOptionError(
                f"{{{name}}} of the statement was given as a {type(value).__name__}, which is no table and no rows.",
                f"Write :{name} for a value, and give it by args={{{name!r}: …}}.",
            ) from error

    def _check_names(self, query: str, frames: Mapping[str, Any]) -> None:
        """Refuse a statement that changes the table, does not name it, or names something that was not given.

        ``query`` is the SQL statement, in which braces enclose names: that of the table, and those of ``frames``, the
        further rows and tables of the call. Raises `InvalidOptionError`.
        """
        change = _CHANGE.match(query)
        if change is not None:
            raise InvalidOptionError(
                f"The statement {query!r} changes the table {self._path}, which Spark cannot do on a Python source.",
                f"Call HudiTable.{_METHODS[change[1].lower()]}.",
            )
        try:
            names = {name for _, name, _, _ in Formatter().parse(query) if name is not None}
        except ValueError as error:
            raise InvalidOptionError(
                f"The braces of the statement {query!r} are not closed, or not opened.",
                "Write {table} for the table, and a brace of the statement's own twice.",
            ) from error
        unknown = sorted(names - {TABLE, *frames})
        if unknown:
            raise InvalidOptionError(
                f"The statement {query!r} names {{{unknown[0]}}}, and nothing was given under that name.",
                "Give it as an argument of that name; write a brace of the statement's own twice.",
            )
        if TABLE not in names:
            raise InvalidOptionError(
                f"The statement {query!r} does not name the table {self._path}.",
                "Write {table} for the table.",
            )
