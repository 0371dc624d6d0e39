"""The race for the next decision of a table, the point of no return of every commit, rollback and abort.

A process first carries out all earlier decisions. It checks its own decision against the timeline that shows them, and
then makes the file of the next number. If it stalls between check and file, for however long, it finds the number
taken, and checks again. So pyhudi needs no lock, and no process waits for a stalled process.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from ...errors import CommitConflictError, ConcurrentWriteError, PyHudiError, StorageError, TableConfigError
from ...storage.base import Storage, is_unflushed
from ...table.metadata.metadata_table import MetadataTable
from ...table.table import Table
from ...timeline.instants import State
from ...timeline.timeline import Timeline
from ...timeline.writers import decisions
from ...timeline.writers.decisions import HALF_MADE_S, Decision, DecisionKind
from ..following.before_completion import LATE_S, take_back_steps
from ..following.undone_metadata import take_back_if_archived
from .beside_upgrade import is_completed_now
from .carried_out import carry_out, first_steps_of, is_carried_out, is_newest, is_undone
from .locks import HeldLock, hold


def take_back_late_steps(table: Table, decision: Decision) -> None:
    """Delete the files that a decision made for an instant of the metadata table, if that instant was over before."""
    if is_newest(table.storage, decision):
        # No process has decided since, so none has ended the instant.
        return
    if _is_instant_over(table, decision):
        for first_steps in decision.first:
            take_back_steps(table.storage, first_steps)


def _is_instant_over(table: Table, decision: Decision) -> bool:
    """Return whether a decision's instant of the metadata table was archived, or that table dropped or built since."""
    instant_time = decision.instant.requested_time
    try:
        metadata = MetadataTable.with_partitions(table, table.timeline(), ())
    except TableConfigError:
        # The metadata table was dropped.
        return True
    archived_instants = metadata.timeline.files.archive.instants(instant_time, instant_time)
    return metadata.files_begun() > instant_time or any(
        each.requested_time == instant_time for each in archived_instants
    )


logger = logging.getLogger("pyhudi")

# Only the newest decision is binding. A few older decisions stay so that a stalled writer finds its number taken.
KEPT = 16
_ROUNDS = 100
# During a long pause many instants complete, which the next round has to check.
_LONGEST_PAUSE_S = 0.25
_POLL_S = 0.1
_TRIES = 3


def decide(
    table: Table,
    build: Callable[[Timeline], Decision | None],
    make_room: Callable[[], None] | None = None,
) -> Timeline:
    """Make the table's next decision, carry it out, and return the timeline that `build` got last.

    `build` runs again after each lost race, and returns None if there is nothing to decide. `make_room` frees space
    that this process holds on a full store. Raises `ConcurrentWriteError` after many lost races, and `StorageError` if
    the store failed: if the decision was made before, it is binding, and the next process that decides carries it out.
    """
    with hold(table) as held_lock:
        for attempt in range(_ROUNDS):
            start_s = time.monotonic()
            number, timeline = carry_out_newest(held_lock)
            decision = build(timeline)
            if decision is None:
                return timeline
            decision = replace(decision, maker=uuid.uuid4().hex)
            # Old decisions are deleted, so after a long stall the number may be free again. Only the newest binds.
            if _create(table.storage, number + 1, decision.encode()) and _is_newest(table.storage, number + 1):
                try:
                    _carry_out_with_retries(held_lock, decision, timeline, make_room)
                except CommitConflictError:
                    # The table has another version now, and a process of that version may have decided since.
                    made_empty = _make_empty_decision(table.storage, number + 2, decision)
                    # If the other process has completed the instant in the new version, this call has succeeded.
                    if made_empty or not is_completed_now(table, decision.instant):
                        raise
                _take_back_late(held_lock, decision, start_s)
                return timeline
            # Pauses of random lengths keep the same processes from meeting again.
            time.sleep(random.uniform(0, min(0.01 * 2**attempt, _LONGEST_PAUSE_S)))  # noqa: S311 (keeps no secret)
    raise ConcurrentWriteError(
        f"Other processes decided first about the table {table.path}, {_ROUNDS} times in a row.", "Write again."
    )


def settle(table: Table) -> Timeline:
    """Carry out the newest decision, whose maker may be dead, and return the timeline."""
    with hold(table) as held_lock:
        return carry_out_newest(held_lock)[1]


def carry_out_newest(held_lock: HeldLock) -> tuple[int, Timeline]:
    """Carry out the newest decision; return its number, 0 for none, and the timeline."""
    table = held_lock.table
    numbers = _decision_numbers(table.storage)
    newest, start_s = numbers[-1], time.monotonic()
    decision = _read_decision(table, newest) if newest else None
    timeline = table.timeline()
    if decision is not None and not is_carried_out(decision, timeline) and not _was_archived(table, decision):
        logger.info("table %s: carrying out the decision %d (%s)", table.path, newest, decision.kind.value)
        _carry_out_with_retries(held_lock, decision, timeline, None)
        _take_back_late(held_lock, decision, start_s)
        timeline = table.timeline()
    _delete_old(table.storage, numbers)
    return newest, timeline


def _was_archived(table: Table, decision: Decision) -> bool:
    """Return whether another engine, which decides nothing, archived what the newest decision made since.

    As the first instant of the metadata table's timeline, it would make readers take later instants for uncommitted.
    """
    return decision.kind == DecisionKind.TAKE_STEPS and _is_instant_over(table, decision)


def _decision_numbers(storage: Storage) -> list[int]:
    """Return the numbers of all decisions in ascending order; the list begins with 0, which no decision has."""
    return [0, *decisions.numbers(storage)]


