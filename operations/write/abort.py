"""The end of a failed write."""

from __future__ import annotations

from ..planning.plan import WritePlan
from ..rollback.dead import give_up_begun


def abort_write(plan: WritePlan) -> None:
    """Undo a write, unless it turns out to be completed; safe to call twice, and after a failed commit."""
    if plan.replays is None:
        give_up_begun(plan.transaction)
