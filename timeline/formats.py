"""Format numbers of what pyhudi adds to a table: a release refuses to write beside what a newer release has changed.

Each kind of file below ``.hoodie/.pyhudi`` has a number, and so has each group of ``pyhudi.*`` keys. The number is

- in the field ``format`` of JSON;
- in the key ``pyhudi.format`` among other keys;
- behind ``.v`` at the end of the name of a folder, or of a file whose content is nothing or not read.

What has no number has the format 1, as the release before the numbers wrote it. A number rises when older releases
must not write beside the new content; a field that they may pass over leaves it as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..errors import UnsupportedTableError

FIELD = "format"
KEY = "pyhudi.format"

# The newest numbers that this release knows, which are those that it writes.
OWNER = 1
DECISION = 1
FAILURE = 1
CLEAN_NOTE = 1
WRITE_IDS = 1
COMMIT_KEYS = 1
FOOTER_KEYS = 1
# No kind of file or folder right below ``.hoodie/.pyhudi``, and no announcement, has had another format.
NAMES = 1
# Of tables as a whole: a release that changes what older ones must respect before they meet a file sets it.
PROPERTIES = 1
# Format 1 has all seals in one folder, format 2 has a folder for each hour.
SEALS = 2

_DIGITS = re.compile(r"[0-9]{1,9}")
_NAMED = re.compile(r".*\.v([0-9]{1,9})", re.DOTALL)


def numbered(found: Mapping[str, object], number: int) -> dict[str, object]:
    """Return the fields of a JSON object with its format number."""
    return {FIELD: number, **found}


def number_of(found: object) -> int:
    """Return the format number of parsed JSON; what tells none has the first."""
    number = found.get(FIELD) if isinstance(found, dict) else None
    return number if type(number) is int else 1


def number_of_keys(keys: Mapping[str, str]) -> int:
    """Return the format number of the ``pyhudi.*`` keys in a map of texts."""
    text = keys.get(KEY, "")
    return int(text) if _DIGITS.fullmatch(text) else 1


def number_of_name(name: str) -> int:
    """Return the format number in the name of a file or folder."""
    found = _NAMED.fullmatch(name)
    return int(found[1]) if found else 1


def refuse_newer(table: str, what: str, number: int, known: int) -> None:
    """Refuse to write a table in which a newer release has written what this one does not know.

    Args:
        table: The table's path.
        what: The file or key, for the error.
        number: Its format number.
        known: The newest one of its kind that this release knows.

    Raises:
        UnsupportedTableError: The number is newer.
    """
    if number > known:
        raise UnsupportedTableError(
            f"The table {table} has {what} in the format {number}, and this release of pyhudi knows formats up to "
            f"{known} there: a newer release writes to the table. This one still reads it.",
            "Upgrade pyhudi wherever it writes to this table, then write again.",
        )


def refuse_newer_names(table: str, paths: Iterable[str], known: int) -> None:
    """Refuse to write a table that has a file or folder whose name tells a newer format.

    Args:
        table: The table's path.
        paths: Of the files and folders.
        known: The newest format of their kind that this release knows.

    Raises:
        UnsupportedTableError: One of them is newer.
    """
    for path in paths:
        refuse_newer(table, path, number_of_name(path), known)
