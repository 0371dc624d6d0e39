"""Who wins, pair by pair: the orders below are those in which Apache Hudi 1.2.0 was seen to merge such values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.table.arrow.string_hash import hash64
from pyhudi.table.merging import key_codes, key_probe
from pyhudi.table.merging.winners import base_wins, fold
from support.seams import patch_seam

INF, NAN = float("inf"), float("nan")
FLOATS = [-INF, -1.5, -0.0, 0.0, 1.5, INF, NAN]
MOMENTS = [dt.datetime(1582, 1, 1), dt.datetime(1969, 12, 31, 23), dt.datetime(1970, 1, 1), dt.datetime(9999, 1, 1)]
ASCENDING = [
    pytest.param(pa.int32(), [-(2**31), -1, 0, 2**31 - 1], id="int"),
    pytest.param(pa.int64(), [-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1], id="long"),
    pytest.param(pa.float32(), FLOATS, id="float"),
    pytest.param(pa.float64(), FLOATS, id="double"),
    # Unlike String.compareTo, which puts surrogates below U+E000: Avro compares UTF-8.
    pytest.param(
        pa.string(),
        ["", "a", "a\0", "b", "é", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"],
        id="string",
    ),
    # ByteBuffer compares signed bytes.
    pytest.param(pa.binary(), [b"", b"\x80", b"\xff", b"\xff\x80", b"\x00", b"\x7f", b"\x7f\x00"], id="binary"),
    pytest.param(pa.bool_(), [False, True], id="boolean"),
    pytest.param(pa.timestamp("us", "UTC"), MOMENTS, id="timestamp"),
    pytest.param(pa.timestamp("us"), MOMENTS, id="timestamp_ntz"),
    # Apache Hudi fails to merge these two in a copy-on-write table of its own.
    pytest.param(pa.date32(), [moment.date() for moment in MOMENTS], id="date"),
    pytest.param(pa.decimal128(5, 2), [Decimal("-9.90"), Decimal("0.00"), Decimal("1.20"), Decimal("10.00")], id="dec"),
]


def column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return values as a slice of a longer array, as batches are."""
    return pa.array([values[0], *values], kind).slice(1)


@pytest.mark.parametrize(("kind", "values"), ASCENDING)
def test_the_greater_value_wins_in_a_fold_and_against_the_base(kind: pa.DataType, values: list[Any]) -> None:
    """Every pair of values, either way round; a tie goes to the later row."""
    pairs = [(earlier, later) for earlier in range(len(values)) for later in range(len(values))]
    rows = column([values[number] for pair in pairs for number in pair], kind)
    keys = pa.array([f"{pair}" for pair in pairs for _ in range(2)])
    older, newer = (column([values[pair[side]] for pair in pairs], kind) for side in (0, 1))

    winners = fold(keys, [rows])

    assert winners.tolist() == [2 * n + (later >= earlier) for n, (earlier, later) in enumerate(pairs)]
    assert base_wins([older], [newer]).tolist() == [earlier > later for earlier, later in pairs]


def test_later_fields_decide_where_earlier_ones_are_equal() -> None:
    keys = pa.array(["k", "k", "l", "l", "m", "m", "n", "n"])
    first = pa.array([1, 1, 2, 1, 1, 1, -0.0, 0.0])
    second = pa.array(["b", "a", "a", "z", "a", "a", "z", "a"])

    assert fold(keys, [first, second]).tolist() == [0, 2, 5, 7]
    halves = [slice(None, None, 2), slice(1, None, 2)]
    base, incoming = ([values.take(pa.array(np.arange(8)[half])) for values in (first, second)] for half in halves)
    assert base_wins(base, incoming).tolist() == [True, True, False, False]


def test_a_null_in_the_base_is_the_least() -> None:
    base = [pa.array([None, 1.0, 2.0]), pa.array(["z", None, None])]
    incoming = [pa.array([-INF, 1.0, 1.0]), pa.array(["a", "a", "a"])]

    assert base_wins(base, incoming).tolist() == [False, False, True]


def test_a_reset_wins_against_what_is_above_and_loses_against_what_is_below() -> None:
    keys = pa.array(["a", "b", "a", "b", "a", "b", "c", "c", "d", "d"])
    values = pa.array([9, 9, 0, 0, -5, 0, 9, -9, 0, -1], pa.int32())
    resets = np.array([0, 0, 1, 1, 0, 1, 0, 0, 1, 0], dtype=np.bool_)

    assert fold(keys, [values], resets).tolist() == [4, 5, 6, 9]


def test_rows_that_were_moved_are_folded_as_they_stood() -> None:
    keys, values = pa.array(["a", "b", "a", "a", "b"]), pa.array([1, 5, 2, 2, 5])
    resets = np.array([1, 0, 0, 0, 0], dtype=np.bool_)

    assert fold(keys, [values], stood=np.array([0, 9, 8, 7, 1])).tolist() == [1, 2]
    assert fold(keys, stood=np.array([5, 9, 3, 1, 11])).tolist() == [0, 4]
    assert fold(keys, [values], resets, np.array([8, 1, 0, 9, 2])).tolist() == [3, 4]
    assert fold(keys, [values], resets, np.array([9, 1, 0, 8, 2])).tolist() == [0, 4]


