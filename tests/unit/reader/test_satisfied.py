"""Rows that satisfy a filter where no engine evaluates it: by SQL's rules, and Spark's for NaN."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyhudi.errors import InvalidOptionError
from pyhudi.reader.skipping.predicates import (
    AnyOf,
    Compare,
    IsNotNull,
    IsNull,
    NoneOf,
    OneOf,
    Predicate,
    StartsWith,
    satisfied,
)

NAN = float("nan")
DAY = datetime.date(2026, 11, 25)
NOON = datetime.datetime(2026, 11, 25, 12, tzinfo=datetime.timezone.utc)
MICRO = datetime.timedelta(microseconds=1)


def numbers(kind: pa.DataType, values: list[object], *predicates: Predicate) -> list[int]:
    """Return the places of the values that satisfy the predicates on the column x."""
    rows = pa.RecordBatch.from_arrays([pa.array(values, kind)], ["x"])
    return [place for place, kept in enumerate(satisfied(rows, predicates).to_pylist()) if kept]


@pytest.mark.parametrize(
    ("op", "places"), [("=", [1]), ("!=", [0, 2]), ("<", [0]), ("<=", [0, 1]), (">", [2]), (">=", [1, 2])]
)
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int32(), [-1, 0, 1]),
        (pa.float32(), [-1.5, 0.0, 1.5]),
        (pa.string(), ["a", "b", "c"]),
        (pa.decimal128(38, 2), [Decimal("-1.25"), Decimal(0), Decimal("1.25")]),
        (pa.date32(), [DAY - datetime.timedelta(1), DAY, DAY + datetime.timedelta(1)]),
        (pa.timestamp("us", "UTC"), [NOON - MICRO, NOON, NOON + MICRO]),
        (pa.timestamp("us"), [(NOON + n * MICRO).replace(tzinfo=None) for n in (-1, 0, 1)]),
    ],
)
def test_values_are_compared_and_nulls_satisfy_nothing(
    kind: pa.DataType, values: list[object], op: str, places: list[int]
) -> None:
    assert numbers(kind, [*values, None], Compare("x", op, values[1])) == places  # type: ignore[arg-type]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_both_zeros_are_equal_among_several_values_too(zero: float) -> None:
    values: list[object] = [-0.0, 0.0, 1.5, NAN]

    assert numbers(pa.float64(), values, OneOf("x", (zero, NAN))) == [0, 1, 3]
    assert numbers(pa.float32(), values, NoneOf("x", (zero, 1.5))) == [3]


def test_a_value_may_have_more_places_than_its_column() -> None:
    half = Decimal("0.005")

    assert numbers(pa.decimal128(5, 2), [Decimal("0.00"), Decimal("0.01")], Compare("x", ">", half)) == [1]
    assert numbers(pa.int8(), [1, 2], Compare("x", "<", 1 << 40)) == [0, 1]
    assert numbers(pa.timestamp("ms", "UTC"), [NOON], Compare("x", "<", NOON + MICRO)) == [0]


def test_nan_is_the_greatest_number_and_equals_itself() -> None:
    values = [1.0, NAN, None]

    assert numbers(pa.float64(), values, Compare("x", ">", 1e300)) == [1]
    assert numbers(pa.float64(), values, Compare("x", "!=", 1.0)) == [1]
    assert numbers(pa.float64(), values, Compare("x", "=", NAN)) == [1]
    assert numbers(pa.float64(), values, Compare("x", "<", NAN)) == [0]
    assert numbers(pa.float64(), values, OneOf("x", (NAN,))) == [1]
    assert numbers(pa.float64(), values, NoneOf("x", (NAN,))) == [0]


def test_lists_of_values() -> None:
    values = [1, 2, 3, None]

    assert numbers(pa.int64(), values, OneOf("x", (1, 3, None))) == [0, 2]
    assert numbers(pa.int64(), values, OneOf("x", ())) == []
    assert numbers(pa.int64(), values, NoneOf("x", (1,))) == [1, 2]
    assert numbers(pa.int64(), values, NoneOf("x", (1, None))) == []


def test_nulls_prefixes_and_alternatives() -> None:
    values = ["aa", "ab", "b", None]

    assert numbers(pa.string(), values, IsNull("x")) == [3]
    assert numbers(pa.string(), values, IsNotNull("x")) == [0, 1, 2]
    assert numbers(pa.string(), values, StartsWith("x", "a")) == [0, 1]
    either = AnyOf(((StartsWith("x", "a"), Compare("x", ">", "aa")), (IsNull("x"),)))
    assert numbers(pa.string(), values, either) == [1, 3]
    assert numbers(pa.string(), values, Compare("x", "=", None)) == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int64(), "1"),
        (pa.int64(), 1 << 70),
        (pa.string(), 1),
        (pa.date32(), NOON),
        (pa.timestamp("us"), NOON),
        (pa.decimal128(5, 2), Decimal("1e-50")),
    ],
)
def test_a_value_of_another_type_is_refused(kind: pa.DataType, value: object) -> None:
    with pytest.raises(InvalidOptionError, match="cannot be compared"):
        numbers(kind, [], Compare("x", "=", value))
