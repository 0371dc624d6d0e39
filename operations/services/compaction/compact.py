"""Compactions and log compactions planned and carried out, whoever planned them; which of the two, the settings say."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from ....errors import UnsupportedTableError
from ....storage.base import Storage
from ....table.config.property_keys import MERGE_ON_READ
from ....table.files.output import Output
from ....table.table import Table
from ....timeline.timeline import Timeline
from ....timeline.writers.patience import Patience
from ...result import ServiceResult
from ..means import Means
from ..preconditions import open_for_service
from ..settings import CompactionSettings, LogCompactionSettings
from .compactor import Compaction
from .log_compactor import LogCompaction

_SERVICES: Mapping[type, Callable[..., Compaction | LogCompaction]] = {
    CompactionSettings: Compaction,
    LogCompactionSettings: LogCompaction,
}


def schedule_compaction(
    storage: Storage,
    settings: CompactionSettings | LogCompactionSettings,
    patience: Patience,
    *,
    metadata_enable: bool | None = None,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Plan a compaction or a log compaction, where `due` says so of a timeline, for another call to carry it out.

    Returns:
        The requested instant and what it is going to merge; no instant where there is nothing to be merged, or where
        `skipped` names a write that has to be over first.

    Raises:
        PyHudiError: As `compact` does.
    """
    began = time.monotonic()
    table, means = open_merge_on_read(storage, metadata_enable), Means(patience, Output())
    service = _SERVICES[type(settings)](table, settings, means)
    return service.foretold(service.schedule(due), time.monotonic() - began)


def compact(
    storage: Storage,
    settings: CompactionSettings | LogCompactionSettings,
    means: Means,
    *,
    metadata_enable: bool | None = None,
    due: Callable[[Timeline], bool] | None = None,
) -> ServiceResult:
    """Carry out the compactions, or the log compactions, that are pending, then plan one and carry it out.

    A caller who asks for it by name gives no `due`, and has plans tried that have failed before, too.

    Raises:
        CommitConflictError: A write or a compaction came in between.
        ConcurrentWriteError: It was asked for, and another process is at all that is pending; a restore is pending; or
            other processes decided first all the time.
        CorruptInstantError: A pending plan is none that a process can carry out.
        MissingFileError: A file is gone; what is pending stays so.
        UnsupportedTableError: The table has no log files, or is of a kind that pyhudi does not do.
        StorageError: The store failed; the next call goes on with it.
    """
    began = time.monotonic()
    table = open_merge_on_read(storage, metadata_enable)
    service = _SERVICES[type(settings)](table, settings, means, insists=due is None)
    service.run(due)
    return service.result(time.monotonic() - began)


def open_merge_on_read(storage: Storage, metadata_enable: bool | None) -> Table:
    """Open a table whose log files can be merged.

    Raises:
        UnsupportedTableError: It has none.
    """
    table = open_for_service(storage, metadata_enable)
    if table.config.table_type != MERGE_ON_READ:
        raise UnsupportedTableError(
            f"The table {storage.path} is copy-on-write: it has no log files that could be compacted.",
            "Nothing is to be done: its base files are whole after each write.",
        )
    return table
