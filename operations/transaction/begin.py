"""The start of an instant: exactly one task of a write chooses its time and puts it on the timeline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count, islice

from ...errors import ConcurrentWriteError, WriteSealedError
from ...table.table import refuse_other_version
from ...timeline.clock import Parity, next_time
from ...timeline.instants import Instant, State
from ...timeline.metadata.codec import Codec
from ...timeline.timeline import Timeline
from ...timeline.writers import heartbeat, owner
from ...timeline.writers.announcements import announced
from ...timeline.writers.write_notes import GIVEN_UP
from ..meeting.concurrency import ARCHIVING, WRITE, Asked, Meeting, Shared, all_shared, forbids
from ..meeting.transaction import Transaction
from .left_overs import forget
from .locks import HeldLock, hold

_WAIT_FOR_FIRST_S = 30.0
_FIRST_POLL_S, _LAST_POLL_S = 0.004, 0.05
# An attempt needs a further note only if another write took its time, or an archiving passed its time.
_MOST_NOTES = 100


class _PassedError(Exception):
    """The time of a write that is about to begin is too old: an archiving or another writer has passed it."""


@dataclass(frozen=True, slots=True)
class Swept:
    """The timeline that a sweep read, and whether a process may have announced an archiving."""

    timeline: Timeline
    archiving: bool


@dataclass(frozen=True, slots=True)
class BegunWork:
    """A write whose instant is on the timeline, and a timeline that shows it."""

    work: Transaction
    timeline: Timeline


@contextmanager
def begun(
    work: Transaction,
    requested: Callable[[Codec], bytes],
    prepare: Callable[[Transaction, Timeline], Swept],
    previous_time: str = "",
) -> Iterator[BegunWork]:
    """Put a write on the timeline, and touch its heartbeat until the block ends; every task calls this.

    Only the first task calls `prepare`, which makes the table ready, with the newest timeline. `requested` returns the
    content of the requested file. An attempt of a commit begins later than ``previous_time``, the time of its last
    attempt. Raises `WriteSealedError` if the write is over, and `ConcurrentWriteError` if other writes or an archiving
    took each time.
    """
    for noted_work, newest_timeline in islice(_noted_after(work, previous_time), _MOST_NOTES):
        is_first = _claim_noted_time(noted_work)
        if is_first is None:
            # Another write has the time, so a further note names a later time.
            continue
        try:
            with noted_work.heartbeat():
                timeline = None if is_first else _begun_timeline(noted_work)
                if timeline is None:
                    if not is_first:
                        # The first task died. A sweep may have deleted its claim.
                        noted_work.claim.make(noted_work.owner)
                    prepare_noted = partial(prepare, noted_work, newest_timeline or work.table.timeline())
                    timeline = _put_on_timeline(noted_work, requested, prepare_noted)
                yield BegunWork(noted_work, timeline)
                return
        except _PassedError:
            # The next note names a later time.
            forget(noted_work.storage, noted_work.instant_time)
        except WriteSealedError:
            # The process that sealed the write has removed all its files but this heartbeat.
            heartbeat.Heartbeat(noted_work.storage, noted_work.instant_time).delete()
            raise
    raise ConcurrentWriteError(
        f"The write to the table {work.path} found no free time on the timeline, {_MOST_NOTES} times in a row.",
        "Write again.",
    )


def _noted_after(work: Transaction, previous_time: str) -> Iterator[tuple[Transaction, Timeline | None]]:
    """Yield the write under the time of each of its notes, and the timeline as `_noted_time` returns it.

    Notes up to ``previous_time`` are of attempts that are over, so the result omits them.
    """
    instant_time = ""
    for number in count(1):
        instant_time, newest_timeline = _noted_time(work, number, instant_time)
        if instant_time > previous_time:
            yield work.at(instant_time), newest_timeline


def _noted_time(work: Transaction, number: int, last_noted: str) -> tuple[str, Timeline | None]:
    """Return the time that a note of the write names, by which all its tasks find their instant.

    Without a note of that number, this makes it, for a time after all instants and ``last_noted``, and also returns the
    timeline by which it chose the time, else None. Raises `WriteSealedError` if the write was given up.
    """
    instant_time, newest_timeline = work.notes.find(number), None
    if instant_time is None:
        newest_timeline = work.table.timeline()
        greatest = max(newest_timeline.greatest_time() or "", last_noted)
        chosen_time = next_time(int(time.time() * 1000), greatest or None, work.config.timezone, parity=Parity.EVEN)
        instant_time = chosen_time if work.notes.make(number, chosen_time) else work.notes.find(number)
    if not instant_time or instant_time == GIVEN_UP:
        raise sealed_error(work)
    return instant_time, newest_timeline


def _claim_noted_time(work: Transaction) -> bool | None:
    """Return whether this task is the first of its write to claim the noted time; None if another write has it.

    Raises `WriteSealedError` if this write is over.
    """
    claim_owner = work.claim.owner()
    is_first = claim_owner is None and work.claim.make(work.owner)
    if not is_first:
        claim_owner = claim_owner or work.claim.owner()
    if claim_owner is not None:
        return False if work.is_of(claim_owner) else None
    # A write that is over may leave only its seal, because it makes the seal before it deletes its claim. The seal may
    # be of this write, or of another write that had this time until a moment ago. If a claim exists, each file that is
    # published checks the seal.
    sealed_by = work.seal.key()
    if sealed_by is None:
        return is_first
    if is_first:
        forget(work.storage, work.instant_time)
    # A seal without a key may be of this write, too.
    if sealed_by in {work.key, ""}:
        raise sealed_error(work)
    return None


def _begun_timeline(work: Transaction) -> Timeline | None:
    """Wait for the first task to put the write on the timeline, and return that; None if that takes too long.

    Then the caller takes the steps: each creates a file if it is absent, so another task can repeat it. Raises
    `_PassedError` if the first task dropped the time, and `WriteSealedError` if the write is over.
    """
    deadline, pause_s = time.monotonic() + _WAIT_FOR_FIRST_S, _FIRST_POLL_S
    while time.monotonic() < deadline:
        timeline = work.table.timeline()
        instant = timeline.find(work.instant_time)
        if instant is not None and instant.state >= State.INFLIGHT:
            # The instant's file is visible, but may not be on the disk yet. It must be there before any data file.
            work.storage.flush([timeline.files.folder])
            return timeline
        refuse_sealed(work)
        if work.claim.owner() is None:
            raise _PassedError
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LAST_POLL_S)
    return None


def refuse_sealed(work: Transaction) -> None:
    """Raise `WriteSealedError` if the write is sealed: it was committed or given up, and takes no further files."""
    if any(owner.Seal(work.storage, seal).is_set() for seal in work.seals):
        raise sealed_error(work)


def sealed_error(work: Transaction) -> WriteSealedError:
    """Return the error for a task whose write is over."""
    return WriteSealedError(
        f"The write {work.instant_time} of the table {work.path} was committed or given up while this task ran.",
        "Nothing is to be done: the task's files are not part of the table.",
    )


def _take_back_if_given_up(work: Transaction) -> bool:
    """Take a write off the timeline if a process gave it up while it began; return whether one did."""
    if not work.seal.is_given_up():
        return False
    timeline = work.table.timeline()
    instant = timeline.find(work.instant_time)
    if instant is not None and instant.state != State.COMPLETED:
        timeline.files.remove_pending(instant)
    return True


def _refuse_completed(work: Transaction, instant: Instant | None) -> None:
    """Raise `WriteSealedError` for a late task of a completed write, whose seal may be gone.

    Without the seal, the task may have claimed the write's time again; that claim is deleted first.
    """
    if instant is not None and instant.state == State.COMPLETED:
        forget(work.storage, work.instant_time)
        raise sealed_error(work)


def _is_old(work: Transaction, timeline: Timeline, announced_until: str) -> bool:
    """Return whether all other writes are younger, or a process announced an archiving up to this time or beyond.

    A reader that listed the timeline before takes such an instant for archived, and its files for committed.
    ``announced_until`` is empty without an announcement.
    """
    writes = [instant.requested_time for instant in timeline.instants if instant.is_write]
    oldest_other = min((time for time in writes if time != work.instant_time), default="")
    if oldest_other > work.instant_time:
        return True
    shared = all_shared({Shared.ITSELF: announced_until >= work.instant_time})
    archiving = Meeting(WRITE, ARCHIVING, shared=shared, asked=Asked.SINCE_PLAN)
    return bool(announced_until) and forbids(archiving)


def _leave_if_old(held_lock: HeldLock, work: Transaction) -> Timeline:
    """Return a timeline with the requested write; take the write off again if it is too old, and raise `_PassedError`.

    A process that archives announces a time, and then lists the timeline. A write makes its file, and then looks for an
    announcement. So at least one of the two sees the other. Other software compares its write only with writes that
    were requested or pending at its own time. So if a lock keeps it out, the time must be the greatest.
    """
    announced_until = max(announced(work.storage), default="")
    timeline = work.table.timeline()
    instant = timeline.find(work.instant_time)
    if instant is not None and instant.state == State.COMPLETED:
        return timeline
    if instant is not None and instant.state == State.INFLIGHT:
        # The task that made the inflight file has looked for announcements already.
        announced_until = ""
    is_beginning = instant is None or instant.state == State.REQUESTED
    is_passed = held_lock.keeps_out and is_beginning and (timeline.greatest_time() or "") > work.instant_time
    if is_passed or _is_old(work, timeline, announced_until):
        timeline.files.remove_pending(work.inflight)
        raise _PassedError
    return timeline


def _put_on_timeline(work: Transaction, requested: Callable[[Codec], bytes], prepare: Callable[[], Swept]) -> Timeline:
    """Request and start the write's instant once `prepare` has made the table ready; return a timeline that shows it.

    `work` is the write under the time that it has claimed, and `requested` returns the content of the requested file.
    Raises `_PassedError` if the time is too old by now, upon which the caller tries a later time, and
    `WriteSealedError` if the write is over.
    """
    # An instant without a reserve counts as given up, so the reserve comes first.
    work.reserve.hold()
    swept = prepare()
    instant = swept.timeline.find(work.instant_time)
    _refuse_completed(work, instant)
    work.markers.begin()
    instants = work.table.instants
    with hold(work.table) as held_lock:
        refuse_other_version(work.table)
        if instant is None:
            # No other task of the write has requested the instant, which may still take another time.
            # Readers would take archived instants for uncommitted if this instant were older.
            announced_until = max(announced(work.storage), default="") if swept.archiving else ""
            if _is_old(work, swept.timeline, announced_until):
                raise _PassedError
        instants.request(work.inflight, requested(instants.codec))
        timeline = _leave_if_old(held_lock, work)
        instants.start(work.inflight)
        taken_back = _take_back_if_given_up(work)
    if taken_back:
        forget(work.storage, work.instant_time)
        raise sealed_error(work)
    return timeline
