"""Makes a table ready for a write that begins: undoes dead writes and removes what they left behind."""

from __future__ import annotations

from collections.abc import Sequence

from ...timeline.timeline import Timeline
from ..meeting.transaction import Transaction
from ..transaction.begin import Swept
from .pending import OtherWriters, PlannedRollback
from .rollback import roll_back
from .sweep import sweep


def make_ready(work: Transaction, timeline: Timeline, *, rollbacks: Sequence[PlannedRollback]) -> Swept:
    """Carry out the rollbacks, sweep, and return what the sweep read; `timeline` was listed right before.

    A rollback outdates the timeline, so then the sweep lists it again.
    """
    for planned in rollbacks:
        # A dead write may have filled the disk, and its rollback takes space.
        work.reserve.release()
        roll_back(OtherWriters(work.table, work.patience), planned)
        work.reserve.hold()
    return sweep(work.table, work.patience, own_time=work.instant_time, timeline=None if rollbacks else timeline)
