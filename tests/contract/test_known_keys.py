"""Lookups of a stream's batches by keys that its process knows answer as lookups that read all files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.upkeep.known_keys import (
    KINDS,
    check_aborted,
    check_bound,
    check_copies,
    check_deletes,
    check_foreign_commit,
    check_foreign_log,
    check_merged_logs,
    check_part,
    check_rolled_back,
    check_table_made_anew,
    check_threads,
    check_twins,
)


@pytest.mark.parametrize(("index", "table_type"), KINDS)
@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.long)])
def test_known_keys_change_no_answer_and_no_table(tmp_path: Path, seed: int, index: str, table_type: str) -> None:
    check_twins(tmp_path, seed, index, table_type)


@pytest.mark.parametrize(
    "check",
    [
        check_aborted,
        check_bound,
        check_copies,
        check_deletes,
        check_foreign_commit,
        check_foreign_log,
        check_merged_logs,
        check_part,
        check_rolled_back,
        check_table_made_anew,
        check_threads,
    ],
)
def test_known_keys_are_those_of_the_table(tmp_path: Path, check: Callable[[Path], None]) -> None:
    check(tmp_path)
