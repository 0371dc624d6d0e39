"""From an instant's markers to the data files that may be deleted: those of that very instant, by the table's rule.

A marker is a line of text, and any process may write one. So files of other instants, and paths of no data file, stay.
"""

from __future__ import annotations

import logging

from ...storage.base import Storage
from ...timeline.writers.markers import Markers
from .file_group import DataFile, data_file
from .slice_rule import SliceRule

logger = logging.getLogger("pyhudi")

_META_FOLDER = ".hoodie"
# No store holds longer paths, nor paths with a NUL; some stores fail when they look for such a path.
_LONGEST_PATH = 1024
_LONGEST_NAME = 255
_MOST_WARNINGS = 20


def marked_files(storage: Storage, rule: SliceRule, instant_time: str) -> list[str]:
    """Return the data files of an instant that its markers name, sorted; all else that they name is logged.

    The caller may delete these files, so a path stays out unless ``rule``, by which the table names its files, says
    that the instant may have written it. ``instant_time`` is the requested time.
    """
    markers = Markers(storage, instant_time)
    marked_paths = sorted({marker.path for marker in markers.read()})
    other_paths = [path for path in marked_paths if not is_data_file_of(rule, instant_time, path)]
    for path in other_paths[:_MOST_WARNINGS]:
        logger.warning(
            "table %s: a marker in %s names %r, which is no data file of the instant %s; the file stays as it is",
            storage.path,
            markers.folder,
            path,
            instant_time,
        )
    if len(other_paths) > _MOST_WARNINGS:
        further = len(other_paths) - _MOST_WARNINGS
        logger.warning("table %s: markers in %s name %d more such files", storage.path, markers.folder, further)
    passed_over = set(other_paths)
    return [path for path in marked_paths if path not in passed_over]


def parse_data_file(path: str) -> DataFile | None:
    """Return what any text says as the path of a data file relative to the table's root; None if it is no such path."""
    parts = path.split("/")
    if {"", ".", ".."}.intersection(parts) or parts[0] == _META_FOLDER or "\0" in path:
        return None
    sizes = [len(part.encode(errors="surrogatepass")) for part in parts]
    if max(sizes) > _LONGEST_NAME or sum(sizes) + len(sizes) > _LONGEST_PATH:
        return None
    return data_file(path, changes=True)


def is_data_file_of(rule: SliceRule, instant_time: str, path: str) -> bool:
    """Return whether a path is that of a data file, which an instant may have written."""
    parsed = parse_data_file(path)
    return parsed is not None and rule.may_be_of(parsed, instant_time)
