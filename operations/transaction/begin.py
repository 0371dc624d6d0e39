"""The start of an instant: exactly one of its tasks puts it on the timeline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ...errors import ConcurrentWriteError, WriteSealedError
from ...timeline.instants import State
from ...timeline.metadata.codec import Codec
from ...timeline.timeline import Timeline
from ...timeline.writers import owner
from ...timeline.writers.announcements import announced
from .concurrency import ARCHIVING, WRITE, Asked, Meeting, Shared, Verdict, judge, those
from .left_overs import forget
from .locks import lock_of
from .transaction import Transaction

_WAIT_FOR_FIRST_S = 30.0
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Swept:
    """The timeline that a sweep read, and whether a process may have announced that it archives instants."""

    timeline: Timeline
    archiving: bool


def begin_write(work: Transaction, requested: Callable[[Codec], bytes], prepare: Callable[[], Swept]) -> Timeline:
    """Make a write's requested and inflight files, and return a timeline that shows it; every task calls this.

    Only the first task calls `prepare`, which makes the table ready. Raises `WriteSealedError` where the write is over,
    `ConcurrentWriteError` where another write has the same time or all writes on the timeline are younger.
    """
    known = work.claim.owner()
    if known is None:
        # A write that is over may leave only its seal. Where the owner's note exists, publishing checks the seal.
        refuse_sealed(work)
        if work.claim.make(work.owner):
            return _put_on_timeline(work, requested, prepare)
        known = work.claim.owner()
    if known is not None and known.write_id != work.write_id:
        raise same_millisecond(work)
    deadline = time.monotonic() + _WAIT_FOR_FIRST_S
    while time.monotonic() < deadline:
        timeline = work.table.timeline()
        found = timeline.find(work.instant_time)
        if found is not None and found.state >= State.INFLIGHT:
            # The instant's file is visible, but may not be on disk yet. It has to be before any data file is.
            work.storage.flush([timeline.files.folder])
            return timeline
        refuse_sealed(work)
        time.sleep(_POLL_S)
    # The task that came first died on the way: every step is create-if-absent, so it can be taken again.
    work.claim.make(work.owner)
    return _put_on_timeline(work, requested, prepare)


def same_millisecond(work: Transaction) -> ConcurrentWriteError:
    return ConcurrentWriteError(
        f"Another write of the table {work.path} began at the same millisecond and holds the instant "
        f"{work.instant_time}.",
        "Write again.",
    )


def refuse_sealed(work: Transaction) -> None:
    if any(owner.Seal(work.storage, one).is_set() for one in work.seals):
        raise over(work)


def over(work: Transaction) -> WriteSealedError:
    return WriteSealedError(
        f"The write {work.instant_time} of the table {work.path} was committed or given up while this task ran.",
        "Nothing is to be done: the task's files are not part of the table.",
    )


def _take_back_if_given_up(work: Transaction) -> None:
    """Undo the start of a write that was given up after this task had looked for its seal."""
    if work.seal.is_given_up():
        timeline = work.table.timeline()
        found = timeline.find(work.instant_time)
        if found is not None and found.state != State.COMPLETED:
            timeline.files.remove_pending(found)
        forget(work.storage, work.instant_time)
        raise over(work)


def _refuse_if_old(work: Transaction, timeline: Timeline, announced_until: str) -> None:
    """Raise where all other writes are younger, or where a process announced that it archives beyond this time.

    A reader that listed the timeline before takes such an instant for archived, and its files for committed.
    """
    writes = [one.requested_time for one in timeline.instants if one.is_write]
    first = min((time for time in writes if time != work.instant_time), default="")
    if first > work.instant_time:
        what = f"{first}, the oldest write that is still on its timeline"
    elif _is_passed(work, announced_until):
        what = f"{announced_until}, up to which its timeline is being archived"
    else:
        return
    raise ConcurrentWriteError(
        f"The write {work.instant_time} of the table {work.path} was planned before {what}; readers would take "
        "its files for archived and committed.",
        "Write again; compute the rows beforehand if they take hours (df.cache(), or a table of their own).",
    )


def _is_passed(work: Transaction, announced_until: str) -> bool:
    if not announced_until:
        return False
    shared = those({Shared.ITSELF: announced_until >= work.instant_time})
    return judge(Meeting(WRITE, ARCHIVING, shared=shared, asked=Asked.SINCE_PLAN)) is not Verdict.GO_ON


def _take_back_if_old(work: Transaction) -> Timeline:
    """Undo the start of a write that turns out to be too old once it is on the timeline.

    A process that archives first announces a time, then lists the timeline. This makes its file, then looks for the
    announcement. So at least one of the two sees the other.
    """
    until = max(announced(work.storage), default="")
    timeline = work.table.timeline()
    found = timeline.find(work.instant_time)
    if found is not None and found.state == State.COMPLETED:
        return timeline
    if found is not None and found.state == State.INFLIGHT:
        # The task that made the inflight file had looked for announcements before.
        until = ""
    try:
        _refuse_if_old(work, timeline, until)
    except ConcurrentWriteError:
        timeline.files.remove_pending(work.inflight)
        forget(work.storage, work.instant_time)
        raise
    return timeline


def _refuse_unseen(work: Transaction, swept: Swept) -> None:
    try:
        _refuse_if_old(work, swept.timeline, max(announced(work.storage), default="") if swept.archiving else "")
    except ConcurrentWriteError:
        forget(work.storage, work.instant_time)
        raise


def _put_on_timeline(work: Transaction, requested: Callable[[Codec], bytes], prepare: Callable[[], Swept]) -> Timeline:
    # An instant on the timeline without a reserve counts as given up, so the reserve comes first.
    work.reserve.hold()
    swept = prepare()
    work.markers.begin()
    instants = work.table.instants
    with lock_of(work.table).hold(work.table):
        if swept.timeline.find(work.instant_time) is None:
            # An instant older than archived instants makes readers take those for uncommitted.
            _refuse_unseen(work, swept)
        instants.request(work.inflight, requested(instants.codec))
        timeline = _take_back_if_old(work)
    instants.start(work.inflight)
    _take_back_if_given_up(work)
    return timeline
