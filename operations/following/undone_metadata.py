"""Deletes what undone instants wrote to the metadata table, before they leave the table's timeline.

First the log files of an instant are deleted, by a listing, and then its instant of the metadata table. While the
instant is pending on the table's timeline, readers skip its log files, but Apache Hudi trusts them again once a
completed rollback names it (``HoodieTableMetadataUtil.getValidInstantTimestamps``). Records in base files cannot be
deleted: a compaction may have merged them, or a partition was built later. Then the partitions first go out of use.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from ...errors import StorageError
from ...storage.base import join, split
from ...storage.threads import for_each
from ...table.files.file_group import data_file
from ...table.metadata.metadata_table import FOLDER, MetadataTable, begins_partitions, instants_of_metadata
from ...table.table import Table
from ...timeline.held import COMPACTING
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from .metadata_commit import ACTION

logger = logging.getLogger("pyhudi")

INDEXING = "indexing"
_COMPACTED = "commit"


def take_back(table: Table, times: Collection[str]) -> None:
    """Delete what instants of a table wrote to its metadata table, by their requested times; safe to call twice.

    A pending compaction of the metadata table that names such log files is given up with them. The caller holds the
    table's lock.
    """
    if not table.format.keeps_metadata:
        return
    files = instants_of_metadata(table)
    try:
        paths = files.paths()
    except StorageError:
        folder, name = split(FOLDER)
        if name not in table.storage.look(folder).links:
            raise
        # The folder is a link, and no write of pyhudi follows links.
        return
    states_of_undone = [states for time in sorted(times) if (states := paths.get(f"{time}.{ACTION}"))]
    if not states_of_undone:
        # These instants wrote nothing there.
        return
    # A timeline has the greatest state of each instant.
    newest_instants = {
        identity: files.layout.parse(split(states[max(states)][0])[1]) for identity, states in paths.items()
    }
    timeline = Timeline(tuple(instant for instant in newest_instants.values() if instant is not None), files)
    plans = _plans_that_may_name(timeline, times)
    for plan in plans:
        logger.warning(
            "table %s: gave up the %s %s of its metadata table", table.path, plan.action, plan.requested_time
        )
        for state in (State.INFLIGHT, State.REQUESTED):
            table.storage.delete(*paths[plan.identity].get(state, ()))
    # The files of the plans go, too: a compaction may have written base files before it broke off.
    gone_times = {*times, *(plan.requested_time for plan in plans)}
    table.storage.delete(*_files_of(table, gone_times))
    for state in (State.COMPLETED, State.INFLIGHT, State.REQUESTED):
        table.storage.delete(*chain.from_iterable(states.get(state, ()) for states in states_of_undone))


def take_back_if_archived(table: Table, time: str) -> None:
    """Delete what a late process made again of an instant that is in the archive of the metadata table.

    As the first instant of that timeline, it would make readers take instants archived after it for uncommitted.
    """
    if table.format.keeps_metadata:
        archived_instants = instants_of_metadata(table).archive.instants(time, time)
        if any(instant.action == ACTION for instant in archived_instants):
            take_back(table, [time])


def is_in_base_files(table: Table, timeline: Timeline, time: str) -> bool:
    """Return whether base files of the metadata table may hold what the write of a requested time wrote there.

    If the write is pending on the table's timeline and wrote nothing there yet, none holds anything.
    """
    metadata = Timeline.load(instants_of_metadata(table))
    own_commit = next(
        (each for each in metadata.completed if (each.requested_time, each.action) == (time, ACTION)), None
    )
    if own_commit is None:
        # The commit of a completed write may be archived there.
        victim = timeline.write_at(time)
        return victim is not None and victim.state == State.COMPLETED
    return any(moment > own_commit.visible_since for moment in _moments_of_bases(metadata, timeline))


def take_back_gone(table: Table, metadata: MetadataTable) -> bool:
    """Delete what writes left in the metadata table that the table no longer has, and return whether there was any.

    Another engine's write may have died there, and a release without the metadata table may have rolled it back. A
    write that is also pending on the table's timeline may live, and readers skip its records. A write that the table
    has undone may have files there again, from a process that slept while it published them, and then died.
    """
    is_pending_gone = _take_back_pending(table, metadata)
    return _take_back_published_again(table, metadata) or is_pending_gone


def _take_back_pending(table: Table, metadata: MetadataTable) -> bool:
    """Delete what writes left pending in the metadata table that the table lacks; return whether there were any."""
    absent_times = _absent_times(
        (each.requested_time for each in metadata.timeline.pending if _is_of_table(each)), metadata.of_table
    )
    # A write may have begun between the two listings.
    gone_times = [
        time for time in absent_times and _absent_times(absent_times, table.timeline()) if not table.archive.holds(time)
    ]
    if gone_times:
        logger.warning("table %s: took back %s, pending in its metadata table alone", table.path, ", ".join(gone_times))
        take_back(table, gone_times)
    return bool(gone_times)


def _take_back_published_again(table: Table, metadata: MetadataTable) -> bool:
    """Delete the files of writes in the metadata table that a rollback or restore of the table had undone before.

    It returns whether there were any. Apache Hudi would trust them, because the rollback names the write.
    """
    timeline = metadata.of_table
    undos = [each for each in timeline.completed if each.is_undo]
    if not undos:
        return False
    newest_undo = max(each.requested_time for each in undos)

    def may_be_undone(time: str) -> bool:
        return time < newest_undo and _is_absent(time, timeline)

    times = [each.requested_time for each in metadata.timeline.completed if each.action == ACTION]
    candidates = frozenset(filter(may_be_undone, times))
    logs = [log for log in metadata.listed_logs() if log.is_counted(may_be_undone)]
    if not candidates and not logs:
        # So it is as a rule, and no undo need be read.
        return False
    undone_times = {*chain.from_iterable(map(timeline.files.read_undone, undos))}
    gone_times = candidates & undone_times
    gone_logs = [log.path for log in logs if log.is_counted(undone_times.__contains__)]
    if not gone_times and not gone_logs:
        return False
    logger.warning(
        "table %s: deleted files in its metadata table of undone writes: %s",
        table.path,
        ", ".join([*gone_logs, *sorted(gone_times)]),
    )
    table.storage.delete(*gone_logs)
    take_back(table, gone_times)
    return True


def _absent_times(times: Iterable[str], timeline: Timeline) -> list[str]:
    """Return the times at which the table has no instant (`_is_absent`)."""
    return [time for time in times if _is_absent(time, timeline)]


def _is_absent(time: str, timeline: Timeline) -> bool:
    """Return whether the table has no instant of a time, neither on the timeline nor committed before it."""
    return timeline.find(time) is None and not timeline.is_committed(time)


def _is_of_table(instant: Instant) -> bool:
    """Return whether an instant of the metadata table belongs to an instant of the table."""
    return instant.action == ACTION and not begins_partitions(instant.requested_time)


def _moments_of_bases(metadata: Timeline, timeline: Timeline) -> Iterator[str]:
    """Yield the moments up to which base files of the metadata table hold what completed there."""
    for instant in metadata.completed:
        if instant.action == _COMPACTED:
            yield instant.requested_time
        elif instant.action == ACTION and not _is_change(timeline, instant.requested_time):
            # It built partitions from a listing, or merged log files.
            yield instant.visible_since


def _is_change(timeline: Timeline, time: str) -> bool:
    """Return whether a delta commit of the metadata table at a time belongs to an instant that changed data files."""
    instant = timeline.find(time)
    return instant is not None and instant.action != INDEXING


def _plans_that_may_name(metadata: Timeline, times: Collection[str]) -> list[Instant]:
    """Return the pending compactions of the metadata table that were planned after any of some instants completed."""
    completion_times = [each.visible_since for each in metadata.completed if each.requested_time in times]
    plans = [instant for instant in metadata.pending if instant.action in COMPACTING]
    return [plan for plan in plans if plan.requested_time > min(completion_times, default=plan.requested_time)]


def _files_of(table: Table, times: Collection[str]) -> list[str]:
    """Return the files of some instants in all partitions of the metadata table, those out of use included."""
    storage, rule = table.storage, table.format.slices
    folders = [join(FOLDER, name) for name in storage.look(FOLDER).folders if not name.startswith(".")]
    listed_files = chain.from_iterable(for_each(storage, storage.list, folders))
    files = [file for info in listed_files if (file := data_file(info.path)) is not None]
    return [file.path for file in files if any(rule.may_be_of(file, time) for time in times)]
