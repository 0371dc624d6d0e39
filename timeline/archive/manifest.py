"""The manifests of the archive: numbered lists of its files, of which the greatest complete manifest is valid.

Format and steps: ``LSMTimeline`` and ``LSMTimelineWriter``. A file is in its place before a manifest names it, and a
manifest before ``_version_`` has its number. Apache Hudi's readers use that number. pyhudi uses the greatest manifest,
because a stalled writer can write an old number, and an instant that leaves the timeline must not be missing from both.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...errors import ConcurrentWriteError, CorruptInstantError
from ...storage.base import Storage, join, split
from ...storage.bounds import MOST_OF_A_NOTE, parse_json

VERSION_FILE = "_version_"
_FILE = re.compile(r"(?P<least>\d+)_(?P<greatest>\d+)_(?P<level>\d)\.parquet", re.ASCII)
_MANIFEST = re.compile(r"manifest_(?P<number>\d{1,9})", re.ASCII)
_ROUNDS = 100
# Without hard links a manifest is written in place, and is complete within moments.
_HALF_MADE_S = 5.0
_POLL_S = 0.1


@dataclass(frozen=True)
class ArchiveFile:
    """A file of the archive: ``<least requested time>_<greatest>_<level>.parquet``, and its size in bytes."""

    name: str
    size: int

    @cached_property
    def _parts(self) -> tuple[str, str, int]:
        match = _FILE.fullmatch(self.name)
        if match is None:
            raise ValueError(f"{self.name!r} is no file of the archive")
        return match["least"], match["greatest"], int(match["level"])

    @property
    def least(self) -> str:
        return self._parts[0]

    @property
    def greatest(self) -> str:
        return self._parts[1]

    @property
    def level(self) -> int:
        return self._parts[2]

    def may_hold(self, least: str, greatest: str | None) -> bool:
        """Return whether a requested time in the file's span lies between two times; None for no upper bound."""
        return least <= self.greatest and (greatest is None or self.least <= greatest)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of the archive by name, and the ``number`` of the manifest that names them.

    With number 0 no manifest is valid, and the files are all those in the archive's folder. ``greatest`` is the number
    of the newest manifest, complete or not; 0 without any.
    """

    number: int = 0
    files: tuple[ArchiveFile, ...] = ()
    greatest: int = 0

    @property
    def names(self) -> frozenset[str]:
        return frozenset(file.name for file in self.files)


def file_name(least: str, greatest: str, level: int) -> str:
    return f"{least}_{greatest}_{level}.parquet"


def is_archive_file(name: str) -> bool:
    return _FILE.fullmatch(name) is not None


def manifest_number(name: str) -> int | None:
    """Return the number in a manifest's name; None for any other name."""
    match = _MANIFEST.fullmatch(name)
    return None if match is None else int(match["number"])


