"""Groups of buckets of tables whose partitions have one number of buckets, or several."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import OptionConflictError, UnsupportedTableError
from pyhudi.reader.buckets.bucket_groups import BucketChoice, BucketedSlices, bucketed, group_buckets, spread
from pyhudi.table.files.file_group import BaseFile, FileSlice
from pyhudi.table.files.names import FileGroupId

TIME = "20260101000000000"


def bucket(partition: str, number: int, size: int = 1) -> FileSlice:
    file_id = f"{number:08d}-0000-0000-0000-000000000000-0"
    path = f"{partition}/{file_id}_0-0-0_{TIME}.parquet"
    return FileSlice(FileGroupId(partition, file_id), TIME, BaseFile(path, size, file_id, "0-0-0", TIME))


def side(numbers: Mapping[str, int], path: str = "t") -> BucketedSlices:
    slices = [bucket(partition, one) for partition, number in numbers.items() for one in range(number)]
    return bucketed(path, slices, numbers.__getitem__)


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abc"), st.sampled_from([4, 6, 12, 28]), max_size=3), min_size=1, max_size=2
    ),
    st.integers(1, 9),
    st.lists(st.integers(0, 2**31 - 1), max_size=20),
)
def test_rows_with_one_hash_meet_in_one_group(numbers: list[dict[str, int]], most: int, hashes: list[int]) -> None:
    """Whatever their partition and its number of buckets, and no file slice is left out or read twice."""
    sides = [side(one) for one in numbers]
    groups = group_buckets(sides, most)

    assert len(groups) <= most
    for place, part in enumerate(sides):
        assert Counter(found for group in groups for found in group.slices[place]) == Counter(part.slices)
    for code in hashes:
        group_numbers = [
            {number for number, group in enumerate(groups) if bucket(path, code % count) in group.slices[place]}
            for place, of_side in enumerate(numbers)
            for path, count in of_side.items()
        ]
        assert len(set().union(*group_numbers)) <= 1
    for group in groups:
        for part in (one for slices in group.slices for one in slices):
            assert group.choice.holds(part.file_id)
            assert sum(other.choice.holds(part.file_id) for other in groups) == 1


def test_fourteen_buckets_and_twenty_eight_make_fourteen_groups() -> None:
    groups = group_buckets([side({"": 14}), side({"": 28})], 100)

    assert sorted(group.choice.remainders for group in groups) == [(number,) for number in range(14)]
    assert {(len(left), len(right)) for left, right in (group.slices for group in groups)} == {(1, 2)}


@pytest.mark.parametrize("numbers", [({"": 14}, {"": 15}), ({"a": 1, "b": 8},)])
def test_numbers_without_a_common_divisor_are_refused(numbers: tuple[dict[str, int], ...]) -> None:
    shown = ", ".join(str(number) for number in sorted({n for one in numbers for n in one.values()}))
    with pytest.raises(OptionConflictError, match=rf"have {shown} buckets"):
        group_buckets([side(one, f"t{place}") for place, one in enumerate(numbers)], 4)


def test_tables_of_one_bucket_make_one_group_and_empty_tables_none() -> None:
    assert [group.choice for group in group_buckets([side({"a": 1, "b": 1}), side({})], 4)] == [BucketChoice(1, (0,))]
    assert group_buckets([side({}), side({})], 4) == []


@pytest.mark.parametrize("file_id", [f"{7:08d}-0000", "6e1f7a52-0c4d-4b3e-9a55-1d2c3b4a5f60-0"])
def test_a_file_group_that_is_no_bucket_of_its_partition_is_refused(file_id: str) -> None:
    stray = FileSlice(FileGroupId("p", file_id), TIME, BaseFile(f"p/{file_id}", 1, file_id, "0-0-0", TIME))
    with pytest.raises(UnsupportedTableError, match=rf"{file_id}.*none of the 4 buckets"):
        bucketed("t", [bucket("p", 3), stray], {"p": 4}.__getitem__)


@given(st.dictionaries(st.integers(0, 99), st.integers(0, 1000), max_size=40), st.integers(1, 8))
def test_groups_are_of_about_one_size(sizes: dict[int, int], most: int) -> None:
    groups = spread(sizes, most)

    assert sorted(thing for group in groups for thing in group) == sorted(sizes)
    assert len(groups) == min(most, len(sizes))
    assert all(groups)
    totals = [sum(sizes[thing] for thing in group) for group in groups]
    assert max(totals, default=0) <= max([*sizes.values(), math.inf if len(sizes) <= most else 0]) + sum(totals) / most
