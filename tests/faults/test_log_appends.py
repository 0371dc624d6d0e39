"""Appends to log files that fail, die, run twice or come too late: all of it is there or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from support.attempts import PARTED, parted, rows
from support.drive import KEYED
from support.faults import races
from support.faults.failures import Work, check_deaths, check_failures
from support.faults.faulty import Faults
from support.faults.steps import Share, steps_of

MERGED = replace(KEYED, table_type="MERGE_ON_READ")
FIRST = [rows(1, 2, 3, value=1), rows(4, 5, value=1)]
SECOND = [rows(2, 4, 6, value=2, ts=2), rows(3, 7, value=2, ts=2)]
AFTER = [("k1", 1), ("k2", 2), ("k3", 2), ("k4", 2), ("k5", 1), ("k6", 2), ("k7", 2)]
APPEND = Work(SECOND, FIRST, AFTER, table=MERGED)
PLACED = replace(APPEND, parts=[pa.concat_tables(SECOND)], colocated=True)
LOOKED_UP = replace(APPEND, table=replace(MERGED, index_type="SIMPLE", bucket_count=None))
DELETE = replace(APPEND, operation="delete", after=[("k1", 1), ("k5", 1)])
REWRITE = Work(
    [parted("a", 1, 9, value=2)],
    [parted("a", 1, 2, value=1)],
    [("a", "k1", 1), ("a", "k1", 2), ("a", "k2", 1), ("a", "k9", 2)],
    "insert",
    table=replace(PARTED, table_type="MERGE_ON_READ"),
)


@pytest.fixture(autouse=True)
def _merge_on_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(races, "TABLE", replace(races.TABLE, table_type="MERGE_ON_READ"))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("work", [APPEND, PLACED, LOOKED_UP], ids=["plain", "colocated", "looked-up"])
@steps_of("write")
def test_every_failing_step_of_an_append_leaves_the_table_whole(
    tmp_path: Path, faults: Faults, work: Work, after: bool, share: Share
) -> None:
    """Whatever step fails, the write raises and leaves the old rows, or holds; the next write is good."""
    check_failures(faults, work, tmp_path, share, after=after)


@steps_of("write")
def test_every_failing_step_of_a_rewrite_leaves_the_table_whole(tmp_path: Path, faults: Faults, share: Share) -> None:
    """An insert of a key that is there makes a base file in a delta commit."""
    check_failures(faults, REWRITE, tmp_path, share, after=False)


@steps_of("write")
def test_a_writer_killed_at_any_step_is_rolled_back_by_the_next(tmp_path: Path, faults: Faults, share: Share) -> None:
    """Log files without a delta commit are nobody's rows, and are taken away by the markers that name them."""
    check_deaths(faults, DELETE, tmp_path, share)


def test_of_two_attempts_one_file_is_kept(tmp_path: Path) -> None:
    races.check_publish_during_end(tmp_path, "commit")


def test_a_log_file_that_lands_after_its_write_was_given_up_goes_again(tmp_path: Path) -> None:
    races.check_publish_during_end(tmp_path, "abort")


def test_a_log_file_that_lands_after_its_write_was_rolled_back_goes_again(tmp_path: Path) -> None:
    races.check_publish_during_rollback(tmp_path)


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
def test_a_task_that_still_appends_after_abort_publishes_nothing(tmp_path: Path, colocated: bool) -> None:
    races.check_straggler(tmp_path, colocated=colocated)


def test_an_append_taken_for_dead_cannot_commit_any_more(tmp_path: Path) -> None:
    races.check_taken_for_dead(tmp_path)


def test_an_append_that_a_late_task_begins_again_cannot_commit(tmp_path: Path) -> None:
    races.check_begun_again(tmp_path)


def test_two_that_open_one_new_bucket(tmp_path: Path) -> None:
    races.check_one_new_bucket(tmp_path)
