"""Deletes the folder of a metadata table that is out of use, once no process can need it any more.

Queries of Apache Hudi read in the folder until they end, and its writers build a metadata table in it before they set
the property that names it. A reader of a half-deleted table would miss rows, so only folders of old files go.
"""

from __future__ import annotations

import logging
import uuid

from ...errors import StorageError
from ...storage.base import FileInfo, Storage, join, split
from ...storage.threads import for_each
from ...table.config import PROPERTIES_PATH, load_config
from ...table.files.partitions import metafile_of
from ...table.metadata.metadata_table import FOLDER
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.owner import Claim
from ..following.partitions_in_use import being_built, written_partitions
from ..following.retired_metadata import out_of_use_note
from ..meeting.concurrency import WRITE, kind_of
from ..transaction.commit_path import exclusive

logger = logging.getLogger("pyhudi")

KEPT_S = 24 * 3600.0
_INDEXING, _META = "indexing", ".hoodie"
# These names of files are the same in every metadata table.
_BY_NAME = frozenset({split(PROPERTIES_PATH)[1], split(metafile_of(""))[1]})
# As many keys as one delete request of a store of objects takes.
_AT_ONCE = 1000


def delete_unused_metadata(table: Table) -> None:
    """Delete the folders of those partitions of the metadata table that no process uses, or the whole metadata table.

    A folder goes if `hoodie.properties` names its partition neither in use nor being built, no indexing and no write of
    another engine is pending, and each of its files is a day old by the store's clock. A failure is only logged: the
    clean is complete by then.
    """
    try:
        if table.storage.has_files(FOLDER):
            exclusive(table, lambda _: _delete_what_is_unused(table))
    except StorageError:
        logger.warning("table %s: %s stays until the next clean", table.path, FOLDER, exc_info=True)


def _delete_what_is_unused(table: Table) -> None:
    """Delete unused folders of old files, unless a pending instant may need the metadata table."""
    storage, config = table.storage, load_config(table.storage)
    if being_built(config):
        return
    names = config.metadata_partitions
    unused = [] if not names else [name for name in storage.look(FOLDER).folders if name not in {*names, _META}]
    if names and not unused:
        return
    timeline = table.timeline()
    pending = next((instant for instant in timeline.pending if _may_need(timeline, instant)), None)
    if pending is not None:
        why = f"the {pending.action} {pending.requested_time} is pending"
        logger.info("table %s: what is unused of %s stays, as %s", table.path, FOLDER, why)
        return
    for folder, note in (
        [(FOLDER, None)] if not names else [(join(FOLDER, name), out_of_use_note(name)) for name in unused]
    ):
        _delete_if_old(table, folder, note)


def _delete_if_old(table: Table, folder: str, note: str | None) -> None:
    """Delete a folder, and the note that its partition went out of use, if the note and all files are a day old.

    `note` is the path of that note, None if the folder is the whole metadata table.
    """
    storage = table.storage
    listed_files = storage.list(folder, recursive=True, strict=False)
    times = [info.modified for info in listed_files]
    times += [noted for path in [note] if path is not None and (noted := storage.modified(path)) is not None]
    if not listed_files or _stamped_now(storage) - max(times) < KEPT_S:
        return
    # The properties of the metadata table go last: an indexing that begins meanwhile finds them, or makes its own.
    last_files = [info for info in listed_files if split(info.path)[1] in _BY_NAME]
    _delete(storage, folder, [info for info in listed_files if info not in last_files])
    if written_partitions(load_config(storage)) and note is None:
        return
    _delete(storage, folder, last_files)
    if note is not None:
        storage.delete(note, durable=False)
    logger.info(
        "table %s: deleted %s, which was out of use: %d files (%d bytes)",
        table.path,
        folder,
        len(listed_files),
        sum(info.size for info in listed_files),
    )


def _may_need(timeline: Timeline, instant: Instant) -> bool:
    """Return whether a pending instant may use a metadata table: an indexing, or a write of another engine."""
    if instant.action == _INDEXING:
        return True
    at_work = kind_of(instant.action) is WRITE or instant.state is State.INFLIGHT
    return instant.is_write and at_work and Claim(timeline.storage, instant.requested_time).owner() is None


def _stamped_now(storage: Storage) -> float:
    """Return the store's time, from a file just made: this machine's clock may be wrong."""
    path = join(FOLDER, f"{uuid.uuid4().hex}.now")
    storage.write(path, b"", durable=False)
    try:
        made = storage.modified(path)
    finally:
        storage.delete(path, durable=False)
    return 0.0 if made is None else made


def _delete(storage: Storage, folder: str, files: list[FileInfo]) -> None:
    """Delete files, and the folders that are empty then; a file that another process has just made stays."""
    paths = [info.path for info in files]
    units = [paths[at : at + _AT_ONCE] for at in range(0, len(paths), _AT_ONCE)]
    for_each(storage, lambda unit: storage.delete(*unit, durable=False), units)
    if not storage.remote:
        folders = sorted(_folders(storage, folder), key=lambda path: path.count("/"), reverse=True)
        storage.sweep(folders, KEPT_S, empty=True)


def _folders(storage: Storage, folder: str) -> list[str]:
    """Return a folder and all folders below it."""
    inner_folders = (join(folder, name) for name in storage.look(folder).folders)
    return [folder, *(path for inner in inner_folders for path in _folders(storage, inner))]
