"""Mistakes in what a process knows of keys between the batches of a stream: each must turn the checks red."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import PyHudiError
from pyhudi.index.gathered_keys import Room
from pyhudi.table.merging.key_set import EMPTY, KeySet
from support.mutations import RED, Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam
from support.upkeep.known_keys import (
    check_aborted,
    check_bound,
    check_deletes,
    check_foreign_commit,
    check_foreign_log,
    check_merged_logs,
    check_part,
    check_rolled_back,
)

WRONG = (*RED, PyHudiError)


def the_file_group_alone_counts(patch: Patch) -> None:
    """A commit by another process drops nothing."""
    of = read_seam("name of a known slice")
    patch_seam(
        patch, "name of a known slice", lambda file_slice: replace(of(file_slice), base_time="", files=frozenset())
    )


def the_base_file_alone_counts(patch: Patch) -> None:
    of = read_seam("name of a known slice")
    patch_seam(patch, "name of a known slice", lambda file_slice: of(replace(file_slice, logs=())))


def deletes_are_forgotten(patch: Patch) -> None:
    def merged(plan: Any, before: KeySet, rows: Any, outcome: Any) -> KeySet:
        return before.added(read_seam("all keys of rows")(rows))

    patch_seam(patch, "keys of a merged file group", merged)


def every_delete_wins(patch: Patch) -> None:
    merged = read_seam("keys of a merged file group")

    def always(plan: Any, before: KeySet, rows: Any, outcome: Any) -> KeySet | None:
        """The number of rows in the file does not count."""
        found = (merged(plan, before, rows, replace(outcome, rows=count)) for count in range(20))
        return next((keys for keys in found if keys is not None), None)

    patch_seam(patch, "keys of a merged file group", always)


def new_keys_are_forgotten(patch: Patch) -> None:
    patch_seam(patch, "keys of a merged file group", lambda plan, before, rows, outcome: before)


def a_part_counts_as_all(patch: Patch) -> None:
    def keys(self: Any, file_slice: Any) -> KeySet:
        parts = [*self._base, *self._logs]
        return KeySet.of(parts) if parts else EMPTY

    patch_seam(patch, "all keys that a lookup gathered", keys)


def lookups_keep_what_they_read(patch: Patch) -> None:
    """Whether the write completes does not count."""
    tag = read_seam("tag rows by known keys")

    def kept(self: Any, *given: Any) -> Any:
        found = tag(self, *given)
        self.complete()
        return found

    patch_seam(patch, "tag rows by known keys", kept)


def all_bytes_are_free(patch: Patch) -> None:
    patch_seam(patch, "room for known keys", lambda _, most: Room(most))


def nothing_is_dropped(patch: Patch) -> None:
    keep = read_seam("keep known slices")
    patch_seam(patch, "keep known slices", lambda self, table, slices, _: keep(self, table, slices, 1 << 40))


MUTATIONS: list[tuple[Mutate, Check]] = [
    (the_file_group_alone_counts, check_foreign_commit),
    (the_file_group_alone_counts, check_merged_logs),
    (the_file_group_alone_counts, check_rolled_back),
    (the_base_file_alone_counts, check_foreign_log),
    (deletes_are_forgotten, check_deletes),
    (every_delete_wins, check_deletes),
    (new_keys_are_forgotten, check_deletes),
    (a_part_counts_as_all, check_part),
    (lookups_keep_what_they_read, check_aborted),
    (all_bytes_are_free, check_bound),
    (nothing_is_dropped, check_bound),
]


@each(MUTATIONS)
def test_each_mistake_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutate: Mutate, check: Check) -> None:
    assert_red(tmp_path, monkeypatch, mutate, check, WRONG)
