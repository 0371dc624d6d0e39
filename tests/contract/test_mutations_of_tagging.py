"""Mistakes put into indexes that look keys up: each must turn the checks of the real tests red."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from pyhudi.index import bloom, lookup, slice_keys
from pyhudi.index.bloom import BloomIndex
from pyhudi.index.lookup import TableLookup
from pyhudi.index.simple import SimpleIndex
from pyhudi.index.slice_keys import Hits, WantedKeys
from pyhudi.table.files import footers, key_footers
from pyhudi.table.files.bloom_filter import BloomFilter
from pyhudi.table.files.key_footers import KeyFooters
from pyhudi.table.merging.key_probe import KeyProbe
from support.made.keyed_files import KeyedFiles
from support.mutations import Check, Mutate, Patch, always, assert_red, each
from support.rules.tagging import ROWS, Places, check_lookup, tables


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
    original = BloomFilter.may_hold_between

    def may_hold_between(self: BloomFilter, *span: Any) -> Any:
        held = original(self, *span)
        held[np.flatnonzero(held)[-1:]] = False
        return held

    patch.setattr(BloomFilter, "may_hold_between", may_hold_between)


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
    patch.setattr(key_footers, "span_of", as_numbers)


def bounds_of_row_groups_are_compared_as_numbers(patch: Patch) -> None:
    patch.setattr(footers, "span_of", as_numbers)


def ranges_leave_their_last_key_out(patch: Patch) -> None:
    original = key_footers.span_of

    def span_of(ordered: pa.Array, least: str | None, greatest: str | None) -> tuple[int, int]:
        start, end = original(ordered, least, greatest)
        return start, end - (start < end and ordered[end - 1].as_py() == greatest)

    patch.setattr(key_footers, "span_of", span_of)


def a_false_positive_is_taken(patch: Patch) -> None:
    patch.setattr(bloom, "hits_of_base", lambda base, file, wanted: Hits(np.arange(len(wanted)), 0, True))


def footers_are_known_by_their_table_alone(patch: Patch) -> None:
    patch.setattr(key_footers, "_name", lambda storage, file: (storage.path, 0))


def log_files_are_passed_over(patch: Patch) -> None:
    for module in (slice_keys, bloom):
        patch.setattr(module, "hits_of_logs", lambda *_: Hits.none())


def a_key_of_another_hash_is_taken(patch: Patch) -> None:
    """Every key that is not denied at the first look counts as found."""
    patch.setattr(
        KeyProbe, "find", lambda self, wanted: np.arange(len(wanted)) % len(self.keys) if len(self.keys) else -1
    )


def all_rows_of_a_key_but_the_last_are_forgotten(patch: Patch) -> None:
    original = lookup._KeyedSearch.of

    def of(search: Any, rows: Any) -> Any:
        made = original(search, rows)
        _, last = np.unique(made.key_of_row[::-1], return_index=True)
        kept = np.sort(len(made.key_of_row) - 1 - last)
        return lookup._KeyedSearch(made.rows[kept], made.pieces, made.keys, made.key_of_row[kept])

    patch.setattr(lookup._KeyedSearch, "of", of)


def other_copies_of_a_key_are_forgotten(patch: Patch) -> None:
    patch.setattr(lookup._Found, "_add_copies", lambda *_: None)


def keys_are_not_ordered_before_ranges_cut_them(patch: Patch) -> None:
    def unique(keys: pa.StringArray) -> tuple[pa.StringArray, Any]:
        encoded = pc.dictionary_encode(keys)
        return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)

    patch.setattr(lookup, "unique_in_order", unique)


def the_greatest_key_is_taken_for_one_beyond(patch: Patch) -> None:
    between = WantedKeys._between
    patch.setattr(WantedKeys, "_between", lambda self, keys: pc.and_(between(self, keys), pc.less(keys, self.keys[-1])))


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
    monkeypatch.setattr(bloom, "FOOTERS", KeyFooters())


@each(MUTATIONS)
def test_a_mistake_is_seen(mutate: Mutate, check: Check, tmp_path: Path, monkeypatch: Patch) -> None:
    assert_red(tmp_path, monkeypatch, mutate, check)
