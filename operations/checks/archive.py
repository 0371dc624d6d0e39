"""The archived timeline: its manifests, its files, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping

from ...storage.base import FileInfo, Storage, join, split
from ...storage.parallel import for_each
from ...timeline.archive.lsm import Archive
from ...timeline.archive.manifest import (
    VERSION_FILE,
    ArchiveFile,
    Manifests,
    is_archive_file,
    manifest_number,
)
from ...timeline.instants import Instant
from .finding import Findings
from .sicknesses import (
    ARCHIVE_BROKEN_OFF,
    ARCHIVE_FILE_CORRUPT,
    ARCHIVE_FILE_LOST,
    ARCHIVE_MANIFEST,
    LINK,
    STRANGE_FILE,
)


def check_archive(storage: Storage, folder: str, findings: Findings, stale_s: float) -> tuple[Instant, ...]:
    """Look at an archive, and return the instants that can be read in it, in order of requested time.

    Raises:
        StorageError: The store cannot be reached.
    """
    content = storage.look(folder)
    for name in content.links:
        findings.add(LINK, f"{join(folder, name)} is a symbolic link.", file=join(folder, name))
    files = {split(info.path)[1]: info for info in content.files}
    for name, info in files.items():
        if name != VERSION_FILE and manifest_number(name) is None and not is_archive_file(name):
            findings.add(STRANGE_FILE, f"{info.path} is no file of an archive by its name.", file=info.path)
    listed: set[str] = set()
    with findings.turning(ARCHIVE_MANIFEST, file=folder):
        listed = _check_manifests(storage, folder, files, findings)
    for name, info in files.items():
        if is_archive_file(name) and name not in listed and storage.now() - info.modified > stale_s:
            findings.add(ARCHIVE_BROKEN_OFF, f"No manifest names {info.path}.", file=info.path)
    counting: tuple[ArchiveFile, ...] = ()
    with findings.turning(ARCHIVE_MANIFEST, file=folder):
        counting = tuple(one for one in Manifests(storage, folder).newest().files if one.name in files)
    parts = for_each(storage, lambda one: _instants(storage, folder, one, findings), counting)
    found = {one.identity: one for part in parts for one in part}
    return tuple(found[identity] for identity in sorted(found))


def _check_manifests(storage: Storage, folder: str, files: Mapping[str, FileInfo], findings: Findings) -> set[str]:
    """Return the names of the files that some manifest names, and hold the one against them that readers take."""
    numbers = sorted(number for name in files if (number := manifest_number(name)) is not None)
    manifests = Manifests(storage, folder)
    said, version = manifests.version(), join(folder, VERSION_FILE)
    if VERSION_FILE in files and said not in numbers:
        findings.add(ARCHIVE_MANIFEST, f"{version} says no number of a manifest.", file=version)
    elif VERSION_FILE not in files and numbers:
        findings.add(ARCHIVE_BROKEN_OFF, f"{version} is missing.", file=version)
    elif not numbers and any(map(is_archive_file, files)):
        findings.add(ARCHIVE_MANIFEST, f"{folder} has files of an archive and no manifest.", file=folder)
    current = said if said in numbers else max(numbers, default=0)
    listed: set[str] = set()
    for number in numbers:
        path, named = manifests.path(number), manifests.parse(number)
        if named is None:
            findings.add(
                ARCHIVE_MANIFEST if number == current else ARCHIVE_BROKEN_OFF, f"{path} is not whole.", file=path
            )
            continue
        listed |= {one.name for one in named}
        if number > current:
            findings.add(ARCHIVE_BROKEN_OFF, f"{path} lies ahead of {version}, which says {said}.", file=path)
        if number >= current:
            _check_named(folder, path, named, files, findings)
    return listed


def _check_named(
    folder: str, manifest: str, named: tuple[ArchiveFile, ...], files: Mapping[str, FileInfo], findings: Findings
) -> None:
    for one in named:
        info, path = files.get(one.name), join(folder, one.name)
        if info is None:
            findings.add(ARCHIVE_FILE_LOST, f"{path} is gone, which {manifest} names.", file=path)
        elif info.size != one.size:
            findings.add(ARCHIVE_FILE_LOST, f"{path} has {info.size} bytes; {manifest} says {one.size}.", file=path)


def _instants(storage: Storage, folder: str, file: ArchiveFile, findings: Findings) -> tuple[Instant, ...]:
    with findings.turning(ARCHIVE_FILE_CORRUPT, file=join(folder, file.name)):
        return Archive(storage, folder).instants_in([file])
    return ()
