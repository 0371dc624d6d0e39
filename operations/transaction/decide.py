"""The race for the next decision of a table, which is the point of no return of every commit, rollback and abort.

Whoever decides holds what it is about to do against the timeline on which all earlier decisions are carried out, and
then makes the file of the next number. Somebody who slept between the two, for however long, finds that number taken,
and looks again. So no lock is needed, and nobody waits for a process that does not move.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from ...errors import ConcurrentWriteError, PyHudiError, StorageError
from ...storage.base import Storage, is_unflushed
from ...table.table import Table
from ...timeline.instants import State
from ...timeline.timeline import Timeline
from ...timeline.writers import decisions
from ...timeline.writers.decisions import Decision, DecisionKind
from .carried_out import carry_out, is_carried_out
from .locks import lock_of

logger = logging.getLogger("pyhudi")

# The newest one alone binds; some more spare those who slept a file that says nothing.
KEPT = 16
_ROUNDS = 100
_LONGEST_PAUSE_S = 1.0
# A decision that is being made in place, where a file system knows no links, is whole within moments.
HALF_MADE_S = 5.0
_POLL_S = 0.1
_TRIES = 3
# Within less nobody has made a decision his own, written more and archived it.
LATE_S = 0.5


def decide(
    table: Table,
    build: Callable[[Timeline], Decision | None],
    relief: Callable[[], None] | None = None,
) -> Timeline:
    """Make the table's next decision and carry it out.

    Args:
        table: The table.
        build: Returns what is to be done, given the timeline; None where nothing is, or it is done already. It is
            asked again after each lost race, and raises where it must not be done.
        relief: Makes room where the store failed after the decision was made.

    Returns:
        The timeline that `build` was asked about last.

    Raises:
        ConcurrentWriteError: Others decided first, again and again.
        StorageError: The store failed. Where the decision stands, whoever decides next carries it out.
    """
    with lock_of(table).hold(table):
        return _decide(table, build, relief)


def _decide(table: Table, build: Callable[[Timeline], Decision | None], relief: Callable[[], None] | None) -> Timeline:
    for attempt in range(_ROUNDS):
        began = time.monotonic()
        number, timeline = settle(table)
        decision = build(timeline)
        if decision is None:
            return timeline
        decision = replace(decision, maker=uuid.uuid4().hex)
        # After a longer sleep the number may be free again: it is binding only as the newest.
        if _create(table.storage, number + 1, decision.encode()) and _is_newest(table.storage, number + 1):
            _insist(table.storage, decision, timeline, relief)
            _take_back_late(table, decision, began)
            return timeline
        # Not all who met at once again.
        time.sleep(random.uniform(0, min(0.01 * 2**attempt, _LONGEST_PAUSE_S)))  # noqa: S311 (keeps no secret)
    raise ConcurrentWriteError(
        f"Others decided first about the table {table.path}, {_ROUNDS} times in a row.", "Write again."
    )


def settle(table: Table) -> tuple[int, Timeline]:
    """Carry out the newest decision, where whoever made it is gone, or slow.

    Returns:
        Its number, 0 where there is none, and a timeline on which it is carried out.

    Raises:
        ConcurrentWriteError: Somebody else changes the table's properties at the same time.
        StorageError: The store failed.
    """
    known = _known(table.storage)
    newest, began = known[-1], time.monotonic()
    decision = _read(table.storage, newest) if newest else None
    timeline = table.timeline()
    if decision is not None and not is_carried_out(decision, timeline):
        logger.info("table %s: carrying out the decision %d (%s)", table.path, newest, decision.kind.value)
        _insist(table.storage, decision, timeline, None)
        _take_back_late(table, decision, began)
        timeline = table.timeline()
    _forget(table.storage, known)
    return newest, timeline


def _known(storage: Storage) -> list[int]:
    return [0, *decisions.numbers(storage)]


def _read(storage: Storage, number: int) -> Decision | None:
    """Return a decision; None where it is gone, as a newer one stands, or nobody has finished or can read it.

    Raises:
        UnsupportedTableError: A newer release made it in a format that this one does not know.
    """
    deadline = time.monotonic() + HALF_MADE_S
    while True:
        try:
            data = storage.read(decisions.path_of(number))
        except FileNotFoundError:
            return None
        decisions.refuse_newer(storage, number, data)
        found = Decision.parse(data)
        if found is not None:
            return found
        if time.monotonic() > deadline:
            logger.warning(
                "table %s: the decision %s is not whole and binds nobody", storage.path, decisions.path_of(number)
            )
            return None
        time.sleep(_POLL_S)


def _create(storage: Storage, number: int, content: bytes) -> bool:
    """Make a decision; an answer lost on the way is settled by looking whose it is."""
    path = decisions.path_of(number)
    try:
        return storage.create(path, content)
    except StorageError as error:
        if is_unflushed(error):
            raise
        try:
            found = storage.read(path)
        except FileNotFoundError:
            found = None
        if found != content:
            raise
        return True


def _is_newest(storage: Storage, number: int) -> bool:
    for _ in range(_TRIES - 1):
        try:
            return _known(storage)[-1] == number
        except StorageError:
            # Whoever gives up here would not know what has become of the decision.
            logger.warning("table %s: the decisions could not be listed", storage.path, exc_info=True)
    return _known(storage)[-1] == number


def _insist(storage: Storage, decision: Decision, timeline: Timeline, relief: Callable[[], None] | None) -> None:
    """Carry a decision out, and try again where it fails: it stands, whatever is said of it."""
    for attempt in range(1, _TRIES + 1):
        try:
            carry_out(storage, decision, timeline)
            return
        except (StorageError, ConcurrentWriteError) as error:
            if isinstance(error, StorageError) and is_unflushed(error):
                raise
            if attempt == _TRIES:
                raise _unfinished(decision, error) from error
            logger.warning("table %s: carrying out a decision failed once", storage.path, exc_info=True)
        if relief is not None:
            relief()
        time.sleep(random.uniform(0, _POLL_S))  # noqa: S311


def _take_back_late(table: Table, decision: Decision, began: float) -> None:
    """Delete a completed file that was made again after somebody else had made it and archived its instant.

    As the first write on the timeline it would say of all that was archived after it that it never was.
    """
    done = decision.instant
    makes_write = decision.kind == DecisionKind.MAKE and done.state == State.COMPLETED and done.is_write
    if not makes_write or time.monotonic() - began < LATE_S:
        return
    timeline = table.timeline()
    writes = [one for one in timeline.instants if one.is_write]
    if len(writes) < 2 or writes[0] != done or table.storage.exists(timeline.files.path(done.at(State.REQUESTED))):
        return
    if table.archive.holds(done.requested_time):
        table.storage.delete(timeline.files.path(done))


def _unfinished(decision: Decision, error: PyHudiError) -> StorageError:
    """Return the error of a decision that stands, and of which not everything is done."""
    instant = decision.instant
    done = "completes" if decision.kind == DecisionKind.MAKE and instant.state == State.COMPLETED else "carries out"
    return StorageError(
        f"{error.what} The {instant.action} {instant.requested_time} was decided before that, and the decision stands: "
        f"whoever writes to the table next {done} it.",
        "Look at the table's history before you write the same rows again.",
    )


def _forget(storage: Storage, known: list[int]) -> None:
    """Delete old decisions, many at a time."""
    if len(known) <= 2 * KEPT:
        return
    try:
        storage.delete(*map(decisions.path_of, known[1:-KEPT]), durable=False)
    except StorageError:
        logger.warning("table %s: old decisions stay for now", storage.path, exc_info=True)
