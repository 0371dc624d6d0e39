"""The methods of tables that write rows by one of Hudi's operations."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeAlias

import pyarrow as pa

from ..errors import InvalidOptionError
from ..operations.result import CommitResult
from ..options.names import OPTIONS
from ..options.sources import WRITING, ResolvedOptions
from ..table.config import TableConfig
from ..table.config.property_keys import SERIALIZABLE
from .base import Frame, TableMethods

# What a table takes rows as: an Arrow table, a DataFrame, or another object that offers an Arrow stream.
Rows: TypeAlias = Any
OPERATION, BASED_ON, MISSING_OK, PARTIAL, WRITE_ID = (
    OPTIONS[name].key for name in ("operation", "based_on", "delete_missing_ok", "partial_update", "write_id")
)
# A merge or an update upserts its rows, whatever the options say, and may move them to another partition.
CHANGES = {
    OPTIONS["operation"].key: "upsert",
    **{OPTIONS[name].key: "false" for name in ("insert_drop_duplicates", "colocated", "partial_update")},
    OPTIONS["insert_dup_policy"].key: "none",
    OPTIONS["update_partition_path"].key: "true",
}
logger = logging.getLogger("pyhudi")


class WriteMethods(TableMethods[Frame]):
    """The methods that write rows."""

    def upsert(self, df: Rows, *, partial: bool = False, **options: Any) -> CommitResult:
        """Insert the rows whose keys are new and update the rows whose keys exist, as one instant.

        If it pays, Spark first shuffles the rows of a `HudiTable` by file group (see `colocate`), so that executors
        do the merging.

        Args:
            df: Rows with the table's columns: a DataFrame, an Arrow table, or another object that offers an Arrow
                stream. A `HudiTable` takes DataFrames of Spark too, a `pyhudi.arrow.Table` also batches and datasets.
            partial: Whether the rows may lack columns of the table, whose stored values then stay. The rows need the
                record key, the partition columns and the ordering fields, and every key must exist in the table.
            options: Options of this write; pass keys with dots as ``**{"hoodie.…": value}``.

        Returns:
            The instant, and the counts of inserted, updated and deleted rows.

        Raises:
            KeyNotFoundError: A key of a partial upsert is not in the table, so its other columns are unknown.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return self._write(df, {OPERATION: "upsert", **({PARTIAL: True} if partial else {}), **options})

    def insert(self, df: Rows, **options: Any) -> CommitResult:
        """Add the rows, as one instant, without looking up their keys.

        Args:
            df: Rows with the table's columns.
            options: Options of this write. ``**{"hoodie.datasource.insert.dup.policy": "drop"}`` or ``"fail"`` looks
                keys up.

        Returns:
            The instant, and the number of inserted rows.

        Raises:
            DuplicateKeyError: The policy is ``fail``, and the table has a key already.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return self._write(df, {OPERATION: "insert", **options})

    def bulk_insert(self, df: Rows, **options: Any) -> CommitResult:
        """Add the rows, as one instant, without looking up their keys; files may be sorted.

        Args:
            df: Rows with the table's columns.
            options: Options of this write, such as ``hoodie.bulkinsert.sort.mode``.

        Returns:
            The instant, and the number of inserted rows.

        Raises:
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return self._write(df, {OPERATION: "bulk_insert", **options})

    def insert_overwrite(self, df: Rows, **options: Any) -> CommitResult:
        """Replace all rows of the partitions that the given rows belong to, as one instant.

        Args:
            df: Rows with the table's columns. Without rows, nothing is replaced.
            options: Options of this write.

        Returns:
            The instant, and the counts of inserted rows and of rows deleted from other partitions.

        Raises:
            DuplicateKeyError: The table has a global index, and another partition holds one of the keys.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return self._write(df, {OPERATION: "insert_overwrite", **options})

    def overwrite(self, df: Rows, **options: Any) -> CommitResult:
        """Replace all rows of the table, as one instant.

        Args:
            df: Rows with the table's columns. Without rows, the table becomes empty.
            options: Options of this write.

        Returns:
            The instant, and the number of inserted rows.

        Raises:
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return self._write(df, {OPERATION: "insert_overwrite_table", **options})

    def delete_partitions(self, *paths: str, **options: Any) -> CommitResult:
        """Delete all rows of partitions, as one instant: a write that has no rows.

        Args:
            paths: Partition paths below the table's path (``2024/05``, ``country=de``). ``*`` matches any characters.
                In a path without ``*``, ``%2A`` does too, so a folder whose name contains ``%2A`` cannot be named
                alone. Paths that the table lacks are ignored.
            options: Options of this write.

        Returns:
            The instant of the deletion.

        Raises:
            InvalidOptionError: No partition is given.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        resolved = self._resolve({OPERATION: "delete_partition", **options}, WRITING, warn=True)
        commit_result = delete_partitions(self._path, resolved, paths, self._application)
        self._changed()
        return commit_result

    @property
    def _application(self) -> str:
        """The name of the application if no option names it."""
        return ""

    def _refuse_nothing(self, which: object) -> None:
        """Raise `InvalidOptionError` if a delete got neither rows nor a condition."""
        if which is None:
            raise InvalidOptionError(
                f"delete() of the table {self._path} got neither rows nor a condition.",
                "Call delete(keys) with rows of the keys, or delete('id = 7') with a condition as its first argument.",
            )

    def _is_serializable(self, options: Mapping[str, Any], config: TableConfig) -> bool:
        """Return whether later writes to rows that a write read conflict with it, by its options or the table."""
        level = self._resolve(options, WRITING).options.isolation or config.isolation
        return level == SERIALIZABLE

    def _write(self, df: Rows, options: Mapping[str, Any]) -> CommitResult:
        """Write rows with the options of a call."""
        raise NotImplementedError


def delete_partitions(
    path: str, resolved: ResolvedOptions, partitions: Sequence[str], application: str = ""
) -> CommitResult:
    """Delete partitions by paths, with ``*`` for anything, and return the result of the write.

    ``application`` counts if no option names it.
    """
    from ..operations.write.run import write  # noqa: PLC0415 (see __init__.py)

    start, options = time.monotonic(), resolved.options
    request = options.to_write_request(path, pa.schema([]), overwrite=False)
    replacement = replace(request.write.replacement, partitions_to_delete=tuple(partitions))
    settings = replace(request.write, replacement=replacement)
    commit_result = write(replace(request, write=settings, application=options.application or application))
    return timed(commit_result, start, resolved.notices)


def timed(commit_result: CommitResult, start: float, notices: tuple[str, ...]) -> CommitResult:
    """Return the result with the seconds of the whole call, and log it.

    The call began at ``start`` of the monotonic clock, and ``notices`` are its first warnings.
    """
    seconds = {**commit_result.seconds, "total": round(time.monotonic() - start, 3)}
    result = replace(commit_result, seconds=seconds, warnings=(*notices, *commit_result.warnings))
    logger.info("%s", json.dumps({"event": "write", **asdict(result)}))
    return result
