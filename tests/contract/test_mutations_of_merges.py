"""Mistakes in what a write of merged rows is held against: each must turn the checks of the real tests red."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.drawn.changed_checks import check_counted, check_merges, check_swap
from support.drawn.histories import LOGGED, TABLE
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam


def check_merges_of_logs(_: Path) -> None:
    check_merges(LOGGED)


def check_merges_of_base_files(_: Path) -> None:
    check_merges(TABLE)


def check_merges_of_looked_up_keys(_: Path) -> None:
    check_merges(replace(LOGGED, index_type="SIMPLE", bucket_count=None))


def the_moment_that_was_seen_is_passed_over(patch: Patch) -> None:
    """What others committed between the look and the plan is not held against the write."""
    original = read_seam("pin the moment of a write")
    patch_seam(patch, "pin the moment of a write", lambda table, patience, _based_on="": original(table, patience))


def others_are_not_looked_for(patch: Patch) -> None:
    patch_seam(patch, "check conflicts", lambda *_: None)


def file_groups_of_others_are_passed_over(patch: Patch) -> None:
    """Only new keys and columns are held against one another."""
    patch_seam(patch, "file groups of other commits", lambda _: set())


def what_goes_is_not_held_against_the_counts(patch: Patch) -> None:
    """A row that moves without a delete where it was stays there, too."""
    patch_seam(patch, "check the counts of removed rows", lambda *_: None)


def counts_are_not_noted(patch: Patch) -> None:
    """A swap of keys is told as two rows that were updated where they are."""
    patch_seam(patch, "counts in commit metadata", lambda counted: {"updates": counted.updates})


@each(
    [
        (the_moment_that_was_seen_is_passed_over, check_merges_of_logs),
        (others_are_not_looked_for, check_merges_of_base_files),
        (others_are_not_looked_for, check_merges_of_looked_up_keys),
        (file_groups_of_others_are_passed_over, check_merges_of_logs),
        (what_goes_is_not_held_against_the_counts, check_counted),
        (counts_are_not_noted, check_swap),
    ]
)
def test_a_mistake_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutate: Mutate, check: Check) -> None:
    assert_red(tmp_path, monkeypatch, mutate, check)
