"""How far earlier cleans have come, and in which partitions the next clean may find files to delete.

A clean has an instant only if it deleted files. Otherwise it notes how far it looked. Without the note, each write to a
table that only grows would list the whole table.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from ...errors import CorruptFileError
from ...storage.base import FileInfo, Storage, join
from ...storage.bounds import MOST_OF_A_NOTE, parse_json
from ...storage.threads import for_each
from ...table.config.property_keys import MERGE_ON_READ
from ...table.files.names import PARQUET, FileGroupId
from ...table.files.partitions import walk_partitions
from ...table.files.read_written import read_replaced
from ...table.files.view import FileView
from ...table.files.written import Written
from ...table.table import Table
from ...timeline import formats
from ...timeline.held import clustered_groups, pending_compactions
from ...timeline.instants import Instant
from ...timeline.metadata.codec import CommitFiles
from ...timeline.timeline import Timeline
from ...timeline.writers.owner import ROOT
from ..meeting.concurrency import COMPACTION, kind_of
from ..service_settings import KEEP_LATEST_FILE_VERSIONS, CleanSettings
from .clean_plan import Survey, earliest_to_retain, gives_way

NOTE = join(ROOT, "cleaned")
# Key of extraMetadata, in Apache Hudi's CleanerUtils, for the savepoints that a clean respected.
SAVEPOINTS = "savepointed_timestamps"
# What a write statistic says instead of the previous slice's instant if the file group is new.
_NO_SLICE = "null"


@dataclass(frozen=True, slots=True)
class CleanProgress:
    """How far the newest clean has come, also if it found nothing to delete.

    Attributes:
        earliest: Requested time of the instant from which on it kept everything, "" under a policy without such an
            instant.
        until: The completion time up to which it looked at writes.
        last_completed: Requested time of the newest completed write at that moment.
        savepoints: The times of the savepoints that it respected.
    """

    earliest: str
    until: str
    last_completed: str
    savepoints: tuple[str, ...]


def find_progress(timeline: Timeline) -> CleanProgress | None:
    """Return the progress of the newest clean, by its instant or its note; None if there is neither."""
    candidates = [
        progress
        for progress in (_progress_of_newest_clean(timeline), _read_note(timeline.storage))
        if progress is not None
    ]
    return max(candidates, key=lambda progress: progress.until, default=None)


def write_note(storage: Storage, progress: CleanProgress) -> None:
    """Note how far a clean has looked, for the next clean if this clean gets no instant."""
    content = formats.numbered(asdict(progress), formats.CLEAN_NOTE)
    storage.write(NOTE, json.dumps(content).encode(), durable=False)


def make_survey(
    table: Table,
    timeline: Timeline,
    settings: CleanSettings,
    progress: CleanProgress | None,
    listed: Mapping[str, tuple[FileInfo, ...]] | None = None,
) -> Survey:
    """List the partitions in which files were replaced, and read what a clean of them has to know.

    `settings` say which slices stay. `progress` is how far the newest clean has come; None for no clean before. It
    spares an incremental clean the partitions without later changes.
    If the policy keeps everything, it lists and reads nothing.
    `listed` has the files of all partitions, if the caller has listed them after the timeline.
    """
    earliest = earliest_to_retain(timeline, settings, int(time.time() * 1000), table.config.timezone)
    by_versions = settings.policy == KEEP_LATEST_FILE_VERSIONS
    savepoint_files = read_savepoints(timeline) if by_versions or earliest is not None else {}
    listings: Mapping[str, tuple[FileInfo, ...]] = {}
    written, held_groups = Written(), frozenset[FileGroupId]()
    if by_versions or earliest is not None:
        last_clean = progress if settings.incremental else None
        merges = table.config.table_type == MERGE_ON_READ
        partitions = _partitions_to_look_at(timeline, earliest, last_clean, savepoint_files, merges=merges)
        listings = (
            _files_of_partitions(table.storage, partitions)
            if listed is None
            else _listings_of_partitions(listed, partitions)
        )
    if listings:
        written = read_replaced(timeline)
        held_groups = frozenset(FileGroupId(*group) for group in clustered_groups(timeline))
    return Survey(
        timeline=timeline,
        earliest=earliest,
        listings=listings,
        view=FileView(timeline, written, listings),
        replaced_at=_replaced_at(written),
        savepoints=savepoint_files,
        held=held_groups,
        compacting=_base_times_to_merge(timeline) if listings else {},
        settings=settings,
    )


def _files_of_partitions(storage: Storage, partitions: Iterable[str] | None) -> dict[str, tuple[FileInfo, ...]]:
    """List the files of partitions, or of all partitions for None."""
    if partitions is None:
        return walk_partitions(storage)
    names = sorted(partitions)
    return dict(zip(names, map(tuple, for_each(storage, storage.list, names)), strict=True))


def _listings_of_partitions(
    listed: Mapping[str, tuple[FileInfo, ...]], partitions: Iterable[str] | None
) -> Mapping[str, tuple[FileInfo, ...]]:
    """Return the listings of some partitions among those listed before; all of them for None."""
    return listed if partitions is None else {path: listed[path] for path in sorted(partitions) if path in listed}


def _replaced_at(written: Written) -> dict[tuple[str, str], str]:
    """Return the time of the first instant that replaced each file group, by partition path and file id."""
    replaced_at: dict[tuple[str, str], str] = {}
    for instant in sorted(written.replaced_by, key=lambda instant: instant.requested_time, reverse=True):
        replaced_at |= dict.fromkeys(written.replaced_by[instant], instant.requested_time)
    return replaced_at


def read_savepoints(timeline: Timeline) -> dict[str, frozenset[str]]:
    """Return the names of the files that each completed savepoint keeps, by its time."""
    savepoints = [instant for instant in timeline.completed if instant.action == "savepoint"]
    bodies = for_each(timeline.storage, timeline.files.read_savepoint, savepoints)
    return {
        instant.requested_time: frozenset(
            name for part in body.partition_metadata.values() for name in part.savepoint_data_file
        )
        for instant, body in zip(savepoints, bodies, strict=True)
    }


def _base_times_to_merge(timeline: Timeline) -> dict[FileGroupId, str]:
    """Return the base times of the slices that pending compactions are going to merge, by file group."""
    base_times: dict[FileGroupId, str] = {}
    for instant, plan in pending_compactions(timeline).items():
        if not gives_way(kind_of(instant.action) or COMPACTION):
            continue
        for operation in plan.operations:
            group, time = (
                FileGroupId(operation.partition_path or "", operation.file_id or ""),
                operation.base_instant_time or "",
            )
            base_times[group] = min(time, base_times.get(group, time))
    return base_times


def _partitions_to_look_at(
    timeline: Timeline,
    earliest: Instant | None,
    progress: CleanProgress | None,
    saved: Iterable[str],
    *,
    merges: bool,
) -> frozenset[str] | None:
    """Return the partitions in which files were replaced since the last clean; None for all partitions.

    `earliest` is the first instant whose readers keep all that they see, and `progress` is that of the last clean. If
    the policy knows no such instant, or there was no clean, all partitions are looked at.
    `saved` are the times of the savepoints, and `merges` says that the table is merge-on-read.
    """
    savepoints = set(saved)
    if earliest is None or progress is None or not progress.earliest:
        return None
    # A write that a savepoint keeps stays while younger ones are archived, so it does not tell how far archiving came.
    active_times = (
        instant.requested_time
        for instant in timeline.instants
        if instant.is_write and instant.requested_time not in savepoints
    )
    # Archiving took writes that the last clean kept, or a savepoint was deleted: their files may be in any partition.
    if progress.earliest < next(active_times, "") or not savepoints.issuperset(progress.savepoints):
        return None
    window = [
        instant
        for instant in timeline.writes
        if progress.earliest <= instant.requested_time < earliest.requested_time
        # The last clean did not see a write that was requested before its earliest instant and completed after it.
        or (instant.requested_time < progress.earliest and instant.visible_since > progress.until)
    ]
    bodies = for_each(timeline.storage, timeline.files.read_written_files, window)
    return frozenset(partition for body in bodies for partition in _partitions_with_replaced_files(body, merges=merges))


def savepoint_times(extra: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the savepoints that a clean's extra metadata names; none without such an entry."""
    return tuple(time for time in (extra or {}).get(SAVEPOINTS, "").split(",") if time)


