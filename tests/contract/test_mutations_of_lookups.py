"""Mistakes in the writes of tables whose keys are looked up: each must turn the checks of the real tests red."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyhudi.errors import CommitConflictError, ConcurrentWriteError, PlacementError
from pyhudi.writer.group_writer import FileGroupWrite
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
from support.seams import patch_seam, read_seam

WRONG = (*RED, CommitConflictError, ConcurrentWriteError, PlacementError)


def no_look_at_new_keys(patch: Patch) -> None:
    patch_seam(patch, "find a key that another commit added", lambda *_: None)


def hashes_alone_decide(patch: Patch) -> None:
    """Any key of the others counts as met."""
    patch_seam(patch, "hash new keys", lambda keys: np.zeros(len(keys), np.uint64))
    patch.setattr(pc, "is_in", lambda keys, *_, **__: pa.array([True] * len(keys)))


def partitions_are_one(patch: Patch) -> None:
    made = read_seam("make new keys")
    patch_seam(patch, "make new keys", lambda files, _, *more: made(files, True, *more))


def partitions_are_apart(patch: Patch) -> None:
    made = read_seam("make new keys")
    patch_seam(patch, "make new keys", lambda files, _, *more: made(files, False, *more))


def their_newest_write_alone(patch: Patch) -> None:
    find = read_seam("find a key that another commit added")

    def newest(*known: Any) -> Any:
        *others, times = known
        return find(*others, [max(times)])

    patch_seam(patch, "find a key that another commit added", newest)


def inserts_are_looked_at(patch: Patch) -> None:
    made = read_seam("make new keys")
    patch_seam(
        patch,
        "new keys of a commit",
        lambda plan, outcomes, _: made({one.path: one.rows for one in outcomes if one.path}, anywhere=False),
    )


def copies_are_left(patch: Patch) -> None:
    tag = read_seam("tag rows by a lookup")

    def first_alone(self: Any, keyed: Any) -> Any:
        tags = tag(self, keyed)
        return replace(tags, copied=tags.copied[:0], copy_codes=tags.copy_codes[:0])

    patch_seam(patch, "tag rows by a lookup", first_alone)


def new_keys_are_appended(patch: Patch) -> None:
    patch_seam(patch, "job of a file group", lambda group, file_slice, **_: FileGroupWrite(group, file_slice))


def held_groups_are_joined(patch: Patch) -> None:
    of = read_seam("sizes of file groups")
    patch_seam(patch, "sizes of file groups", lambda *known, held, **said: of(*known, held=(), **said))


def every_attempt_opens_its_own(patch: Patch) -> None:
    patch_seam(patch, "file id of a new file group", lambda *_: f"{uuid.uuid4()}-0")


def numbers_of_new_groups_do_not_count(patch: Patch) -> None:
    new_file_id = read_seam("file id of a new file group")
    patch_seam(patch, "file id of a new file group", lambda instant, path, _: new_file_id(instant, path, 0))


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
