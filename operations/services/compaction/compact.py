"""Compactions and log compactions planned and carried out, whoever planned them; which of the two, the settings say."""

from __future__ import annotations

import time
from collections.abc import Callable

from ....errors import UnsupportedTableError
from ....storage.base import Storage
from ....table.config.property_keys import MERGE_ON_READ
from ....table.files.output import Output
from ....table.table import Table
from ....timeline.timeline import Timeline
from ....timeline.writers.patience import Patience
from ...result import ServiceResult
from ..means import Means
from ..settings import CompactionSettings, LogCompactionSettings
from ..standing import open_for_service
from .compactor import Compaction
from .log_compactor import LogCompaction


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
    service = _service(open_merge_on_read(storage, metadata_enable), settings, Means(patience, Output()))
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

    Args:
        storage: Rooted at the table.
        settings: What is merged, or joined.
        means: How.
        metadata_enable: False where a costly metadata table may be dropped.
        due: Tells of a timeline whether it is due; None where the caller wants it now.

    Returns:
        What was merged, and what was skipped and why; no instant where there was nothing to be merged.

    Raises:
        CommitConflictError: A write or a compaction came in between.
        ConcurrentWriteError: It was asked for, and somebody else is at all that is pending; a restore is pending; or
            others decided first all the time.
        CorruptInstantError: A pending one has a plan that nobody can carry out.
        MissingFileError: A file is gone; what is pending stays so.
        UnsupportedTableError: The table has no log files, or is of a kind that pyhudi does not do.
        StorageError: The store failed; whoever comes next goes on with it.
    """
    began = time.monotonic()
    # A caller who asks for it by name has plans tried that have failed before, too.
    service = _service(open_merge_on_read(storage, metadata_enable), settings, means, insists=due is None)
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


def _service(
    table: Table, settings: CompactionSettings | LogCompactionSettings, means: Means, *, insists: bool = True
) -> Compaction | LogCompaction:
    if isinstance(settings, CompactionSettings):
        return Compaction(table, settings, means, insists=insists)
    return LogCompaction(table, settings, means, insists=insists)
