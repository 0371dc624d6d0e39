"""Moves instants from the timeline into its archive, so that writes and reads of an old table cost no more.

Archiving locks no process out and decides nothing: several processes may take each step at once, and a process may
repeat the steps of a process that died. Decision 26 says why the steps come in this order.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from ...storage.base import FileInfo, Storage
from ...table.config import check_supported, load_config
from ...table.files.partitions import walk_partitions
from ...table.left_behind import refuse_instants_left_by_upgrade
from ...table.metadata.metadata_table import MetadataTable
from ...table.table import Table, open_table, refuse_other_version
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ...timeline.writers import announcements
from ...timeline.writers.markers import Markers, marked_instants
from ...timeline.writers.owner import SCRATCH
from ..following.kept_metadata import refuse_unsupported_partitions
from ..following.partitions_in_use import written_partitions
from ..meeting.concurrency import ARCHIVING, WRITE, Meeting, forbids, kind_of
from ..result import ServiceResult
from ..service_settings import ArchiveSettings, CleanSettings
from ..transaction.commit_path import exclusive, prepare_for_removed_files
from ..transaction.instant_changes import remove_archived
from ..transaction.left_overs import by_maker
from ..transaction.locks import HeldLock
from ..transaction.undone_metadata import prepare_removal
from ..words.at_work import in_words
from ..write_ids import NotedIds, note_write_ids, read_noted
from .archivable import archivable_prefix, before_replaced_files, candidates, retained_from


def merged_in_metadata(table: Table, timeline: Timeline, instants: Iterable[Instant]) -> tuple[Instant, ...]:
    """Return the instants that completed before the newest compaction of the metadata table.

    Until then, readers look up the instants of its log blocks on the timeline, so the others must wait. Returns all
    without a metadata table. Raises `TableConfigError` if the properties of the metadata table are missing.
    """
    # If other software builds a partition meanwhile, it begins with all complete instants.
    may_have_partitions = written_partitions(table.config) or any(
        each.action == "indexing" for each in timeline.instants
    )
    names = (
        written_partitions(load_config(table.storage)) if table.format.keeps_metadata and may_have_partitions else ()
    )
    if not names:
        return tuple(instants)
    last_compaction = MetadataTable.with_partitions(table, timeline, names).last_compaction
    return tuple(
        each
        for each in instants
        if last_compaction is not None and each.visible_since <= last_compaction.requested_time
    )


logger = logging.getLogger("pyhudi")

_ACTION = "archive"
# Up to so many instants may wait until the metadata table is compacted by its own rule.
_MOST_WAITING = 100


def archive(
    storage: Storage,
    settings: ArchiveSettings,
    cleaning: CleanSettings | None = None,
    *,
    dry_run: bool = False,
    timeline: Timeline | None = None,
    merge_metadata: Callable[[], object] | None = None,
) -> ServiceResult:
    """Move the oldest completed instants into the archive, if there are more than `settings` keeps.

    The next call continues a call that failed. Raises `UnsupportedTableError`, `CorruptInstantError`,
    `ConcurrentWriteError` or `StorageError`.

    Args:
        cleaning: Keeps the commits that readers may ask for by these settings, and two more.
        dry_run: Only return how many instants the call would move.
        timeline: The timeline of a moment ago, if the caller has listed it; it shows whether something is due.
        merge_metadata: Compacts the metadata table, for which instants wait; after a write only if many wait.
    """
    began = time.monotonic()
    table = open_table(storage)
    check_supported(table.config, table.path, writing=True)
    refuse_instants_left_by_upgrade(table)
    result = ServiceResult(storage.path, _ACTION, dry=dry_run)
    # Only a call after a write has a timeline, and it need not archive all at once.
    may_wait = _MOST_WAITING if timeline is not None else 0
    timeline = timeline or table.timeline()
    announced = announcements.announced(storage)
    # An announcement may be that of a process which died before it took the instants off the timeline.
    if len(timeline.writes) <= settings.max_commits and not announced:
        return replace(result, seconds=time.monotonic() - began)
    archived_already = _archived_already(table, timeline, announced)
    wanted = candidates(timeline, settings, retained_from(timeline, table.config.timezone, cleaning), archived_already)
    wanted = _without_waiting(table, timeline, wanted, merge_metadata, may_wait, dry_run=dry_run)
    wanted = before_replaced_files(timeline, wanted)
    if dry_run:
        return replace(result, instants=len(wanted), seconds=time.monotonic() - began)
    if wanted:
        refuse_unsupported_partitions(table.config, storage.path)
        announcements.announce(storage, wanted[-1].requested_time)
        result = _Round(table, settings, timeline.reload()).carry_out(wanted)
        timeline = timeline.reload()
    announcements.forget_before(storage, _first_write_time(timeline.instants))
    return replace(result, seconds=time.monotonic() - began)


def _without_waiting(
    table: Table,
    timeline: Timeline,
    wanted: tuple[Instant, ...],
    merge: Callable[[], object] | None,
    may_wait: int,
    *,
    dry_run: bool,
) -> tuple[Instant, ...]:
    """Return those of the `wanted` instants that need not wait for a compaction of the metadata table.

    If more than `may_wait` instants would wait, compact it first by `merge`; None never compacts. A `dry_run` returns
    them as after that compaction.
    """
    merged = merged_in_metadata(table, timeline, wanted) if wanted else wanted
    if merge is not None and len(wanted) - len(merged) > may_wait:
        if dry_run:
            return wanted
        merge()
        merged = merged_in_metadata(table, timeline, wanted)
    return archivable_prefix(timeline, merged) if len(merged) < len(wanted) else wanted


def with_what_holds_it_up(result: ServiceResult, storage: Storage, settings: ArchiveSettings) -> ServiceResult:
    """Return the result with the pending instant that stopped archiving in `skipped`, if too many writes stay."""
    table = open_table(storage)
    timeline = table.timeline()
    obstacles = [
        instant for instant in timeline.pending if forbids(Meeting(ARCHIVING, kind_of(instant.action) or WRITE))
    ]
    if len(timeline.writes) <= settings.max_commits or not obstacles:
        return result
    return replace(
        result, skipped=f"instants after {obstacles[0].requested_time} stay for {in_words(table, obstacles[0])}"
    )


def _archived_already(table: Table, timeline: Timeline, announced_times: Sequence[str]) -> frozenset[Instant]:
    """Return the instants in both timeline and archive: the archiving process died before it took them off.

    `announced_times` are the times up to which processes have announced to archive, in ascending order.
    """
    announced = [
        instant for instant in timeline.completed if announced_times and instant.requested_time <= announced_times[-1]
    ]
    return table.archive.known_of(announced)


@dataclass(frozen=True, slots=True)
class _Round:
    """One round of archiving, from its announcement on."""

    table: Table
    settings: ArchiveSettings
    timeline: Timeline

    def carry_out(self, wanted: Iterable[Instant]) -> ServiceResult:
        """Archive the instants that still may be archived."""
        # The newest write stays. A rollback may have undone the write that was the newest of the earlier listing.
        instants = archivable_prefix(self.timeline, {*wanted}.difference(self.timeline.writes[-1:]))
        if not instants:
            return ServiceResult(self.table.path, _ACTION)
        noted = read_noted(self.table.storage)
        prepare_for_removed_files(self.table)
        orphans = self._delete_orphans(_first_write_time({*self.timeline.instants} - {*instants}))
        count = exclusive(self.table, partial(self._move, instants, noted))
        logger.info("table %s: archived %d instants up to %s", self.table.path, count, instants[-1].requested_time)
        return ServiceResult(
            self.table.path,
            _ACTION,
            instants[-1].requested_time,
            instants=count,
            files=len(orphans),
            bytes=sum(info.size for info in orphans),
        )

    def _move(self, instants: Sequence[Instant], noted: NotedIds, lock: HeldLock) -> int:
        """Put instants into the archive and take them off the timeline; return how many it took off.

        `noted` are the ids of writes that earlier calls noted, read before the caller took the table's `lock`.
        """
        self.table.archive_writer.put(instants, self.timeline.files)
        # A concurrent upgrade has copied these instants elsewhere, and its archive does not have them.
        refuse_other_version(self.table)
        # A lookup of a write by its id reads this note instead of the archive.
        note_write_ids(self.table, noted=noted)
        count = self._take_off(instants, lock)
        self._merge_archive_files()
        return count

    def _delete_orphans(self, until: str) -> list[FileInfo]:
        """Delete data files of writes that never completed, from the timeline's first write up to a time.

        Once the timeline's first write is younger than these files, readers take them for files of archived writes.
        """
        storage, first_write = self.table.storage, _first_write_time(self.timeline.instants) or until
        files_by_maker = by_maker(self.table, self.timeline, chain.from_iterable(walk_partitions(storage).values()))
        files_by_write = {time: files for time, files in files_by_maker.items() if first_write <= time < until}
        # The timeline is read after the files: a write is on the timeline before its first file exists, and in the
        # archive before it leaves the timeline.
        now = self.timeline.reload()
        instant_times = {instant.requested_time for instant in (*self.timeline.instants, *now.instants)}
        if not files_by_write.keys() <= instant_times:
            instant_times.update(
                instant.requested_time for instant in self.table.archive.instants(min(files_by_write), until)
            )
        orphans = {time: files for time, files in files_by_write.items() if time not in instant_times}
        orphan_paths = {time: [info.path for info in files] for time, files in orphans.items()}
        prepare_removal(self.table, [path for paths in orphan_paths.values() for path in paths], _ACTION)
        self.table.format.undo.take_back(storage, orphan_paths)
        return [*chain.from_iterable(orphans.values())]

    def _take_off(self, instants: Sequence[Instant], lock: HeldLock) -> int:
        """Delete the timeline files of the instants that the archive holds by now, and return their number."""
        archived = self.table.archive.known_of(instants)
        files = self.timeline.files.paths()
        marked = frozenset(marked_instants(self.table.storage))
        for instant in archived:
            if instant.requested_time in marked:
                Markers(self.table.storage, instant.requested_time).delete()
        remove_archived(lock, [files.get(instant.identity, {}) for instant in instants if instant in archived])
        return len(archived)

    def _merge_archive_files(self) -> None:
        """Merge archive files if a level has a whole batch of them, and delete those that are not needed any more."""
        writer = self.table.archive_writer
        merged = writer.merge(SCRATCH, self.settings.batch)
        if merged:
            note_write_ids(self.table, merged)
        writer.tidy(merged)


def _first_write_time(instants: Iterable[Instant]) -> str:
    """Return the requested time of the first write among some instants; empty without a write."""
    return min((instant.requested_time for instant in instants if instant.is_write), default="")
