"""Reads and writes of one line, for scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..methods.paths import AnyPath
from ..methods.writes import Rows
from ..operations.result import CommitResult
from .base import Timestamps
from .table import Mode, RecordKey, Table

if TYPE_CHECKING:
    from ..reader.row_filter import Where


def write(
    path: AnyPath,
    df: Rows,
    mode: Mode = "append",
    *,
    record_key: RecordKey = "",
    partition_by: str | Sequence[str] = (),
    order_by: str | Sequence[str] = (),
    index: str | None = None,
    buckets: int | None = None,
    table_type: str | None = None,
    partial_update_mode: str | None = None,
    timestamps: Timestamps | None = None,
    storage_options: Mapping[str, Any] | None = None,
    threads: int | None = None,
    **options: Any,
) -> CommitResult:
    """Write rows to the table at a path as one instant, and create it with that if there is none.

    Args:
        path: The table's path.
        df: Rows, as `pyhudi.arrow.Table.upsert` takes them.
        mode: What to do with an existing table, as for `pyhudi.arrow.Table.write`.
        record_key: The columns that identify a row; None for a table that generates its keys. A new table needs it.
        partition_by: The columns that a new table is partitioned by.
        order_by: The ordering fields of a new table.
        index: The index of a new table.
        buckets: Buckets of every partition of a new table.
        table_type: The type of a new table.
        partial_update_mode: The partial update mode of a new table.
        timestamps: What new columns of timestamps without a zone become, as for `pyhudi.arrow.Table.create`.
        storage_options: Options of the table's store.
        threads: How many threads the write takes at most; None for as many as the machine has cores.
        options: Options of the write; pass keys with dots as ``**{"hoodie.…": value}``.

    Returns:
        The instant, and the counts of inserted, updated and deleted rows.

    Raises:
        MissingOptionError: There is no table, and ``record_key`` is not given.
        OptionConflictError: The table is there and ``mode`` is ``error``, or it disagrees with the arguments.
        PyHudiError: The write failed as a whole; the class says what the caller can do.
    """
    return Table(path, storage_options, threads=threads).write(
        df,
        mode,
        record_key=record_key,
        partition_by=partition_by,
        order_by=order_by,
        index=index,
        buckets=buckets,
        table_type=table_type,
        partial_update_mode=partial_update_mode,
        timestamps=timestamps,
        **options,
    )


def read(
    path: AnyPath,
    columns: str | Sequence[str] | None = None,
    *,
    where: Where | None = None,
    meta: bool = False,
    as_of: str | date | None = None,
    since: str | date | None = None,
    until: str | date | None = None,
    limit: int | None = None,
    read_optimized: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    threads: int | None = None,
) -> pa.Table:
    """Return the rows of the table at a path, as `pyhudi.arrow.Table.read` does.

    Args:
        path: The table's path.
        columns: The columns to show.
        where: A condition.
        meta: Whether all columns include the five meta columns.
        as_of: Reads the table as of this time.
        since: Reads only rows of commits that completed after this time.
        until: With ``since``: reads only rows of commits that completed until this time.
        limit: The greatest number of rows; None for all.
        read_optimized: Reads base files only.
        storage_options: Options of the table's store.
        options: Options of the read, by their keys.
        threads: How many threads the read takes at most; None for as many as the machine has cores.

    Returns:
        The rows, in no particular order.

    Raises:
        TableNotFoundError: There is no table at the path.
        PyHudiError: The table cannot be read so; the class says what the caller can do.
    """
    return Table(path, storage_options, options, threads=threads).read(
        columns,
        where=where,
        meta=meta,
        as_of=as_of,
        since=since,
        until=until,
        limit=limit,
        read_optimized=read_optimized,
    )
