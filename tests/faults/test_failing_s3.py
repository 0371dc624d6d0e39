"""The faults of `test_failing_storage.py` on a store of objects, whose steps are others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.attempts import parted, rows
from support.drive import KEYED
from support.faults.failures import Work, check_deaths, check_failures
from support.faults.faulty import Faults
from support.s3 import S3Server, new_url

NEXT = Work([rows(1, 2, value=2, ts=2)], [rows(1, value=1)], [("k1", 2), ("k2", 2)], colocated=True, table=KEYED)
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
EVERY = 2 * len(WORKS)


@pytest.fixture
def folder(direct_s3: S3Server) -> str:
    return new_url().removesuffix("/t")


@pytest.mark.parametrize(
    ("creates", "after"),
    [
        pytest.param(False, False, marks=pytest.mark.slow),
        pytest.param(False, True, marks=pytest.mark.slow),
        (True, True),
    ],
)
def test_every_failing_step_of_a_write_on_s3_leaves_the_table_whole(
    folder: str, faults: Faults, creates: bool, after: bool
) -> None:
    """Of an upsert of placed rows, and of one that creates the table: each fourth step, from different steps on.

    What each step leaves in a folder is looked at in test_failing_storage.py; other stores do the same steps otherwise.
    """
    first = 1 + 2 * after + creates
    check_failures(faults, replace(NEXT, before=None) if creates else NEXT, folder, after=after, first=first, every=4)


def test_a_writer_on_s3_killed_at_any_step_is_rolled_back_by_the_next(folder: str, faults: Faults) -> None:
    """Each second moment is looked at."""
    check_deaths(faults, NEXT, folder, every=2)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("operation", WORKS)
def test_failing_steps_of_plain_writes_on_s3_leave_the_table_whole(
    folder: str, faults: Faults, operation: str, after: bool
) -> None:
    """Each twelfth step fails, from a different step on each time: all steps that the operations share come up."""
    first = 1 + 2 * list(WORKS).index(operation) + after
    check_failures(faults, WORKS[operation], folder, after=after, first=first, every=EVERY)
