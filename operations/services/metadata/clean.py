"""Cleans of a metadata table: one decision deletes older slices of its file groups.

The slices stay that a rollback of a recent write, or a restore to a savepoint, needs: as in Apache Hudi
(``HoodieMetadataWriteUtils``), those of the last 20 delta commits, or more if the table's own cleans keep more.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....storage.base import split
from ....table.files.file_group import FileGroup, FileSlice
from ....table.table import Table
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ....timeline.writers.first_steps import DeleteFile, FirstSteps, MakeFile, PublishFile, Step
from ....timeline.writers.owner import Claim
from ...following.before_completion import file_step
from ...service_settings import KEEP_LATEST_COMMITS, CleanSettings
from ...transaction.commit_path import time_after
from ...transaction.without_instant import MetadataSteps, take_metadata_steps
from .slices import MetadataSlices, is_being_undone

if TYPE_CHECKING:
    from ....timeline.metadata.models import CleanerPlan, CleanMetadata

logger = logging.getLogger("pyhudi")

_ACTION = "clean"
_LEAST_COMMITS, _MORE_THAN_TABLE = 20, 1.2


@dataclass(frozen=True, slots=True)
class MetadataClean:
    """What a clean deletes: paths by partition; ``earliest`` is the first delta commit whose slices stay."""

    earliest: Instant
    files: dict[str, list[str]]
    bytes: int

    @property
    def paths(self) -> list[str]:
        """The deleted files of all partitions."""
        return [path for paths in self.files.values() for path in paths]


def clean_metadata(table: Table, settings: CleanSettings) -> MetadataClean | None:
    """Delete slices of the metadata table that no undo needs; return what was deleted, None for nothing.

    Raises what `decide` raises.
    """
    decided_plans: list[tuple[MetadataClean, Timeline]] = []
    folders_aside: list[str] = []

    def delete_folders() -> None:
        while folders_aside:
            table.storage.delete_folder(folders_aside.pop())

    def steps(timeline: Timeline) -> MetadataSteps | None:
        """Return the steps of a clean for a timeline, and keep its plan; None if there is nothing to clean."""
        decided_plans.clear()
        # The last round was lost. Each round has a time of its own, and so a working folder of its own.
        delete_folders()
        slices = None if is_being_undone(timeline) else MetadataSlices.of(table, timeline)
        plan = None if slices is None else _plan(slices, _delta_commits_to_keep(settings))
        if slices is None or plan is None:
            return None
        decided_plans.append((plan, slices.timeline))
        clean_steps = _steps(table, slices, plan)
        if any(isinstance(step, PublishFile) for step in clean_steps.first.steps):
            folders_aside.append(Claim(table.storage, clean_steps.instant.requested_time).folder)
        return clean_steps

    # After an error the decision may be binding, and the next process that decides needs the working folder.
    instant = take_metadata_steps(table, steps)
    delete_folders()
    if instant is None:
        return None
    plan, metadata_timeline = decided_plans[0]
    if not _is_complete(metadata_timeline, instant):
        # A body in the working folder was lost, so writers took the clean back.
        return None
    logger.info("table %s: cleaned %d files of its metadata table", table.path, len(plan.paths))
    return plan


def _is_complete(timeline: Timeline, instant: Instant) -> bool:
    """Return whether an instant is completed by now on the metadata table's `timeline`."""
    return instant.identity in {each.identity for each in timeline.reload().completed}


def _delta_commits_to_keep(settings: CleanSettings) -> int:
    """Return how many delta commits keep their slices."""
    by_table = settings.commits if settings.policy == KEEP_LATEST_COMMITS else 0
    return max(_LEAST_COMMITS, int(by_table * _MORE_THAN_TABLE))


def _plan(slices: MetadataSlices, commits: int) -> MetadataClean | None:
    """Return what a clean deletes that keeps the slices of the last `commits` delta commits.

    Return None if no slice is old enough, or another clean is pending.
    """
    earliest = _earliest_time(slices, commits)
    if earliest is None or any(each.action == _ACTION for each in slices.timeline.pending):
        return None
    files: dict[str, list[str]] = {}
    size = 0
    for name, groups in slices.groups.items():
        expired_files = [
            file
            for group in groups.values()
            for file_slice in _slices_before(group, earliest)
            for file in file_slice.data_files
        ]
        if expired_files:
            files[name] = [file.path for file in expired_files]
            size += sum(file.size for file in expired_files)
    if not files:
        return None
    first_kept = next(each for each in slices.timeline.completed if each.requested_time >= earliest)
    return MetadataClean(first_kept, files, size)


