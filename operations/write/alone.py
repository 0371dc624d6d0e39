"""A write that needs no rows, carried out in one process alone."""

from __future__ import annotations

from ..planning.plan import plan_write
from ..planning.request import WriteRequest
from ..result import CommitResult
from .abort import abort_write
from .commit import commit_write


def write_without_rows(request: WriteRequest) -> CommitResult:
    """Carry out a write that needs no rows, in this process alone.

    Raises:
        PyHudiError: It failed, and nothing of it is left.
    """
    plan = plan_write(request)
    try:
        return commit_write(plan, [])
    except BaseException:
        abort_write(plan)
        raise
