"""The faults of `test_failing_storage.py` on a store of objects, whose steps are others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.attempts import parted, rows
from support.drive import KEYED
from support.faults.failures import Work, check_deaths, check_failures
from support.faults.faulty import Faults
from support.faults.steps import Share, steps_of
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
@steps_of("write", 4)
def test_every_failing_step_of_a_write_on_s3_leaves_the_table_whole(
    folder: str, faults: Faults, creates: bool, after: bool, share: Share
) -> None:
    """Of an upsert of placed rows, and of one that creates the table: one of four steps.

    What each step leaves in a folder is looked at in test_failing_storage.py; other stores do the same steps otherwise.
    """
    check_failures(faults, replace(NEXT, before=None) if creates else NEXT, folder, share, after=after)


@steps_of("write", 2)
def test_a_writer_on_s3_killed_at_any_step_is_rolled_back_by_the_next(
    folder: str, faults: Faults, share: Share
) -> None:
    """One of two moments is looked at."""
    check_deaths(faults, NEXT, folder, share)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("operation", WORKS)
@steps_of("write", 12)
def test_failing_steps_of_plain_writes_on_s3_leave_the_table_whole(
    folder: str, faults: Faults, operation: str, after: bool, share: Share
) -> None:
    """One of twelve steps fails, with each operation others."""
    check_failures(faults, WORKS[operation], folder, share, after=after)
