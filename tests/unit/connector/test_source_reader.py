from __future__ import annotations

import pytest
from pyhudi.connector.source.reader import to_predicate
from pyhudi.reader.skipping.predicates import Compare, IsNotNull, IsNull, NoneOf, OneOf, StartsWith
from pyspark.sql import datasource as spark

pytestmark = pytest.mark.skipif(not hasattr(spark, "EqualTo"), reason="filters are pushed since Spark 4.1")

A = ("a",)


def cases() -> list[tuple[object, object]]:
    if not hasattr(spark, "EqualTo"):
        return []
    return [
        (spark.EqualTo(A, 1), Compare("a", "=", 1)),
        (spark.EqualNullSafe(A, 1), Compare("a", "=", 1)),
        (spark.EqualNullSafe(A, None), IsNull("a")),
        (spark.GreaterThan(A, 1), Compare("a", ">", 1)),
        (spark.GreaterThanOrEqual(A, 1), Compare("a", ">=", 1)),
        (spark.LessThan(A, 1), Compare("a", "<", 1)),
        (spark.LessThanOrEqual(A, 1), Compare("a", "<=", 1)),
        (spark.In(A, (1, 2)), OneOf("a", (1, 2))),
        (spark.IsNull(A), IsNull("a")),
        (spark.IsNotNull(A), IsNotNull("a")),
        (spark.StringStartsWith(A, "x"), StartsWith("a", "x")),
        (spark.StringEndsWith(A, "x"), None),
        (spark.StringContains(A, "x"), None),
        (spark.EqualTo(("a", "b"), 1), None),
        (spark.Not(spark.EqualTo(A, 1)), Compare("a", "!=", 1)),
        (spark.Not(spark.GreaterThan(A, 1)), Compare("a", "<=", 1)),
        (spark.Not(spark.LessThanOrEqual(A, 1)), Compare("a", ">", 1)),
        (spark.Not(spark.In(A, (1, 2))), NoneOf("a", (1, 2))),
        (spark.Not(spark.IsNull(A)), IsNotNull("a")),
        (spark.Not(spark.EqualNullSafe(A, None)), IsNotNull("a")),
        # NOT (a <=> 1) keeps nulls, which NOT (a = 1) does not.
        (spark.Not(spark.EqualNullSafe(A, 1)), None),
        (spark.Not(spark.StringStartsWith(A, "x")), None),
    ]


@pytest.mark.parametrize(("pushed", "expected"), cases())
def test_a_filter_becomes_the_predicate_that_keeps_the_same_rows(pushed: object, expected: object) -> None:
    assert to_predicate(pushed) == expected
