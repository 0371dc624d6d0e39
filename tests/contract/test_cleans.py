"""What cleans take over the life of a table, and what readers and writers find afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.upkeep.cleans import (
    check_clean_history,
    check_readers_keep_their_slices,
    check_savepoint_keeps_its_files,
    check_slow_writer_keeps_its_base,
)

SEEDS = [pytest.param(n, marks=() if n < 3 else pytest.mark.slow if n < 10 else pytest.mark.long) for n in range(30)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clean_takes_what_the_policy_says_and_finds_it_where_something_changed(tmp_path: Path, seed: int) -> None:
    check_clean_history(tmp_path, seed)


def test_readers_of_the_retained_commits_and_of_the_one_before_find_everything(tmp_path: Path) -> None:
    check_readers_keep_their_slices(tmp_path)


def test_a_savepoint_keeps_its_files_until_it_goes(tmp_path: Path) -> None:
    check_savepoint_keeps_its_files(tmp_path)


def test_a_slow_writer_keeps_its_base(tmp_path: Path) -> None:
    check_slow_writer_keeps_its_base(tmp_path)
