"""Duplicates, ordering values and statistics of commits are those of Apache Hudi, by the answers that it left."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import DuplicateKeyError, OptionConflictError
from support.by_options import write_without_spark
from support.drive import rows_of, write
from support.recorded import commit_statistics, duplicates, ordering_pairs
from support.recorded.duplicates import (
    FAILING,
    NEIGHBOUR_DROPPED,
    NEIGHBOUR_FAILS,
    OTHERWISE,
    OVERLOOKED,
    SAME,
    UNFOLDED,
    left,
)
from support.recorded.recorded_writes import DUPLICATES, OPTIONS, ORDERINGS, STATISTICS, Recorded
from support.rules.newest import newest_write


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded.unpack(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def held(recorded: Recorded, tmp_path: Path) -> Path:
    """A copy of the table of `duplicates.HELD`."""
    return recorded.copy_of(DUPLICATES, tmp_path / "held")


def written(table: Path, case: duplicates.Case) -> list[str]:
    """Write to a table of `duplicates.HELD`, and return the rows that are left."""
    write_without_spark(table, case.rows, {**OPTIONS[DUPLICATES], **case.asked})
    return left(table)


def test_nothing_else_is_recorded(recorded: Recorded) -> None:
    assert {subject: list(answers) for subject, answers in recorded.answers.items()} == {
        DUPLICATES: [str(one) for one in (*SAME, *FAILING, *OTHERWISE)],
        STATISTICS: [one.operation for one in commit_statistics.CASES],
        ORDERINGS: list(ordering_pairs.VALUES),
    }


@pytest.mark.parametrize("case", SAME, ids=str)
def test_the_same_rows_stay(recorded: Recorded, held: Path, case: duplicates.Case) -> None:
    assert written(held, case) == recorded.answers[DUPLICATES][str(case)]


@pytest.mark.parametrize("case", FAILING, ids=str)
def test_both_refuse(recorded: Recorded, held: Path, case: duplicates.Case) -> None:
    """Where a key is there, or a bulk insert is to drop duplicates."""
    before, is_bulk = newest_write(held), case.operation == "bulk_insert"

    with pytest.raises(OptionConflictError if is_bulk else DuplicateKeyError):
        written(held, case)

    words = "Dropping duplicates with bulk_insert" if is_bulk else "HoodieDuplicateKeyException"
    assert recorded.answers[DUPLICATES][str(case)] == words
    assert newest_write(held) == before


class TestWherePyhudiDoesOtherwise:
    """As docs/operations.md says."""

    def test_a_policy_looks_new_keys_up_that_apache_hudi_takes_for_duplicates(
        self, recorded: Recorded, held: Path
    ) -> None:
        before, theirs = left(held), recorded.answers[DUPLICATES]
        other = duplicates.rows(("o", "a", 1, "o1"))

        assert theirs[str(NEIGHBOUR_DROPPED)] == before
        assert theirs[str(NEIGHBOUR_FAILS)] == "HoodieDuplicateKeyException, key is: m"
        assert written(held, NEIGHBOUR_DROPPED) == sorted([*before, "m1"])
        write_without_spark(held, other, {**OPTIONS[DUPLICATES], **NEIGHBOUR_FAILS.asked})
        assert left(held) == sorted([*before, "m1", "o1"])

    def test_an_upsert_folds_what_apache_hudi_leaves_where_the_file_group_is_new(
        self, recorded: Recorded, held: Path
    ) -> None:
        before = left(held)

        assert recorded.answers[DUPLICATES][str(UNFOLDED)] == sorted([*before, "u1", "u2", "v1", "v2", "w1", "w2"])
        assert written(held, UNFOLDED) == sorted([*before, "u1", "v2", "w2"])

    def test_a_bulk_insert_refuses_the_policy_that_apache_hudi_overlooks(self, recorded: Recorded, held: Path) -> None:
        before = left(held)

        assert recorded.answers[DUPLICATES][str(OVERLOOKED)] == sorted([*before, "u1", "u2", "v1", "v2", "w1", "w2"])
        with pytest.raises(OptionConflictError):
            written(held, OVERLOOKED)


def _counted(told: dict[str, Any]) -> Counter[tuple[str, str]]:
    return Counter({(where, what): n for where, counts in told["counts"].items() for what, n in counts.items()})


@pytest.mark.parametrize("case", commit_statistics.CASES, ids=lambda case: case.operation)
def test_a_commit_says_what_apache_hudis_says(recorded: Recorded, tmp_path: Path, case: commit_statistics.Case) -> None:
    table = recorded.copy_of(STATISTICS, tmp_path / "t")
    write_without_spark(table, case.rows, {**OPTIONS[STATISTICS], **case.asked})
    ours, theirs = commit_statistics.told(table), recorded.answers[STATISTICS][case.operation]

    assert _counted(theirs) == _counted(ours) + Counter(case.counted_by_apache)
    assert (ours["operation"], ours["replaced"]) == (theirs["operation"], theirs["replaced"])


@pytest.mark.parametrize("name", ordering_pairs.VALUES)
def test_ordering_values_compare_as_apache_hudi_compares_them(recorded: Recorded, tmp_path: Path, name: str) -> None:
    for rows in ordering_pairs.writes(*ordering_pairs.VALUES[name]):
        write(tmp_path / "t", rows, table=ordering_pairs.SETTINGS)

    assert [list(row) for row in rows_of(tmp_path / "t", "id", "n")] == recorded.answers[ORDERINGS][name]
