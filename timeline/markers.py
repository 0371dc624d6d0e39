"""Markers: the names of the data files that an unfinished write may have left, by which it is rolled back.

Written in Apache Hudi's DIRECT form (one empty file each), read in that and in the TIMELINE_SERVER_BASED form
(``MARKERS0`` … with one name a line).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from ..storage.base import Storage, join

ROOT = ".hoodie/.temp"

_DIRECT = re.compile(r"(?P<path>.+)\.marker\.(?P<kind>CREATE|MERGE|APPEND)", re.DOTALL)
_BATCH = re.compile(r"MARKERS\d+", re.ASCII)


class MarkerType(str, Enum):
    """What a write does to the file that a marker names."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True)
class Marker:
    """One data file that a write has announced; its path is relative to the table's root."""

    path: str
    kind: MarkerType


def folder(instant_time: str) -> str:
    """Return the folder that holds an instant's markers."""
    return join(ROOT, instant_time)


def write_marker(storage: Storage, instant_time: str, data_path: str, kind: MarkerType) -> None:
    """Announce a data file before it is made; doing so twice is no error.

    Args:
        storage: Rooted at the table.
        instant_time: Requested time of the write.
        data_path: The data file, relative to the table's root.
        kind: CREATE for a new file group, MERGE for a new version of one.
    """
    storage.create(join(folder(instant_time), f"{data_path}.marker.{kind.value}"), b"")


def read_markers(storage: Storage, instant_time: str) -> list[Marker]:
    """Return what an instant's markers name, sorted by path, in either form."""
    root = folder(instant_time)
    found: set[Marker] = set()
    for info in storage.list(root, recursive=True):
        name = info.path[len(root) + 1 :]
        lines = _batch(storage, info.path) if _BATCH.fullmatch(name) else [name]
        for line in lines:
            match = _DIRECT.fullmatch(line)
            if match is not None:
                found.add(Marker(match["path"], MarkerType(match["kind"])))
    return sorted(found, key=lambda marker: (marker.path, marker.kind.value))


def delete_markers(storage: Storage, instant_time: str) -> None:
    """Delete an instant's markers."""
    storage.delete_folder(folder(instant_time))


def marked_instants(storage: Storage) -> list[str]:
    """Return the requested times of the instants that have markers, sorted."""
    return [name for name in storage.look(ROOT).folders if name.isdigit()]


def _batch(storage: Storage, path: str) -> list[str]:
    try:
        return storage.read(path).decode(errors="surrogateescape").split("\n")
    except FileNotFoundError:
        # The instant completed, or was rolled back, since the listing: its markers are gone.
        return []
