"""A clean: deletes file slices that no reader and no writer needs any more; its instant names them.

`clean_plan` chooses the files. The plan becomes the table's next decision, and any process may then carry it out. So a
clean first finishes the pending cleans of pyhudi and other engines, and then plans its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import ConcurrentWriteError
from ...storage.base import Storage, split
from ...storage.threads import for_each
from ...table.config import check_format, check_supported
from ...table.left_behind import refuse_instants_left_by_upgrade
from ...table.table import Table, open_table
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ...timeline.writers.long_work import LongWork
from ..following.kept_metadata import refuse_unsupported_partitions
from ..meeting.concurrency import (
    CLEAN,
    Asked,
    Known,
    Meeting,
    Shared,
    Verdict,
    all_shared,
    forbids,
    judge,
    kind_of,
    known_of,
)
from ..result import ServiceResult
from ..service_settings import KEEP_LATEST_FILE_VERSIONS, CleanSettings
from ..transaction.commit_path import complete
from ..transaction.outcome import Outcome
from .clean_guard import PendingClean
from .clean_plan import CleanPlan, Survey, plan_clean
from .clean_scope import SAVEPOINTS, CleanProgress, find_progress, make_survey, read_savepoints, write_note
from .service import TableService, unless_over
from .unused_metadata import delete_unused_metadata

if TYPE_CHECKING:
    from ...timeline.metadata.models import CleanerPlan

logger = logging.getLogger("pyhudi")

_ACTION = "clean"
_ROUNDS = 20
# As many keys as one delete request of a store of objects takes.
_MOST_FILES_OF_A_UNIT = 1000


class Cleaner(TableService[CleanPlan]):
    """Carries out plans of cleans: deletes the planned files, and completes the clean's instant."""

    action = _ACTION

    def requested(self, plan: CleanPlan) -> CleanerPlan:
        """Return the body of a clean's requested instant, by which any process can delete the planned files."""
        from ...timeline.metadata.models import ActionInstant, CleanerPlan, CleanFileInfo  # noqa: PLC0415 (see timeline/instant_files.py)

        earliest = None
        if plan.earliest is not None:
            timestamp, action, state = plan.earliest
            earliest = ActionInstant(timestamp=timestamp, action=action, state=state)
        return CleanerPlan(
            earliest_instant_to_retain=earliest,
            last_completed_commit_timestamp=plan.last_completed,
            policy=plan.policy,
            # Older plans of Apache Hudi name files here; newer plans have whole paths in the next field.
            files_to_be_deleted_per_partition={},
            file_paths_to_be_deleted_per_partition={
                partition: [
                    CleanFileInfo(file_path=self.table.storage.uri(path), is_bootstrap_base_file=False)
                    for path in paths
                ]
                for partition, paths in plan.files.items()
            },
            # The folder of an empty partition stays: a write may be about to add files to it.
            partitions_to_be_deleted=[],
            extra_metadata=_savepoints_entry(plan),
        )

    def carry_out(self, instant: Instant, plan: CleanPlan) -> None:
        """Delete what a plan names and complete its instant.

        If the store fails, the instant stays pending and the next clean finishes it.
        """
        began = time.monotonic()
        if not self.start(instant):
            return
        # Delete a partition's files together, up to the limit of a request. Deletions must survive a power cut: files
        # of a replaced file group would be rows of the table again once its replacecommit is archived.
        most_files = _MOST_FILES_OF_A_UNIT
        units = [
            paths[at : at + most_files] for paths in plan.files.values() for at in range(0, len(paths), most_files)
        ]
        with LongWork(self.table.storage, instant.requested_time):
            for_each(self.table.storage, lambda paths: self.table.storage.delete(*paths), units)
        at = instant.requested_time
        outcome = unless_over(instant, lambda _: self._outcome(plan, at, time.monotonic() - began))
        complete(self.table, instant, outcome)

    def _outcome(self, plan: CleanPlan, at: str, seconds: float) -> Outcome:
        """Return the body of the completed clean, and the paths whose records leave the metadata table.

        `plan` has the deleted files, and the spared files, which stay because a later savepoint keeps them; the body
        names these as failed. `at` is the requested time of the clean, and `seconds` is how long the deletes took.
        """
        from ...timeline.metadata.models import CleanMetadata, CleanPartition  # noqa: PLC0415 (as above)

        partitions = {
            partition: CleanPartition(
                partition_path=partition,
                policy=plan.policy,
                delete_path_patterns=_file_names((*plan.files.get(partition, ()), *plan.spared.get(partition, ()))),
                success_delete_files=_file_names(plan.files.get(partition, ())),
                failed_delete_files=_file_names(plan.spared.get(partition, ())),
                is_partition_deleted=False,
            )
            for partition in {**plan.files, **plan.spared}
        }
        body = CleanMetadata(
            start_clean_time=at,
            time_taken_in_millis=int(seconds * 1000),
            total_files_deleted=sum(map(len, plan.files.values())),
            earliest_commit_to_retain=plan.earliest[0] if plan.earliest else "",
            last_completed_commit_timestamp=plan.last_completed,
            partition_metadata=partitions,
            bootstrap_partition_metadata={},
            # The next clean looks at all partitions again if one of these savepoints is gone by then.
            extra_metadata=_savepoints_entry(plan),
        )
        return Outcome(body, removed=[path for paths in plan.files.values() for path in paths])


