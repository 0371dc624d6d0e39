"""A failed write given up."""

from __future__ import annotations

from ..planning.plan import WritePlan
from ..transaction.abort import abort


def abort_write(plan: WritePlan) -> None:
    """Leave nothing of a write, unless it turns out to be completed; may be called twice, and after a failed commit."""
    if plan.replays is None:
        abort(plan.transaction)
