"""Which file slices a clean deletes, decided from values alone.

The policies are those of Apache Hudi's ``CleanPlanner`` and ``CleanerUtils``. In addition, every policy keeps the
slices that a pending write may have read, and the file groups that a pending clustering will read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...storage.base import FileInfo, split
from ...table.files.file_group import FileGroup, FileSlice, data_file, file_id_and_time, is_change_data
from ...table.files.names import FileGroupId
from ...table.files.view import FileView
from ...timeline.clock import format_time
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ..meeting.concurrency import (
    CLEAN,
    CLUSTERING,
    SAVEPOINT,
    InstantKind,
    Known,
    Meeting,
    Shared,
    Verdict,
    judge,
    kind_of,
)
from ..service_settings import KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, CleanSettings

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Survey:
    """The values from which a clean is planned; `timeline` was read before the files were listed.

    Attributes:
        earliest: The first instant whose readers keep all that they see; None under KEEP_LATEST_FILE_VERSIONS.
        replaced_at: When each file group was replaced, as a requested time, by partition path and file id.
        savepoints: The file names that each completed savepoint keeps, by its time.
        held: The file groups that pending clusterings are going to read.
        compacting: By file group, the base time of the slice that a pending compaction is going to merge.
    """

    timeline: Timeline
    earliest: Instant | None
    listings: Mapping[str, tuple[FileInfo, ...]]
    view: FileView
    replaced_at: Mapping[tuple[str, str], str]
    savepoints: Mapping[str, frozenset[str]]
    held: frozenset[FileGroupId]
    compacting: Mapping[FileGroupId, str]
    settings: CleanSettings


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """The files that a clean deletes, by partition path, with what its instant says.

    Attributes:
        earliest: Time, action and state of the instant from which on everything was kept; None if there is none.
        bytes: The size of those files that still exist.
        spared: Planned files that stay, because a later savepoint keeps them.
    """

    policy: str
    earliest: tuple[str, str, str] | None
    last_completed: str
    files: Mapping[str, tuple[str, ...]]
    savepoints: tuple[str, ...] = ()
    bytes: int = 0
    spared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of files that the clean deletes."""
        return sum(map(len, self.files.values()))


def earliest_to_retain(timeline: Timeline, settings: CleanSettings, now_ms: int, zone: str) -> Instant | None:
    """Return the first instant whose readers keep all that they see; None if this rule cleans nothing.

    `now_ms` is in milliseconds since 1970, and instant times are in the time zone `zone`.
    It is never later than the last write before the first pending write. Apache Hudi has that bound for
    KEEP_LATEST_COMMITS alone. Without it, a write that takes longer than KEEP_LATEST_BY_HOURS would lose the slice
    that it merges.
    """
    writes = timeline.writes
    if settings.policy == KEEP_LATEST_FILE_VERSIONS:
        return None
    if settings.policy == KEEP_LATEST_COMMITS:
        commits = max(settings.commits, 1)
        earliest = writes[len(writes) - commits] if len(writes) > commits else None
    else:
        # The calendar does not reach back as far as a user may go, and no write is older than 1970.
        earliest_time = format_time(max(now_ms - settings.hours * _HOUR_MS, 0), zone)
        earliest = next((instant for instant in writes if instant.requested_time >= earliest_time), None)
    # A write at work may merge the slices that it saw when it began.
    first_at_work = first_pending(timeline)
    if earliest is None or not first_at_work or earliest.requested_time <= first_at_work:
        return earliest
    return next((instant for instant in reversed(writes) if instant.requested_time < first_at_work), None)


def first_pending(timeline: Timeline) -> str:
    """Return the requested time of the first pending write or clustering; "" for none.

    From this time on a clean keeps what the write may read.
    Compactions do not count: their plans name the slices that they need.
    """
    kinds = ((instant, kind_of(instant.action)) for instant in timeline.pending if instant.is_write)
    instants_at_work = (
        instant for instant, kind in kinds if kind is not None and judge(Meeting(CLEAN, kind)) is Verdict.GIVE_WAY
    )
    return next((instant.requested_time for instant in instants_at_work), "")