def _earliest_time(slices: MetadataSlices, commits: int) -> str | None:
    """Return the time from which on all slices stay: that of the first of the last `commits`, or of a savepoint.

    Return None if there are fewer delta commits, so that no slice is old enough.
    """
    delta_times = [each.requested_time for each in slices.timeline.completed if each.action == "deltacommit"]
    if len(delta_times) < commits:
        return None
    savepoint_times = [each.requested_time for each in slices.metadata.of_table.instants if each.action == "savepoint"]
    return min([delta_times[-commits], *savepoint_times])


def _slices_before(group: FileGroup, earliest: str) -> Sequence[FileSlice]:
    """Return the slices of a group that no reader of a time or later needs: all before the slice of that time."""
    numbers_begun = [number for number, file_slice in enumerate(group.slices) if file_slice.base_time <= earliest]
    return group.slices[: numbers_begun[-1]] if numbers_begun else ()


def _steps(table: Table, slices: MetadataSlices, plan: MetadataClean) -> MetadataSteps:
    """Return the steps that delete the files, and make all files of the clean's instant.

    `plan` has the files to delete. The instant is one of the metadata table of `table`, later than all instants on both
    timelines, which `slices` has. Both bodies name every file to delete, so a large body waits in the working folder
    of the instant. If it is lost, writers take the instant back, and a later clean deletes the other files.
    """
    storage, files = table.storage, slices.timeline.files
    time = time_after(table, slices.metadata.of_table, slices.timeline.greatest_time() or "")
    completion_time = time_after(table, slices.metadata.of_table, time)
    instant = Instant(time, _ACTION, State.REQUESTED)
    last_time = max((each.requested_time for each in slices.timeline.completed), default="")
    requested_body = files.codec.encode(_requested_body(table, plan, last_time))
    completed_body = files.codec.encode(_completed_body(plan, time, last_time))
    completed_path = files.path(files.layout.completed(instant, completion_time))
    steps: list[Step] = [
        file_step(storage, time, files.path(instant), requested_body, other_files=1),
        MakeFile(files.path(instant.at(State.INFLIGHT)), b""),
        *map(DeleteFile, plan.paths),
        file_step(storage, time, completed_path, completed_body, other_files=1),
    ]
    return MetadataSteps(instant, FirstSteps(tuple(steps)))


def _requested_body(table: Table, plan: MetadataClean, last_completed: str) -> CleanerPlan:
    """Return the body of the requested clean, which names the deleted files; `last_completed` is a requested time.

    It is that of the newest completed instant of the metadata table, whose files `plan` has by partition. The `table`
    makes full URIs of their paths.
    """
    from ....timeline.metadata.models import ActionInstant, CleanerPlan, CleanFileInfo  # noqa: PLC0415 (see timeline/instant_files.py)

    first_kept = plan.earliest
    return CleanerPlan(
        earliest_instant_to_retain=ActionInstant(
            timestamp=first_kept.requested_time, action=first_kept.action, state=first_kept.state.name
        ),
        last_completed_commit_timestamp=last_completed,
        policy=KEEP_LATEST_COMMITS,
        files_to_be_deleted_per_partition={},
        file_paths_to_be_deleted_per_partition={
            name: [CleanFileInfo(file_path=table.storage.uri(path), is_bootstrap_base_file=False) for path in paths]
            for name, paths in plan.files.items()
        },
        partitions_to_be_deleted=[],
        extra_metadata={},
    )


def _completed_body(plan: MetadataClean, time: str, last_completed: str) -> CleanMetadata:
    """Return the body of the completed clean, which names the files of the `plan` as deleted.

    `time` is the requested time of the clean, `last_completed` that of the newest instant that was complete before.
    """
    from ....timeline.metadata.models import CleanMetadata, CleanPartition  # noqa: PLC0415 (as above)

    partitions = {}
    for name, paths in plan.files.items():
        names = [split(path)[1] for path in paths]
        partitions[name] = CleanPartition(
            partition_path=name,
            policy=KEEP_LATEST_COMMITS,
            delete_path_patterns=names,
            success_delete_files=names,
            is_partition_deleted=False,
        )
    return CleanMetadata(
        start_clean_time=time,
        time_taken_in_millis=0,
        total_files_deleted=len(plan.paths),
        earliest_commit_to_retain=plan.earliest.requested_time,
        last_completed_commit_timestamp=last_completed,
        partition_metadata=partitions,
        bootstrap_partition_metadata={},
        extra_metadata={},
    )
