"""What predicates say of the values of an expression that has an index."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.reader.skipping.expressions import IndexedExpression, expression_arguments
from pyhudi.reader.skipping.predicates import Compare, OneOf, OnExpression, StartsWith
from pyhudi.table.metadata.index_definitions import IndexDefinition

SCHEMA = pa.schema(
    [
        ("t", pa.string()),
        ("n", pa.int64()),
        ("d", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
    ]
)
DAY = datetime.date(2024, 2, 29)


def defined(function: str, column: str, **options: str) -> IndexedExpression | None:
    stored = {"indexType": "column_stats", "indexFunction": function, "sourceFields": [column]}
    definition = IndexDefinition.parse("expr_index_x", {**stored, "indexOptions": {"expr": function, **options}})
    return IndexedExpression.defined(definition, SCHEMA)


def of(function: str, column: str, **options: str) -> IndexedExpression:
    found = defined(function, column, **options)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("expression", "value", "result"),
    [
        (of("lower", "t"), "AbC", "abc"),
        (of("upper", "t"), "AbC", "ABC"),
        (of("lower", "t"), "É", None),
        (of("trim", "t"), " \ta ", "\ta"),
        (of("ltrim", "t"), " a ", "a "),
        (of("rtrim", "t"), " a ", " a"),
        (of("length", "t"), "a𝄞", 2),
        (of("substring", "t", pos="2", len="2"), "abcd", "bc"),
        (of("substring", "t", pos="-2", len="2"), "abcd", None),
        (of("year", "d"), DAY, 2024),
        (of("day", "d"), DAY, 29),
        (of("date_add", "d", days="1"), DAY, datetime.date(2024, 3, 1)),
        (of("date_sub", "d", days="29"), DAY, datetime.date(2024, 1, 31)),
        (of("identity", "n"), 7, 7),
        (of("identity", "n"), "7", "7"),
        (of("length", "n"), 7, None),
        (of("hour", "at"), DAY, None),
        (of("from_unixtime", "n"), 7, None),
    ],
)
def test_a_value_of_the_column_is_one_of_the_expression(expression: IndexedExpression, value: Any, result: Any) -> None:
    equal = Compare(expression.column, "=", value)
    assert expression.derived_from(equal) == (() if result is None else (Compare(expression.column, "=", result),))
    among = expression.derived_from(OneOf(expression.column, (value, None)))
    assert among == () if result is None else among[0].values[0] == result
    assert expression.derived_from(Compare("other", "=", value)) == ()


def test_ranges_of_the_column_say_something_of_functions_that_rise() -> None:
    assert of("year", "d").derived_from(Compare("d", ">", DAY)) == (Compare("d", ">=", 2024),)
    assert of("year", "d").derived_from(Compare("d", "<", DAY)) == (Compare("d", "<=", 2024),)
    assert of("month", "d").derived_from(Compare("d", ">", DAY)) == ()
    assert of("lower", "t").derived_from(Compare("t", ">", "a")) == ()
    assert of("year", "d").derived_from(Compare("d", "!=", DAY)) == ()
    assert of("identity", "t").derived_from(StartsWith("t", "a")) == (StartsWith("t", "a"),)


def test_a_predicate_on_the_expression_is_one_on_its_values() -> None:
    equal = Compare("t", "=", "a")
    assert of("lower", "t").derived_from(OnExpression("lower", "t", (), equal)) == (equal,)
    assert of("lower", "t").derived_from(OnExpression("upper", "t", (), equal)) == ()
    assert of("substring", "t", pos="1", len="2").derived_from(OnExpression("substring", "t", ("1", "3"), equal)) == ()
    # Writer and reader may have other releases of Unicode.
    assert of("lower", "t").derived_from(OnExpression("lower", "t", (), Compare("t", "=", "é"))) == ()
    assert of("trim", "t").derived_from(OnExpression("trim", "t", (), Compare("t", "=", "é"))) != ()


def test_of_times_the_zones_of_writer_and_reader_may_differ() -> None:
    days = of("from_unixtime", "n", format="yyyy-MM-dd")

    def said(op: Any, value: str) -> tuple[Any, ...]:
        return days.derived_from(OnExpression("from_unixtime", "n", ("yyyy-MM-dd",), Compare("n", op, value)))

    around = (Compare("n", ">=", "2024-02-28"), Compare("n", "<=", "2024-03-04"))
    assert said("=", "2024-03-01") == around
    assert said("<", "2024-03-01") == around[1:]
    assert said(">=", "2024-03-01") == around[:1]
    assert said("!=", "2024-03-01") == said("=", "2024-3-1") == said("=", "soon") == ()
    of_year = OnExpression("year", "at", (), Compare("at", "=", 2024))
    assert of("year", "at").derived_from(of_year) == (Compare("at", ">=", 2023), Compare("at", "<=", 2025))
    of_month = OnExpression("month", "at", (), Compare("at", "=", 1))
    assert of("month", "at").derived_from(of_month) == ()
    without_zone = OnExpression("month", "local", (), Compare("local", "=", 1))
    assert of("month", "local").derived_from(without_zone) == (Compare("local", "=", 1),)
    several = OnExpression("from_unixtime", "n", ("yyyy-MM-dd",), OneOf("n", ("2024-03-01", None, "2024-03-03")))
    assert days.derived_from(several) == (Compare("n", ">=", "2024-02-28"), Compare("n", "<=", "2024-03-06"))


def test_what_is_not_understood_has_no_expression() -> None:
    assert defined("regexp_replace", "t") is None
    assert defined("lower", "absent") is None
    assert defined("trim", "t", trimString="x") is None
    assert defined("substring", "t", pos="1") is None
    assert defined("substring", "t", pos="a", len="2") is defined("date_add", "d", days="1.5") is None
    assert expression_arguments("from_unixtime", []) == ("yyyy-MM-dd HH:mm:ss",)
    assert expression_arguments("substring", ["1"]) is None
    assert expression_arguments("lower", ["1"]) is expression_arguments("sha1", []) is None
