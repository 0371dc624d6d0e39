"""Partitions that a write opened and did not keep, made plain folders again."""

from __future__ import annotations

from collections.abc import Iterable

from ..storage.base import Storage, split
from ..table.names import BaseFileName
from ..table.partitions import metafile_of, parse_partition_metafile
from .commit_lock import commit_lock


def forget_partitions(storage: Storage, instant_time: str, partitions: Iterable[str]) -> None:
    """Take back the metafiles of the partitions that a write opened and nobody else has written to.

    Left behind, one would hide every partition below it that somebody makes later, at the root those of a whole table.

    Args:
        storage: Rooted at the table.
        instant_time: The write, which is over.
        partitions: Paths of partitions, whoever opened them.

    Raises:
        ConcurrentWriteError: Somebody else held the commit lock all the time.
    """
    opened = [partition for partition in partitions if _opened_by(storage, partition) == instant_time]
    if not opened:
        return
    # A writer that relied on one makes it again when it commits, under the lock too.
    with commit_lock(storage, instant_time) as lock:
        for partition in opened:
            if not any(BaseFileName.parse(split(info.path)[1]) for info in storage.list(partition)):
                lock.check()
                storage.delete(metafile_of(partition))


def _opened_by(storage: Storage, partition: str) -> str | None:
    """Return the instant that made a folder a partition, None where none did."""
    metafile = metafile_of(partition)
    try:
        return parse_partition_metafile(storage.read(metafile), metafile).instant_time
    except FileNotFoundError:
        return None