@dataclass(frozen=True, slots=True)
class Manifests:
    """Reads and makes the manifests of an archive."""

    storage: Storage
    folder: str

    def path(self, number: int) -> str:
        return join(self.folder, f"manifest_{number}")

    def newest(self) -> Manifest:
        """Return the newest valid manifest; without one, number 0 and all files of the archive in the folder."""
        listing = self.storage.list(self.folder)
        names = [split(info.path)[1] for info in listing]
        numbers = sorted(number for name in names if (number := manifest_number(name)) is not None)
        for number in reversed(numbers):
            files = self.parse(number)
            if files is not None:
                return Manifest(number, files, numbers[-1])
            # If `_version_` does not name it yet, a crash left it incomplete, and the manifest before it is valid. A
            # manifest that `_version_` names was complete, so it was damaged, and no older manifest is valid.
            if self.version() >= number:
                break
        archive_files = (
            ArchiveFile(name, info.size) for name, info in zip(names, listing, strict=True) if is_archive_file(name)
        )
        return Manifest(0, tuple(archive_files), numbers[-1] if numbers else 0)

    def parse(self, number: int) -> tuple[ArchiveFile, ...] | None:
        """Return the files that a manifest names; None if it is gone or incomplete."""
        try:
            manifest = parse_json(self.storage.read(self.path(number)))
            files = [ArchiveFile(str(entry["fileName"]), int(entry["fileLen"])) for entry in manifest["files"]]
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None
        if not all(is_archive_file(file.name) for file in files):
            return None
        return tuple(sorted(files, key=lambda file: file.name))

    def version(self) -> int:
        """Return the number in ``_version_``; -1 without a number there."""
        try:
            return int(self.storage.read(join(self.folder, VERSION_FILE), MOST_OF_A_NOTE))
        except (FileNotFoundError, ValueError):
            return -1

    def replace_files(
        self,
        added: Iterable[ArchiveFile],
        removed: Iterable[str] = (),
        *,
        needed: Callable[[Sequence[ArchiveFile]], Sequence[ArchiveFile]],
        fits: Callable[[Sequence[ArchiveFile]], bool] = lambda _: True,
    ) -> Manifest:
        """Make the next manifest, with files added and removed; return it, or the newest manifest if nothing is made.

        Its number is written to ``_version_``. Nothing is made if the newest manifest already names the added files, or
        does not name all removed files any more.

        Args:
            added: Files that are in their place already.
            removed: Names of files.
            needed: Returns those of the given files that together hold all their instants. The first manifest names
                these alone, as files whose makers died may repeat instants of others.
            fits: Returns whether the newest manifest's files allow the added files; else nothing is made.
        """
        added, removed = tuple(added), frozenset(removed)
        for _ in range(_ROUNDS):
            base = self._base()
            # With number 0 no manifest names the folder's files: make the first, even if they include the added files.
            all_named = {file.name for file in added} <= base.names
            if not removed <= base.names or (base.number and (all_named or not fits(base.files))):
                self.point_at_newest()
                return base
            files: Sequence[ArchiveFile] = [*(file for file in base.files if file.name not in removed), *added]
            if not base.number:
                # The folder's files may include the added files, which count once.
                files = needed(list({file.name: file for file in files}.values()))
            number = base.greatest + 1
            # Another process may be writing the incomplete manifest. Skip its number: two processes that replaced it
            # would undo each other's manifest.
            if base.greatest > base.number > 0 and self._wait_until_whole(base.greatest):
                continue
            if not self.storage.create(self.path(number), _encode(files)):
                # Another process made a manifest of this number first.
                continue
            newest = self.newest()
            if newest.greatest != number:
                # This process stalled: others made newer manifests and deleted that of this number meanwhile.
                self.storage.delete(self.path(number), durable=False)
                continue
            self.point_at_newest()
            return newest
        raise ConcurrentWriteError(
            f"Other processes changed the archive of the table {self.storage.path} first, {_ROUNDS} times in a row.",
            "Archive again.",
        )

    def point_at_newest(self) -> None:
        """Write the newest manifest's number to ``_version_``; a lesser number stays for moments only."""
        # Look again after each write: another process may have made a newer manifest, or written a lesser number.
        for _ in range(_ROUNDS):
            number = self.newest().number
            if number <= self.version():
                return
            self.storage.write(join(self.folder, VERSION_FILE), str(number).encode())

    def _base(self) -> Manifest:
        """Return the manifest that the next manifest continues: the newest, or number 0 before the first manifest.

        Raises CorruptInstantError if the folder has files and manifests, of which none is valid.
        """
        manifest = self.newest()
        if manifest.greatest and manifest.files and not manifest.number:
            raise CorruptInstantError(
                f"The archive of the table {self.storage.path} cannot be continued: its newest manifest, "
                f"{self.path(manifest.greatest)}, does not name its files.",
                "Restore that file from a backup.",
            )
        return manifest

    def _wait_until_whole(self, number: int) -> bool:
        """Wait some seconds for a manifest in the making; return whether it is whole then."""
        deadline = time.monotonic() + _HALF_MADE_S
        while time.monotonic() < deadline:
            if self.parse(number) is not None:
                return True
            time.sleep(_POLL_S)
        return False


def _encode(files: Iterable[ArchiveFile]) -> bytes:
    """Return a manifest's content."""
    sizes = sorted({file.name: file.size for file in files}.items())
    return json.dumps({"files": [{"fileName": name, "fileLen": size} for name, size in sizes]}).encode()
