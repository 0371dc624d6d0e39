"""The archived timeline: its manifest, its files, and what they hold."""

from __future__ import annotations

import re

from ...storage.base import FileInfo, Storage, join, split
from ...storage.bounds import parse_json
from ...storage.parallel import for_each
from ...timeline.archive.lsm import read_archived
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

_VERSION = "_version_"
_MANIFEST = re.compile(r"manifest_(\d{1,18})", re.ASCII)
_FILE = re.compile(r"\d+_\d+_\d\.parquet", re.ASCII)


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
        if name != _VERSION and not _MANIFEST.fullmatch(name) and not _FILE.fullmatch(name):
            findings.add(STRANGE_FILE, f"{info.path} is no file of an archive by its name.", file=info.path)
    manifests = {int(match[1]): name for name in files if (match := _MANIFEST.fullmatch(name))}
    current = _current(storage, folder, files, manifests, findings)
    listed: set[str] = set()
    for number, name in sorted(manifests.items()):
        listed |= _check_manifest(storage, files[name], files, findings, is_current=number == current)
    for name, info in files.items():
        late = storage.now() - info.modified > stale_s
        if _FILE.fullmatch(name) and name not in listed and late:
            findings.add(ARCHIVE_BROKEN_OFF, f"No manifest names {info.path}.", file=info.path)
    paths = [info.path for name, info in files.items() if _FILE.fullmatch(name)]
    parts = for_each(storage, lambda path: _instants(storage, path, findings), paths)
    found = {one.identity: one for part in parts for one in part}
    return tuple(found[identity] for identity in sorted(found))


def _current(
    storage: Storage, folder: str, files: dict[str, FileInfo], manifests: dict[int, str], findings: Findings
) -> int:
    """Return the number of the manifest that readers take, 0 where there is none."""
    greatest = max(manifests, default=0)
    path = join(folder, _VERSION)
    if _VERSION not in files:
        if manifests:
            findings.add(ARCHIVE_BROKEN_OFF, f"{path} is missing; readers take manifest_{greatest}.", file=path)
        elif any(map(_FILE.fullmatch, files)):
            findings.add(ARCHIVE_MANIFEST, f"{folder} has files and no manifest.", file=folder)
        return greatest
    with findings.turning(ARCHIVE_MANIFEST, file=path):
        text = storage.read(path).decode().strip()
        if not text.isdecimal() or int(text) not in manifests:
            findings.add(ARCHIVE_MANIFEST, f"{path} says {text[:40]!r}, of which there is no manifest.", file=path)
            return greatest
        if int(text) < greatest:
            ahead = f"manifest_{greatest} lies ahead of {path}, which says {text}"
            findings.add(ARCHIVE_BROKEN_OFF, f"{ahead}.", file=join(folder, manifests[greatest]))
        return int(text)
    return greatest


def _check_manifest(
    storage: Storage, manifest: FileInfo, files: dict[str, FileInfo], findings: Findings, *, is_current: bool
) -> set[str]:
    """Return the names of the files that a manifest names, and look for them if it is the one that readers take."""
    named: dict[str, int] = {}
    with findings.turning(ARCHIVE_MANIFEST if is_current else ARCHIVE_BROKEN_OFF, file=manifest.path):
        named = {str(one["fileName"]): int(one["fileLen"]) for one in parse_json(storage.read(manifest.path))["files"]}
    for name, size in named.items() if is_current else ():
        info = files.get(name)
        path = join(split(manifest.path)[0], name)
        if info is None:
            findings.add(ARCHIVE_FILE_LOST, f"{path} is gone, which {manifest.path} names.", file=path)
        elif info.size != size:
            findings.add(ARCHIVE_FILE_LOST, f"{path} has {info.size} bytes; {manifest.path} says {size}.", file=path)
    return set(named)


def _instants(storage: Storage, path: str, findings: Findings) -> tuple[Instant, ...]:
    with findings.turning(ARCHIVE_FILE_CORRUPT, file=path):
        return read_archived(storage, path)
    return ()
