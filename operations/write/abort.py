"""The end of a failed write."""

from __future__ import annotations

import logging

from ..planning.plan import WritePlan
from ..rollback.dead import undo_dead
from ..transaction.abort import abort_begun

logger = logging.getLogger("pyhudi")


def abort_write(plan: WritePlan) -> None:
    """Undo a write, unless it turns out to be completed; safe to call twice, and after a failed commit."""
    timeline = abort_begun(plan.transaction) if plan.replays is None else None
    if timeline is None:
        return
    try:
        # A dead write may have filled the disk, so that no write gets as far as its commit.
        undo_dead(plan.table, timeline, plan.transaction.patience, own=plan.instant_time)
    except Exception:
        logger.warning("table %s: dead writes stay until the next write", plan.path, exc_info=True)
