"""Somebody else at work on the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyhudi import errors
from pyhudi.operations.write import abort_write
from support.bad_inputs.case import GOOD, SCHEMA, TIMELINE, Act, Case
from support.drive import carry_out, plan, task, write


def overtaken(path: Path) -> Act:
    """Commit another write between this one's plan and its tasks."""
    planned = plan(path, SCHEMA)
    write(path, GOOD)
    return lambda: carry_out(planned, [GOOD])


def given_up(path: Path) -> Act:
    planned = plan(path, SCHEMA)
    abort_write(planned)
    return lambda: task(planned, GOOD, 0)


def under_way(path: Path) -> Act:
    task(plan(path, SCHEMA), GOOD, 0)
    return lambda: write(path, GOOD)


def foreign(name: str) -> Callable[[Path], Act]:
    """Put an instant of somebody else on the timeline."""

    def prepare(path: Path) -> Act:
        (path / TIMELINE / name).write_bytes(b"")
        return lambda: write(path, GOOD)

    return prepare


OTHERS = [
    Case("overtaken by a commit", errors.CommitConflictError, ("{path}", "file group", "write again"), overtaken),
    Case("task after the abort", errors.WriteSealedError, ("{path}", "given up"), given_up),
    Case("write under way", errors.ConcurrentWriteError, ("{path}", "last heartbeat"), under_way),
    Case(
        "write of Apache Hudi under way",
        errors.ConcurrentWriteError,
        ("{path}", "20260101000000000", "no heartbeat", "hoodie.clean.failed.writes.policy=EAGER"),
        foreign("20260101000000000.commit.requested"),
    ),
]
