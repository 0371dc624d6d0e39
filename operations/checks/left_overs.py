"""Left-overs of instants, old locks, and wrong checksums."""

from __future__ import annotations

import zlib

import pyarrow as pa

from ...storage.base import Storage, join, sidecar
from ...storage.threads import for_each
from ...table.config import PROPERTIES_PATH
from ...table.files.partitions import metafile_of
from ...timeline.writers import heartbeat, markers, owner
from .check_catalogue import LEFT_OVER, LOCK_LEFT, STALE_CHECKSUM
from .subject import Subject

LOCK = ".hoodie/lock"
_MAGIC = b"crc\x00"
_CHUNK = 1 << 22


def check_left_overs(subject: Subject) -> None:
    """Look for markers, working folders and heartbeats of instants that are not pending, and for an old lock."""
    pending = {instant.requested_time for instant in subject.timeline.pending}
    listings = {
        "markers": (markers.ROOT, subject.storage.look(markers.ROOT).folders),
        "a working folder": (owner.ROOT, subject.storage.look(owner.ROOT).folders),
        "a heartbeat": (
            heartbeat.ROOT,
            subject.storage.look(heartbeat.ROOT).names,
        ),
    }
    for noun, (root, names) in listings.items():
        for time in names:
            path = join(root, time)
            # Only a name of digits is the time of an instant.
            if time.isdecimal() and time not in pending and _is_deserted(subject, path):
                subject.findings.add(
                    LEFT_OVER, f"{path}: {noun} of the instant {time}, which is not pending.", file=path, instant=time
                )
    if subject.findings.is_old(subject.storage.modified(LOCK)):
        subject.findings.add(LOCK_LEFT, f"{LOCK} is old.", file=LOCK)


def _is_deserted(subject: Subject, path: str) -> bool:
    """Return whether a left-over, and all files below it, have not changed for long."""
    times = [info.modified for info in subject.storage.list(path, recursive=True, strict=False)]
    folder_modified = subject.storage.modified(path)
    return subject.findings.is_old(max([*times, *([] if folder_modified is None else [folder_modified])], default=0.0))


def check_checksums(subject: Subject) -> None:
    """Compare files with the checksums that Hadoop keeps beside them on a local disk."""
    if subject.storage.remote:
        return
    paths = [PROPERTIES_PATH, *(info.path for info in subject.storage.look(subject.config.timeline_folder).files)]
    paths += [metafile_of(partition) for partition in subject.folders.partitions]
    if subject.deep:
        paths += [path for group in subject.live for path in group.newest.files]
    for_each(subject.storage, lambda path: _check_checksum(subject, path), paths)


def _check_checksum(subject: Subject, path: str) -> None:
    """Report a file that does not fit the checksum file beside it; a file without a checksum file passes."""
    checksum_path = sidecar(path)
    with subject.findings.turning(STALE_CHECKSUM, file=path):
        try:
            is_right = _has_checksums(subject.storage, path, subject.storage.read(checksum_path))
        except FileNotFoundError:
            return
        if not is_right:
            subject.findings.add(STALE_CHECKSUM, f"{path} does not fit {checksum_path}.", file=path)


def _has_checksums(storage: Storage, path: str, sums: bytes) -> bool:
    """Return whether a file has the checksums of Hadoop's ``ChecksumFileSystem``: a CRC-32 for every ``size`` bytes.

    ``sums`` is the content of the checksum file: 4 bytes that mark it, 4 bytes of the size, then the checksums.
    """
    size = int.from_bytes(sums[4:8], "big")
    if not sums.startswith(_MAGIC) or size < 1:
        return False
    at = 8
    with storage.open_input(path) as stream:
        while True:
            data = pa.py_buffer(stream.read(max(_CHUNK // size, 1) * size))
            if not data.size:
                return at == len(sums)
            checksums = b"".join(
                zlib.crc32(data.slice(start, min(size, data.size - start))).to_bytes(4, "big")
                for start in range(0, data.size, size)
            )
            if sums[at : at + len(checksums)] != checksums:
                return False
            at += len(checksums)
