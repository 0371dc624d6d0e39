"""Files that repairs moved out of a table's way: where they are, why, and when they go for good.

``removed/<time>/<path in the table>`` holds the files of one repair, and the note ``removed/<time>.json`` says why each
was moved. The note is made first and deleted last, so that its name reserves the time and its age is that of the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...errors import CorruptFileError
from ...storage.base import FileInfo, Storage, join, split
from ...storage.bounds import parse_json
from .. import formats
from .owner import ROOT

FOLDER = f"{ROOT}/removed"
KEPT_S = 7 * 24 * 3600.0
_NOTE = re.compile(r"([0-9]{14,17})\.json")
_FILES = "files"


@dataclass(frozen=True, slots=True)
class RemovedFiles:
    """The files that one repair moved; ``time`` names it."""

    storage: Storage
    time: str

    @property
    def folder(self) -> str:
        return join(FOLDER, self.time)

    @property
    def note(self) -> str:
        return f"{self.folder}.json"

    def place_of(self, path: str) -> str:
        """Return where a file of the table is kept."""
        return f"{self.folder}/{path}"

    def reserve(self) -> bool:
        """Make the note, which names no file yet; return False if another repair has this time."""
        return self.storage.create(self.note, _encoded({}))

    def add(self, reasons: Mapping[str, str]) -> None:
        """Note files before they are moved, by their paths in the table with the code of the finding of each."""
        self.storage.write(self.note, _encoded({**self.reasons(), **reasons}))

    def reasons(self) -> Mapping[str, str]:
        """Return why each file was moved; nothing if the note cannot be used. Raises for a newer format."""
        content = self._content()
        formats.refuse_newer(self.storage.path, self.note, formats.number_of(content), formats.REMOVED)
        files = content.get(_FILES) if isinstance(content, dict) else None
        return {str(path): str(code) for path, code in files.items()} if isinstance(files, dict) else {}

    def is_known(self) -> bool:
        """Return whether this release knows the note's format; a damaged note has none."""
        return formats.number_of(self._content()) <= formats.REMOVED

    def _content(self) -> object:
        """Return what the note holds; None if it is gone or damaged."""
        try:
            return parse_json(self.storage.read(self.note))
        except (FileNotFoundError, CorruptFileError, ValueError):
            return None

    def paths(self) -> list[str]:
        """Return the paths in the table of the files that are kept."""
        start = len(self.folder) + 1
        return [info.path[start:] for info in self.storage.list(self.folder, recursive=True)]

    def forget(self) -> None:
        """Delete the files of the repair, and then its note."""
        self.storage.delete_folder(self.folder)
        self.storage.delete(self.note)


def removed_times(storage: Storage) -> tuple[str, ...]:
    """Return the times of the repairs whose files are kept, in order."""
    return tuple(_notes_by_time(storage.list(FOLDER, strict=False)))


def expire(storage: Storage) -> None:
    """Delete the files of repairs that are older than `KEPT_S`; those of a newer release stay."""
    now = storage.file_time()
    for time, note in _notes_by_time(storage.list(FOLDER, strict=False)).items():
        removed = RemovedFiles(storage, time)
        if now - note.modified > KEPT_S and removed.is_known():
            removed.forget()


def _notes_by_time(listed: Iterable[FileInfo]) -> dict[str, FileInfo]:
    """Return the notes of repairs among some files, by the time that names the repair, in the files' order."""
    matches = ((_NOTE.fullmatch(split(info.path)[1]), info) for info in listed)
    return {match[1]: info for match, info in matches if match is not None}


def _encoded(reasons: Mapping[str, str]) -> bytes:
    """Return the content of a note."""
    return json.dumps(formats.numbered({_FILES: dict(reasons)}, formats.REMOVED)).encode()
