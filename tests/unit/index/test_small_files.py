"""Where new keys go: into small files up to their room, then into new file groups, by the hash of the key alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.index.settings import FileSizes
from pyhudi.index.small_files import GroupSizes, Shares, SmallFile, deal
from pyhudi.table.arrow.string_hash import hash64
from pyhudi.table.files.names import bucket_of
from support.rules.small_files import INSTANT, SIZES, SMALL, check_candidates, check_portions, check_rooms, dealt
from support.share import share_of


def test_small_files_are_filled_up_from_the_smallest_on_and_new_ones_take_the_rest() -> None:
    found = dealt(300, (SmallFile(100, "b"), SmallFile(900, "a")))

    assert [(one.spelled, one.rows) for one in found.shares] == [("b", 110), ("a", 30), ("+0", 120), ("+1", 40)]


def test_rows_that_fit_into_one_small_file_all_go_there() -> None:
    hash_shares = dealt(110, (SmallFile(100, "b"), SmallFile(900, "a")))

    assert [one.file_id for one in hash_shares.shares] == ["b"]
    assert hash_shares.take(np.array([0, 1, 1 << 63, (1 << 64) - 1], np.uint64)).tolist() == [0, 0, 0, 0]


def test_a_file_with_no_room_for_a_row_gets_none() -> None:
    sizes = FileSizes(small=2000, largest=1200)
    full = (SmallFile(1190, "one row"), SmallFile(1191, "none"), SmallFile(1900, "less than none"))

    assert [(one.spelled, one.rows) for one in dealt(2, full, sizes).shares] == [("one row", 1), ("+0", 1)]


def test_a_row_that_is_larger_than_a_file_gets_one_of_its_own() -> None:
    assert [one.rows for one in dealt(3, record_bytes=5000).shares] == [1, 1, 1]


def test_partitions_without_new_rows_get_no_file_group() -> None:
    assert deal({"p": 0}, GroupSizes({"p": (SmallFile(1, "a"),)}), SIZES, 10, INSTANT) == {}


def test_new_file_groups_have_the_ids_that_every_attempt_invents_and_no_bucket() -> None:
    ids = [one.file_id for one in dealt(400).shares]

    assert ids == [one.file_id for one in dealt(400).shares]
    assert len({*ids, *(one.file_id for one in deal({"q": 400}, GroupSizes(), SIZES, 10, INSTANT)["q"].shares)}) == 8
    assert {bucket_of(one) for one in ids} == {None}


@settings(deadline=None)
@given(rows=st.integers(1, 5000), small=SMALL, largest=st.integers(1, 3000), record_bytes=st.floats(0.5, 400))
def test_no_file_is_meant_to_grow_over_the_largest_size(
    rows: int, small: tuple[SmallFile, ...], largest: int, record_bytes: float
) -> None:
    check_rooms(rows, small, largest, record_bytes)


@settings(deadline=None)
@given(rows=st.integers(1, 10**12), small=SMALL, record_bytes=st.floats(0.5, 1e4))
def test_every_hash_has_one_share_and_shares_are_as_wide_as_their_rows_are_many(
    rows: int, small: tuple[SmallFile, ...], record_bytes: float
) -> None:
    largest = max(int(rows * record_bytes / 7), 1200)
    shares = dealt(rows, small, FileSizes(small=1000, largest=largest), record_bytes).shares

    lasts = [one.last for one in shares]
    assert lasts[-1] == (1 << 64) - 1
    widths = [last - before for last, before in zip(lasts, [-1, *lasts], strict=False)]
    for width, share in zip(widths, shares, strict=True):
        assert abs(width - (1 << 64) * share.rows / rows) <= 1 + (1 << 64) * 1e-15
    edges = np.array(sorted({edge for last in lasts for edge in (last, last + 1) if edge < 1 << 64}), np.uint64)
    for edge, code in zip(edges.tolist(), Shares(shares).take(edges).tolist(), strict=True):
        assert edge <= lasts[code] and (code == 0 or edge > lasts[code - 1])


@settings(deadline=None, max_examples=share_of(40))
@given(st.integers(1, 4000), SMALL, st.integers(0, 2**32), st.data())
def test_a_key_goes_to_one_place_in_whatever_order_and_portions_rows_come(
    rows: int, small: tuple[SmallFile, ...], seed: int, data: st.DataObject
) -> None:
    check_portions(rows, small, seed, data.draw(st.lists(st.integers(0, rows), max_size=5)))


def test_record_keys_that_only_count_up_are_dealt_out_evenly_too() -> None:
    keys = pa.array([f"order-{number:08d}" for number in range(60_000)])
    shares = dealt(60_000, (SmallFile(200, "a"),), FileSizes(small=1000, largest=150_200))

    counts = np.bincount(shares.take(hash64(keys)))

    assert [one.rows for one in shares.shares] == [15_000, 15_020, 15_020, 14_960]
    assert np.abs(counts - [15_000, 15_020, 15_020, 14_960]).max() < 600


@pytest.mark.parametrize(
    ("sizes", "appends", "expected"),
    [
        (SIZES, False, ["d", "b", "c"]),
        (SIZES, True, ["d"]),
        (FileSizes(small=1000, most_rewritten=2), True, ["d", "b"]),
        (FileSizes(small=1000, most_rewritten=0), True, []),
        (FileSizes(small=0), False, []),
        (FileSizes(small=-1), False, []),
    ],
)
def test_small_files_have_no_logs_are_held_by_nobody_and_are_no_buckets(
    sizes: FileSizes, appends: bool, expected: list[str]
) -> None:
    check_candidates(sizes, appends, expected)