def clean(
    storage: Storage,
    settings: CleanSettings,
    *,
    dry_run: bool = False,
    inline: bool = False,
    timeline: Timeline | None = None,
) -> ServiceResult:
    """Delete the file slices that the settings do not keep, after finishing pending cleans.

    `storage` is the store at the table's path. With `dry_run` it deletes nothing, and the result says what it would.
    `inline` marks a clean after a write, which waits for `CleanSettings.after_commits` and leaves the folder of a
    metadata table alone. `timeline` is a listing of right before, if the caller has it. Raises
    `CorruptInstantError` for a pending clean whose plan names what must stay, `ConcurrentWriteError` or
    `UnsupportedTableError`.
    """
    began = time.monotonic()
    table = open_table(storage)
    check_supported(table.config, table.path, writing=False)
    run = _Run(table, settings, inline)
    if dry_run:
        return run.dry_result().result(storage, time.monotonic() - began, dry=True)
    check_format(table.config, table.path)
    refuse_instants_left_by_upgrade(table)
    for _ in range(_ROUNDS):
        if run.advance(timeline or table.timeline()):
            break
        # The caller's timeline is out of date once a round has changed the table.
        timeline = None
    else:
        raise ConcurrentWriteError(
            f"Savepoints, rollbacks or cleans came in between {_ROUNDS} times while a clean of the table "
            f"{storage.path} was planned.",
            "Clean again.",
        )
    if not inline:
        delete_unused_metadata(table)
    return run.tally.result(storage, time.monotonic() - began)


@dataclass(slots=True)
class _Tally:
    """What one call of `clean` has deleted, or would delete."""

    instant: str = ""
    files: int = 0
    bytes: int = 0

    def add(self, instant: Instant, plan: CleanPlan) -> None:
        """Count a clean that was carried out; the result will name the last such instant."""
        self.instant = instant.requested_time
        self.files += plan.count
        self.bytes += plan.bytes

    def result(self, storage: Storage, seconds: float, *, dry: bool = False) -> ServiceResult:
        """Return the tally as the result of a call, and log it unless the call was a dry run."""
        if self.files and not dry:
            logger.info("table %s: cleaned %d files (%d bytes)", storage.path, self.files, self.bytes)
        return ServiceResult(
            storage.path, _ACTION, self.instant, files=self.files, bytes=self.bytes, seconds=seconds, dry=dry
        )


@dataclass(frozen=True, slots=True)
class _Run:
    """One call of `clean`; `tally` counts what it has deleted."""

    table: Table
    settings: CleanSettings
    inline: bool
    tally: _Tally = field(default_factory=_Tally)

    def dry_result(self) -> _Tally:
        """Return what a clean would delete, by the pending plans and by a plan of its own, without writing anything."""
        timeline = self.table.timeline()
        _refuse_rollback_or_restore(timeline)
        savepoint_files = read_savepoints(timeline)
        plans = (PendingClean(timeline, clean).plan(savepoint_files) for clean in _pending_cleans(timeline))
        pending_plans = [plan for plan in plans if plan is not None]
        pending_paths = {path for plan in pending_plans for paths in plan.files.values() for path in paths}
        survey = make_survey(self.table, timeline, self.settings, find_progress(timeline))
        own_paths = {path for paths in plan_clean(survey).files.values() for path in paths} - pending_paths
        sizes = sum(info.size for listing in survey.listings.values() for info in listing if info.path in own_paths)
        return _Tally("", len(pending_paths) + len(own_paths), sum(plan.bytes for plan in pending_plans) + sizes)

    def advance(self, timeline: Timeline) -> bool:
        """Finish the pending cleans, or make a clean if there are none; return whether the call is done.

        It is not done if pending cleans were finished, or if an instant that came in between forbids the plan:
        then the caller calls again.
        """
        _refuse_rollback_or_restore(timeline)
        pending_cleans = _pending_cleans(timeline)
        for instant in pending_cleans:
            pending_plan = PendingClean(timeline, instant).plan(read_savepoints(timeline))
            if pending_plan is not None:
                self._carry_out(instant, pending_plan)
        if pending_cleans:
            return False
        progress = find_progress(timeline)
        last_seen = "" if progress is None else progress.last_completed
        new_writes = sum(instant.requested_time > last_seen for instant in timeline.writes)
        if self.inline and new_writes < self.settings.after_commits:
            return True
        survey = make_survey(self.table, timeline, self.settings, progress)
        plan = plan_clean(survey)
        if not plan.files:
            _note_nothing_to_clean(survey, progress)
            return True
        self._refuse_unsupported_partitions()
        requested = Cleaner(self.table).request(lambda now: plan if _still_holds(survey, now) else None)
        if requested is None:
            return False
        self._carry_out(*requested)
        return True

    def _carry_out(self, instant: Instant, plan: CleanPlan) -> None:
        """Delete what a plan names and count it, unless pyhudi does not keep the metadata table up to date."""
        self._refuse_unsupported_partitions()
        Cleaner(self.table).carry_out(instant, plan)
        self.tally.add(instant, plan)

    def _refuse_unsupported_partitions(self) -> None:
        """Raise `UnsupportedTableError` if the metadata table has partitions that pyhudi does not update."""
        refuse_unsupported_partitions(self.table.config, self.table.path)


