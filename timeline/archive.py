"""What the archived timeline still tells: when each archived write was requested and when it completed.

Format: ``HoodieLSMTimelineInstant`` rows in Parquet files named after the least and greatest requested time in them
(``LSMTimeline``). Files that a newer manifest no longer names repeat what its own files hold.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import CorruptInstantError, StorageError
from ..storage.base import Storage, join, split
from ..storage.parallel import for_each
from .instants import WRITE_ACTIONS, Instant, State

_NAME = re.compile(r"\d+_\d+_\d\.parquet", re.ASCII)
_COLUMNS = ["instantTime", "completionTime", "action"]


def archived_writes(storage: Storage, folder: str) -> tuple[Instant, ...]:
    """Return the archived commits, deltacommits and replacecommits, in order of requested time.

    Args:
        storage: Rooted at the table.
        folder: The archive's folder, relative to the table's root.

    Raises:
        CorruptInstantError: A file of the archive cannot be read.
        StorageError: The archive was compacted meanwhile, or the store failed.
    """
    paths = [info.path for info in storage.list(folder) if _NAME.fullmatch(split(info.path)[1])]
    parts = for_each(storage, lambda path: _read(storage, path), paths)
    found = {one.requested_time: one for part in parts for one in part}
    return tuple(found[time] for time in sorted(found))


def _read(storage: Storage, path: str) -> list[Instant]:
    try:
        with pq.ParquetFile(storage.open_input(path)) as file:
            rows = file.read(_COLUMNS, use_threads=False)
        writes = rows.filter(pc.is_in(rows.column("action"), pa.array(sorted(WRITE_ACTIONS))))
        requested, completed, actions = (writes.column(name).cast(pa.string()).to_pylist() for name in _COLUMNS)
    except FileNotFoundError as error:
        raise StorageError(
            f"The archived timeline's file {join(storage.path, path)} was merged into another one while it was needed.",
            "Run it again.",
        ) from error
    except (pa.ArrowInvalid, OSError, KeyError) as error:
        raise CorruptInstantError(
            f"The archived timeline's file {join(storage.path, path)} cannot be read "
            f"({type(error).__name__}: {error}).",
            "Restore the file from a backup; until then nobody can tell what was written when.",
        ) from error
    return [
        Instant(time, action, State.COMPLETED, done)
        for time, done, action in zip(requested, completed, actions, strict=True)
    ]
