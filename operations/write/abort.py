"""The end of a failed write."""

from __future__ import annotations

from ..planning.plan import WritePlan
from ..rollback.dead import try_to_undo_dead
from ..transaction.abort import abort_begun


def abort_write(plan: WritePlan) -> None:
    """Undo a write, unless it turns out to be completed; safe to call twice, and after a failed commit."""
    timeline = abort_begun(plan.transaction) if plan.replays is None else None
    if timeline is not None:
        # A dead write may have filled the disk, so that no write gets as far as its commit.
        try_to_undo_dead(plan.transaction, timeline)
