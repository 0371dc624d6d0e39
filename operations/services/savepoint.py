"""A savepoint: keeps the files of the table as of one write from cleaning, and the write from being undone.

It completes by a decision of the table (`timeline/writers/decisions.py`), which any process may carry out.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial

from ...errors import PyHudiError, StorageError, UndoError
from ...storage.base import Storage, split
from ...table.config import check_supported
from ...table.files.file_group import FileSlice
from ...table.left_behind import refuse_instants_left_by_upgrade
from ...table.table import Table, open_table
from ...timeline.instants import Instant, State
from ...timeline.metadata.models import SavepointMetadata, SavepointPartition
from ...timeline.pending_undo import pending_rollbacks
from ...timeline.timeline import Timeline
from ...timeline.writers import decisions
from ...timeline.writers.decisions import DecisionKind
from ..meeting.concurrency import SAVEPOINT
from ..result import ServiceResult
from ..transaction.commit_path import abandon, complete
from ..transaction.instant_changes import remove_pending, remove_savepoint, start
from ..transaction.outcome import Outcome
from .preconditions import completed_write, refuse_restoring, slices_at
from .target_times import savepoint_at, write_until

_ACTION = "savepoint"


def savepoint(
    storage: Storage, instant_time: str | None = None, *, user: str = "", comment: str = "", dry_run: bool = False
) -> ServiceResult:
    """Keep the table as of one completed write, None for the newest; a second savepoint of it changes nothing.

    `instant_time` is the write's instant, or any other time for the newest write that was requested until then. The
    savepoint notes `user` and `comment` for people. With `dry_run` the result says how many files it would keep.
    Raises `UndoError` if the write or its files are missing, and `ConcurrentWriteError` beside a pending restore.
    """
    began = time.monotonic()
    table = _open(storage)
    named_time = None if instant_time is None else write_until(table, instant_time)
    timeline = table.timeline()
    at = _newest_write_time(timeline) if named_time is None else named_time
    if _find_savepoint(timeline, at, State.COMPLETED) is None:
        refuse_restoring(SAVEPOINT, timeline)
        # This raises if there is no such write.
        completed_write(SAVEPOINT, timeline, at)
        if dry_run:
            slices = _slices_to_keep(table, timeline, at)
            files = sum(len(file_slice.files) for file_slice in slices)
            return ServiceResult(storage.path, _ACTION, at, files=files, seconds=time.monotonic() - began, dry=True)
        # Make this before the inflight file: it refuses a user or a comment that is no valid Unicode.
        without_files = SavepointMetadata(
            savepointed_by=user, savepointed_at=int(time.time() * 1000), comments=comment, partition_metadata={}
        )
        # An archiving process either sees the savepoint and stops before it, or has announced how far it will archive:
        # `_outcome` looks for the announcement.
        pending = Instant(at, _ACTION, State.INFLIGHT)
        is_new = start(table, pending)
        try:
            complete(table, pending, partial(_outcome, table, at, without_files))
        except PyHudiError:
            # Take the inflight file back, so that nothing pending stays. Not if another process made it, since that
            # process may complete it, and not if the newest decision of the table completes it: the next process that
            # decides carries this out, and needs the file.
            with suppress(StorageError):
                if is_new and not _is_decided(table, pending):
                    remove_pending(table, pending)
            raise
    # Another process may have deleted the savepoint since.
    now = table.timeline()
    completed = _find_savepoint(now, at, State.COMPLETED)
    parts = () if completed is None else now.files.read_savepoint(completed).partition_metadata.values()
    files = sum(len(part.savepoint_data_file) for part in parts)
    return ServiceResult(storage.path, _ACTION, at, files=files, seconds=time.monotonic() - began, dry=dry_run)


def delete_savepoint(storage: Storage, instant_time: str, *, dry_run: bool = False) -> ServiceResult:
    """Delete a savepoint; the next clean takes the files that nothing else needs. With `dry_run` it only looks for it.

    `instant_time` is the instant of the write that the savepoint keeps, or a day, second or millisecond in which only
    one such write was requested. Raises `UndoError` if there is no such savepoint, or if several fit.
    """
    began = time.monotonic()
    table = _open(storage)
    instant_time = savepoint_at(table, instant_time)
    timeline = table.timeline()
    if _find_savepoint(timeline, instant_time) is None:
        savepoints = (
            ", ".join(instant.requested_time for instant in timeline.instants if instant.action == _ACTION) or "none"
        )
        raise UndoError(
            f"There is no savepoint {instant_time} of the table {storage.path} (savepoints: {savepoints}).",
            "Name an existing savepoint; a deleted savepoint need not be deleted again.",
        )
    result = ServiceResult(storage.path, "delete_savepoint", instant_time, instants=1, dry=dry_run)
    if dry_run:
        return replace(result, seconds=time.monotonic() - began)
    saved = Instant(instant_time, _ACTION, State.COMPLETED, "")
    # The savepoint may be the last decision, which the next process that decides would carry out again without this.
    abandon(table, lambda _: saved.at(State.INFLIGHT))
    remove_savepoint(table, saved)
    return replace(result, seconds=time.monotonic() - began)


def _open(storage: Storage) -> Table:
    """Open a table in which savepoints can be made; a savepoint does not need the metadata table up to date."""
    table = open_table(storage)
    check_supported(table.config, table.path, writing=True)
    refuse_instants_left_by_upgrade(table)
    return table


def _newest_write_time(timeline: Timeline) -> str:
    """Return the time of the newest completed write that is not being rolled back; raise `UndoError` without one."""
    victims = pending_rollbacks(timeline)
    writes = [instant.requested_time for instant in timeline.writes if instant.requested_time not in victims]
    if not writes:
        raise UndoError(
            f"The table {timeline.storage.path} has no completed write on its timeline that a savepoint could keep.",
            "Write to it first.",
        )
    return writes[-1]


def _find_savepoint(timeline: Timeline, at: str, state: State = State.REQUESTED) -> Instant | None:
    """Return the savepoint of a write if it has come at least to a state; None otherwise."""
    return next(
        (
            instant
            for instant in timeline.instants
            if (instant.requested_time, instant.action) == (at, _ACTION) and instant.state >= state
        ),
        None,
    )


def _is_decided(table: Table, pending: Instant) -> bool:
    """Return whether the table's newest decision is to complete a savepoint, whichever process made it."""
    decision = decisions.newest(table.storage)
    return (
        decision is not None
        and decision.kind == DecisionKind.MAKE
        and decision.instant.state == State.COMPLETED
        and decision.instant.identity == pending.identity
    )


def _outcome(table: Table, at: str, without_files: SavepointMetadata, timeline: Timeline) -> Outcome | None:
    """Return the outcome of a savepoint, with the files that it keeps; None if it is complete already.

    `without_files` is the savepoint's body without these files.
    """
    if _find_savepoint(timeline, at, State.COMPLETED) is not None:
        return None
    refuse_restoring(SAVEPOINT, timeline)
    completed_write(SAVEPOINT, timeline, at)
    names: dict[str, list[str]] = {}
    for file_slice in _slices_to_keep(table, timeline, at):
        names.setdefault(file_slice.partition_path, []).extend(split(path)[1] for path in file_slice.files)
    parts = {
        partition: SavepointPartition(partition_path=partition, savepoint_data_file=files)
        for partition, files in names.items()
    }
    return Outcome(without_files.model_copy(update={"partition_metadata": parts}), followed=False)


def _slices_to_keep(table: Table, timeline: Timeline, at: str) -> list[FileSlice]:
    """Return the slices that a savepoint keeps; raise `UndoError` if one of their files is gone."""
    return slices_at(SAVEPOINT, table, timeline, timeline.as_of_request(at), at, f"The savepoint {at}")
