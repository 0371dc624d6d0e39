"""Undoes dead writes as a service of its own, as each write does before it begins."""

from __future__ import annotations

import time
from dataclasses import replace

from ...storage.base import Storage
from ...table.table import Table
from ...timeline.writers.owner import Liveness
from ...timeline.writers.patience import Patience
from ..meeting.concurrency import ROLLBACK
from ..result import ServiceResult
from ..rollback.dead import undo_dead
from ..rollback.pending import OtherWriters
from ..rollback.rollback import roll_back
from ..rollback.sweep import sweep
from ..transaction.decide import settle
from ..words.at_work import in_words
from .preconditions import open_for_service, refuse_restoring
from .rollback import rollback_of


def roll_back_dead_writes(storage: Storage, patience: Patience) -> ServiceResult:
    """Undo each pending write whose writer is dead, finish rollbacks that broke off, and remove what dead writes left.

    `skipped` of the result names the writers that live or may live. Raises `ConcurrentWriteError` beside a restore.
    """
    began = time.monotonic()
    result = undo_dead_writes(open_for_service(storage), patience)
    return replace(result, seconds=time.monotonic() - began)


def undo_dead_writes(table: Table, patience: Patience) -> ServiceResult:
    """Do what `roll_back_dead_writes` does in a table that its caller has opened.

    It undoes each pending write whose writer is dead, finishes rollbacks that broke off, and removes what dead writes
    left. `patience` says after how long without a heartbeat another writer counts as dead. The result counts the
    deleted files and the undone writes, and `skipped` names the writers that live or may live.
    Raises `ConcurrentWriteError` while a restore is pending.
    """
    other_writers = OtherWriters(table, patience)
    # Carry out the last decision first: its maker may be one of the dead writers.
    settle(table)
    timeline = table.timeline()
    refuse_restoring(ROLLBACK, timeline)
    finished_rollbacks = other_writers.rollbacks_to_finish(timeline, ROLLBACK)
    for dead in finished_rollbacks:
        roll_back(other_writers, dead)
    pending = undo_dead(other_writers, timeline.reload() if finished_rollbacks else timeline)
    sweep(table, patience, own_time="")
    now = table.timeline()
    # `undo_dead` gives no reason to stay for a write that it has rolled back.
    victims = [*(dead.victim for dead in finished_rollbacks), *(write for write, why in pending.items() if why is None)]
    newest_rollbacks = [rollback_of(table, now, victim.requested_time) for victim in victims]
    rollbacks = [rollback for rollback in newest_rollbacks if rollback is not None]
    described_living = [
        _in_words_with_reason(in_words(table, write), why) for write, why in pending.items() if why is not None
    ]
    return ServiceResult(
        table.path,
        "rollback",
        rollbacks[-1].instant if rollbacks else "",
        files=sum(result.files for result in rollbacks),
        instants=len(rollbacks),
        skipped="; ".join(described_living),
    )


def _in_words_with_reason(write: str, why: Liveness) -> str:
    """Return a pending write in words, with the reason why it stays if another engine's writer may live."""
    # Only the user can know whether another engine's writer lives, so the text gives the reason.
    return f"{write}: {why.reason}. {why.todo}".rstrip(".") if why.foreign else write
