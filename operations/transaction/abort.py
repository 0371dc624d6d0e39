"""The end of an instant whose own writer gives it up."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from itertools import count

from ...errors import TableError
from ...table.config import stored_config
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers.write_notes import GIVEN_UP
from ..following.partitions_in_use import written_partitions
from ..meeting.transaction import Transaction
from .commit_path import abandon
from .instant_changes import remove_pending
from .left_overs import by_partition, files_of, forget, forget_attempt, forget_partitions
from .undone_metadata import take_back_metadata

logger = logging.getLogger("pyhudi")


def abort_begun(work: Transaction) -> Timeline | None:
    """Undo all instants that a write began, by its notes, and keep its tasks from beginning another.

    Returns the timeline from before the last undo, as `abort`; None if no instant was of this write.
    """
    timeline = None
    for number in count(1):
        noted_time = work.notes.find(number)
        if noted_time is None and work.notes.make(number, GIVEN_UP):
            # No task can begin the write any more.
            break
        noted_time = noted_time or work.notes.find(number)
        if not noted_time:
            # Another call has given the write up.
            break
        # If another write has the noted time, this write has no instant there.
        claim_owner = work.at(noted_time).claim.owner()
        if claim_owner is None or work.is_of(claim_owner):
            timeline = abort(work.at(noted_time)) or timeline
    return timeline


def abort(work: Transaction, *, tries_again: bool = False) -> Timeline | None:
    """Undo an instant unless it is completed; safe to call twice, and after a commit.

    Returns the timeline from before the undo; None, without an undo, if another write has the instant's time. A
    completed instant stays: only its left-overs are deleted. The seal stays, so that tasks that are still at work
    notice the end. With ``tries_again`` the spills stay for the commit's next attempt, and the write is not sealed for
    good.
    """
    planned_work, storage = work, work.storage
    # An upgrade may have moved the instant since the plan.
    work = _in_version_of_now(work)
    # If the claim is gone, make it again, so that no other write takes the time during the undo.
    made_claim = work.claim.make(work.owner)
    if not made_claim and not _is_ours(work):
        return None
    # Ask before this call itself says so of the write.
    was_given_up = made_claim and work.seal.is_given_up()
    # The disk may be full, so first delete what only this write needs. Data files stay until its end is decided.
    if not tries_again:
        _make_room(work)
        # Other processes roll back a write that is sealed for good, with its spills.
        work.seal.set_for_good(work.key)
    timeline = abandon(work.table, partial(_unfinished_instant, work))
    instant = timeline.find(work.instant_time)
    is_archived = instant is None and work.table.archive.holds(work.instant_time)
    if is_archived or (instant is not None and instant.state == State.COMPLETED):
        logger.warning(
            "table %s: the instant %s is completed and stays; only the store's answer was lost",
            work.path,
            work.instant_time,
        )
        forget(storage, work.instant_time)
        return timeline
    # If another writer rolled this write back, or a sweep removed its working folder before the instant was on the
    # timeline, its markers are gone and files may have appeared since. List files then instead of trusting markers.
    may_lack_markers = was_given_up or (made_claim and instant is not None)
    if work.table.instants.layout != planned_work.table.instants.layout:
        # If it began after the upgrade, its instant is in the old folder, where no reader looks.
        remove_pending(planned_work.table, planned_work.inflight)
    _erase(work, instant, files_of(work.table, timeline, work.instant_time, rolled_back=may_lack_markers))
    if tries_again:
        forget_attempt(storage, work.instant_time)
        return timeline
    forget(storage, work.instant_time)
    logger.warning("table %s: gave up the write %s", work.path, work.instant_time)
    return timeline


def _in_version_of_now(work: Transaction) -> Transaction:
    """Return the work by the table's current version: an upgrade by Apache Hudi moves pending instants, too.

    If the table has no properties yet, the work stays as it is.
    """
    try:
        config = stored_config(work.storage)
    except TableError:
        # The properties cannot be read any more, so undo by the version that this process knows.
        return work
    return work if config is None else replace(work, table=Table.of(work.storage, config))


def _is_ours(work: Transaction) -> bool:
    """Return whether an instant's claim is of this write, or gone."""
    claim_owner = work.claim.owner()
    return claim_owner is None or work.is_of(claim_owner)


def _make_room(work: Transaction) -> None:
    """Free the space of what only this instant needs on a disk: its reserve, its spills, and files not yet in place."""
    work.reserve.release()
    # An object store is never full, so it is spared the requests.
    if not work.storage.remote:
        for folder in (work.spills, work.aside):
            work.storage.delete_folder(folder)


def _unfinished_instant(work: Transaction, timeline: Timeline) -> Instant | None:
    """Return the write's instant on a timeline; None if it is completed, or not on the timeline."""
    own_instant = timeline.find(work.instant_time)
    return None if own_instant is None or own_instant.state == State.COMPLETED else own_instant


def _erase(work: Transaction, own_instant: Instant | None, paths: list[str]) -> None:
    """Delete an instant's data files and what it wrote to the metadata table, and take it off the timeline."""
    work.table.format.undo.take_back(work.storage, {work.instant_time: paths})
    if written_partitions(work.table.config):
        # Another engine may have begun to undo it while a process carried out the decision to complete it.
        take_back_metadata(work.table, [work.instant_time])
    if own_instant is not None:
        remove_pending(work.table, own_instant)
    forget_partitions(work.table, work.inflight, by_partition(paths))
