"""One write from plan to commit or abort, for whoever drives it: Spark, a test, a script."""

from __future__ import annotations

from .abort import abort_write
from .commit import commit_write
from .plan import WritePlan, plan_write
from .result import CommitResult
from .settings import WriteRequest
from .task import TaskResult, run_task

__all__ = [
    "CommitResult",
    "TaskResult",
    "WritePlan",
    "abort_write",
    "commit_write",
    "plan_write",
    "run_task",
    "write_without_rows",
]


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
