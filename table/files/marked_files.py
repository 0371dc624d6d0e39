"""From an instant's markers to the data files that may be deleted: those of that very instant, by their names.

A marker is a line of text that anybody may have written. One of an instant that is gone from the timeline is believed
as little as any other: files of other instants, and whatever is no data file, stay.
"""

from __future__ import annotations

import logging

from ...storage.base import Storage
from ...timeline.writers.markers import Markers, folder
from .names import BaseFileName, LogFileName, parse_data_name

logger = logging.getLogger("pyhudi")

_META_FOLDER = ".hoodie"
# Longer ones, and those with a NUL, no store holds; some fail at the question.
_LONGEST_PATH = 1024
_LONGEST_NAME = 255
_MOST_WARNINGS = 20


def marked_files(storage: Storage, instant_time: str) -> list[str]:
    """Return the data files of an instant that its markers name, sorted; all else that they name is logged.

    Args:
        storage: Rooted at the table.
        instant_time: Requested time of the instant, which each file has in its name.
    """
    named = sorted({marker.path for marker in Markers(storage, instant_time).read()})
    strange = [path for path in named if not is_data_file_of(instant_time, path)]
    for path in strange[:_MOST_WARNINGS]:
        logger.warning(
            "table %s: a marker in %s names %r, which is no data file of the instant %s; the file is left as it is",
            storage.path,
            folder(instant_time),
            path,
            instant_time,
        )
    if len(strange) > _MOST_WARNINGS:
        more = len(strange) - _MOST_WARNINGS
        logger.warning("table %s: markers in %s name %d more such files", storage.path, folder(instant_time), more)
    left = set(strange)
    return [path for path in named if path not in left]


def parse_data_file(path: str) -> BaseFileName | LogFileName | None:
    """Return what the path of a data file says, relative to the table's root; None where it is no data file's.

    Args:
        path: Whatever somebody wrote down.
    """
    parts = path.split("/")
    if {"", ".", ".."}.intersection(parts) or parts[0] == _META_FOLDER or "\0" in path:
        return None
    sizes = [len(part.encode(errors="surrogatepass")) for part in parts]
    if max(sizes) > _LONGEST_NAME or sum(sizes) + len(sizes) > _LONGEST_PATH:
        return None
    return parse_data_name(parts[-1])


def is_data_file_of(instant_time: str, path: str) -> bool:
    """Return whether a path is one that the writer of an instant gives to its own data files."""
    parsed = parse_data_file(path)
    return parsed is not None and parsed.instant_time == instant_time
