"""Markers: the names of the data files that an unfinished write may have made, from which a rollback works.

Written in Apache Hudi's TIMELINE_SERVER_BASED form (``MarkerUtils``): files ``MARKERS<n>`` with one name a line, here
one file for each task attempt, beside ``MARKERS.type``. Read in that and in the DIRECT form (one empty file a name).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import chain

from ...storage.base import Storage, join
from ...storage.threads import for_each

ROOT = ".hoodie/.temp"

_DIRECT = re.compile(r"(?P<path>.+)\.marker\.(?P<kind>CREATE|MERGE|APPEND)", re.DOTALL)
_BATCH = re.compile(r"MARKERS\d+", re.ASCII)
_LINE = re.compile(r"[^\n]+")
_TYPE_FILE = "MARKERS.type"
_TYPE = b"TIMELINE_SERVER_BASED"
# Where Java's BufferedReader sees the end of a line.
_LINE_BREAK = re.compile(r"[\n\r]")


class MarkerType(str, Enum):
    """What a write makes of a data file."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True)
class Marker:
    """A data file that a write has announced; its path is relative to the table's root."""

    path: str
    kind: MarkerType

    @property
    def name(self) -> str:
        return f"{self.path}.marker.{self.kind.value}"


@dataclass(frozen=True, slots=True)
class Markers:
    """The markers of one instant."""

    storage: Storage
    instant_time: str

    @property
    def folder(self) -> str:
        return join(ROOT, self.instant_time)

    def begin(self) -> None:
        """Write the form of the markers; must come before any marker, and may come twice."""
        self.storage.create(join(self.folder, _TYPE_FILE), _TYPE)

    def write(self, number: int, markers: Iterable[Marker]) -> None:
        """Announce data files before they are made.

        ``markers`` are all that a task attempt has announced so far, and ``number`` tells it from other attempts.
        """
        lines = []
        for marker in markers:
            # A line has no place for such a name, but a file of the DIRECT form has.
            if _LINE_BREAK.search(marker.name):
                self.storage.create(join(self.folder, marker.name), b"")
            else:
                lines.append(f"{marker.name}\n")
        self.storage.write(join(self.folder, f"MARKERS{number}"), "".join(lines).encode(errors="surrogateescape"))

    def create(self, markers: Iterable[Marker]) -> None:
        """Announce data files before they are made in the DIRECT form, which needs no number and no `begin`.

        If Apache Hudi takes the instant over, its timeline server uses the batch numbers itself.
        """
        for marker in markers:
            self.storage.create(join(self.folder, marker.name), b"")

    def read(self) -> list[Marker]:
        """Return all markers in both forms, sorted; lines that are no marker are passed over."""
        root = self.folder
        listed = [info.path for info in self.storage.list(root, recursive=True, strict=False)]
        batches = [path for path in listed if _BATCH.fullmatch(path[len(root) + 1 :])]
        texts = for_each(self.storage, self._read_batch, batches)
        # Do not build a list of lines: a file of nothing but line breaks has as many lines as bytes.
        lines = (line[0] for text in texts for line in _LINE.finditer(text))
        matches = (_DIRECT.fullmatch(line) for line in chain((path[len(root) + 1 :] for path in listed), lines))
        markers = {Marker(match["path"], MarkerType(match["kind"])) for match in matches if match is not None}
        return sorted(markers, key=lambda marker: (marker.path, marker.kind.value))

    def delete(self) -> None:
        self.storage.delete_folder(self.folder)

    def exist(self) -> bool:
        return self.storage.has_files(self.folder)

    def _read_batch(self, path: str) -> str:
        """Return the lines of a file of markers; none if the file is gone."""
        try:
            return self.storage.read(path).decode(errors="surrogateescape")
        except FileNotFoundError:
            # The instant completed, or was rolled back, since the listing, and its markers were deleted.
            return ""


def marked_instants(storage: Storage) -> list[str]:
    """Return the requested times of the instants that have a folder of markers."""
    return [name for name in storage.look(ROOT).folders if name.isdigit()]
