"""Curves through a cube: each place is met once, in the order that the published algorithms give, number by number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.table.arrow.curves import coordinates, hilbert, zorder
from support.models.curve_model import plain_hilbert, plain_zorder
from support.share import share_of

# Axes and bits of cubes with at most 4096 points.
CUBES = [(1, 5), (2, 1), (2, 4), (3, 3), (4, 2), (5, 2), (6, 2)]


def axes_of(points: Sequence[Sequence[int]]) -> list[Any]:
    return [np.array(axis, dtype=np.uint64) for axis in zip(*points, strict=True)]


def places(curve: Callable[..., list[Any]], points: Sequence[Sequence[int]], bits: int) -> list[int]:
    """Return the places of points as whole numbers, of all their words."""
    words = curve(axes_of(points), bits)
    return [sum(int(word[at]) << 64 * power for power, word in enumerate(reversed(words))) for at in range(len(points))]


@pytest.mark.parametrize(("axes", "bits"), CUBES)
@pytest.mark.parametrize(("curve", "plain"), [(zorder, plain_zorder), (hilbert, plain_hilbert)], ids=["z", "hilbert"])
def test_a_curve_meets_each_place_of_a_cube_once_in_the_published_order(
    curve: Callable[..., list[Any]], plain: Callable[[Sequence[int], int], int], axes: int, bits: int
) -> None:
    points = list(itertools.product(range(1 << bits), repeat=axes))

    positions = places(curve, points, bits)

    assert positions == [plain(point, bits) for point in points]
    assert sorted(positions) == list(range(len(points)))


@pytest.mark.parametrize(("axes", "bits"), CUBES)
def test_neighbours_along_a_hilbert_curve_touch(axes: int, bits: int) -> None:
    points = list(itertools.product(range(1 << bits), repeat=axes))
    along = [point for _, point in sorted(zip(places(hilbert, points, bits), points, strict=True))]

    steps = {sum(abs(a - b) for a, b in zip(one, next_one, strict=True)) for one, next_one in itertools.pairwise(along)}

    assert steps == {1}


@settings(max_examples=share_of(100), deadline=None)
@given(st.data(), st.integers(1, 9))
def test_places_of_any_number_of_axes_compare_as_the_published_numbers(data: st.DataObject, axes: int) -> None:
    """With more than four axes of 16 bits a place has several words."""
    points = data.draw(st.lists(st.tuples(*[st.integers(0, 0xFFFF)] * axes), min_size=1, max_size=20))

    assert places(zorder, points, 16) == [plain_zorder(point, 16) for point in points]
    assert places(hilbert, points, 16) == [plain_hilbert(point, 16) for point in points]


VALUES: dict[str, list[Any]] = {
    "numbers": [-(1 << 62), -1, 0, 1, 1 << 62],
    "floats": [-math.inf, -1.5, 0.0, 2.5, math.inf, math.nan],
    "days": [date(1500, 1, 1), date(1970, 1, 1), date(2024, 2, 29)],
    "times": [datetime(1969, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1)],
    "times of day": [time(0), time(23, 59)],
    "decimals": [Decimal("-5.25"), Decimal("0.00"), Decimal("7.50")],
    "booleans": [False, True],
    "texts": ["", "a", "ab", "b", "é", "\U0001f600"],
    "bytes": [b"", b"\x00", b"\xff"],
}


@pytest.mark.parametrize("kind", VALUES)
def test_coordinates_follow_the_order_of_values_of_each_type_nulls_first(kind: str) -> None:
    ordered = [None, *VALUES[kind]]
    shuffled = [*reversed(ordered), *ordered]

    value_coordinates = coordinates(pa.array(shuffled), bits=8).tolist()

    assert value_coordinates == [*reversed(value_coordinates[len(ordered) :]), *value_coordinates[len(ordered) :]], (
        "equal values have one coordinate"
    )
    assert value_coordinates[len(ordered) :] == sorted(set(value_coordinates))


def test_both_zeros_and_all_kinds_of_nan_have_one_coordinate() -> None:
    other_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]

    found = coordinates(pa.array([0.0, -0.0, math.nan, other_nan, 1.0]), bits=4).tolist()

    assert found[0] == found[1] < found[4] < found[2] == found[3]


def test_an_axis_is_cut_into_halves_of_equally_many_rows_however_a_column_spreads_its_values() -> None:
    skewed = pa.array([10**power for power in range(16)])

    assert coordinates(skewed, bits=4).tolist() == list(range(16))


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=1, max_size=30))
def test_a_sample_of_all_values_gives_the_coordinates_of_the_values(values: list[int | None]) -> None:
    found = pa.array(values, pa.int64())

    assert coordinates(found, found).tolist() == coordinates(found).tolist()


def test_values_beyond_a_sample_have_the_last_coordinates() -> None:
    sample = pa.array([None, 2, 3, 8])

    assert coordinates(pa.array([1, None, 7, 99]), sample, bits=4).tolist() == [4, 0, 12, 15]
