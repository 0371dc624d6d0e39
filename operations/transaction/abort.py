"""An instant given up by its own writer."""

from __future__ import annotations

import logging
from functools import partial

from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from .commit_path import abandon
from .left_overs import by_partition, erase, files_of, forget
from .opened_partitions import forget_partitions
from .transaction import Transaction

logger = logging.getLogger("pyhudi")


def abort(work: Transaction) -> None:
    """Leave nothing of an instant, unless it turns out to be completed; may be called twice, and after a failed commit.

    The note "sealed" stays behind for tasks that are still at work; a later write's start removes it.
    """
    storage = work.storage
    begins = work.claim.make(work.owner)
    if not begins and not _is_ours(work):
        return
    given_up = begins and work.seal.is_given_up()
    # The disk may be full: what only this write needs goes first. Data files stay until the end is decided.
    _make_room(work)
    work.seal.set_for_good()
    timeline = abandon(work.table, partial(_unfinished, work.instant_time))
    found = timeline.find(work.instant_time)
    gone = found is None and work.table.archive.holds(work.instant_time)
    if gone or (found is not None and found.state == State.COMPLETED):
        logger.warning("table %s: %s is completed and stays; its answer was lost", work.path, work.instant_time)
        forget(storage, work.instant_time)
        return
    # Whoever took this write for dead has taken its markers away, and it may have made files since. So has whoever did
    # before it was on the timeline, and came to it late: what it holds is made before its instant, and was gone.
    unmarked = given_up or (begins and found is not None)
    _erase(work, found, files_of(storage, work.instant_time, rolled_back=unmarked))
    logger.warning("table %s: gave up the write %s", work.path, work.instant_time)


def _is_ours(work: Transaction) -> bool:
    """Return whether the instant time was claimed by this write, and not by another that began in one millisecond."""
    known = work.claim.owner()
    return known is None or known.write_id == work.write_id


def _make_room(work: Transaction) -> None:
    """Free what the write holds beside its data files; a store of objects is never full, and is spared the requests."""
    work.reserve.release()
    if not work.storage.remote:
        for folder in (work.spills, work.aside):
            work.storage.delete_folder(folder)


def _unfinished(instant_time: str, timeline: Timeline) -> Instant | None:
    own = timeline.find(instant_time)
    return None if own is None or own.state == State.COMPLETED else own


def _erase(work: Transaction, own: Instant | None, paths: list[str]) -> None:
    if own is None:
        work.storage.delete(*paths)
    else:
        erase(work.table.instants, own, paths)
    forget_partitions(work.table, work.inflight, by_partition(paths))
    forget(work.storage, work.instant_time)
