"""Partitions that a write opened and did not keep, made plain folders again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ..storage.base import FileInfo, Storage, split
from ..storage.bounds import MOST_OF_A_NOTE
from ..storage.parallel import for_each
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
    paths = list(partitions)
    openers = for_each(storage, partial(_opened_by, storage), paths)
    opened = [path for path, opener in zip(paths, openers, strict=True) if opener == instant_time]
    if not opened:
        return
    # A writer that relied on one makes it again when it commits, under the lock too.
    with commit_lock(storage, instant_time) as lock:
        contents = for_each(storage, storage.list, opened)
        unused = [path for path, files in zip(opened, contents, strict=True) if not any(map(_is_base_file, files))]
        lock.check()
        storage.delete(*map(metafile_of, unused))


def _is_base_file(file: FileInfo) -> bool:
    return BaseFileName.parse(split(file.path)[1]) is not None


def _opened_by(storage: Storage, partition: str) -> str | None:
    """Return the instant that made a folder a partition, None where none did."""
    metafile = metafile_of(partition)
    try:
        return parse_partition_metafile(storage.read(metafile, MOST_OF_A_NOTE), metafile).instant_time
    except FileNotFoundError:
        return None
