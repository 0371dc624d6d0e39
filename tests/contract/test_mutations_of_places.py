"""Mistakes made where keys get their places: each must turn the checks of the real tests red."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.index.small_files import GroupSizes, Shares, SmallFile
from pyhudi.table.arrow.arrays import Mask
from pyhudi.table.config.property_keys import COPY_ON_WRITE, MERGE_ON_READ
from pyhudi.writer.moved_rows import OldRows, ResolvedRows
from support.drawn.shaped import check_shape
from support.drawn.unique_keys import Row, Shape, check_history, how, parts_of, shown, table
from support.drive import write
from support.mutations import Check, Mutate, Patch, always, assert_red, each
from support.rules.small_files import SIZES, SMALL, check_candidates, check_portions, check_rooms, dealt
from support.seams import patch_seam, read_seam

_ALWAYS = always(200)


def check_sizes(_: Path) -> None:
    @_ALWAYS
    @given(st.integers(1, 5000), SMALL, st.integers(1, 3000), st.floats(0.5, 400))
    def run(rows: int, small: Any, largest: int, record_bytes: float) -> None:
        check_rooms(rows, small, largest, record_bytes)

    run()


def check_order(_: Path) -> None:
    @_ALWAYS
    @given(st.integers(1, 4000), SMALL, st.integers(0, 2**32), st.lists(st.integers(0, 100), max_size=5))
    def run(rows: int, small: Any, seed: int, cuts: list[int]) -> None:
        check_portions(rows, small, seed, cuts)

    run()


def check_held(_: Path) -> None:
    check_candidates(SIZES, False, ["d", "b", "c"])


def check_drawn_places(_: Path) -> None:
    """Histories of the shapes name the file group in which each row has to be."""
    for seed in (6, 12):
        check_shape(_LOOKED_UP, seed, None)


_LOOKED_UP = {
    "version": "9",
    "type": "mor",
    "index": "simple",
    "keys": "simple",
    "merge": "event-time",
    "log": "parquet",
    "way": "plain",
    "store": "local",
    "service": "none",
    "writer": "alone",
    "metadata": "none",
}

# Rows that move there and back, lose, are deleted, and come twice.
_LIFE: list[Any] = [
    ("upsert", [Row(1, "x", 2, 1), Row(2, "x", 2, 2), Row(3, "y", 2, 3)], 1),
    ("upsert", [Row(1, "y", 3, 4), Row(2, "y", 1, 5), Row(4, "z", 1, 6), Row(4, "x", 1, 7)], 1),
    ("upsert", [Row(1, "x", 4, 8), Row(3, "z", 3, 9)], 2),
    ("upsert", [Row(1, "y", 3, 10), Row(3, "y", 5, 11)], 1),
    ("delete", [1], 1),
    ("upsert", [Row(1, "y", 1, 12), Row(2, "y", 3, 13), Row(2, "z", 3, 14)], 1),
]


def check_moves(place: Path) -> None:
    check_history(place / "t", Shape("GLOBAL_SIMPLE", COPY_ON_WRITE), _LIFE)


def check_moves_of_logs(place: Path) -> None:
    check_history(place / "t", Shape("GLOBAL_SIMPLE", MERGE_ON_READ), _LIFE)


def check_stays(place: Path) -> None:
    check_history(place / "t", Shape("GLOBAL_BLOOM", COPY_ON_WRITE, moves=False), _LIFE)


def check_stays_of_logs(place: Path) -> None:
    life = [_LIFE[0], ("delete", [1], 1), ("upsert", [Row(1, "y", 1, 4)], 1), ("upsert", [Row(1, "x", 2, 5)], 1)]
    check_history(place / "t", Shape("GLOBAL_SIMPLE", MERGE_ON_READ, moves=False, ordered=False), life)


def check_spread(place: Path) -> None:
    for kind in (COPY_ON_WRITE, MERGE_ON_READ):
        check_history(place / kind, Shape("GLOBAL_SIMPLE", kind, spread=True), _LIFE)


def check_inserts(place: Path) -> None:
    parts = [*parts_of([Row(1, "x", 3, 10)], 1), *parts_of([Row(1, "y", 3, 11)], 1)]
    settings = how(combine_before_insert=True)
    write(place / "t", parts, operation="insert", table=table("GLOBAL_SIMPLE"), settings=settings)
    assert shown(place / "t") == [("y", 1, "y", 3, 11)]


def small_files_are_counted_twice(patch: Patch) -> None:
    """Each has the room of an empty one, as if what it holds had gone elsewhere."""
    original = read_seam("room in small files")
    patch_seam(
        patch,
        "room in small files",
        lambda small, sizes, size: original([replace(one, size=0) for one in small], sizes, size),
    )


def the_greatest_small_file_is_filled_first(patch: Patch) -> None:
    class Descending(SmallFile):
        def __lt__(self, other: Any) -> bool:
            return (self.size, self.file_id) > (other.size, other.file_id)

    patch_seam(patch, "small file", Descending)


def each_task_fills_small_files_for_itself(patch: Patch) -> None:
    """Rows are counted, not keys hashed."""

    def take(self: Shares, hashes: Any) -> Any:
        counts = [one.rows for one in self.shares]
        return np.minimum(np.searchsorted(np.cumsum(counts), np.arange(len(hashes)), side="right"), len(counts) - 1)

    patch_seam(patch, "share of each key", take)


def the_last_hash_of_a_share_is_the_next_ones(patch: Patch) -> None:
    def take(self: Shares, hashes: Any) -> Any:
        lasts = np.array([one.last for one in self.shares], np.uint64)
        return np.searchsorted(lasts, hashes, side="right")

    patch_seam(patch, "share of each key", take)


def check_edges(_: Path) -> None:
    """The greatest hash there is has a place too."""
    assert dealt(500).take(np.array([(1 << 64) - 1], np.uint64)).tolist() == [4]


def groups_of_a_pending_clustering_take_rows(patch: Patch) -> None:
    original = read_seam("sizes of file groups").__func__

    def of(cls: type[GroupSizes], *args: Any, held: Any, appends: bool) -> GroupSizes:
        return original(cls, *args, appends=appends)

    patch_seam(patch, "sizes of file groups", classmethod(of))


def a_moved_row_is_left_behind(patch: Patch) -> None:
    original = read_seam("resolve moved rows")

    def resolve(*args: Any, **more: Any) -> ResolvedRows:
        none = np.zeros(0, np.int64)
        return replace(original(*args, **more), leaving=none, left=none.astype(np.int32))

    patch_seam(patch, "resolve moved rows", resolve)


def a_row_moves_although_it_is_older(patch: Patch) -> None:
    original = read_seam("stored rows of moved keys")

    def standing(self: OldRows, *args: Any) -> tuple[Mask, Mask]:
        live, wins = original(self, *args)
        return live, np.zeros_like(wins)

    patch_seam(patch, "stored rows of moved keys", standing)


def what_log_files_deleted_is_taken_for_there(patch: Patch) -> None:
    original = read_seam("stored rows of moved keys")

    def standing(self: OldRows, *args: Any) -> tuple[Mask, Mask]:
        live, wins = original(self, *args)
        return np.ones_like(live), wins

    patch_seam(patch, "stored rows of moved keys", standing)


def rows_of_one_key_are_folded_within_their_partitions(patch: Patch) -> None:
    patch_seam(patch, "whether a write folds rows of one key", False)


def ties_go_by_the_partition(patch: Patch) -> None:
    patch_seam(patch, "former positions of rows", lambda self, rows: None)


def rows_move_that_are_to_stay(patch: Patch) -> None:
    original = read_seam("resolve moved rows")
    patch_seam(patch, "resolve moved rows", lambda *args, moves: original(*args, moves=True))


def tasks_see_some_rows_of_a_key(patch: Patch) -> None:
    patch_seam(patch, "keep rows of one key in one task", lambda batches, columns: batches)


def all_rows_of_a_key_go_on(patch: Patch) -> None:
    patch_seam(patch, "whether a write folds rows of one key", False)


def tasks_leave_a_moved_row_behind(patch: Patch) -> None:
    original = read_seam("resolve moved rows")
    none = np.zeros(0, np.int64)
    patch_seam(
        patch,
        "resolve moved rows",
        lambda *args, **how: replace(original(*args, **how), leaving=none, left=none),
    )


MUTATIONS: list[tuple[Mutate, Check]] = [
    (small_files_are_counted_twice, check_sizes),
    (each_task_fills_small_files_for_itself, check_order),
    (the_last_hash_of_a_share_is_the_next_ones, check_edges),
    (the_greatest_small_file_is_filled_first, check_drawn_places),
    (groups_of_a_pending_clustering_take_rows, check_held),
    (a_moved_row_is_left_behind, check_moves),
    (a_moved_row_is_left_behind, check_moves_of_logs),
    (a_row_moves_although_it_is_older, check_moves),
    (what_log_files_deleted_is_taken_for_there, check_stays_of_logs),
    (rows_of_one_key_are_folded_within_their_partitions, check_moves),
    (rows_of_one_key_are_folded_within_their_partitions, check_inserts),
    (ties_go_by_the_partition, check_moves),
    (rows_move_that_are_to_stay, check_stays),
    (tasks_see_some_rows_of_a_key, check_spread),
    (all_rows_of_a_key_go_on, check_spread),
    (tasks_leave_a_moved_row_behind, check_spread),
    (a_row_moves_although_it_is_older, check_spread),
]


@each(MUTATIONS)
def test_a_mistake_is_seen(mutate: Mutate, check: Check, tmp_path: Path, monkeypatch: Patch) -> None:
    assert_red(tmp_path, monkeypatch, mutate, check)


@pytest.mark.parametrize("check", sorted({check for _, check in MUTATIONS}, key=lambda one: one.__name__))
def test_without_a_mistake_the_checks_are_green(check: Check, tmp_path: Path) -> None:
    check(tmp_path)
