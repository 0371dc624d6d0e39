"""A table, or some rows and columns of it, as a side of a join by bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from typing import TypeAlias

from ...errors import InvalidOptionError
from ...operations.arguments import checked
from ..conditions.condition import Where
from ..table.queries import TableQueries
from ..table.shown_rows import AskedRows, ShownRows


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """Rows of a table, chosen as by `HudiTable.to_df`, for `bucket_join` and `bucket_agg`.

    Attributes:
        table: The table, a `HudiTable`.
        columns: The columns to show, as a list or as text with commas. None for all columns.
        where: A condition, as for `HudiTable.to_df`.
        meta: Whether all columns include the five meta columns.
        as_of: Reads the table as of this time.
        since: Reads only rows of commits that completed after this time.
        until: With ``since``: reads only rows of commits that completed until this time.
        read_optimized: Reads base files only.

    Examples:
        >>> lines = TableRows(lineitem, ["orderkey", "price"], where="shipped > '1998-09-01'")  # doctest: +SKIP
        >>> bucket_join(lines, orders, "orderkey").show()  # doctest: +SKIP
    """

    table: TableQueries
    columns: str | Sequence[str] | None = None
    _: KW_ONLY
    where: Where | None = None
    meta: bool = False
    as_of: str | date | None = None
    since: str | date | None = None
    until: str | date | None = None
    read_optimized: bool = False


TableRows.__init__ = checked(TableRows.__init__)  # type: ignore[method-assign]

Side: TypeAlias = "TableQueries | TableRows"


def rows_of_side(side: Side, call: str) -> ShownRows:
    """Return the rows of a side, pinned to this moment; InvalidOptionError for anything else."""
    rows = TableRows(side) if isinstance(side, TableQueries) else side
    if not isinstance(rows, TableRows) or not isinstance(rows.table, TableQueries):
        given_type = type(side if not isinstance(rows, TableRows) else rows.table).__name__
        raise InvalidOptionError(
            f"{call} got a {given_type} in the place of a table.",
            "Give a HudiTable, or TableRows of it for some columns or rows; join DataFrames with DataFrame.join.",
        )
    asked_rows = AskedRows(rows.columns, rows.where, rows.meta, rows.as_of, rows.since, rows.until, rows.read_optimized)
    return rows.table._find_rows(asked_rows)
