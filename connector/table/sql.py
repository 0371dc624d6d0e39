"""A table in Spark SQL: under a name of the session, or in a statement of its own."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import date
from string import Formatter
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from ...errors import InvalidOptionError, OptionConflictError
from ..source.paths import AnyPath
from .frames import to_frame
from .queries import TableQueries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "table"
# What does in Python what a statement of SQL would do.
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
    """What lets statements of SQL name a table.

    Args:
        spark: The session.
        path: The table's path.
        options: Options of every read and write made here.
    """

    def __init__(self, spark: SparkSession, path: AnyPath, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(spark, path, options)
        # The views that follow the table, with the columns that each shows, and what it shows of them.
        self._following: dict[str, tuple[Sequence[str] | None, DataFrame]] = {}

    def create_view(
        self,
        name: str,
        *,
        newest: bool = False,
        columns: Sequence[str] | None = None,
        as_of: str | date | None = None,
    ) -> None:
        """Give the table a name in this session's SQL, as a temporary view; one of the name is replaced.

        Args:
            name: The view's.
            newest: Whether the view follows the table: after each write, rollback or restore by this object it is made
                anew, and by `refresh_views` otherwise. Without it the view is pinned: it shows the table as it is now,
                whatever is written later.
            columns: The columns to show, in this order; None for all, the meta columns first.
            as_of: Pins the view to what was requested until this time.

        Raises:
            InvalidOptionError: The name is none, or the time.
            MissingColumnError: The table has no such column.
            OptionConflictError: ``as_of`` and ``newest`` are given.
            UnreadableTimeError: The table's past is not kept so far back.
        """
        if newest and as_of is not None:
            raise OptionConflictError(
                f"A view of the table {self._path} was to show it as of {as_of} and always as it is.",
                "Leave one of them out.",
            )
        rows = self._make_view(name, self.to_df(columns, as_of=as_of))
        self._following.pop(name, None)
        if newest:
            self._following[name] = (columns, rows)

    def refresh_views(self) -> None:
        """Have the views that follow the table show it as it is now; those that somebody dropped stay away.

        So do those in whose place somebody has put something else under their name.
        """
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
        """Return what a statement of Spark SQL selects, in which ``{table}`` is this table, as it is now.

        Args:
            query: The statement. Other names in braces are those of ``frames``; a brace of its own is written twice.
            as_of: Shows the table with what was requested until this time.
            args: Values of the parameters of the statement, as ``spark.sql`` takes them.
            frames: What other names stand for: tables, which are shown as they are now, or rows as `upsert` takes them.

        Raises:
            InvalidOptionError: The statement does not name ``{table}``, or what it names was not given; or the time is
                none; or it is to change the table.
            UnreadableTimeError: The table's past is not kept so far back.

        Examples:
            >>> table.sql("select city, count(*) from {table} group by city")  # doctest: +SKIP
            >>> table.sql("select * from {table} join {cities} using (city)", cities=cities)  # doctest: +SKIP
        """
        self._check_names(query, frames)
        shown = {name: self._rows_of(name, one) for name, one in frames.items()}
        given = {} if args is None else {"args": args}
        return self._spark.sql(query, **given, **shown, **{TABLE: self.to_df(as_of=as_of)})  # type: ignore[arg-type]

    def _make_view(self, name: str, rows: DataFrame) -> DataFrame:
        try:
            rows.createOrReplaceTempView(name)
            return rows
        except AnalysisException as error:
            raise InvalidOptionError(
                f"{name!r} is no name that a temporary view of Spark can have.", "Choose one without dots and spaces."
            ) from error

    def _changed(self) -> None:
        """Show what was done in the views that follow; it is done, whether that works or not."""
        try:
            self.refresh_views()
        except Exception:
            logger.warning("table %s: its views show it as it was before", self._path, exc_info=True)

    def _rows_of(self, name: str, given: Any) -> DataFrame:
        """Return what a name in braces stands for."""
        if isinstance(given, TableQueries):
            return given.to_df()
        try:
            return to_frame(self._spark, given)
        except InvalidOptionError as error:
            raise InvalidOptionError(
                f"{{{name}}} of the statement was given as a {type(given).__name__}, which is no table and no rows.",
                f"Write :{name} for a value, and give it by args={{{name!r}: …}}.",
            ) from error

    def _check_names(self, query: str, frames: Mapping[str, Any]) -> None:
        change = _CHANGE.match(query)
        if change is not None:
            raise InvalidOptionError(
                f"The statement {query!r} is to change the table {self._path}, which Spark has no way to ask of it.",
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
                "Write {table} where the table stands.",
            )