def test_among_the_rows_below_a_reset_the_greater_value_wins() -> None:
    keys = pa.array(["k"] * 5 + ["l"] * 2)
    values = pa.array([99, 0, 3, 7, 5, 1, 2], pa.int32())
    resets = np.array([0, 1, 0, 0, 0, 0, 0], dtype=np.bool_)

    assert fold(keys, [values], resets).tolist() == [3, 6]


def test_what_yields_is_lost_below_a_reset_until_another_row_stands_between() -> None:
    """As Apache Hudi passes over an entry of a delete block whose key is deleted without an ordering value."""
    keys = pa.array(["a", "a", "b", "b", "b", "c", "c", "d", "d", "d", "e"])
    values = pa.array([0, 9, 0, 3, 5, 1, 9, 7, 0, 8, 4], pa.int32())
    resets = np.array([1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0], dtype=np.bool_)
    yields = np.array([0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1], dtype=np.bool_)

    assert fold(keys, [values], resets, yields=yields).tolist() == [0, 4, 6, 8, 10]
    moved = np.random.default_rng(0).permutation(len(keys))
    stood = np.arange(len(keys))[moved]
    again = fold(keys.take(moved), [values.take(moved)], resets[moved], stood, yields[moved])
    assert sorted(stood[again].tolist()) == [0, 4, 6, 8, 10]


@pytest.mark.parametrize(("kind", "values"), ASCENDING)
def test_a_null_is_less_than_every_other_value_and_ties_with_a_null(kind: pa.DataType, values: list[Any]) -> None:
    least, other = values[0], values[1]
    keys = pa.array(["a", "a", "b", "b", "c", "c"])
    rows = pa.array([least, None, None, other, None, None], kind)

    assert fold(keys, [rows]).tolist() == [0, 3, 5]
    assert fold(keys, [rows, pa.array([1, 2, 2, 1, 2, 1])]).tolist() == [0, 3, 4]
    ours, theirs = (rows.take(pa.array(at)) for at in ([0, 2, 4, 1], [1, 3, 5, 0]))
    assert base_wins([ours], [theirs]).tolist() == [True, False, False, False]
    tie = [pa.array([2, 2, 2, 2]), pa.array([1, 1, 1, 1])]
    assert base_wins([ours, tie[0]], [theirs, tie[1]]).tolist() == [True, False, True, False]


def test_without_ordering_values_the_later_row_wins() -> None:
    assert fold(pa.array(["a", "b", "a", "a"])).tolist() == [1, 3]
    assert fold(pa.array([], pa.string())).tolist() == []


KEYS = st.lists(st.text(st.sampled_from("abc"), max_size=3), max_size=30)
KEYS_OR_NULL = st.lists(st.none() | st.text(st.sampled_from("abc"), max_size=3), max_size=30)


@given(
    KEYS,
    st.lists(KEYS_OR_NULL, max_size=3),
    st.sampled_from([0, 3, 99]),
    st.sampled_from([1, 3, 64]),
    st.sampled_from([1, 22]),
)
@settings(deadline=None)
def test_a_probe_finds_what_a_dict_finds(
    known: list[str], batches: list[list[str | None]], few: int, hash_bits: int, table_bits: int
) -> None:
    """In Arrow's table or ours, whether or not hashes collide, and however full the table in front of them is."""
    unique = list(dict.fromkeys(known))

    def few_hashes(keys: pa.Array) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return hash64(keys) >> np.uint64(64 - hash_bits)

    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "hash keys that are found by hashes", few_hashes)
        patch_seam(patch, "most bits of a table of hashes", table_bits)
        patch_seam(patch, "most keys of a set in a table of Arrow", few)
        probe = key_probe.KeyProbe(pa.array(unique, pa.string()))
        found = [probe.find(pa.array(wanted, pa.string())).tolist() for wanted in batches]

    assert found == [[unique.index(key) if key in unique else -1 for key in wanted] for wanted in batches]


@given(KEYS, st.sampled_from([1, 3, 64]), st.integers(1, 5), st.sampled_from([(0, 0), (0, 99), (99, 99)]))
@settings(deadline=None)
def test_codes_are_equal_where_keys_are(keys: list[str], hash_bits: int, at_once: int, bounds: tuple[int, int]) -> None:
    """Whether or not hashes collide, and however many keys there are."""

    def few_hashes(keys: pa.Array) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return hash64(keys) >> np.uint64(64 - hash_bits)

    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "hash keys that get codes", few_hashes)
        patch_seam(patch, "keys with codes that are compared at once", at_once)
        patch_seam(patch, "few keys for a dictionary", bounds[0])
        patch_seam(patch, "some keys for a dictionary", bounds[1])
        codes = key_codes.key_codes(pa.array(["", *keys], pa.string()).slice(1))

    if len(set(keys)) == len(keys):
        assert codes is None
    else:
        assert codes is not None
        assert [(a == b) for a in keys for b in keys] == [bool(a == b) for a in codes for b in codes]
        assert 0 <= codes.min() <= codes.max() < len(keys)
