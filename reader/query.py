"""What a read asks to be shown, in the words of the user: the table now, as it was, or what changed."""

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
_ZEROS = re.compile(r"0+", re.ASCII)


@dataclass(frozen=True, slots=True)
class AsOf:
    """The table with what was requested until a time, that included.

    Attributes:
        time: In a spelling of `pyhudi.timeline.clock.query_time`.
    """

    time: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The rows that commits of a window wrote, as they stood at its end.

    Attributes:
        begin: The window holds what completed after this time: in a spelling of `query_time`, or `is_beginning`.
        end: It holds what completed until this time, that included; None for now.
        path_glob: Only file slices whose path ends in what this pattern matches; "" for all.
        full_scan: Whether the whole table is read where commits of the window are archived, and the archive does not
            tell what they wrote.
        schema_of_end: Whether the rows are shown in the columns that the table had at the end.
    """

    begin: str
    end: str | None = None
    path_glob: str = ""
    full_scan: bool = False
    schema_of_end: bool = False


Query = AsOf | Changes


def is_beginning(text: str) -> bool:
    """Return whether a time stands for the table's beginning: ``earliest``, or zeros alone."""
    return text.lower() == EARLIEST or _ZEROS.fullmatch(text) is not None


def resolve(text: str, zone: str) -> str:
    """Return a time as one that compares with instant times.

    Raises:
        InvalidOptionError: It is none.
    """
    try:
        return query_time(text, zone)
    except ValueError as error:
        raise InvalidOptionError(
            f"{text!r} is no time that a query can name ({error}).",
            "Give an instant of 17 or 14 digits, a date as 2026-11-21, or a time as 2026-11-21 08:30:00.",
        ) from error