def _refuse_rollback_or_restore(timeline: Timeline) -> None:
    """Raise `ConcurrentWriteError` beside a rollback or restore, which may need slices that a clean deletes."""
    for instant in timeline.pending:
        kind = kind_of(instant.action)
        if kind is not None and judge(Meeting(CLEAN, kind)) is Verdict.REFUSE:
            raise ConcurrentWriteError(
                f"The {instant.action} {instant.requested_time} is pending on the table {timeline.storage.path}, and "
                "may bring back file slices that a clean would delete.",
                "Clean again when it is complete: the next write finishes a rollback, and HudiTable.restore to the "
                "same instant finishes a restore.",
            )


def _pending_cleans(timeline: Timeline) -> list[Instant]:
    """Return the pending cleans, which a call finishes before it makes a plan."""
    kinds = ((instant, kind_of(instant.action)) for instant in timeline.pending)
    return [instant for instant, kind in kinds if kind is not None and judge(Meeting(CLEAN, kind)) is Verdict.FINISH]


def _still_holds(survey: Survey, now: Timeline) -> bool:
    """Return whether a plan made from a survey may still be requested on the timeline `now`.

    New writes do no harm: the plan does not name what they replace, and they merge newer files than it names. But
    no later clean would look at a write that was requested before the earliest retained instant and completed
    since.
    """
    seen_before = {(instant.identity, instant.state) for instant in survey.timeline.instants}
    new_instants = [instant for instant in now.instants if (instant.identity, instant.state) not in seen_before]
    earliest = survey.earliest.requested_time if survey.earliest else ""
    for instant in new_instants:
        kind, their_state = kind_of(instant.action), known_of(instant)
        is_passed_over = instant.is_write and their_state is Known.COMPLETED and instant.requested_time < earliest
        meeting = kind and Meeting(
            CLEAN, kind, their_state, all_shared({Shared.EARLIER: is_passed_over}), Asked.SINCE_PLAN
        )
        if meeting is not None and forbids(meeting):
            return False
    return True


def _note_nothing_to_clean(survey: Survey, progress: CleanProgress | None) -> None:
    """Write the note that there was nothing to clean, if it covers more than the last note.

    There is no note under a policy that keeps all until some instant, as long as there is no such instant.
    """
    settings = survey.settings
    if survey.earliest is None and settings.policy != KEEP_LATEST_FILE_VERSIONS:
        return
    writes = survey.timeline.writes
    new_note = CleanProgress(
        earliest="" if survey.earliest is None else survey.earliest.requested_time,
        until=survey.timeline.completed_until,
        last_completed=writes[-1].requested_time if writes else "",
        savepoints=tuple(sorted(survey.savepoints)),
    )
    previous = None if progress is None else (progress.earliest, progress.savepoints)
    # The next write counts the writes since the last clean from this note.
    if previous != (new_note.earliest, new_note.savepoints) or settings.after_commits > 1:
        write_note(survey.timeline.storage, new_note)


def _savepoints_entry(plan: CleanPlan) -> dict[str, str]:
    """Return the extra metadata with the times of the savepoints that the clean respected; empty without savepoints."""
    return {SAVEPOINTS: ",".join(plan.savepoints)} if plan.savepoints else {}


def _file_names(paths: Iterable[str]) -> list[str]:
    """Return the names of files without their folders, as Apache Hudi's clean metadata has them."""
    return [split(path)[1] for path in paths]
