"""Refuses to undo a write, to keep it by a savepoint, or to restore to it, while the table does not allow that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...errors import ConcurrentWriteError, UndoError
from ...reader.listed_files import ListedFiles, Moment, SliceFilter
from ...storage.base import Storage, split
from ...table.config import check_supported
from ...table.files.cleaned import names_cleaned
from ...table.files.file_group import FileSlice
from ...table.left_behind import refuse_instants_left_by_upgrade
from ...table.seen_table import SeenTable
from ...table.table import Table, open_table
from ...timeline.instants import Instant, State
from ...timeline.pending_undo import pending_restore, pending_rollbacks
from ...timeline.timeline import Timeline
from ...timeline.writers.announcements import announced
from ..following.kept_metadata import refuse_unsupported_partitions
from ..meeting.concurrency import (
    ARCHIVING,
    CLEAN,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    WRITE,
    Asked,
    InstantKind,
    Meeting,
    Shared,
    all_shared,
    forbids,
    kind_of,
    known_of,
)
from ..rollback.pending import OtherWriters, PlannedRollback, in_the_way_error, restoring_error
from ..rollback.rollback import roll_back

_MOST_NAMED = 10


def open_for_service(storage: Storage) -> Table:
    """Open a table that a service will change; raises `TableError` if pyhudi cannot write it."""
    table = open_table(storage)
    check_supported(table.config, table.path, writing=True)
    refuse_instants_left_by_upgrade(table)
    refuse_unsupported_partitions(table.config, table.path)
    return table


def refuse_restoring(mine: InstantKind, timeline: Timeline) -> None:
    """Raise `ConcurrentWriteError` if a restore is pending."""
    restore = pending_restore(timeline)
    if restore is not None and forbids(Meeting(mine, RESTORE)):
        raise restoring_error(timeline, restore)


def finish_rollbacks_first(mine: InstantKind, other_writers: OtherWriters, timeline: Timeline) -> Timeline:
    """Finish interrupted rollbacks, and return the timeline without them."""
    rollbacks_to_finish = other_writers.rollbacks_to_finish(timeline, mine)
    for dead in rollbacks_to_finish:
        roll_back(other_writers, dead)
    return timeline.reload() if rollbacks_to_finish else timeline


def announced_until(timeline: Timeline) -> str:
    """Return the time up to which processes have announced to archive, "" for none; read after the timeline."""
    return max(announced(timeline.storage), default="")


def completed_write(
    mine: InstantKind, timeline: Timeline, instant_time: str, archived_until: str | None = None
) -> Instant:
    """Return the completed write of a time; raises `UndoError` if there is none, or if it is about to go.

    That is so if another process is about to undo or archive it. `mine` is the kind of the service that asks.
    """
    write = timeline.write_at(instant_time)
    if write is None:
        raise _no_such_write_error(timeline, instant_time, write)
    if write.state != State.COMPLETED and _forbids(mine, kind_of(write.action) or WRITE, target=True):
        raise _no_such_write_error(timeline, instant_time, write)
    victims = pending_rollbacks(timeline)
    if victims and _forbids(mine, ROLLBACK, target=instant_time in victims):
        raise UndoError(
            f"The {write.action} {instant_time} of the table {timeline.storage.path} is being rolled back.",
            "Choose an earlier instant.",
        )
    if archived_until is None:
        archived_until = announced_until(timeline)
    if archived_until and _forbids(mine, ARCHIVING, target=instant_time <= archived_until):
        raise archiving_error(timeline.storage.path, instant_time)
    return write


def _forbids(mine: InstantKind, theirs: InstantKind, *, target: bool) -> bool:
    """Return whether another instant forbids this service; `target` says if it concerns the write in question."""
    return forbids(Meeting(mine, theirs, shared=all_shared({Shared.TARGET: target})))


def archiving_error(path: str, instant_time: str) -> UndoError:
    """Return the error for a write that an archiving process is about to archive."""
    return UndoError(
        f"The write {instant_time} of the table {path} is being archived.",
        "Run HudiTable.archive, which finishes the archiving, and choose an instant that is on the timeline then.",
    )


def refuse_savepoints(mine: InstantKind, timeline: Timeline, beyond: str, what: str, *, itself: bool) -> None:
    """Raise `UndoError` if a savepoint forbids a service of the kind `mine` to undo what came after the write `beyond`.

    Savepoints of later writes forbid it; with `itself`, the write is undone too, and so its own savepoint forbids
    it. `what` names the undo in the error.
    """
    savepoints = [instant for instant in timeline.instants if instant.action == "savepoint"]
    forbidding = [
        instant
        for instant in savepoints
        for target in [instant.requested_time > beyond or (itself and instant.requested_time == beyond)]
        if forbids(Meeting(mine, SAVEPOINT, known_of(instant), all_shared({Shared.TARGET: target})))
    ]
    if forbidding:
        names = ", ".join(instant.requested_time for instant in reversed(forbidding))
        raise UndoError(
            f"{what} of the table {timeline.storage.path} would undo what the savepoint {names} keeps.",
            "Delete the savepoint first (HudiTable.delete_savepoint), if it is no longer needed.",
        )


def dead_writes(
    mine: InstantKind,
    other_writers: OtherWriters,
    timeline: Timeline,
    after_time: str,
    asked: Asked = Asked.BEFORE_PLAN,
) -> list[PlannedRollback]:
    """Return rollbacks for a timeline's pending writes that were requested after `after_time`, all of them dead.

    `mine` is the kind of the service that asks, by which the rules of concurrency say what keeps it out.
    `other_writers` finds out by heartbeats which writers count as dead. `asked` SINCE_PLAN means that the service has
    looked for these writes before, so it does not wait for heartbeats. Raises `ConcurrentWriteError` if a writer lives,
    or may live, or if a write requested until that time is pending and the rules of concurrency forbid that.
    """
    rollbacks = []
    for instant in timeline.pending:
        # A pending plan, whose action differs from its group, is no write at work.
        if not instant.is_write or instant.action != instant.group:
            continue
        if instant.requested_time <= after_time:
            if forbids(Meeting(mine, WRITE)):
                raise in_the_way_error(timeline, instant)
            continue
        meeting = Meeting(mine, WRITE, shared=frozenset({Shared.LATER}), asked=asked)
        liveness = other_writers.refuse_living(instant, meeting, may_wait=asked is Asked.BEFORE_PLAN)
        # Without signs, the rules let the service begin beside this write.
        if liveness is not None:
            rollbacks.append(PlannedRollback(instant, liveness.beat))
    return rollbacks


def slices_at(
    mine: InstantKind,
    table: Table,
    now: Timeline,
    moment: Timeline,
    time: str,
    what: str,
    partitions: Iterable[str] | None = None,
) -> list[FileSlice]:
    """Return the file slices of `moment`, the timeline at `time`; only those of `partitions`, if given.

    `now` is the newest timeline, by which files are missing or about to be cleaned; `mine` is the kind of the service
    that asks. Raises `UndoError` if a file is gone, or a clean will delete it; `what` names the undo in the error.
    """
    files, slice_filter, as_of = (
        ListedFiles.find(SeenTable(table, now), now, time, partitions),
        SliceFilter(),
        Moment(moment, time),
    )
    slices = slice_filter.slices(files, as_of)
    cleaned_names = names_cleaned(now)
    lost_paths = [file.path for file in slice_filter.lost(files, as_of)]
    cleaned_paths = [path for file_slice in slices for path in file_slice.files if split(path)[1] in cleaned_names]
    cleans = [instant for instant in now.pending if kind_of(instant.action) is CLEAN]
    # If no clean is pending, completed cleans name these paths.
    if not cleans or forbids(Meeting(mine, CLEAN, shared=all_shared({Shared.FILES: cleaned_paths}))):
        lost_paths += cleaned_paths
        if cleans and not cleaned_paths:
            raise in_the_way_error(now, cleans[0])
    if lost_paths:
        raise UndoError(
            f"{what} of the table {table.path} needs the file {lost_paths[0]}, which is gone or about to be cleaned"
            + (f", as are {len(lost_paths) - 1} more." if len(lost_paths) > 1 else "."),
            "Choose a later instant, whose files are all there.",
        )
    return slices


def instants_in_words(instants: Sequence[Instant]) -> str:
    """Return the actions and times of instants, the newest first, and only the number of the oldest."""
    shown_names = [f"{instant.action} {instant.requested_time}" for instant in reversed(instants)][:_MOST_NAMED]
    more = len(instants) - len(shown_names)
    return ", ".join(shown_names) + (f" and {more} more" if more else "")


def try_again_error(table: Table, what: str) -> ConcurrentWriteError:
    """Return the error for an undo that met an instant that began after the first look."""
    return ConcurrentWriteError(
        f"{what} of the table {table.path} met another instant that began since.", "Run it again."
    )


_DOES = {
    "clean": "deleted files that no newer slice needs, which cannot come back",
    "rollback": "took a write back, whose rows can be written again",
    "restore": "took the table back to an earlier write",
    "savepoint": "keeps the files of a write, until HudiTable.delete_savepoint",
}


def _no_such_write_error(timeline: Timeline, instant_time: str, write: Instant | None) -> UndoError:
    """Return the error for a user's `instant_time` that names no completed write; it says what is there instead.

    `write` is the pending write of that time; None if there is none. Then a table service may have that time.
    """
    path = timeline.storage.path
    if write is not None:
        return UndoError(
            f"The {write.action} {instant_time} of the table {path} is not completed.",
            "Choose a completed write; HudiTable.history shows them.",
        )
    service = next((instant for instant in timeline.instants if instant.requested_time == instant_time), None)
    if service is not None:
        return UndoError(
            f"The instant {instant_time} of the table {path} is a {service.action}, a table service and no "
            f"write: it {_DOES.get(service.action, 'wrote no rows')}.",
            "Choose a write; HudiTable.history shows them.",
        )
    writes = instants_in_words(timeline.writes) or "none"
    return UndoError(
        f"There is no write {instant_time} on the timeline of the table {path} ({writes}); it was archived, "
        "undone, or never existed.",
        "Choose one of these; HudiTable.history shows what they did.",
    )
