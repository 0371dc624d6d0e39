"""Mistakes put into indexes that look keys up: each must turn the checks of the real tests red."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from pyhudi.index.bloom import BloomIndex
from pyhudi.index.lookup import SimpleIndex, TableLookup
from pyhudi.index.slice_keys import Hits
from pyhudi.table.files.bloom_filter import BloomFilter
from pyhudi.table.files.key_footers import KeyFooters
from support.made.keyed_files import KeyedFiles
from support.mutations import Check, Mutate, Patch, always, assert_red, each
from support.rules.tagging import ROWS, Places, check_lookup, tables
from support.seams import patch_seam, read_seam


def _check(index: TableLookup) -> None:
    @always(120)
    @given(tables(), ROWS)
    def run(table: tuple[KeyedFiles, Places], rows: list[tuple[str, str]]) -> None:
        check_lookup(index, *table, rows)

    run()


def check_bloom(_: Path) -> None:
    _check(BloomIndex())


def check_simple(_: Path) -> None:
    _check(SimpleIndex())


def a_filter_denies_a_key(patch: Patch) -> None:
    original = read_seam("ask a bloom filter for keys between two positions")

    def may_hold_between(self: BloomFilter, *span: Any) -> Any:
        held = original(self, *span)
        held[np.flatnonzero(held)[-1:]] = False
        return held

    patch_seam(patch, "ask a bloom filter for keys between two positions", may_hold_between)


def as_numbers(ordered: pa.Array, least: str | None, greatest: str | None) -> tuple[int, int]:
    def number(text: str) -> tuple[int, str]:
        return (int(text) if text.isdecimal() else 1 << 30, text)

    between = [
        place
        for place, key in enumerate(ordered.to_pylist())
        if (least is None or number(least) <= number(key)) and (greatest is None or number(key) <= number(greatest))
    ]
    return (between[0], between[-1] + 1) if between else (0, 0)


def ranges_are_compared_as_numbers(patch: Patch) -> None:
    patch_seam(patch, "keys in the range of a file", as_numbers)


def bounds_of_row_groups_are_compared_as_numbers(patch: Patch) -> None:
    patch_seam(patch, "keys in the range of a row group", as_numbers)


def ranges_leave_their_last_key_out(patch: Patch) -> None:
    original = read_seam("keys in the range of a file")

    def span_of(ordered: pa.Array, least: str | None, greatest: str | None) -> tuple[int, int]:
        start, end = original(ordered, least, greatest)
        return start, end - (start < end and ordered[end - 1].as_py() == greatest)

    patch_seam(patch, "keys in the range of a file", span_of)


def a_false_positive_is_taken(patch: Patch) -> None:
    patch_seam(
        patch, "keys that a base file holds", lambda base, file, wanted, _: Hits(np.arange(len(wanted)), 0, True)
    )


def footers_are_known_by_their_table_alone(patch: Patch) -> None:
    patch_seam(patch, "name of a footer in memory", lambda storage, file: (storage.path, 0))


def log_files_are_passed_over(patch: Patch) -> None:
    patch_seam(patch, "keys that log files hold", lambda *_: Hits.none())


def a_key_of_another_hash_is_taken(patch: Patch) -> None:
    """Every key that is not denied at the first look counts as found."""
    patch_seam(
        patch,
        "find keys in a set of keys",
        lambda self, wanted: np.arange(len(wanted)) % len(self.keys) if len(self.keys) else -1,
    )


def all_rows_of_a_key_but_the_last_are_forgotten(patch: Patch) -> None:
    original = read_seam("search for the keys of rows")

    def of(search: Any, rows: Any) -> Any:
        made = original(search, rows)
        _, last = np.unique(made.key_of_row[::-1], return_index=True)
        kept = np.sort(len(made.key_of_row) - 1 - last)
        return replace(made, rows=made.rows[kept], key_of_row=made.key_of_row[kept])

    patch_seam(patch, "search for the keys of rows", of)


def other_copies_of_a_key_are_forgotten(patch: Patch) -> None:
    patch_seam(patch, "note further copies of keys", lambda *_: None)


def keys_are_not_ordered_before_ranges_cut_them(patch: Patch) -> None:
    def unique(keys: pa.StringArray) -> tuple[pa.StringArray, Any]:
        encoded = pc.dictionary_encode(keys)
        return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)

    patch_seam(patch, "order the keys of a lookup", unique)


def the_greatest_key_is_taken_for_one_beyond(patch: Patch) -> None:
    between = read_seam("wanted keys within a range")
    patch_seam(
        patch,
        "wanted keys within a range",
        lambda self, keys: pc.and_(between(self, keys), pc.less(keys, self.keys[-1])),
    )


MUTATIONS: list[tuple[Mutate, Check]] = [
    (a_filter_denies_a_key, check_bloom),
    (ranges_are_compared_as_numbers, check_bloom),
    (bounds_of_row_groups_are_compared_as_numbers, check_simple),
    (ranges_leave_their_last_key_out, check_bloom),
    (a_false_positive_is_taken, check_bloom),
    (footers_are_known_by_their_table_alone, check_bloom),
    (the_greatest_key_is_taken_for_one_beyond, check_simple),
    (log_files_are_passed_over, check_bloom),
    (log_files_are_passed_over, check_simple),
    (a_key_of_another_hash_is_taken, check_simple),
    (all_rows_of_a_key_but_the_last_are_forgotten, check_simple),
    (other_copies_of_a_key_are_forgotten, check_simple),
    (keys_are_not_ordered_before_ranges_cut_them, check_bloom),
]


@pytest.fixture(autouse=True)
def _fresh_footers(monkeypatch: Patch) -> None:
    patch_seam(monkeypatch, "footers in memory", KeyFooters())


@each(MUTATIONS)
def test_a_mistake_is_seen(mutate: Mutate, check: Check, tmp_path: Path, monkeypatch: Patch) -> None:
    assert_red(tmp_path, monkeypatch, mutate, check)
