"""Mistakes in the writes of tables whose keys are looked up: each must turn the checks of the real tests red."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyhudi.errors import CommitConflictError, ConcurrentWriteError, PlacementError
from pyhudi.index.small_files import GroupSizes
from pyhudi.operations.locating import file_groups, group_jobs, tagging
from pyhudi.operations.transaction import conflicts, new_keys
from pyhudi.writer.group_writer import GroupJob
from support.drawn.lookups import (
    check_copies_of_others,
    check_deleted_copies,
    check_held_group,
    check_new_keys_apart,
    check_new_keys_in_base_files,
    check_one_new_key,
    check_one_new_key_of_placed_rows,
    check_one_new_key_of_the_table,
    check_placed,
    check_their_copy,
)
from support.mutations import RED, Check, Mutate, Patch, assert_red, each

WRONG = (*RED, CommitConflictError, ConcurrentWriteError, PlacementError)


def no_look_at_new_keys(patch: Patch) -> None:
    patch.setattr(conflicts, "find_twin", lambda *_: None)


def hashes_alone_decide(patch: Patch) -> None:
    """Any key of the others counts as met."""
    patch.setattr(new_keys, "hash64", lambda keys: np.zeros(len(keys), np.uint64))
    patch.setattr(new_keys.pc, "is_in", lambda keys, *_, **__: new_keys.pa.array([True] * len(keys)))


def partitions_are_one(patch: Patch) -> None:
    made = new_keys.NewKeys
    patch.setattr("pyhudi.operations.write.commit.NewKeys", lambda files, _, *more: made(files, True, *more))


def partitions_are_apart(patch: Patch) -> None:
    made = new_keys.NewKeys
    patch.setattr("pyhudi.operations.write.commit.NewKeys", lambda files, _, *more: made(files, False, *more))


def their_newest_write_alone(patch: Patch) -> None:
    find = new_keys.find_twin

    def newest(*known: Any) -> Any:
        *others, times = known
        return find(*others, [max(times)])

    patch.setattr(conflicts, "find_twin", newest)


def inserts_are_looked_at(patch: Patch) -> None:
    patch.setattr(
        "pyhudi.operations.write.commit._new_keys",
        lambda plan, outcomes, _: new_keys.NewKeys(
            {one.path: one.rows for one in outcomes if one.path}, anywhere=False
        ),
    )


def copies_are_left(patch: Patch) -> None:
    tag = tagging._Lookup._tag

    def first_alone(self: Any, keyed: Any) -> Any:
        tags = tag(self, keyed)
        return replace(tags, copied=tags.copied[:0], copy_codes=tags.copy_codes[:0])

    patch.setattr(tagging._Lookup, "_tag", first_alone)


def new_keys_are_appended(patch: Patch) -> None:
    patch.setattr(group_jobs, "GroupJob", lambda group, piece, **_: GroupJob(group, piece))


def held_groups_are_joined(patch: Patch) -> None:
    of = GroupSizes.of
    patch.setattr(GroupSizes, "of", lambda *known, held, **said: of(*known, held=(), **said))


def every_attempt_opens_its_own(patch: Patch) -> None:
    patch.setattr(file_groups, "new_file_id", lambda *_: f"{uuid.uuid4()}-0")


def numbers_of_new_groups_do_not_count(patch: Patch) -> None:
    new_file_id = file_groups.new_file_id
    patch.setattr(file_groups, "new_file_id", lambda instant, path, _: new_file_id(instant, path, 0))


MUTATIONS: list[tuple[Mutate, Check]] = [
    (no_look_at_new_keys, check_one_new_key),
    (no_look_at_new_keys, check_their_copy),
    (no_look_at_new_keys, check_one_new_key_of_placed_rows),
    (partitions_are_apart, check_one_new_key_of_the_table),
    (hashes_alone_decide, check_new_keys_apart),
    (partitions_are_one, check_new_keys_apart),
    (their_newest_write_alone, check_their_copy),
    (inserts_are_looked_at, check_copies_of_others),
    (copies_are_left, check_deleted_copies),
    (new_keys_are_appended, check_new_keys_in_base_files),
    (held_groups_are_joined, check_held_group),
    (every_attempt_opens_its_own, check_placed),
    (numbers_of_new_groups_do_not_count, check_placed),
]


@each(MUTATIONS)
def test_each_mistake_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutate: Mutate, check: Check) -> None:
    assert_red(tmp_path, monkeypatch, mutate, check, WRONG)


@pytest.mark.parametrize("check", sorted({check for _, check in MUTATIONS}, key=lambda one: one.__name__))
def test_without_a_mistake_nothing_is_seen(tmp_path: Path, check: Check) -> None:
    check(tmp_path)
