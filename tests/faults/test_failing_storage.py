"""Storage that fails before or after the effect of every step of a write: the table reads as before or as after."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import PyHudiError, RetryError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.write.abort import abort_write
from support.attempts import IMPATIENT, PARTED, SCHEMA, attempt, parted, rows
from support.checks import assert_whole
from support.drive import KEYED, plan, rows_of, task, write, write_after_death
from support.faulty import Faults, Killed
from support.places import Place, below, files_below

FIRST = [rows(1, 2, 3, value=1), rows(4, 5, value=1)]
SECOND = [rows(2, 4, 6, value=2, ts=2), rows(3, 7, value=2, ts=2)]
BEFORE = [(f"k{n}", 1) for n in range(1, 6)]
AFTER = [("k1", 1), ("k2", 2), ("k3", 2), ("k4", 2), ("k5", 1), ("k6", 2), ("k7", 2)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return tmp_path


def content(path: Place) -> list[tuple[object, ...]]:
    return rows_of(path, "id", "value")


def steps_of(path: Place, faults: Faults, parts: list[pa.Table], settings: WriteSettings) -> int:
    """Return how many steps the write takes when nothing fails."""
    faults.steps.clear()
    attempt(path, parts, settings)
    return len(faults.steps)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
def test_every_failing_step_of_an_upsert_leaves_the_table_whole(
    place: Place, faults: Faults, after: bool, colocated: bool
) -> None:
    """Whatever step fails, the write raises and leaves the old rows, or holds; the next write is good."""
    settings = replace(IMPATIENT, colocated=colocated)
    parts = [pa.concat_tables(SECOND)] if colocated else SECOND
    write(below(place, "count"), FIRST, table=KEYED)
    total = steps_of(below(place, "count"), faults, parts, settings)
    assert total > 20
    for number in range(1, total + 1):
        table = below(place, f"t{number}")
        write(table, FIRST, table=KEYED)
        faults.steps.clear()
        faults.at, faults.after = number, after
        try:
            attempt(table, parts, settings)
            raised = False
        except PyHudiError as error:
            raised = True
            assert isinstance(error, RetryError), error
        faults.at = 0
        name = faults.name_of(number)
        if not raised:
            assert content(table) == AFTER, f"step {number} ({name}) was lost without an error"
        else:
            assert content(table) in (BEFORE, AFTER), f"step {number} ({name})"
        write(table, SECOND, settings=IMPATIENT)
        assert content(table) == AFTER, f"after step {number} ({name})"
        assert_whole(table)


OTHERS = {
    "insert": ([parted("a", 1, 9, value=2)], [("a", "k1", 2), ("a", "k9", 2)]),
    "insert_overwrite": ([parted("a", 1, 9, value=2)], [("a", "k1", 2), ("a", "k9", 2)]),
    "delete_partition": ([parted("a", 1, value=0)], []),
}


@pytest.mark.parametrize(
    ("operation", "how"),
    [
        ("insert", "before"),
        ("insert_overwrite", "before"),
        ("insert_overwrite", "after"),
        ("insert_overwrite", "killed"),
        ("delete_partition", "after"),
        ("delete_partition", "killed"),
    ],
)
def test_every_failing_step_of_other_operations_leaves_the_table_whole(
    tmp_path: Path, faults: Faults, operation: str, how: str
) -> None:
    """File groups are replaced, extended and deleted as a whole or not at all; what is left of it does no harm."""
    parts, added = OTHERS[operation]
    first = [parted("a", 1, 2, 3, value=1), parted("b", 1, 2, value=1)]
    before = sorted(("a" if n < 3 else "b", f"k{n % 3 + 1}", 1) for n in range(5))
    gone = {"insert": [], "insert_overwrite": ["a"], "delete_partition": ["a"]}[operation]
    expected = sorted([*(row for row in before if row[0] not in gone), *added])

    def prepare(name: str) -> Path:
        write(tmp_path / name, first, table=PARTED)
        faults.steps.clear()
        return tmp_path / name

    attempt(prepare("count"), parts, IMPATIENT, operation, PARTED)
    total = len(faults.steps)
    assert rows_of(tmp_path / "count", "p", "id", "value") == expected
    for number in range(1, total + 1):
        table = prepare(f"t{number}")
        faults.at, faults.after, faults.kill = number, how == "after", how == "killed"
        raised = True
        with contextlib.suppress(RetryError, Killed):
            attempt(table, parts, IMPATIENT, operation, PARTED)
            raised = False
        faults.at, faults.kill = 0, False
        name = faults.name_of(number)
        left = rows_of(table, "p", "id", "value")
        assert left == expected or (raised and left == before), f"step {number} ({name})"
        if left == before:
            write_after_death(table, parts, operation=operation, table=PARTED, settings=IMPATIENT)
        else:
            write(table, parted("z", 1, value=0), settings=IMPATIENT)
            write(table, parted("z", 1, value=0), operation="delete", settings=IMPATIENT)
        assert rows_of(table, "p", "id", "value") == expected, f"after step {number} ({name})"
        assert_whole(table, unique=False)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_every_failing_step_of_a_creation_leaves_nothing_or_the_table(
    place: Place, faults: Faults, after: bool
) -> None:
    """A creation that fails can be taken again with other options, as if it had never been tried."""
    total = steps_of(below(place, "count"), faults, FIRST, IMPATIENT)
    for number in range(1, total + 1):
        table = below(place, f"t{number}")
        faults.steps.clear()
        faults.at, faults.after = number, after
        with contextlib.suppress(PyHudiError):
            attempt(table, FIRST, IMPATIENT)
        faults.at = 0
        write(table, FIRST, table=KEYED, settings=IMPATIENT)
        assert content(table) == BEFORE, f"step {number} ({faults.name_of(number)})"
        assert_whole(table)


def test_a_writer_killed_at_any_step_is_rolled_back_by_the_next(place: Place, faults: Faults) -> None:
    """The process is gone at step n, nobody aborts; the next write finds the old rows, or the new ones, and goes on."""
    write(below(place, "count"), FIRST, table=KEYED)
    total = steps_of(below(place, "count"), faults, SECOND, IMPATIENT)
    killed = 0
    for number in range(1, total + 1):
        table = below(place, f"t{number}")
        write(table, FIRST, table=KEYED)
        faults.steps.clear()
        faults.at, faults.kill = number, True
        try:
            attempt(table, SECOND, IMPATIENT)
        except Killed:
            killed += 1
        faults.at, faults.kill = 0, False
        assert content(table) in (BEFORE, AFTER), f"step {number} ({faults.name_of(number)})"
        write_after_death(table, SECOND, settings=IMPATIENT)
        assert content(table) == AFTER, f"step {number} ({faults.name_of(number)})"
        assert_whole(table)
    assert killed > total - 5


def test_a_rollback_killed_at_any_step_is_finished_by_the_next_write(place: Place, faults: Faults) -> None:
    """A write that dies while it rolls back another leaves both, and the rollback itself, to the third."""

    def prepare(table: Place) -> None:
        write(table, FIRST, table=KEYED)
        planned = plan(table, SCHEMA, settings=IMPATIENT)
        task(planned, SECOND[0], 0)

    prepare(below(place, "count"))
    total = steps_of(below(place, "count"), faults, SECOND, IMPATIENT)
    killed = 0
    for number in range(1, total + 1):
        table = below(place, f"t{number}")
        prepare(table)
        faults.steps.clear()
        faults.at, faults.kill = number, True
        try:
            attempt(table, SECOND, IMPATIENT)
        except Killed:
            killed += 1
        faults.at, faults.kill = 0, False
        write_after_death(table, SECOND, settings=IMPATIENT)
        assert content(table) == AFTER, f"step {number} ({faults.name_of(number)})"
        assert_whole(table)
    assert killed > total - 5


def test_every_failing_step_of_an_abort_can_be_taken_again(place: Place, faults: Faults) -> None:
    """An abort that fails half way leaves a table that reads as before, and a second abort ends it."""
    for number in range(1, 60):
        table = below(place, f"t{number}")
        write(table, FIRST, table=KEYED)
        before = {name for name in files_below(table) if not name.startswith(".hoodie/.pyhudi")}
        planned = plan(table, SCHEMA, settings=IMPATIENT)
        task(planned, SECOND[0], 0)
        faults.steps.clear()
        faults.at = number
        try:
            abort_write(planned)
            reached = False
        except PyHudiError:
            reached = True
        faults.at = 0
        assert content(table) == BEFORE
        abort_write(planned)
        left = {name for name in files_below(table) if not name.startswith(".hoodie/.pyhudi")}
        assert left == before
        assert_whole(table)
        if not reached:
            return
    raise AssertionError("the abort takes more steps than this test looks at")
