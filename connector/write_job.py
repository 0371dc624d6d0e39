"""One write as a job: rows that Spark reads, written the way `HudiTable` writes them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import InvalidOptionError, MissingOptionError
from ..methods.writes import delete_partitions
from ..operations.result import CommitResult
from ..options.names import OPTIONS
from ..options.parsing import texts_of
from ..options.sources import WRITING, ResolvedOptions, resolve_options
from ..storage import open_storage
from .hudi_table import HudiTable
from .source.own_errors import own_errors
from .source.paths import absolute_for
from .source.sessions import find_session
from .table.service_tasks import application_of
from .table.writing import write_placed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Hudi's name of the operation whose rows are only keys.
DELETE = "delete"


def run_write(arguments: argparse.Namespace, options: dict[str, str], source_options: dict[str, str]) -> CommitResult:
    """Run the write of a command line in the active session, or in a new session of the name that it gives."""
    spark = find_session(arguments.name)
    with own_errors():
        # An operation without rows has no source.
        rows = None if arguments.source is None else read_source(spark, arguments.source, source_options)
        return write(spark, rows, arguments.path, arguments.operation, options)


def read_source(spark: SparkSession, source: str, options: dict[str, str]) -> DataFrame:
    """Return the rows of ``table:name``, ``sql:statement``, or ``format:path`` such as ``parquet:/landing/trips``.

    Raises `InvalidOptionError` for other texts.
    """
    format_name, colon, location = source.partition(":")
    if not (format_name and colon and location):
        raise InvalidOptionError(
            f"The source {source!r} has no kind or no place.", "Write it as parquet:/path, table:name or sql:statement."
        )
    if format_name == "table":
        return spark.read.table(location)
    if format_name == "sql":
        return spark.sql(location)
    return spark.read.format(format_name).options(**options).load(location)


def write(
    spark: SparkSession, rows: DataFrame | None, path: str, operation: str, options: dict[str, str]
) -> CommitResult:
    """Write rows into a table, and create it if it is absent and the options name its record key.

    Rows are placed first, as in `HudiTable`, so that executors do the merging. A new table appears with its first
    commit, so a job whose rows fail leaves nothing behind. ``rows`` is None for the deletion of partitions that an
    option names.
    """
    path = absolute_for(spark, path)
    if rows is not None and operation == DELETE:
        return HudiTable(spark, path, options).delete(rows)
    texts = {**texts_of(options), OPTIONS["operation"].key: operation}
    resolved = resolve_options(texts, path, WRITING, session=spark, warn=True)
    if rows is None:
        return delete_partitions(path, resolved, _partitions_to_delete(resolved, path), application_of(spark))
    return write_placed(rows, path, open_storage(path, resolved.options.storage_options), resolved, creates=True)


def _partitions_to_delete(resolved: ResolvedOptions, path: str) -> Sequence[str]:
    """Return the partitions that the options name; MissingOptionError if they name none."""
    names = resolved.options.partitions_to_delete
    if not names:
        key = OPTIONS["partitions_to_delete"].key
        raise MissingOptionError(
            f"The job is to delete partitions of the table {path}, and {key} names none.",
            f"Add --option {key}=<partition paths, separated by commas>, with * for anything.",
        )
    return names
