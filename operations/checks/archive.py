"""The archived timeline: its manifests, its files, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...storage.base import FileInfo, join, split
from ...storage.threads import for_each
from ...table.files.logs.log_archive import LogArchive, is_log_archive_file
from ...timeline.archive.archive import Archive
from ...timeline.archive.lsm import LsmArchive
from ...timeline.archive.manifest import (
    VERSION_FILE,
    ArchiveFile,
    Manifests,
    is_archive_file,
    manifest_number,
)
from ...timeline.instants import Instant
from .check_catalogue import (
    ARCHIVE_BROKEN_OFF,
    ARCHIVE_FILE_CORRUPT,
    ARCHIVE_FILE_LOST,
    ARCHIVE_LOST,
    ARCHIVE_MANIFEST,
    LINK,
    STRANGE_FILE,
)
from .finding import Check, Findings
from .subject import Subject


def check_archive(archive: Archive, findings: Findings) -> tuple[Instant, ...]:
    """Return the instants of the archive that can be read, in order of requested time; raises StorageError."""
    return _CHECKS[type(archive)](archive, findings)


def _instants_of_lsm(archive: Archive, findings: Findings) -> tuple[Instant, ...]:
    """Return the instants of an archive of versions from 8 on, whose manifests list its files; report what is wrong.

    Files that no manifest names, and files of the newest manifest that are missing, are findings.
    """
    storage, folder = findings.storage, archive.folder
    content = storage.look(folder)
    for name in content.links:
        findings.add(LINK, f"{join(folder, name)} is a symbolic link.", file=join(folder, name))
    files = {split(info.path)[1]: info for info in content.files}
    for name, info in files.items():
        if name != VERSION_FILE and manifest_number(name) is None and not is_archive_file(name):
            findings.add(STRANGE_FILE, f"{info.path} is no file of an archive by its name.", file=info.path)
    listed: set[str] = set()
    with findings.turning(ARCHIVE_MANIFEST, file=folder):
        listed = _ArchiveCheck(folder, files, findings).check()
    for name, info in files.items():
        if is_archive_file(name) and name not in listed and findings.is_old(info.modified):
            findings.add(ARCHIVE_BROKEN_OFF, f"No manifest names {info.path}.", file=info.path)
    # The files that readers use and that exist; `_ArchiveCheck` has reported those that are missing.
    counting: tuple[ArchiveFile, ...] = ()
    with findings.turning(ARCHIVE_MANIFEST, file=folder):
        counting = tuple(file for file in Manifests(storage, folder).newest().files if file.name in files)

    def instants(file: ArchiveFile) -> tuple[Instant, ...]:
        with findings.turning(ARCHIVE_FILE_CORRUPT, file=join(folder, file.name)):
            return LsmArchive(storage, folder).instants_in([file])
        # The file could not be read, which is a finding.
        return ()

    by_identity = {instant.identity: instant for part in for_each(storage, instants, counting) for instant in part}
    return tuple(by_identity[identity] for identity in sorted(by_identity))


def _instants_of_logs(archive: Archive, findings: Findings) -> tuple[Instant, ...]:
    """Return the instants of an archive of version 6, a folder of log files; report what is wrong."""
    storage, folder = findings.storage, archive.folder
    content, reader = storage.look(folder), LogArchive(storage, folder)
    for name in content.links:
        findings.add(LINK, f"{join(folder, name)} is a symbolic link.", file=join(folder, name))
    for info in content.files:
        if not is_log_archive_file(split(info.path)[1]):
            findings.add(STRANGE_FILE, f"{info.path} is no file of an archive by its name.", file=info.path)

    def instants(file: FileInfo) -> tuple[Instant, ...]:
        with findings.turning(ARCHIVE_FILE_CORRUPT, file=file.path):
            return reader.check(file)
        # The file could not be read, which is a finding.
        return ()

    files = [info for info in content.files if is_log_archive_file(split(info.path)[1])]
    by_identity = {instant.identity: instant for part in for_each(storage, instants, files) for instant in part}
    return tuple(by_identity[identity] for identity in sorted(by_identity))


def check_lost_archive(subject: Subject) -> None:
    """Look for signs of archived instants if the archive is gone."""
    if subject.lost_archive:
        folder = subject.config.archive_folder
        subject.findings.add(ARCHIVE_LOST, subject.lost_archive, file=folder)


@dataclass(frozen=True, slots=True)
class _ArchiveCheck:
    """Checks the manifests of an archive against its files; ``files`` are the files of the folder by their names."""

    folder: str
    files: Mapping[str, FileInfo]
    findings: Findings

    def check(self) -> set[str]:
        """Compare the files with the manifest that readers use; return the names that any manifest lists.

        Readers use the manifest that the version file names; if it names none, the newest.
        """
        manifests, files = Manifests(self.findings.storage, self.folder), self.files
        numbers = sorted(number for name in files if (number := manifest_number(name)) is not None)
        stated_number, version = manifests.version(), join(self.folder, VERSION_FILE)
        if VERSION_FILE in files and stated_number not in numbers:
            self._report(ARCHIVE_MANIFEST, version, "says no number of a manifest")
        elif VERSION_FILE not in files and numbers:
            self._report(ARCHIVE_BROKEN_OFF, version, "is missing")
        elif not numbers and any(map(is_archive_file, files)):
            self._report(ARCHIVE_MANIFEST, self.folder, "has files of an archive and no manifest")
        current = stated_number if stated_number in numbers else max(numbers, default=0)
        listed: set[str] = set()
        for number in numbers:
            path, listed_files = manifests.path(number), manifests.parse(number)
            if listed_files is None:
                self._report(ARCHIVE_MANIFEST if number == current else ARCHIVE_BROKEN_OFF, path, "is not whole")
                continue
            listed |= {file.name for file in listed_files}
            if number > current:
                self._report(ARCHIVE_BROKEN_OFF, path, f"lies ahead of {version}, which says {stated_number}")
            if number >= current:
                self._check_listed_files(path, listed_files)
        return listed

    def _check_listed_files(self, manifest: str, listed_files: tuple[ArchiveFile, ...]) -> None:
        """Report the files that a manifest lists and that are missing or of another size."""
        for file in listed_files:
            info, path = self.files.get(file.name), join(self.folder, file.name)
            if info is None:
                self._report(ARCHIVE_FILE_LOST, path, f"is gone, which {manifest} names")
            elif info.size != file.size:
                self._report(ARCHIVE_FILE_LOST, path, f"has {info.size} bytes; {manifest} says {file.size}")

    def _report(self, check: Check, path: str, what: str) -> None:
        self.findings.add(check, f"{path} {what}.", file=path)


_CHECKS: Mapping[type[Archive], Callable[[Archive, Findings], tuple[Instant, ...]]] = {
    LsmArchive: _instants_of_lsm,
    LogArchive: _instants_of_logs,
}
