"""The faults of `test_failing_storage.py` on a store of objects, where every request costs some milliseconds.

So tables are copied and read without requests, and the next write is tried once from each state that a failure leaves,
times and invented names aside.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest
from pyhudi.errors import PyHudiError
from pyhudi.operations.planning.request import TableSettings
from support.attempts import IMPATIENT, PARTED, attempt, parted, rows
from support.checks import assert_whole
from support.drive import KEYED, rows_of, write, write_after_death
from support.faulty import Faults, Killed
from support.places import Place, below, files_below, on_disk
from support.s3 import S3Server, copy_objects, new_url

# What no two tables have alike.
INVENTED = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{17}(_\d{17})?|[0-9a-f]{32}")
Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Work:
    """A write that fails.

    Attributes:
        parts: What it writes, one task each.
        before: What the table holds, None where there is none yet.
        after: What it holds then.
    """

    parts: list[pa.Table]
    before: list[pa.Table] | None
    after: Rows
    operation: str | None = None
    colocated: bool = False
    table: TableSettings = PARTED

    def content(self, path: Place) -> Rows:
        """Return the rows of a table on disk, none where there is none."""
        completed = re.compile(r".hoodie/timeline/\d+_\d+\.(replace)?commit")
        if not any(completed.fullmatch(name) for name in files_below(path)):
            return []
        return rows_of(path, *self.table.partition_fields or (), "id", "value")


def check_failures(faults: Faults, work: Work, failure: str, *, first: int = 1, every: int = 1) -> None:
    """Fail the write at its steps, from the first and then each so many, and assert that the table is whole."""
    settings = replace(IMPATIENT, colocated=work.colocated)
    origin = new_url()
    if work.before is not None:
        write(origin, work.before, table=work.table)
    with on_disk(origin) as copy:
        before = work.content(copy)
    place, total, states = origin.removesuffix("/t"), 0, set()
    for number in itertools.chain([0], itertools.count(first, every)):
        if number > total > 0:
            break
        table = below(place, f"t{number}")
        copy_objects(origin, table)
        faults.steps.clear()
        faults.at, faults.after, faults.kill = number, failure == "after", failure == "killed"
        done = False
        with contextlib.suppress(PyHudiError, Killed):
            attempt(table, work.parts, settings, work.operation, work.table)
            done = True
        total = len(faults.steps) if number == 0 else total
        faults.at, faults.kill = 0, False
        name = f"step {number} of {total} ({faults.name_of(number)})"
        with on_disk(table) as copy:
            state = tuple(sorted(INVENTED.sub("-", one) for one in files_below(copy)))
            left = work.content(copy)
        assert left == work.after or (not done and left == before), name
        if state not in states:
            states.add(state)
            go_on(table, work, left)
            with on_disk(table) as copy:
                assert work.content(copy) == work.after, name
            assert_whole(table, unique=False)
    assert total > 30


def go_on(table: Place, work: Work, left: Rows) -> None:
    """Write the same again; where rows would be there twice then, something that changes nothing."""
    settings = replace(IMPATIENT, colocated=work.colocated)
    if work.operation == "insert" and left == work.after:
        write(table, parted("a", 7, value=0), operation="delete", settings=settings)
    else:
        write_after_death(table, work.parts, operation=work.operation, table=work.table, settings=settings)


ONE_ROW = [rows(1, value=1)]
NEXT = Work([rows(1, 2, value=2, ts=2)], ONE_ROW, [("k1", 2), ("k2", 2)], colocated=True, table=KEYED)


@pytest.mark.parametrize(
    ("creates", "failure"),
    [
        pytest.param(False, "before", marks=pytest.mark.slow),
        pytest.param(False, "after", marks=pytest.mark.slow),
        (False, "killed"),
        (True, "after"),
    ],
)
def test_every_failing_step_of_a_write_on_s3_leaves_the_table_whole(
    s3: S3Server, faults: Faults, creates: bool, failure: str
) -> None:
    """Of an upsert of placed rows, and of one that creates the table."""
    check_failures(faults, replace(NEXT, before=None) if creates else NEXT, failure)


FIRST = [parted("a", 1, 2, value=1), parted("b", 1, value=1)]
SECOND = [parted("a", 1, 9, value=2)]
KEPT = [("a", "k1", 1), ("a", "k2", 1), ("b", "k1", 1)]
ADDED = [("a", "k1", 2), ("a", "k9", 2)]
WORKS = {
    "creation": Work(FIRST, None, KEPT),
    "upsert": Work([*SECOND, parted("c", 1, value=2)], FIRST, sorted([*ADDED, *KEPT[1:], ("c", "k1", 2)])),
    "insert": Work(SECOND, FIRST, sorted([*ADDED, *KEPT]), "insert"),
    "delete": Work([parted("a", 1, 7, value=0)], FIRST, KEPT[1:], "delete"),
    "insert_overwrite": Work(SECOND, FIRST, [*ADDED, KEPT[2]], "insert_overwrite"),
    "delete_partition": Work(SECOND, FIRST, [KEPT[2]], "delete_partition"),
}
EVERY = 6


@pytest.mark.slow
@pytest.mark.parametrize("failure", ["before", "after"])
@pytest.mark.parametrize("operation", WORKS)
def test_failing_steps_of_plain_writes_on_s3_leave_the_table_whole(
    s3: S3Server, faults: Faults, operation: str, failure: str
) -> None:
    """Each sixth step is tried, from another one on for each operation: those that they have in common all come up."""
    first = 1 + list(WORKS).index(operation) % EVERY
    check_failures(faults, WORKS[operation], failure, first=first, every=EVERY)
