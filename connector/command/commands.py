"""The commands that read a table: their names, what they print, and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...operations.upkeep.service_entry import Argument

if TYPE_CHECKING:
    import pyarrow as pa

SHOW, REPORT, CAT, DIFF, CREATE, COMPLETION = "show", "report", "cat", "diff", "create", "completion"
SHELLS = ("bash", "zsh")


@dataclass(frozen=True, slots=True)
class ReadCommand:
    """A command that prints rows about a table.

    Attributes:
        rows: Returns the function that returns the rows, which gets the table's store and the arguments.
        nothing: What it says if there are no rows.
    """

    name: str
    help: str
    rows: Callable[[], Callable[..., pa.Table]]
    nothing: str
    arguments: tuple[Argument, ...] = ()


def _history() -> Callable[..., pa.Table]:
    from ...operations.inspect.history import history  # noqa: PLC0415 (a command imports only what it needs)

    return history


def _timeline() -> Callable[..., pa.Table]:
    from ...operations.inspect.instants import list_instants  # noqa: PLC0415

    return list_instants


def _files() -> Callable[..., pa.Table]:
    from ...operations.inspect.files import files  # noqa: PLC0415

    return files


def _sizes() -> Callable[..., pa.Table]:
    from ...operations.inspect.sizes import sizes  # noqa: PLC0415

    return sizes


def _partitions() -> Callable[..., pa.Table]:
    from ...operations.inspect.partitions import partitions  # noqa: PLC0415

    return partitions


def _activity() -> Callable[..., pa.Table]:
    from ...operations.inspect.activity import activity  # noqa: PLC0415

    return activity


def _metadata() -> Callable[..., pa.Table]:
    from ...operations.inspect.metadata_rows import metadata_rows  # noqa: PLC0415

    return metadata_rows


def _savepoints() -> Callable[..., pa.Table]:
    from ...operations.inspect.savepoints import savepoints  # noqa: PLC0415

    return savepoints


_NO_INSTANT = "The table has no instant."
_NO_FILE = "The table has no file."
READS: Mapping[str, ReadCommand] = {
    command.name: command
    for command in (
        ReadCommand(
            "history",
            "what each instant did, newest first",
            _history,
            _NO_INSTANT,
            (Argument("limit", "how many instants (20)", int, default=20),),
        ),
        ReadCommand(
            "timeline",
            "every instant with its times, pending and archived instants too, newest first",
            _timeline,
            _NO_INSTANT,
            (Argument("limit", "how many instants (100)", int, default=100),),
        ),
        ReadCommand("partitions", "the partitions with their sizes", _partitions, "The table has no partition."),
        ReadCommand(
            "files",
            "the files that a snapshot reads",
            _files,
            _NO_FILE,
            (Argument("as_of", "as of this instant or time", default=None, metavar="TIME"),),
        ),
        ReadCommand("sizes", "the live and dead bytes of each file group", _sizes, _NO_FILE),
        ReadCommand(
            "metadata",
            "the partitions of the metadata table, or the records of one",
            _metadata,
            "The table has no metadata table.",
            (
                Argument(
                    "partition", "print the records of this partition, such as files", default=None, metavar="NAME"
                ),
                Argument("limit", "how many rows at most (100)", int, default=100),
            ),
        ),
        ReadCommand("activity", "the writes and services at work", _activity, "Nothing is pending."),
        ReadCommand("savepoints", "the savepoints with their comments", _savepoints, "The table has no savepoint."),
    )
}
CAT_ARGUMENTS = (
    Argument("key", "the record key of a row; may be repeated", list, default=None, metavar="KEY"),
    Argument("where", "a condition, such as \"city = 'Rome' AND fare > 10\"", default=None, metavar="CONDITION"),
    Argument("columns", "the columns to print, separated by commas", default=None, metavar="NAMES"),
    Argument("limit", "how many rows at most (20)", int, default=20),
    Argument("as_of", "the rows as of this instant or time", default=None, metavar="TIME"),
    Argument("meta", "print Hudi's meta columns, too", bool, default=False),
)
REPORT_ARGUMENTS = (
    Argument("output", "the file of the page (report.html); - prints the page", default="report.html", metavar="FILE"),
    Argument("deep", "read the footers of all base files, not of a sample", bool, default=False),
)
DIFF_ARGUMENTS = (
    Argument("rows", "read keys, and print the rows that differ", bool, default=False),
    Argument("limit", "how many lines of files or rows at most (100)", int, default=100),
)
CREATE_ARGUMENTS = (
    Argument("schema", "the columns as DDL: id string, ts long", metavar="DDL"),
    Argument("record_key", "the columns that identify a row, separated by commas", default="", metavar="NAMES"),
    Argument("partition_by", "the partition columns, separated by commas", default="", metavar="NAMES"),
    Argument("order_by", "the ordering fields, separated by commas", default="", metavar="NAMES"),
    Argument("index", "the index: BUCKET, SIMPLE, BLOOM, GLOBAL_SIMPLE, GLOBAL_BLOOM", default=None),
    Argument("buckets", "the number of buckets of each partition", int, default=None),
    Argument("table_type", "COPY_ON_WRITE or MERGE_ON_READ", default=None, metavar="TYPE"),
    Argument("if_not_exists", "accept a table that agrees with the arguments", bool, default=False),
    Argument("dry_run", "only check the arguments", bool, default=False),
)
