"""Mistakes in rescales, put into the code on purpose: each must turn the checks of the real tests red."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import PyHudiError
from pyhudi.table.buckets.numbers import BucketRule, write_bucket_rule
from pyhudi.timeline.instants import State
from support.mutations import RED, Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam
from support.upkeep.rescales import check_each_step, check_rolled_back

ALSO_RED = (*RED, PyHudiError)


def a_rule_counts_before_its_instant_is_complete(patch: Patch) -> None:
    original = read_seam("state of a rule of buckets")

    def state(table: Any, timeline: Any, instant_time: str) -> State | None:
        found = original(table, timeline, instant_time)
        return None if found is None else State.COMPLETED

    patch_seam(patch, "state of a rule of buckets", state)


def the_rule_comes_with_the_request(patch: Patch) -> None:
    """Of an instant that never completes."""
    original = read_seam("request a rescale")

    def requested(self: Any, *given: Any) -> Any:
        found = original(self, *given)
        write_bucket_rule(self.wanted.table, BucketRule("20000101000000000", self.wanted.n))
        return found

    patch_seam(patch, "request a rescale", requested)


def the_number_before_is_not_noted(patch: Patch) -> None:
    patch_seam(patch, "note the number before a rescale", lambda *_: None)


def the_rule_stays_where_its_rescale_is_rolled_back(patch: Patch) -> None:
    patch_seam(patch, "delete the rule of a rollback", lambda *_: None)


MUTATIONS: list[tuple[Mutate, Check]] = [
    (a_rule_counts_before_its_instant_is_complete, check_each_step),
    (the_rule_comes_with_the_request, check_each_step),
    (the_number_before_is_not_noted, check_each_step),
    (the_rule_stays_where_its_rescale_is_rolled_back, check_rolled_back),
]


@pytest.mark.parametrize("check", [check_each_step, check_rolled_back])
def test_what_the_mutations_have_to_break_holds(check: Check, tmp_path: Path) -> None:
    check(tmp_path)


@each(MUTATIONS)
def test_a_mistake_is_seen(mutate: Mutate, check: Check, tmp_path: Path, monkeypatch: Patch) -> None:
    assert_red(tmp_path, monkeypatch, mutate, check, ALSO_RED)
