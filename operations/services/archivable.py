"""Which instants may leave the timeline: a prefix of the completed instants that no reader or service still needs.

Rules as in ``TimelineArchiverV2`` and ``ArchivalUtils``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ...storage.base import FileInfo
from ...storage.threads import for_each
from ...table.files.file_group import data_file
from ...timeline.delta_commits import since_compaction
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ..meeting.concurrency import ARCHIVING, Meeting, Verdict, judge, kind_of, known_of
from ..service_settings import ArchiveSettings, CleanSettings
from .clean_plan import earliest_to_retain

# These are archived with the writes around them. Apache Hudi archives no other actions than these and writes.
_ARCHIVED_WITH_WRITES = frozenset({"clean", "rollback"})
_INDEXING = "indexing"
# So many writes stay on the timeline beside the writes that the clean retains.
_MORE_THAN_RETAINED = 2


def retained_from(timeline: Timeline, zone: str, cleaning: CleanSettings | None) -> str:
    """Return the requested time from which on cleaning keeps what readers may ask for, "" for no limit."""
    if cleaning is None:
        return ""
    earliest = earliest_to_retain(timeline, cleaning, int(time.time() * 1000), zone)
    return earliest.requested_time if earliest else ""


def candidates(
    timeline: Timeline, settings: ArchiveSettings, retained: str, archived_already: Iterable[Instant] = ()
) -> tuple[Instant, ...]:
    """Return the instants that may be archived, in order of requested time.

    `timeline` is that of the table, and `settings` say how many writes stay on it. Cleaning keeps what readers may ask
    for from the time `retained` on; empty for no limit. An archiving process put the instants `archived_already` into
    the archive before it died, so writes up to these are candidates, too.
    """
    writes = timeline.writes
    kept_writes = max(settings.min_commits, 1)
    if retained:
        kept_writes = max(
            kept_writes, sum(instant.requested_time >= retained for instant in writes) + _MORE_THAN_RETAINED
        )
    # However many writes stay, the difference of the two settings comes on top of them before archiving begins.
    most_writes = settings.max_commits + kept_writes - max(settings.min_commits, 1)
    archived_until = (
        writes[len(writes) - kept_writes - 1].requested_time if len(writes) > max(most_writes, kept_writes) else ""
    )
    archived_until = max(
        [archived_until, *(instant.requested_time for instant in archived_already if instant.is_write)]
    )
    # The newest write always stays: it names the table's columns.
    wanted = {instant for instant in writes[:-1] if instant.requested_time <= archived_until}
    if settings.delta_commits is not None:
        counted_since = _counted_by_compaction_since(timeline, settings.delta_commits)
        wanted = {instant for instant in wanted if not counted_since or instant.requested_time < counted_since}
    return archivable_prefix(timeline, {*wanted, *_archived_with(timeline, wanted)})


def _counted_by_compaction_since(timeline: Timeline, delta_commits: int) -> str:
    """Return the requested time from which on a compaction's trigger still counts instants, "" for none."""
    counted = since_compaction(timeline)
    if not any(instant.action == "deltacommit" for instant in timeline.completed):
        return ""
    if len(counted.since) >= max(delta_commits, 1):
        return counted.since[-max(delta_commits, 1)]
    # Fewer have come, so all of them still count, and the compaction before them.
    return counted.last or counted.since[0]


