from __future__ import annotations

import datetime
import math
import zoneinfo
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.reader.skipping.predicates import (
    NULLS,
    AnyOf,
    Compare,
    IsNotNull,
    IsNull,
    NoneOf,
    OneOf,
    Span,
    StartsWith,
    columns_of,
    comparable,
    may_match,
    may_match_all,
)

UTC = datetime.timezone.utc
INT = pa.int64()
SPAN = Span(10, 20, nulls=False)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Compare("a", "=", 9), False),
        (Compare("a", "=", 10), True),
        (Compare("a", "=", 21), False),
        (Compare("a", "<", 10), False),
        (Compare("a", "<=", 10), True),
        (Compare("a", ">", 20), False),
        (Compare("a", ">=", 20), True),
        (Compare("a", "!=", 10), True),
        (OneOf("a", (1, 2, None)), False),
        (OneOf("a", (1, 15)), True),
        (OneOf("a", ()), False),
        (IsNull("a"), False),
        (IsNotNull("a"), True),
        (NoneOf("a", (10, 20)), True),
    ],
)
def test_rows_between_10_and_20_match_only_what_reaches_there(predicate, expected) -> None:
    assert may_match(predicate, SPAN, INT) is expected


@pytest.mark.parametrize("predicate", [Compare("a", "!=", 7), NoneOf("a", (7, 8))])
def test_rows_of_one_value_do_not_match_what_excludes_it(predicate) -> None:
    assert not may_match(predicate, Span(7, 7), INT)
    assert may_match(predicate, Span(7, 9), INT)


@pytest.mark.parametrize("predicate", [Compare("a", "=", 1), Compare("a", "!=", 1), OneOf("a", (1,)), IsNotNull("a")])
def test_nulls_alone_match_no_comparison(predicate) -> None:
    assert not may_match(predicate, NULLS, INT)
    assert may_match(IsNull("a"), NULLS, INT)


@pytest.mark.parametrize(
    ("prefix", "least", "greatest", "expected"),
    [
        ("b", "a", "c", True),
        ("b", "ba", "bz", True),
        ("b", "c", "d", False),
        ("b", "a", "az", False),
        ("bcd", "bc", "bc", False),
        ("b", "a", None, True),
        ("", "a", "b", True),
    ],
)
def test_a_prefix_is_looked_for_between_the_bounds(prefix: str, least: str, greatest: str | None, expected) -> None:
    assert may_match(StartsWith("a", prefix), Span(least, greatest), pa.string()) is expected


@pytest.mark.parametrize("op", [">", ">=", "!="])
def test_a_float_column_may_hold_nan_which_spark_ranks_above_all(op) -> None:
    assert may_match(Compare("a", op, 1.0), Span(1.0, 1.0), pa.float64())
    assert may_match(Compare("a", op, 100.0), Span(1.0, 1.0), pa.float64())


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (datetime.date(1970, 1, 11), pa.date32(), 10),
        (datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), pa.timestamp("us", "UTC"), 1_000_000),
        (datetime.datetime(1969, 12, 31, 23, 59, 59), pa.timestamp("us"), -1_000_000),
        (Decimal("1.50"), pa.decimal128(5, 2), Decimal("1.5")),
        (3, pa.float64(), 3.0),
        (True, pa.bool_(), True),
    ],
)
def test_values_compare_as_the_column_keeps_them(value, kind: pa.DataType, expected) -> None:
    assert comparable(value, kind) == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1", INT),
        (1.5, INT),
        (True, INT),
        (1, pa.bool_()),
        (1, pa.string()),
        (math.nan, pa.float64()),
        (datetime.datetime(2024, 1, 1), pa.date32()),
        (datetime.datetime(2024, 1, 1), pa.timestamp("us", "UTC")),
        (datetime.datetime(2024, 1, 1, tzinfo=UTC), pa.timestamp("us")),
        (b"a", pa.binary()),
        (None, INT),
    ],
)
def test_nothing_is_concluded_from_a_value_of_another_type(value, kind: pa.DataType) -> None:
    assert comparable(value, kind) is None
    assert may_match(Compare("a", "=", value), Span(5, 5), kind)
    assert may_match(Compare("a", "!=", value), Span(5, 5), kind)


