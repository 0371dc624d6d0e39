"""Which files the archive consists of: numbered manifests, of which the greatest that is whole counts.

Format and steps: ``LSMTimeline`` and ``LSMTimelineWriter``. A file is in its place before a manifest names it, and a
manifest before ``_version_`` says its number. Apache Hudi's readers go by that number; pyhudi goes by the greatest
manifest, because a number can be written by somebody who slept, and an instant that leaves the timeline must not be
missing from both.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from ...errors import ConcurrentWriteError, CorruptInstantError
from ...storage.base import Storage, join, split
from ...storage.bounds import MOST_OF_A_NOTE, parse_json

VERSION_FILE = "_version_"
_FILE = re.compile(r"(?P<least>\d+)_(?P<greatest>\d+)_(?P<level>\d)\.parquet", re.ASCII)
_MANIFEST = re.compile(r"manifest_(?P<number>\d{1,9})", re.ASCII)
_ROUNDS = 100
# One that is being made in place, where a file system knows no links, is whole within moments.
_HALF_MADE_S = 5.0
_POLL_S = 0.1


@dataclass(frozen=True)
class ArchiveFile:
    """One file of the archive, told from its name.

    Attributes:
        name: ``<least requested time>_<greatest>_<level>.parquet``.
        size: Its bytes.
    """

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
        """No instant in it was requested before this time."""
        return self._parts[0]

    @property
    def greatest(self) -> str:
        """No instant in it was requested after this time."""
        return self._parts[1]

    @property
    def level(self) -> int:
        """How often its rows were merged."""
        return self._parts[2]

    def may_hold(self, least: str, greatest: str | None) -> bool:
        """Return whether an instant requested between two times may be in it; None for no end."""
        return least <= self.greatest and (greatest is None or self.least <= greatest)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of the archive at one moment.

    Attributes:
        number: Its number; 0 where no manifest tells them.
        files: In order of their names.
        greatest: The greatest number that any manifest has, whole or not.
    """

    number: int = 0
    files: tuple[ArchiveFile, ...] = ()
    greatest: int = 0

    @property
    def names(self) -> frozenset[str]:
        """The names of the files."""
        return frozenset(one.name for one in self.files)


def file_name(least: str, greatest: str, level: int) -> str:
    """Return the name of a file of the archive."""
    return f"{least}_{greatest}_{level}.parquet"


def is_archive_file(name: str) -> bool:
    """Return whether a file's name is that of a file of the archive."""
    return _FILE.fullmatch(name) is not None


def manifest_number(name: str) -> int | None:
    """Return the number of a manifest; None for another file."""
    match = _MANIFEST.fullmatch(name)
    return None if match is None else int(match["number"])


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests in the folder of one archive.

    Attributes:
        storage: Rooted at the table.
        folder: The archive's folder, relative to the table's root.
    """

    storage: Storage
    folder: str

    def path(self, number: int) -> str:
        """Return where a manifest is."""
        return join(self.folder, f"manifest_{number}")

    def newest(self) -> Manifest:
        """Return the files that the archive consists of now.

        Where no manifest tells it, as the newest is damaged or none is there, these are all files of the folder.
        """
        listing = self.storage.list(self.folder)
        names = [split(info.path)[1] for info in listing]
        numbers = sorted(number for name in names if (number := manifest_number(name)) is not None)
        for number in reversed(numbers):
            files = self.parse(number)
            if files is not None:
                return Manifest(number, files, numbers[-1])
            # A torn one that nobody has come to rely on was left by a crash; what came before it is the archive.
            if self.version() >= number:
                break
        found = (
            ArchiveFile(name, info.size) for name, info in zip(names, listing, strict=True) if is_archive_file(name)
        )
        return Manifest(0, tuple(found), numbers[-1] if numbers else 0)

    def parse(self, number: int) -> tuple[ArchiveFile, ...] | None:
        """Return the files that a manifest names; None where it is gone or not whole."""
        try:
            found = parse_json(self.storage.read(self.path(number)))
            files = [ArchiveFile(str(one["fileName"]), int(one["fileLen"])) for one in found["files"]]
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None
        if not all(is_archive_file(one.name) for one in files):
            return None
        return tuple(sorted(files, key=lambda one: one.name))

    def version(self) -> int:
        """Return the number that the file ``_version_`` says; -1 where it says none."""
        try:
            return int(self.storage.read(join(self.folder, VERSION_FILE), MOST_OF_A_NOTE))
        except (FileNotFoundError, ValueError):
            return -1

    def replace_files(
        self,
        added: Iterable[ArchiveFile],
        removed: Iterable[str] = (),
        *,
        is_whole: Callable[[ArchiveFile], bool],
    ) -> Manifest:
        """Make the next manifest, with some files more and others less, and let ``_version_`` say its number.

        Nothing is made where the newest manifest names the added files already, or not all of the removed ones any
        more.

        Args:
            added: Files that are in their place.
            removed: Names of files whose rows the added ones repeat.
            is_whole: Tells whether a file can be read; asked of files that no manifest names, where there is none.

        Returns:
            The newest manifest.

        Raises:
            CorruptInstantError: The newest manifest is damaged.
            ConcurrentWriteError: Others made the next one, again and again.
        """
        added, removed = tuple(added), frozenset(removed)
        for _ in range(_ROUNDS):
            known = self._base(is_whole)
            if (known.number and {one.name for one in added} <= known.names) or not removed <= known.names:
                self.point_at_newest()
                return known
            files = [*(one for one in known.files if one.name not in removed), *added]
            number = known.greatest + 1
            # A torn one may be in the making; its number is left out, for two who replaced it would undo each other.
            if known.greatest > known.number > 0 and self._is_whole_soon(known.greatest):
                continue
            if not self.storage.create(self.path(number), _encode(files)):
                continue
            newest = self.newest()
            if newest.greatest != number:
                # Whoever slept finds its number free again after others went on and cleaned up.
                self.storage.delete(self.path(number), durable=False)
                continue
            self.point_at_newest()
            return newest
        raise ConcurrentWriteError(
            f"Others changed the archive of the table {self.storage.path} first, {_ROUNDS} times in a row.",
            "Archive again.",
        )

    def point_at_newest(self) -> None:
        """Let ``_version_`` say the number of the newest manifest, and never a lesser one for longer than moments."""
        for _ in range(_ROUNDS):
            number = self.newest().number
            if number <= self.version():
                return
            self.storage.write(join(self.folder, VERSION_FILE), str(number).encode())

    def _base(self, is_whole: Callable[[ArchiveFile], bool]) -> Manifest:
        """Return the manifest on which the next one is built."""
        known = self.newest()
        if known.number or not known.files:
            return known
        if known.greatest:
            raise CorruptInstantError(
                f"The archive of the table {self.storage.path} cannot be continued: its newest manifest, "
                f"{self.path(known.greatest)}, does not name its files.",
                "Restore that file from a backup.",
            )
        # Somebody lost the manifests, or died before the first one and left a file that need not be whole.
        return replace(known, files=tuple(filter(is_whole, known.files)))

    def _is_whole_soon(self, number: int) -> bool:
        deadline = time.monotonic() + _HALF_MADE_S
        while time.monotonic() < deadline:
            if self.parse(number) is not None:
                return True
            time.sleep(_POLL_S)
        return False


def _encode(files: Iterable[ArchiveFile]) -> bytes:
    named = sorted({one.name: one.size for one in files}.items())
    return json.dumps({"files": [{"fileName": name, "fileLen": size} for name, size in named]}).encode()
