"""One write as a job of its own, for schedulers: its result on stdout, its error on stderr, and an exit code.

    python -m pyhudi.connector.jobs upsert --path /data/trips --source parquet:/landing/trips

The result is one line of JSON, the fields of `CommitResult`. The exit code says what the caller can do:

    0  the write is done                        4  run it again (RetryError)
    1  something else failed                    5  look at the table (TableError)
    2  change the arguments (OptionError)
    3  change the rows (DataError)
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import (
    DataError,
    InvalidOptionError,
    MissingOptionError,
    OptionError,
    PyHudiError,
    RetryError,
    TableError,
)
from ..operations.result import CommitResult
from ..storage import open_storage
from .hudi_table import HudiTable
from .options.names import OPTIONS
from .options.parsing import texts_of
from .options.sources import WRITING, ResolvedOptions, resolve_options
from .source.own_errors import own_errors
from .source.paths import absolute_for
from .table.writing import delete_partitions, write_placed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FAILED = 1
EXIT_CODES: dict[type[PyHudiError], int] = {OptionError: 2, DataError: 3, RetryError: 4, TableError: 5}
# Hudi's names of what a job can do; all but the last take rows.
DELETE, DELETE_PARTITION = "delete", "delete_partition"
OPERATIONS = (
    "upsert",
    "insert",
    "bulk_insert",
    DELETE,
    "insert_overwrite",
    "insert_overwrite_table",
    DELETE_PARTITION,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one job and return its exit code.

    Args:
        arguments: Those of the command line without it.
    """
    asked = _asked(arguments)
    try:
        options, source_options = _pairs(asked.option), _pairs(asked.source_option)
        spark = _session(asked.name)
        with own_errors():
            rows = None if asked.source is None else read_source(spark, asked.source, source_options)
            result = write(spark, rows, asked.path, asked.operation, options)
    except PyHudiError as error:
        print(error, file=sys.stderr)  # noqa: T201 (a job's interface)
        return exit_code(error)
    print(json.dumps(dataclasses.asdict(result)))  # noqa: T201
    return 0


def exit_code(error: PyHudiError) -> int:
    """Return the exit code that says what the caller can do about an error."""
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), FAILED)


def read_source(spark: SparkSession, source: str, options: dict[str, str]) -> DataFrame:
    """Return the rows of a source.

    Args:
        spark: The session.
        source: ``table:name``, ``sql:statement``, or a format that Spark reads and a path: ``parquet:/landing/trips``.
        options: Options of the format's reader.

    Raises:
        InvalidOptionError: The source is none of these.
    """
    kind, colon, place = source.partition(":")
    if not (kind and colon and place):
        raise InvalidOptionError(
            f"The source {source!r} has no kind or no place.", "Write it as parquet:/path, table:name or sql:statement."
        )
    if kind == "table":
        return spark.read.table(place)
    if kind == "sql":
        return spark.sql(place)
    return spark.read.format(kind).options(**options).load(place)


def write(
    spark: SparkSession, rows: DataFrame | None, path: str, operation: str, options: dict[str, str]
) -> CommitResult:
    """Write rows into a table, which is made if it is not there and the options say what identifies a row.

    Rows are placed first, as `HudiTable` does it, a new table's too, so that executors do the merging. A new table
    appears with its first commit: nothing is left of a job whose rows were refused.

    Args:
        spark: The session.
        rows: What to write; None for partitions to be deleted, which an option names.
        path: The table's path.
        operation: Hudi's name of what to do.
        options: Options of the write.

    Raises:
        PyHudiError: The write failed as a whole.
    """
    path = absolute_for(spark, path)
    if rows is not None and operation == DELETE:
        return HudiTable(spark, path, options).delete(rows)
    given = {**texts_of(options), OPTIONS["operation"].key: operation}
    resolved = resolve_options(given, path, WRITING, session=spark, warn=True)
    if rows is None:
        return delete_partitions(spark, path, resolved, _named(resolved, path))
    return write_placed(rows, path, open_storage(path, resolved.options.storage_options), resolved, creates=True)


def _named(resolved: ResolvedOptions, path: str) -> Sequence[str]:
    names = resolved.options.partitions_to_delete
    if not names:
        key = OPTIONS["partitions_to_delete"].key
        raise MissingOptionError(
            f"The job is to delete partitions of the table {path}, and {key} names none.",
            f"Add --option {key}=<partition paths, separated by commas>, with * for anything.",
        )
    return names


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.source is None and asked.operation != DELETE_PARTITION:
        parser.error(f"{asked.operation} needs rows: give --source")
    if asked.source is not None and asked.operation == DELETE_PARTITION:
        parser.error(f"{DELETE_PARTITION} takes no rows: leave --source out and name partitions by an --option")
    return asked


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pyhudi.connector.jobs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("operation", choices=OPERATIONS, help="what the write does")
    parser.add_argument("--path", required=True, help="the table's path")
    parser.add_argument(
        "--source",
        help="the rows: parquet:/path (or another format), table:name, sql:statement; delete_partition takes none",
    )
    for name, what in (("--option", "an option of the write"), ("--source-option", "an option of the source's reader")):
        parser.add_argument(name, action="append", default=[], metavar="KEY=VALUE", help=f"{what}; may be repeated")
    parser.add_argument("--name", default="pyhudi job", help="the application's name, unless spark-submit gives one")
    return parser


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    wrong = [key for key, separator, _ in pairs if not separator or not key]
    if wrong:
        # What stands behind the name may be a secret with another sign in between.
        name = re.split(r"[^\w.-]", wrong[0], maxsplit=1)[0]
        raise InvalidOptionError(f"{name!r} is no option with a value.", "Write it as key=value.")
    return {key: value for key, _, value in pairs}


def _session(name: str) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 (a wrong argument need not wait for Spark)

    builder = SparkSession.builder
    if SparkSession.getActiveSession() is None:
        builder = builder.appName(name)
    return builder.getOrCreate()


if __name__ == "__main__":
    sys.exit(main())