def test_a_column_of_which_nothing_is_known_may_match() -> None:
    schema = pa.schema([("a", INT), ("b", INT)])

    assert may_match_all([Compare("b", "=", 1)], {"a": NULLS}, schema)
    assert not may_match_all([Compare("b", "=", 1), Compare("a", "=", 1)], {"a": NULLS}, schema)


numbers = st.one_of(st.none(), st.integers(-3, 3))


def satisfies(predicate, value) -> bool:
    """SQL's answer for one value: a comparison with null is not true."""
    if isinstance(predicate, IsNull):
        return value is None
    if value is None:
        return False
    if isinstance(predicate, IsNotNull):
        return True
    if isinstance(predicate, OneOf):
        return value in predicate.values
    if isinstance(predicate, NoneOf):
        return None not in predicate.values and value not in predicate.values
    tests = {"=": value == predicate.value, "!=": value != predicate.value, "<": value < predicate.value}
    tests |= {"<=": value <= predicate.value, ">": value > predicate.value, ">=": value >= predicate.value}
    return tests[predicate.op]


predicates = st.one_of(
    st.builds(Compare, st.just("a"), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.integers(-4, 4)),
    st.builds(OneOf, st.just("a"), st.lists(numbers, max_size=3).map(tuple)),
    st.builds(NoneOf, st.just("a"), st.lists(numbers, max_size=3).map(tuple)),
    st.just(IsNull("a")),
    st.just(IsNotNull("a")),
)


@given(st.lists(numbers), predicates)
def test_rows_that_hold_a_match_are_never_ruled_out(values, predicate) -> None:
    known = [value for value in values if value is not None]
    span = Span(min(known), max(known), nulls=len(known) < len(values)) if known else NULLS

    if any(satisfies(predicate, value) for value in values):
        assert may_match(predicate, span, INT)


@pytest.mark.parametrize(
    ("alternatives", "expected"),
    [
        (((Compare("a", "=", 1),), (Compare("b", "=", 5),)), True),
        (((Compare("a", "=", 1),), (Compare("b", "=", 6),)), False),
        (((Compare("a", "=", 15), Compare("b", "=", 6)), (Compare("b", ">", 9),)), False),
        (((Compare("c", "=", 1),), (Compare("b", "=", 6),)), True),
        (((Compare("a", "=", 1),), ()), True),
        (((Compare("a", "=", 1),), (AnyOf(((IsNull("a"),), (IsNull("b"),))),)), False),
        ((), False),
    ],
)
def test_of_alternatives_one_has_to_match_as_a_whole(alternatives, expected: bool) -> None:
    schema = pa.schema([("a", INT), ("b", INT), ("c", INT)])
    spans = {"a": SPAN, "b": Span(5, 5, nulls=False)}

    assert may_match_all([AnyOf(alternatives)], spans, schema) is expected


def test_the_columns_of_alternatives_are_those_of_their_parts() -> None:
    assert columns_of(AnyOf(((IsNull("a"),), (AnyOf(((IsNull("b"), IsNull("a")),)),)))) == {"a", "b"}


def test_the_two_hours_of_one_name_are_two_sets_of_values() -> None:
    """When the clocks go back; Python takes the times for equal, and so does a cache of them."""
    kind, berlin = pa.timestamp("us", "UTC"), zoneinfo.ZoneInfo("Europe/Berlin")
    hours = [
        [datetime.datetime(2024, 10, 27, 2, minute, tzinfo=berlin, fold=fold) for minute in range(0, 60, 15)]
        for fold in (0, 1)
    ]
    start = int(datetime.datetime(2024, 10, 27, tzinfo=datetime.timezone.utc).timestamp()) * 1_000_000
    spans = [Span(start + hour * 3_600_000_000, start + (hour + 1) * 3_600_000_000 - 1) for hour in (0, 1)]

    for number, hour in enumerate(hours):
        assert [may_match(OneOf("a", tuple(hour)), span, kind) for span in spans] == [number == 0, number == 1]


@pytest.mark.parametrize("text", ["NaN", "Infinity"])
def test_a_decimal_without_a_number_proves_nothing(text: str) -> None:
    assert may_match(OneOf("a", (Decimal(1), Decimal(text))), Span(Decimal(5), Decimal(6)), pa.decimal128(9, 2))
