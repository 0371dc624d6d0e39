"""The base of `pyhudi.arrow.Table`: opens reads, and writes rows in the types of the table."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from ..errors import InvalidOptionError, TableNotFoundError
from ..methods.creation import table_above
from ..methods.paths import AnyPath, absolute
from ..methods.queries import QueryMethods
from ..methods.writes import Rows, WriteMethods
from ..operations.result import CommitResult
from ..options.secrets import STORAGE_PREFIX
from ..options.sources import READING, WRITING, find_config
from ..table.latest_schema import latest_schema
from ..table.schema.columns import without_meta
from ..table.table import open_table
from .hudi_types import HudiTypes, needs_stored_columns
from .reading import PinnedRows, ReadRequest, chosen_threads
from .rows import given_rows
from .writing import RowWrite, TypedRows

Timestamps: TypeAlias = Literal["utc", "local"]

_ZONES = ("utc", "local")

logger = logging.getLogger("pyhudi.tables")


class ArrowMethods(QueryMethods[pa.Table], WriteMethods[pa.Table]):
    """The methods that need the rows of Arrow alone; see `Table` for the arguments."""

    def __init__(
        self,
        path: AnyPath,
        storage_options: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        threads: int | None = None,
    ) -> None:
        self._threads = chosen_threads(threads)
        super().__init__(absolute(path), all_options(storage_options, options))

    @property
    def schema(self) -> pa.Schema:
        """The data columns of the table; Hudi's meta columns come before them if a read shows these.

        Raises:
            PyHudiError: The table cannot be read.
        """
        return self._columns()

    def _frame(self, rows: pa.Table) -> pa.Table:
        return rows

    def _selection(self, request: ReadRequest) -> PinnedRows:
        """Return the rows that a read asks for, as of now or of the time of its query."""
        resolved = self._resolve(request.query(self._path), READING)
        options = (resolved.for_newest() if request.newest else resolved).options
        return request.pinned_rows(self._path, options, self._threads)

    def _write(self, df: Rows, options: Mapping[str, Any]) -> CommitResult:
        self._require_table()
        return self._write_rows(df, options, None)

    def _write_rows(
        self,
        df: Rows,
        options: Mapping[str, Any],
        timestamps: Timestamps | None,
        *,
        columns: Sequence[str] | None = None,
        creates: bool = False,
        overwrite: bool = False,
    ) -> CommitResult:
        """Write rows with the options of a call; ``columns`` are those of them that count, None for all.

        ``timestamps`` is as of `Table.write`, ``creates`` and ``overwrite`` are as of `RowWrite`.
        """
        rows = given_rows(df)
        # Only timestamps without zone and columns of nulls take their types from the table.
        stored_columns = None if creates or not needs_stored_columns(rows.schema) else self._stored_columns()
        # An iterator without a batch has no columns of its own, so it gets the table's.
        given_columns = rows.schema or stored_columns or pa.schema([])
        if columns is not None:
            given_columns = pa.schema([field for field in given_columns if field.name in columns])
            rows = rows.select(given_columns.names)
        types = types_of(given_columns, stored_columns, timestamps, self._path)
        resolved = self._resolve(options, WRITING, warn=True)
        write = RowWrite(self._path, self._storage, resolved, self._threads, creates=creates, overwrite=overwrite)
        with ExitStack() as open_files:
            return write.run(TypedRows.of(rows, types, open_files))

    def _stored_columns(self) -> pa.Schema | None:
        """Return the table's columns; None before its first write, or of a table made without columns."""
        table = open_table(self._storage)
        columns = latest_schema(table.config, table.timeline())
        return None if columns is None else without_meta(columns)

    def _require_table(self) -> None:
        """Raise `TableNotFoundError` if the path holds no table."""
        if find_config(self._storage) is None:
            raise TableNotFoundError(
                f"There is no Hudi table at {self._path}.{self._hint_at_table_above()}",
                "Check the path, or create the table by Table.create or pyhudi.arrow.write, with record_key.",
            )

    def _hint_at_table_above(self) -> str:
        """Return a sentence about the nearest table above the path; empty if there is none."""
        path_above = table_above(self._path, self.storage_options)
        return "" if path_above is None else f" There is one above it, at {path_above}."


def all_options(storage_options: Mapping[str, Any] | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of a table, those of its store under the prefix that the store reads."""
    of_store = {f"{STORAGE_PREFIX}{name}": value for name, value in (storage_options or {}).items()}
    return {**of_store, **(options or {})}


def types_of(
    row_columns: pa.Schema, stored_columns: pa.Schema | None, timestamps: Timestamps | None, path: str
) -> HudiTypes:
    """Return the types that a user's rows take in a table; raises `InvalidOptionError` for unknown ``timestamps``.

    Args:
        row_columns: The columns as the user gives them.
        stored_columns: The table's columns; None if the table is new or the rows take no types from it.
        timestamps: What timestamps without zone become in new columns: moments in UTC, or local times. None means
            moments, with a warning.
        path: The table's path, for messages.
    """
    if timestamps not in {None, *_ZONES}:
        raise InvalidOptionError(
            f"A call about the table {path} got timestamps={timestamps!r}.", f"Choose among {', '.join(_ZONES)}."
        )
    types = HudiTypes.of(row_columns, stored_columns, local=timestamps == "local")
    if types.zoneless and timestamps is None:
        logger.warning(
            "table %s: the timestamps without zone of %s become moments in UTC; timestamps='local' keeps them as they "
            "are",
            path,
            ", ".join(types.zoneless),
        )
    return types