def archivable_prefix(timeline: Timeline, wanted: Iterable[Instant]) -> tuple[Instant, ...]:
    """Return the wanted instants on the timeline that are older than all instants that have to stay on it.

    Return none if archiving has to wait for a pending instant.
    """
    if any(_verdict(instant) is Verdict.WAIT for instant in timeline.pending):
        return ()
    # A half-done upgrade leaves instants whose files' names lack a completion time, or have one too many.
    wanted = {*wanted}.intersection(each for each in timeline.completed if timeline.files.layout.is_whole(each))
    obstacles = [instant.requested_time for instant in timeline.instants if _stays(instant, wanted)]
    obstacles += _completed_since_an_indexing(timeline)
    waiting_times = [
        instant.requested_time
        for instant in timeline.pending
        if instant.is_write and _verdict(instant) is Verdict.GIVE_WAY
    ]
    if waiting_times:
        # Apache Hudi, too, wants a commit before the first pending write.
        earlier_writes = [
            instant.requested_time for instant in timeline.writes if instant.requested_time < min(waiting_times)
        ]
        obstacles += earlier_writes[-1:]
    first_obstacle = min(obstacles, default=None)
    archivable = {instant for instant in wanted if first_obstacle is None or instant.requested_time < first_obstacle}
    writes = {instant for instant in archivable if instant.is_write}
    return tuple(
        sorted({*writes, *_archived_with(timeline, writes) & archivable}, key=lambda instant: instant.identity)
    )


def before_replaced_files(
    timeline: Timeline, wanted: tuple[Instant, ...], listings: Mapping[str, Iterable[FileInfo]] | None = None
) -> tuple[Instant, ...]:
    """Return the instants before the first whose replaced file groups still have files.

    Without the replacing instant on the timeline, readers would take these files for live. `listings` has the files of
    all partitions if the caller has listed them.
    """
    for instant in wanted:
        if not instant.replaces:
            continue
        replaced = timeline.files.read_written_files(instant).replaced
        partitions = sorted(replaced)
        if listings is None:
            files_by_partition = dict(
                zip(partitions, for_each(timeline.storage, timeline.storage.list, partitions), strict=True)
            )
        else:
            files_by_partition = {partition: [*listings.get(partition, ())] for partition in partitions}
        if _has_replaced_file(files_by_partition, replaced):
            earlier_instants = {other for other in wanted if other.requested_time < instant.requested_time}
            return archivable_prefix(timeline, earlier_instants)
    return wanted


def _stays(instant: Instant, wanted: set[Instant]) -> bool:
    """Return whether an instant must stay on the timeline, with all younger instants.

    A savepoint or an unfinished instant stays if archiving gives way to it; a completed write stays unless it is
    `wanted`.
    """
    if instant.state != State.COMPLETED or instant.action == "savepoint":
        return _verdict(instant) is Verdict.GIVE_WAY
    return instant.is_write and instant not in wanted


def _completed_since_an_indexing(timeline: Timeline) -> list[str]:
    """Return the times of the instants that completed after the first pending indexing was requested.

    An indexing reads what was complete before it; later writes write to the index themselves. To the indexing, an
    archived write was complete before it, so these writes must not be archived yet.
    """
    indexing_time = min(
        (instant.requested_time for instant in timeline.pending if instant.action == _INDEXING), default=""
    )
    return [
        instant.requested_time
        for instant in timeline.completed
        if indexing_time and instant.visible_since > indexing_time
    ]


def _verdict(instant: Instant) -> Verdict:
    """Return what archiving does about another instant; an instant of an unknown kind stays, with all younger ones."""
    kind = kind_of(instant.action)
    return Verdict.GIVE_WAY if kind is None else judge(Meeting(ARCHIVING, kind, known_of(instant)))


def _archived_with(timeline: Timeline, writes: Iterable[Instant]) -> set[Instant]:
    """Return the cleans and rollbacks older than the last of some writes, which are archived with these."""
    last_write = max((instant.requested_time for instant in writes), default="")
    return {
        instant
        for instant in timeline.completed
        if instant.action in _ARCHIVED_WITH_WRITES and instant.requested_time < last_write
    }


def _has_replaced_file(listings: Mapping[str, Iterable[FileInfo]], replaced: Mapping[str, Iterable[str]]) -> bool:
    """Return whether a partition has a file, or change data, of a file group that was replaced."""
    for partition, files in listings.items():
        replaced_ids = frozenset(replaced[partition])
        names = (data_file(info.path, changes=True) for info in files)
        if any(name is not None and name.file_id in replaced_ids for name in names):
            return True
    return False
