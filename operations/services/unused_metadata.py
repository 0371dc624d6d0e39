"""The folder of Apache Hudi's metadata table once it is out of use: it stays for as long as a process may need it.

Queries of Apache Hudi read in the folder until they end, and its writers build a metadata table in it before they set
the property that names it. A reader that found a half-built table would miss rows, so nothing but old files may go.
"""

from __future__ import annotations

import logging
import uuid

from ...errors import StorageError
from ...storage.base import FileInfo, Storage, join
from ...storage.parallel import for_each
from ...table.config import load_config
from ...table.config.property_keys import METADATA_INFLIGHT
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.owner import Claim
from ..transaction.commit_path import exclusive
from ..transaction.concurrency import WRITE, kind_of
from ..transaction.followers import METADATA_TABLE

logger = logging.getLogger("pyhudi")

KEPT_S = 24 * 3600.0
_INDEXING = "indexing"
# As many keys as one delete request of a store of objects takes.
_AT_ONCE = 1000


def delete_unused_metadata(table: Table) -> None:
    """Delete the folder of a metadata table that no process uses any more; a failure is logged, as the clean is over.

    It goes where `hoodie.properties` names none of its partitions, neither in use nor being built, no indexing and no
    write of another engine is pending, and each of its files is a day old by the clock that stamps them.
    """
    try:
        if table.storage.has_files(METADATA_TABLE):
            exclusive(table, lambda _: _delete_if_unused(table))
    except StorageError:
        logger.warning("table %s: %s stays until the next clean", table.path, METADATA_TABLE, exc_info=True)


def _delete_if_unused(table: Table) -> None:
    storage, config = table.storage, load_config(table.storage)
    if config.metadata_partitions or config.properties.get(METADATA_INFLIGHT, "").strip():
        return
    timeline = table.timeline()
    pending = next((instant for instant in timeline.pending if _may_need(timeline, instant)), None)
    if pending is not None:
        why = f"the {pending.action} {pending.requested_time} is pending"
        logger.info("table %s: %s stays, as %s", table.path, METADATA_TABLE, why)
        return
    files = storage.list(METADATA_TABLE, recursive=True, strict=False)
    newest = max((info.modified for info in files), default=0.0)
    if not files or _stamped_now(storage) - newest < KEPT_S:
        return
    _delete(storage, files)
    logger.info(
        "table %s: deleted %s, which was out of use: %d files (%d bytes)",
        table.path,
        METADATA_TABLE,
        len(files),
        sum(info.size for info in files),
    )


def _may_need(timeline: Timeline, instant: Instant) -> bool:
    """Return whether a pending instant may read or build a metadata table: an indexing, or work of another engine."""
    if instant.action == _INDEXING:
        return True
    at_work = kind_of(instant.action) is WRITE or instant.state is State.INFLIGHT
    return instant.is_write and at_work and Claim(timeline.storage, instant.requested_time).owner() is None


def _stamped_now(storage: Storage) -> float:
    """Return the time of a file just made: clocks of machines are wrong at times."""
    path = join(METADATA_TABLE, f"{uuid.uuid4().hex}.now")
    storage.write(path, b"", durable=False)
    try:
        made = storage.modified(path)
    finally:
        storage.delete(path, durable=False)
    return 0.0 if made is None else made


def _delete(storage: Storage, files: list[FileInfo]) -> None:
    """Delete files, and the folders that are empty then: a file that another process has just made stays."""
    paths = [info.path for info in files]
    units = [paths[at : at + _AT_ONCE] for at in range(0, len(paths), _AT_ONCE)]
    for_each(storage, lambda unit: storage.delete(*unit, durable=False), units)
    if not storage.remote:
        folders = sorted(_folders(storage, METADATA_TABLE), key=lambda path: path.count("/"), reverse=True)
        storage.sweep(folders, KEPT_S, empty=True)


def _folders(storage: Storage, folder: str) -> list[str]:
    below = (join(folder, name) for name in storage.look(folder).folders)
    return [folder, *(path for inner in below for path in _folders(storage, inner))]
