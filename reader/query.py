"""What a user reads: the table now, as of a time, or its changes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import InvalidOptionError
from ..timeline.clock import query_time

AS_OF = "as.of.instant"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
FULL_SCAN = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
EARLIEST = "earliest"
LATEST = "latest"
_ZEROS = re.compile(r"0+", re.ASCII)


@dataclass(frozen=True, slots=True)
class AsOf:
    """The table with the instants requested until a time, in a spelling of `pyhudi.timeline.clock.query_time`."""

    time: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The rows that commits of the window (``begin``, ``end``] of completion times wrote, in their state at its end.

    Attributes:
        path_glob: Pattern that the end of a file slice's path must match; "" for all.
        full_scan: Whether to read the whole table if the archive lacks what commits of the window wrote.
        schema_of_end: Whether the rows have the columns of the table at the end.
    """

    begin: str
    end: str | None = None
    path_glob: str = ""
    full_scan: bool = False
    schema_of_end: bool = False


Query = AsOf | Changes


@dataclass(frozen=True, slots=True)
class FileSearch:
    """How a read finds the files that it opens.

    Attributes:
        asks_metadata: Whether the metadata table may say which files there are, and what is in them.
        skips_files: Whether files without wanted rows are left out, also within partitions and buckets.
    """

    asks_metadata: bool = True
    skips_files: bool = True


DEFAULT_SEARCH = FileSearch()


def is_beginning(text: str) -> bool:
    """Return whether a time means the table's beginning: ``earliest``, or zeros alone."""
    return text.lower() == EARLIEST or _ZEROS.fullmatch(text) is not None


def resolve(text: str, zone: str) -> str:
    """Return the instant time that a text of the user names; InvalidOptionError if it is no time."""
    try:
        return query_time(text, zone)
    except ValueError as error:
        raise InvalidOptionError(
            f"{text!r} is no time that a query can name ({error}).",
            "Give an instant of 17 or 14 digits, a date as 2026-11-21, or a time as 2026-11-21 08:30:00.",
        ) from error
