"""How many buckets are suggested."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.errors import InvalidOptionError
from pyhudi.index.sizing import GIB, LARGEST_BYTES, MIB, suggest_buckets


@pytest.mark.parametrize(
    ("total", "partitions", "growth", "expected"),
    [
        (0, 1, 1.0, 1),
        (10 * MIB, 1, 1.0, 1),
        (512 * MIB, 1, 1.0, 1),
        (512 * MIB + 1, 1, 1.0, 2),
        (4 * GIB, 1, 1.0, 8),
        (4 * GIB, 1, 2.5, 20),
        (4 * GIB, 4, 1.0, 2),
        (4 * GIB, 1000, 1.0, 1),
        # 1,000 partitions of 20 GiB: 40 buckets each would make 40,000 file groups.
        (20_000 * GIB, 1000, 1.0, 10),
        # 1,000 partitions of 60 GiB: no bucket is larger than 3 GiB, however many file groups that makes.
        (60_000 * GIB, 1000, 1.0, 20),
    ],
)
def test_buckets_hold_half_a_gibibyte_until_file_groups_are_many(
    total: int, partitions: int, growth: float, expected: int
) -> None:
    assert suggest_buckets(total, partitions=partitions, growth=growth) == expected


@pytest.mark.parametrize(("total", "expected"), [(3 * GIB, 1), (3 * GIB + 1, 2), (30 * GIB, 10)])
def test_a_bucket_that_no_write_rewrites_may_be_large(total: int, expected: int) -> None:
    assert suggest_buckets(total, table_type="MERGE_ON_READ") == expected


@settings(deadline=None)
@given(st.integers(0, 2**60), st.integers(1, 10**5), st.floats(0.1, 100))
def test_a_bucket_is_never_larger_than_it_may_be(total: int, partitions: int, growth: float) -> None:
    buckets = suggest_buckets(total, partitions=partitions, growth=growth)

    assert buckets >= 1
    assert total * growth / partitions / buckets <= LARGEST_BYTES


@pytest.mark.parametrize(
    "arguments",
    [
        {"total_bytes": -1},
        {"total_bytes": 1, "partitions": 0},
        {"total_bytes": 1, "growth": 0.0},
        {"total_bytes": 1, "growth": math.inf},
        {"total_bytes": 1, "table_type": "MERGE_ON_WRITE"},
        {"total_bytes": 1, "growth": math.nan},
        {"total_bytes": 10**400},
        {"total_bytes": 10**12, "growth": 1e300},
    ],
)
def test_numbers_without_meaning_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError):
        suggest_buckets(**arguments)
