"""What is to be undone, kept or gone back to, and cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyhudi import errors
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import delete_savepoint, savepoint
from pyhudi.storage import open_storage
from support.bad_inputs.case import GOOD, SCHEMA, Act, Case
from support.drive import plan, task, write
from support.made.cleaning import archive, clean

NEVER = "20200101000000000"

_Service = Callable[..., object]


def first_of(path: Path) -> str:
    """Return the requested time of the table's first write."""
    return min(one.name for one in (path / ".hoodie" / "timeline").glob("*.commit"))[:17]


def on_the_first(service: _Service, *before: Callable[[Path], object]) -> Callable[[Path], Act]:
    """Ask a service for the first write, after something was done to the table."""

    def prepare(path: Path) -> Act:
        for one in before:
            one(path)
        return lambda: service(open_storage(str(path)), first_of(path))

    return prepare


def on_nothing(service: _Service) -> Callable[[Path], Act]:
    return lambda path: lambda: service(open_storage(str(path)), NEVER)


def on_the_second(service: _Service, *before: Callable[[Path], object]) -> Callable[[Path], Act]:
    """Ask a service for a second write that is made here, after something was done to the table."""

    def prepare(path: Path) -> Act:
        second = write(path, GOOD).instant
        for one in before:
            one(path)
        return lambda: service(open_storage(str(path)), second)

    return prepare


def again(path: Path) -> None:
    write(path, GOOD)


def keep_first(path: Path) -> None:
    savepoint(open_storage(str(path)), first_of(path))


def keep_newest(path: Path) -> None:
    savepoint(open_storage(str(path)))


def clean_all(path: Path) -> None:
    assert clean(path, retain=1)


def plan_to_clean(path: Path) -> None:
    """Leave a clean that has begun and taken its files."""
    assert clean(path, retain=1, finish=False)


def archive_first(path: Path) -> None:
    archive(path, 1)


def begin_another(path: Path) -> None:
    task(plan(path, SCHEMA), GOOD, 0)


NOT, WHOLE = errors.UndoError, ("{path}",)
UNDOING = [
    Case("rollback of an older write", NOT, (*WHOLE, "not its newest"), on_the_first(rollback, again)),
    Case("rollback of a kept write", NOT, (*WHOLE, "savepoint"), on_the_first(rollback, keep_first)),
    Case("rollback beyond a clean", NOT, (*WHOLE, "gone or about to be"), on_the_second(rollback, clean_all)),
    Case("rollback beside a clean", NOT, (*WHOLE, "gone or about to be"), on_the_second(rollback, plan_to_clean)),
    Case("rollback to the archive", NOT, (*WHOLE, "no write on its timeline"), on_the_second(rollback, archive_first)),
    Case("rollback of nothing", NOT, (*WHOLE, NEVER), on_nothing(rollback)),
    Case("rollback under a writer", errors.ConcurrentWriteError, WHOLE, on_the_second(rollback, begin_another)),
    Case("savepoint of nothing", NOT, (*WHOLE, NEVER), on_nothing(savepoint)),
    Case("savepoint beyond a clean", NOT, (*WHOLE, "gone or about to be"), on_the_first(savepoint, again, clean_all)),
    Case("no savepoint to delete", NOT, (*WHOLE, "savepoints: none"), on_nothing(delete_savepoint)),
    Case("restore to nothing", NOT, (*WHOLE, NEVER), on_nothing(restore)),
    Case("restore beyond a clean", NOT, (*WHOLE, "gone or about to be"), on_the_first(restore, again, clean_all)),
    Case("restore beyond a savepoint", NOT, (*WHOLE, "savepoint"), on_the_first(restore, again, keep_newest)),
    Case("restore under a writer", errors.ConcurrentWriteError, WHOLE, on_the_first(restore, again, begin_another)),
]