def plan_clean(survey: Survey) -> CleanPlan:
    """Return what a clean deletes: the slices of live and replaced file groups that nothing keeps.

    Pending instants, savepoints and the policy of the settings keep slices.
    """
    files: dict[str, tuple[str, ...]] = {}
    size = 0
    saved_names = frozenset[str]().union(*survey.savepoints.values()) if gives_way(SAVEPOINT) else frozenset[str]()
    replaced_in = {partition for partition, _ in survey.replaced_at}
    for partition, listing in survey.listings.items():
        groups = [*((group, live_slices(survey, group)) for group in survey.view.groups(partition).values())]
        if partition in replaced_in:
            replaced_groups = survey.view.replaced_groups(partition).values()
            groups += [(group, _replaced_slices(survey, group)) for group in replaced_groups]
        # `times` are the base times of the slices that stay.
        expired_slices = [
            file_slice
            for group, kept_slices in groups
            if not (group.id in survey.held and gives_way(CLUSTERING))
            for times in [{file_slice.base_time for file_slice in kept_slices}]
            for file_slice in group.slices
            if file_slice.base_time not in times and not _is_kept(survey, saved_names, file_slice)
        ]
        expired_files = _with_change_data(expired_slices, listing)
        if expired_files:
            files[partition] = tuple(info.path for info in expired_files)
            size += sum(info.size for info in expired_files)
    earliest, writes = survey.earliest, survey.timeline.writes
    return CleanPlan(
        policy=survey.settings.policy,
        earliest=None if earliest is None else (earliest.requested_time, earliest.action, earliest.state.name),
        last_completed=writes[-1].requested_time if writes else "",
        files=files,
        savepoints=tuple(sorted(survey.savepoints)),
        bytes=size,
    )


def gives_way(theirs: InstantKind) -> bool:
    """Return whether a clean keeps the files that an instant of another kind holds."""
    # A completed savepoint holds single files; a pending plan of another kind holds file groups.
    shared, their_state = (Shared.FILES, Known.COMPLETED) if theirs is SAVEPOINT else (Shared.FILE_GROUP, Known.PENDING)
    return judge(Meeting(CLEAN, theirs, their_state, frozenset({shared}))) is Verdict.GIVE_WAY


def _is_kept(survey: Survey, saved_names: frozenset[str], file_slice: FileSlice) -> bool:
    """Return whether a savepoint holds a file of a slice, or a pending compaction still needs the slice."""
    merged_from = survey.compacting.get(file_slice.group)
    return (merged_from is not None and file_slice.base_time >= merged_from) or any(
        split(path)[1] in saved_names for path in file_slice.files
    )


def live_slices(survey: Survey, group: FileGroup) -> tuple[FileSlice, ...]:
    """Return the slices of a live file group that stay, the newest among them; savepoints may keep more."""
    if survey.settings.policy == KEEP_LATEST_FILE_VERSIONS:
        versions, merged_from = max(survey.settings.file_versions, 1), survey.compacting.get(group.id)
        if merged_from is None:
            return (*group.slices[-versions:], *_read_by_pending(survey, group))
        # As in Apache Hudi, the slices that a pending compaction merges count as one version.
        before_compaction = [file_slice for file_slice in group.slices if file_slice.base_time < merged_from]
        return (
            group.newest,
            *before_compaction[max(len(before_compaction) - versions + 1, 0) :],
            *_read_by_pending(survey, group),
        )
    if survey.earliest is None:
        return group.slices
    earliest = survey.earliest.requested_time
    older_slices = [file_slice for file_slice in group.slices if file_slice.base_time < earliest]
    later_slices = [file_slice for file_slice in group.slices if file_slice.base_time >= earliest]
    # A reader of the table as of the earliest instant sees the newest older slice.
    return (group.newest, *older_slices[-1:], *later_slices)


def _replaced_slices(survey: Survey, group: FileGroup) -> tuple[FileSlice, ...]:
    """Return the slices of a replaced file group that stay.

    Under KEEP_LATEST_FILE_VERSIONS only the slice that a pending write may be merging stays; otherwise all stay
    until the replacing instant is older than the earliest retained instant.
    """
    replaced_at = survey.replaced_at[group.id.partition_path, group.id.file_id]
    if survey.settings.policy == KEEP_LATEST_FILE_VERSIONS:
        pending = first_pending(survey.timeline)
        return _read_by_pending(survey, group) if pending and replaced_at > pending else ()
    is_older = survey.earliest is not None and replaced_at < survey.earliest.requested_time
    return () if is_older else group.slices


def _read_by_pending(survey: Survey, group: FileGroup) -> tuple[FileSlice, ...]:
    """Return the newest slice before the first pending write, which that write may be merging, if any."""
    pending = first_pending(survey.timeline)
    older_slices = [file_slice for file_slice in group.slices if file_slice.base_time < pending]
    return tuple(older_slices[-1:])


def _with_change_data(expired_slices: Iterable[FileSlice], listing: Iterable[FileInfo]) -> list[FileInfo]:
    """Return the files of expired slices, and the files of change data beside them."""
    files = {file.path: file_id_and_time(file) for file_slice in expired_slices for file in file_slice.data_files}
    if not files:
        return []
    written_files = set(files.values())
    change_files = (data_file(info.path, changes=True) for info in listing if info.path not in files)
    paths = {
        file.path
        for file in change_files
        if file is not None and is_change_data(file) and file_id_and_time(file) in written_files
    }
    return [info for info in listing if info.path in files or info.path in paths]
