"""The end of a failed write."""

from __future__ import annotations

from ..planning.plan import WritePlan
from ..transaction.abort import abort


def abort_write(plan: WritePlan) -> None:
    """Undo a write, unless it turns out to be completed; safe to call twice, and after a failed commit."""
    if plan.replays is None:
        abort(plan.transaction)
