"""Somebody else at work on the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyhudi import errors
from pyhudi.operations.planning.changed_rows import ChangedRows, RowPlace, check_changed_rows
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.write.instant import abort_write
from pyhudi.timeline.writers.patience import Patience
from support.bad_inputs.case import GOOD, SCHEMA, TIMELINE, Act, Case, changed
from support.drive import carry_out, plan, task, write
from support.write_settings import write_settings


def overtaken(operation: str, by: str) -> Callable[[Path], Act]:
    """Commit another write between this one's plan and its tasks."""

    def prepare(path: Path) -> Act:
        planned = plan(path, SCHEMA, operation=operation)
        write(path, GOOD, operation=by)
        return lambda: carry_out(planned, [GOOD])

    return prepare


def met_in_a_new_partition(path: Path) -> Act:
    """Let another write open the same bucket, which has no file group yet, between this one's plan and its tasks."""
    planned = plan(path, SCHEMA)
    write(path, changed("p", ["new", "new"]))
    return lambda: carry_out(planned, [changed("p", ["new", "new"])])


def given_up(**settings: bool) -> Callable[[Path], Act]:
    def prepare(path: Path) -> Act:
        planned = plan(path, SCHEMA, settings=write_settings(**settings))
        abort_write(planned)
        return lambda: task(planned, GOOD, 0)

    return prepare


def given_up_between_tasks(path: Path) -> Act:
    planned = plan(path, SCHEMA)
    task(planned, GOOD, 0)
    abort_write(planned)
    return lambda: task(planned, GOOD, 1)


def straggling(operation: str) -> Callable[[Path], Act]:
    """Run a task once more when its write has been committed."""

    def prepare(path: Path) -> Act:
        planned = plan(path, SCHEMA, operation=operation)
        carry_out(planned, [GOOD])
        return lambda: task(planned, GOOD, 0, attempt=900)

    return prepare


def under_way(operation: str) -> Callable[[Path], Act]:
    """Write as a single writer beside a living write."""

    def prepare(path: Path) -> Act:
        task(plan(path, SCHEMA, operation=operation), GOOD, 0)
        return lambda: write(path, GOOD, settings=WriteSettings(patience=Patience(single_writer=True)))

    return prepare


def foreign(name: str) -> Callable[[Path], Act]:
    """Put an instant of somebody else on the timeline."""

    def prepare(path: Path) -> Act:
        (path / TIMELINE / name).write_bytes(b"")
        return lambda: write(path, GOOD)

    return prepare


UPSERT, DELETE, OVERWRITE = "upsert", "delete", "insert_overwrite_table"


def found(**wrong: RowPlace) -> Callable[[Path], Act]:
    """Find what must not be among rows that were made from the table's own."""
    return lambda path: lambda: check_changed_rows(ChangedRows(**wrong), str(path))


PLACE = RowPlace("a", "x")

OTHERS = [
    Case("changed in two ways", errors.DuplicateKeyError, ("{path}", "'a'", "'x'"), found(matched_often=PLACE)),
    Case("changed beside its double", errors.DuplicateKeyError, ("{path}", "'a'", "'x'"), found(held_twice=PLACE)),
    Case("two rows come to one place", errors.DuplicateKeyError, ("{path}", "'a'", "'x'"), found(crowded=PLACE)),
    *(
        Case(
            f"changed row that is older at {key!r} of {partition!r}",
            errors.OlderRowError,
            ("{path}", repr(key), *([repr(partition)] if partition else []), "lesser ordering value"),
            found(older=RowPlace(key, partition)),
        )
        for key, partition in (("a", "x"), ("a", ""), ("id:a,value:1", "y"), ("it's", "day=2024-01-01"), ("ä", "x/y"))
    ),
    *(
        Case(
            f"{operation} overtaken by {by}",
            errors.CommitConflictError,
            ("{path}", "write again"),
            overtaken(operation, by),
        )
        for operation, by in (
            (UPSERT, UPSERT),
            (UPSERT, OVERWRITE),
            (DELETE, UPSERT),
            (OVERWRITE, UPSERT),
            (OVERWRITE, OVERWRITE),
        )
    ),
    Case("same new bucket", errors.CommitConflictError, ("{path}", "'new'"), met_in_a_new_partition),
    Case("task after the abort", errors.WriteSealedError, ("{path}", "given up"), given_up()),
    Case("colocated after the abort", errors.WriteSealedError, ("{path}", "given up"), given_up(colocated=True)),
    Case("second task after the abort", errors.WriteSealedError, ("{path}", "given up"), given_up_between_tasks),
    *(
        Case(f"task after the {operation}", errors.WriteSealedError, ("{path}", "committed"), straggling(operation))
        for operation in (UPSERT, OVERWRITE)
    ),
    *(
        Case(f"{operation} under way", errors.ConcurrentWriteError, ("{path}", "last heartbeat"), under_way(operation))
        for operation in (UPSERT, OVERWRITE)
    ),
    *(
        Case(
            f"{name} of Apache Hudi under way",
            errors.ConcurrentWriteError,
            ("{path}", "20260101000000000", "no heartbeat", "hoodie.clean.failed.writes.policy=EAGER"),
            foreign(f"20260101000000000.{name}"),
        )
        for name in ("commit.requested", "inflight", "replacecommit.inflight")
    ),
]
