"""Format numbers of what pyhudi adds to a table: a release does not write beside a newer format.

Each kind of file below ``.hoodie/.pyhudi`` has a number, and so has each group of ``pyhudi.*`` keys. The number is

- in the field ``format`` of JSON;
- in the key ``pyhudi.format`` among other keys;
- after ``.v`` at the end of the name of a folder, or of a file whose content is empty or not read.

Without a number the format is 1, as the release before the numbers wrote it. A number rises when older releases must
not write beside the new content; a new field that they may ignore does not raise it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..errors import UnsupportedTableError

FIELD = "format"
KEY = "pyhudi.format"

# The newest numbers that this release knows and writes.
OWNER = 1
# Format 3 takes first steps before the completed file, which were a rule of buckets alone in format 2, and it can set
# properties alone. Format 4 has more kinds of steps, sets properties after them, and can take steps alone. All other
# decisions keep the first format.
DECISION = 4
PLAIN_DECISION = 1
FAILURE = 1
CLEAN_NOTE = 1
WRITE_IDS = 1
ARCHIVED_INSTANTS = 1
WRITE_NOTE = 1
TICKET = 1
BUCKET_RULE = 1
WRITTEN_NOTE = 1
RESCALE = 1
REMOVED = 1
COMMIT_KEYS = 1
FOOTER_KEYS = 1
# All files and folders right below ``.hoodie/.pyhudi``, and all announcements, have had this format only.
NAMES = 1
# Of a table: a release raises it for a change that older releases must respect before they open any other file.
PROPERTIES = 1
# Format 1 has all seals in one folder, format 2 a folder for each hour.
SEALS = 2

_DIGITS = re.compile(r"[0-9]{1,9}")
_NAMED = re.compile(r".*\.v([0-9]{1,9})", re.DOTALL)


def numbered(fields: Mapping[str, object], number: int) -> dict[str, object]:
    """Return the fields of JSON with a format number."""
    return {FIELD: number, **fields}


def number_of(content: object) -> int:
    """Return the format number of parsed JSON; 1 without one."""
    number = content.get(FIELD) if isinstance(content, dict) else None
    return number if type(number) is int else 1


def number_of_keys(keys: Mapping[str, str]) -> int:
    """Return the format number among ``pyhudi.*`` keys; 1 without one."""
    text = keys.get(KEY, "")
    return int(text) if _DIGITS.fullmatch(text) else 1


def number_of_name(name: str) -> int:
    """Return the format number at the end of a name; 1 without one."""
    match = _NAMED.fullmatch(name)
    return int(match[1]) if match else 1


def refuse_newer(table: str, what: str, number: int, newest: int) -> None:
    """Raise UnsupportedTableError if ``what``, a file or key, has a newer format than this release knows."""
    if number > newest:
        raise UnsupportedTableError(
            f"The table {table} has {what} in the format {number}, and this release of pyhudi knows formats up to "
            f"{newest} there: a newer release writes to the table. This release still reads it.",
            "Upgrade pyhudi wherever it writes to this table, then write again.",
        )


def refuse_newer_names(table: str, paths: Iterable[str], newest: int) -> None:
    """Raise UnsupportedTableError if a file's or folder's name has a newer format."""
    for path in paths:
        refuse_newer(table, path, number_of_name(path), newest)