def _read_decision(table: Table, number: int) -> Decision | None:
    """Return a decision; None if it is deleted because a newer one exists, or if its file stays incomplete.

    Then there is nothing to carry out.
    """
    storage, deadline = table.storage, time.monotonic() + HALF_MADE_S
    while True:
        try:
            data = storage.read(decisions.path_of(number))
        except FileNotFoundError:
            return None
        decisions.refuse_newer(storage, number, data)
        decision = Decision.parse(data)
        if decision is not None:
            return decision
        if time.monotonic() > deadline:
            logger.warning(
                "table %s: the file %s of a decision is incomplete, so it is not binding",
                storage.path,
                decisions.path_of(number),
            )
            return None
        time.sleep(_POLL_S)


def _create(storage: Storage, number: int, content: bytes) -> bool:
    """Make a decision's file, and return whether this process made it; if the store's answer is lost, compare content.

    False if another process made a decision of that number first.
    """
    path = decisions.path_of(number)
    try:
        return storage.create(path, content)
    except StorageError as error:
        if is_unflushed(error):
            # The file is there, but may be gone after a power cut.
            raise
        try:
            stored = storage.read(path)
        except FileNotFoundError:
            stored = None
        if stored != content:
            raise
        return True


def _is_newest(storage: Storage, number: int) -> bool:
    """Return whether the decision ``number`` is the newest; if the store fails to list decisions, try it again."""
    for _ in range(_TRIES - 1):
        try:
            return _decision_numbers(storage)[-1] == number
        except StorageError:
            # An error here would leave unknown whether the decision is binding.
            logger.warning("table %s: the decisions could not be listed", storage.path, exc_info=True)
    return _decision_numbers(storage)[-1] == number


def _carry_out_with_retries(
    held_lock: HeldLock, decision: Decision, timeline: Timeline, make_room: Callable[[], None] | None
) -> None:
    """Carry a decision out, and try again if that fails: the decision is binding, whatever error follows.

    Raises `StorageError` after the last try, and `CommitConflictError` as `carry_out`.
    """
    for attempt in range(1, _TRIES + 1):
        try:
            carry_out(held_lock, decision, timeline)
            return
        except (StorageError, ConcurrentWriteError) as error:
            if isinstance(error, StorageError) and is_unflushed(error):
                # A second flush would report success and prove nothing.
                raise
            if attempt == _TRIES:
                raise _unfinished_error(decision, error) from error
            logger.warning("table %s: carrying out a decision failed once", held_lock.table.path, exc_info=True)
        if make_room is not None:
            make_room()
        time.sleep(random.uniform(0, _POLL_S))  # noqa: S311


def _make_empty_decision(storage: Storage, number: int, decision: Decision) -> bool:
    """Make a decision without effect, so that no process carries the decision before it out; return whether that is so.

    False if another process decided first: it has carried the earlier decision out.
    """
    empty_decision = Decision(DecisionKind.CLOSE, decision.instant.at(State.INFLIGHT), maker=uuid.uuid4().hex)
    return _create(storage, number, empty_decision.encode()) and _is_newest(storage, number)


def _take_back_late(held_lock: HeldLock, decision: Decision, start_s: float) -> None:
    """Delete a completed file that this process made again after another process had undone or archived its instant.

    As the first write on the timeline, it would make readers take all instants archived after it for uncommitted. The
    files that came before it go, too. ``decision`` is what this process has carried out under the ``held_lock``, and
    ``start_s`` is the monotonic time right before it read the timeline for that.
    """
    table, completed = held_lock.table, decision.instant
    if decision.kind == DecisionKind.TAKE_STEPS and time.monotonic() - start_s >= LATE_S:
        take_back_late_steps(table, decision)
    makes_write = decision.kind == DecisionKind.MAKE and completed.state == State.COMPLETED and completed.is_write
    if not makes_write or time.monotonic() - start_s < LATE_S:
        # No process is fast enough to undo or archive the instant in less time.
        return
    timeline = table.timeline()
    if not is_undone(timeline, completed):
        return
    if not table.archive.holds(completed.requested_time):
        if timeline.files.layout.next is not None:
            # Apache Hudi may be moving the instant to another version.
            return
        table.storage.delete(timeline.files.path(completed))
        for first_steps in first_steps_of(table, decision):
            take_back_steps(table.storage, first_steps)
        return
    take_back_if_archived(table, completed.requested_time)
    # Only as the first write does it mislead readers.
    writes = [instant for instant in timeline.instants if instant.is_write]
    if len(writes) >= 2 and writes[0] == completed:
        table.storage.delete(timeline.files.path(completed))


def _unfinished_error(decision: Decision, error: PyHudiError) -> StorageError:
    """Return the error of a decision that is binding, and that this process could not carry out."""
    instant = decision.instant
    verb = "completes" if decision.kind == DecisionKind.MAKE and instant.state == State.COMPLETED else "carries out"
    return StorageError(
        f"{error.what} The {instant.action} {instant.requested_time} was decided before that and is binding: the next "
        f"write to the table {verb} it.",
        "Look at the table's history before you write the same rows again.",
    )


def _delete_old(storage: Storage, numbers: list[int]) -> None:
    """Delete all but the newest `KEPT` decisions once there are twice as many; a failure is only logged.

    The first of the ``numbers`` is 0, of no decision.
    """
    if len(numbers) <= 2 * KEPT:
        return
    try:
        storage.delete(*map(decisions.path_of, numbers[1:-KEPT]), durable=False)
    except StorageError:
        logger.warning("table %s: old decisions stay for now", storage.path, exc_info=True)
