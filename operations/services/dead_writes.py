"""Dead writes undone without another write: what each write does before it begins, as a service of its own."""

from __future__ import annotations

import time

from ...errors import ConcurrentWriteError
from ...storage.base import Storage
from ...timeline.held import says_what_it_holds
from ...timeline.writers.owner import Claim
from ...timeline.writers.patience import Patience
from ..inspect.activity import shown
from ..result import ServiceResult
from ..rollback.pending import PlannedRollback, broken_off, refuse_living
from ..rollback.rollback import roll_back
from ..rollback.sweep import sweep
from ..transaction.commit_path import time_after
from ..transaction.concurrency import ROLLBACK, WRITE, Meeting, Shared
from ..transaction.decide import settle
from .preconditions import open_for_service, refuse_restoring
from .rollback import rollback_of

_BESIDE = Meeting(ROLLBACK, WRITE, shared=frozenset({Shared.LATER}))


def roll_back_dead_writes(
    storage: Storage, patience: Patience, *, metadata_enable: bool | None = None
) -> ServiceResult:
    """Undo each pending write whose writer is dead, finish rollbacks that broke off, and remove what writes left.

    `skipped` of the result names the writers that live or may live. Raises `ConcurrentWriteError` beside a restore.
    """
    began = time.monotonic()
    table = open_for_service(storage, metadata_enable)
    settle(table)
    timeline = table.timeline()
    refuse_restoring(ROLLBACK, storage, timeline)
    undone = [*broken_off(timeline, ROLLBACK)]
    for one in undone:
        roll_back(table, one, patience)
    living: list[str] = []
    for write in (timeline.reload() if undone else timeline).pending:
        if not write.is_write or write.action != write.group or says_what_it_holds(timeline, write):
            continue
        try:
            verdict = refuse_living(table, write, patience, _BESIDE)
            if verdict is not None:
                undone.append(PlannedRollback(write, time_after(table, table.timeline()), verdict.beat))
                roll_back(table, undone[-1], patience)
        except ConcurrentWriteError as error:
            owned = Claim(storage, write.requested_time).owner() is not None
            living.append(
                shown(table, write) if owned else f"{shown(table, write)}: {error.what} {error.todo}".rstrip(".")
            )
    sweep(table, patience, own="")
    now = table.timeline()
    found = [rollback_of(now, one.victim.requested_time) for one in undone]
    done = [one for one in found if one is not None]
    return ServiceResult(
        storage.path,
        "rollback",
        done[-1].instant if done else "",
        files=sum(one.files for one in done),
        instants=len(done),
        seconds=time.monotonic() - began,
        skipped="; ".join(living),
    )