def _partitions_with_replaced_files(body: CommitFiles, *, merges: bool) -> Iterable[str]:
    """Yield the partitions in which a write replaced slices or file groups; `merges` for a merge-on-read table.

    A log file replaces nothing. A base file may replace a slice of log files, which its statistic does not mention.
    """
    yield from (partition for partition, ids in body.replaced.items() if ids)
    for partition, stats in body.stats.items():
        bases = (stat for stat in stats if not merges or (stat.get("path") or "").endswith(PARQUET))
        if any(merges or stat.get("prevCommit") != _NO_SLICE for stat in bases):
            yield partition


def _progress_of_newest_clean(timeline: Timeline) -> CleanProgress | None:
    """Return the progress that the newest completed clean with a body states; None without any."""
    from ...timeline.metadata.models import CleanMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

    for instant in reversed(timeline.completed):
        if instant.action != "clean":
            continue
        body = timeline.files.read_clean(instant)
        # Apache Hudi skips the empty file of a clean, too.
        if isinstance(body, CleanMetadata):
            return CleanProgress(
                body.earliest_commit_to_retain.strip(),
                instant.requested_time,
                body.last_completed_commit_timestamp,
                savepoint_times(body.extra_metadata),
            )
    return None


def _read_note(storage: Storage) -> CleanProgress | None:
    """Return the note; None if it is missing or unreadable, so that the clean looks at all partitions."""
    try:
        note = parse_json(storage.read(NOTE, MOST_OF_A_NOTE))
        formats.refuse_newer(storage.path, NOTE, formats.number_of(note), formats.CLEAN_NOTE)
        *texts, saved = (note[name] for name in ("earliest", "until", "last_completed", "savepoints"))
    except (FileNotFoundError, CorruptFileError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(saved, list) or not all(isinstance(value, str) for value in (*texts, *saved)):
        return None
    earliest, until, last_completed = texts
    return CleanProgress(earliest, until, last_completed, tuple(saved))
