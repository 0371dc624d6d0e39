"""Reads a table's rows as Arrow data: all at once, or batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import InvalidOptionError
from ..options.model import HudiOptions
from ..options.read import options_of_query
from ..storage.process import cores
from ..table.schema.columns import without_meta

if TYPE_CHECKING:
    from ..reader.row_filter import RowFilter, Where
    from ..reader.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The arguments of a read.

    Attributes:
        newest: Whether the rows are those of the newest snapshot, whatever query the options of the table name: rows to
            change must not be older.
    """

    columns: str | Sequence[str] | None = None
    where: Where | None = None
    meta: bool = False
    as_of: str | date | None = None
    since: str | date | None = None
    until: str | date | None = None
    limit: int | None = None
    read_optimized: bool = False
    newest: bool = False

    def query(self, path: str) -> dict[str, Any]:
        """Return the options of the query; raises `OptionConflictError` if there is no such query."""
        return options_of_query(
            "read",
            path,
            as_of=self.as_of,
            since=self.since,
            until=self.until,
            read_optimized=self.read_optimized,
        )

    def pinned_rows(self, path: str, options: HudiOptions, threads: int) -> PinnedRows:
        """Return the rows as of now, or as of the time in the options of the query; `PinnedRows.batches` reads them.

        Raises `InvalidOptionError` for a negative limit.

        Args:
            path: The table's path.
            options: The options of this read, the query's among them.
            threads: How many threads may read files.
        """
        from ..reader.row_filter import read_where  # noqa: PLC0415 (see methods/__init__.py)
        from ..reader.snapshot import open_snapshot  # noqa: PLC0415

        if self.limit is not None and self.limit < 0:
            raise InvalidOptionError(f"A read of the table {path} got limit={self.limit}.", "Give 0 or more.")
        snapshot = open_snapshot(
            path,
            options.storage_options,
            query=options.to_query(),
            bases_alone=options.bases_alone,
            file_search=options.file_search,
        )
        schema = snapshot.schema if self.meta else without_meta(snapshot.schema)
        if self.columns is not None:
            schema = _selected(self.columns, snapshot)
        condition = None if self.where is None else read_where(self.where, snapshot.schema, path)
        return PinnedRows(snapshot, schema, condition, options.merge_memory, threads, self.limit)


@dataclass(frozen=True, slots=True)
class PinnedRows:
    """Rows of a snapshot, which later writes do not change.

    Attributes:
        schema: The columns to show.
        limit: The greatest number of rows; None for all.
        read_later: Whether they may be read long after the snapshot was opened: the table may have cleaned files and
            archived instants since.
    """

    snapshot: Snapshot
    schema: pa.Schema
    condition: RowFilter | None
    memory: int
    threads: int
    limit: int | None = None
    read_later: bool = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that satisfy the condition, at most `limit` of them, in the columns of `schema`.

        Each call reads the files anew. Raises `UnreadableTimeError` if the table can no longer be shown as it was.
        """
        from ..reader.scan import scan  # noqa: PLC0415 (see methods/__init__.py)

        if self.limit == 0:
            return
        rows_left = self.limit
        # Without a condition, a log line recommends one; a read with a limit ends early, so it needs no such advice.
        rows = scan(
            self.snapshot.opened_again() if self.read_later else self.snapshot,
            self.schema.names,
            where=self.condition,
            merge_memory=self.memory,
            threads=self.threads,
            advises=self.limit is None,
        )
        for batch in rows:
            if rows_left is None:
                yield batch
                continue
            yield batch.slice(0, rows_left)
            rows_left -= batch.num_rows
            if rows_left <= 0:
                return

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream that holds a few batches at a time."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def for_later(self) -> PinnedRows:
        """Return the rows for a reader that begins at any time."""
        return replace(self, read_later=True)

    def narrowed(
        self, columns: Sequence[str] | None = None, condition: RowFilter | None = None, limit: int | None = None
    ) -> PinnedRows:
        """Return some columns of the rows that also satisfy a condition, at most ``limit`` of these.

        A limit of `self` counts for the rows that satisfy both conditions.
        """
        from ..reader.row_filter import EveryFilter  # noqa: PLC0415 (see methods/__init__.py)

        schema = self.schema if columns is None else self._selected(columns)
        filters = tuple(part for part in (self.condition, condition) if part is not None)
        least = min((most for most in (self.limit, limit) if most is not None), default=None)
        combined = EveryFilter(filters) if len(filters) > 1 else next(iter(filters), None)
        return replace(self, schema=schema, condition=combined, limit=least)

    def _selected(self, names: Sequence[str]) -> pa.Schema:
        """Return some of the columns; raises the errors of `columns_named`."""
        from ..table.schema.fields import columns_named  # noqa: PLC0415 (see methods/__init__.py)

        return columns_named(names, self.schema, f"selection of the table {self.snapshot.storage.path}")


def chosen_threads(threads: int | None) -> int:
    """Return how many threads a call takes: as many as the machine has cores, unless the user says less."""
    if threads is not None and threads < 1:
        raise InvalidOptionError(f"A call got threads={threads}.", "Give 1 or more, or leave it out for all cores.")
    return cores() if threads is None else threads


def _selected(columns: str | Sequence[str], snapshot: Snapshot) -> pa.Schema:
    """Return the columns to show; a text with commas is split unless it is itself the name of a column."""
    from ..reader.scan import selected  # noqa: PLC0415 (see methods/__init__.py)

    names = columns
    if isinstance(columns, str):
        names = [columns] if columns in snapshot.schema.names else [name.strip() for name in columns.split(",")]
    return selected(snapshot, names)
