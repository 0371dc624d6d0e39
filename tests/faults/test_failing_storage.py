"""Storage that fails before or after the effect of every step of a write: the table reads as before or as after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import PyHudiError
from pyhudi.operations.write.instant import abort_write
from support.attempts import IMPATIENT, SCHEMA, parted, rows
from support.drive import KEYED, plan, rows_of, task, write
from support.faults.failures import Work, check_deaths, check_failures
from support.faults.faulty import Faults
from support.faults.steps import Share, steps_of
from support.places import files_below
from support.rules.ends import assert_whole

FIRST = [rows(1, 2, 3, value=1), rows(4, 5, value=1)]
SECOND = [rows(2, 4, 6, value=2, ts=2), rows(3, 7, value=2, ts=2)]
BEFORE = [(f"k{n}", 1) for n in range(1, 6)]
AFTER = [("k1", 1), ("k2", 2), ("k3", 2), ("k4", 2), ("k5", 1), ("k6", 2), ("k7", 2)]
UPSERT = Work(SECOND, FIRST, AFTER, table=KEYED)
PLACED = replace(UPSERT, parts=[pa.concat_tables(SECOND)], colocated=True)
CREATION = Work(FIRST, None, BEFORE, table=KEYED)
LOOKED_UP = replace(UPSERT, table=replace(KEYED, index_type="SIMPLE", bucket_count=None))

PARTS = [parted("a", 1, 2, 3, value=1), parted("b", 1, 2, value=1)]
MORE, ADDED = [parted("a", 1, 9, value=2)], [("a", "k1", 2), ("a", "k9", 2)]
IN_A, IN_B = [("a", f"k{n}", 1) for n in (1, 2, 3)], [("b", f"k{n}", 1) for n in (1, 2)]
OTHERS = {
    "insert": Work(MORE, PARTS, sorted([*IN_A, *IN_B, *ADDED]), "insert"),
    "insert_overwrite": Work(MORE, PARTS, [*ADDED, *IN_B], "insert_overwrite"),
    "delete_partition": Work([parted("a", 1, value=0)], PARTS, IN_B, "delete_partition"),
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("work", [UPSERT, PLACED, LOOKED_UP], ids=["plain", "colocated", "looked-up"])
@steps_of("write")
def test_every_failing_step_of_an_upsert_leaves_the_table_whole(
    tmp_path: Path, faults: Faults, work: Work, after: bool, share: Share
) -> None:
    """Whatever step fails, the write raises and leaves the old rows, or holds; the next write is good."""
    check_failures(faults, work, tmp_path, share, after=after)


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ("insert", False),
        ("insert_overwrite", False),
        ("insert_overwrite", True),
        ("delete_partition", False),
        ("delete_partition", True),
    ],
)
@steps_of("write")
def test_every_failing_step_of_other_operations_leaves_the_table_whole(
    tmp_path: Path, faults: Faults, operation: str, after: bool, share: Share
) -> None:
    """File groups are replaced, extended and deleted as a whole or not at all; what is left of it does no harm."""
    check_failures(faults, OTHERS[operation], tmp_path, share, after=after)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@steps_of("write")
def test_every_failing_step_of_a_creation_leaves_nothing_or_the_table(
    tmp_path: Path, faults: Faults, after: bool, share: Share
) -> None:
    """A creation that fails can be taken again, as if it had never been tried."""
    check_failures(faults, CREATION, tmp_path, share, after=after)


@pytest.mark.parametrize(
    "work",
    [LOOKED_UP, OTHERS["insert_overwrite"], OTHERS["delete_partition"]],
    ids=["looked-up", "insert_overwrite", "delete_partition"],
)
@steps_of("write")
def test_a_writer_killed_at_any_step_is_rolled_back_by_the_next(
    tmp_path: Path, faults: Faults, work: Work, share: Share
) -> None:
    """The process is gone at step n, nobody aborts; the next write finds the old rows, or the new ones, and goes on."""
    check_deaths(faults, work, tmp_path, share)


@steps_of("write")
def test_a_rollback_killed_at_any_step_is_finished_by_the_next_write(
    tmp_path: Path, faults: Faults, share: Share
) -> None:
    """A write that dies while it rolls back another leaves both, and the rollback itself, to the third."""
    check_deaths(faults, replace(UPSERT, dead=SECOND[0]), tmp_path, share)


@steps_of("write")
def test_every_failing_step_of_an_abort_can_be_taken_again(tmp_path: Path, faults: Faults, share: Share) -> None:
    """An abort that fails half way leaves a table that reads as before, and a second abort ends it."""
    for number in share.of(range(1, 60)):
        table = tmp_path / f"t{number}"
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
        assert rows_of(table, "id", "value") == BEFORE
        abort_write(planned)
        left = {name for name in files_below(table) if not name.startswith(".hoodie/.pyhudi")}
        assert left == before
        assert_whole(table)
        if not reached:
            return
    raise AssertionError("the abort takes more steps than this test looks at")
