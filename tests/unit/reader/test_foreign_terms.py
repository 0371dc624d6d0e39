"""What expressions of pyarrow and Polars say of single columns: enough to leave files out, and never too much."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from functools import reduce
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from polars.io.plugins import register_io_source
from pyhudi.arrow.lazy_frames import necessary_for_polars
from pyhudi.reader.expression_terms import necessary_for
from pyhudi.reader.row_filter import expression_values
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
from support.drawn.foreign_conditions import COLUMNS, CONDITIONS, for_arrow, for_polars, rows
from support.share import share_of

NOON = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.timezone.utc)
DAY = NOON.date()
EXAMPLES = settings(max_examples=share_of(150), deadline=None)
(ROWS,) = rows().combine_chunks().to_batches()
FRAME = pl.DataFrame(ROWS)


def pushed(condition: pl.Expr) -> pl.Expr:
    """Return a condition as the optimizer of Polars hands it over."""
    handed: list[pl.Expr | None] = []

    def read(_: object, predicate: pl.Expr | None, *__: object) -> Iterator[pl.DataFrame]:
        handed.append(predicate)
        yield FRAME.clear()

    register_io_source(read, schema=FRAME.schema).filter(condition).collect()
    assert handed[0] is not None
    return handed[0]


@EXAMPLES
@given(condition=CONDITIONS)
def test_each_row_that_pyarrow_keeps_satisfies_what_its_expression_says(condition: Any) -> None:
    expression = for_arrow(condition)
    kept = ROWS.filter(pc.fill_null(expression_values(expression, ROWS), False))

    assert pc.all(satisfied(kept, necessary_for(expression, COLUMNS)), min_count=0).as_py()


@EXAMPLES
@given(condition=CONDITIONS)
def test_each_row_that_polars_keeps_satisfies_what_its_expression_says(condition: Any) -> None:
    expression = pushed(for_polars(condition))
    kept = ROWS.filter(FRAME.select(expression.fill_null(False)).to_series().to_arrow())

    assert pc.all(satisfied(kept, necessary_for_polars(expression, COLUMNS)), min_count=0).as_py()


@pytest.mark.parametrize(
    ("expression", "predicates"),
    [
        (pc.field("id") == 7, [Compare("id", "=", 7)]),
        (pc.scalar(7) < pc.field("id"), [Compare("id", ">", 7)]),
        ((pc.field("id") == 7) | (pc.field("id") == 8), [OneOf("id", (7, 8))]),
        ((pc.field("id") == 7) & (pc.field("id") + 1 == 8), [Compare("id", "=", 7)]),
        ((pc.field("id") == 7) | (pc.field("id") + 1 == 8), []),
        (~((pc.field("id") == 7) & (pc.field("id") + 1 == 8)), []),
        (pc.field("city").isin(["Rome", "Oslo"]), [IsNotNull("city"), OneOf("city", ("Rome", "Oslo"))]),
        (~pc.field("city").isin(["Rome", None]), [IsNotNull("city"), Compare("city", "!=", "Rome")]),
        (~pc.field("city").isin(["Rome"]), [AnyOf(((IsNull("city"),), (Compare("city", "!=", "Rome"),)))]),
        (
            # So DuckDB writes IN.
            pc.if_else(pc.field("id").is_valid(), pc.field("id").isin([7, 8]), pc.scalar(pa.scalar(None, pa.bool_()))),
            [IsNotNull("id"), IsNotNull("id"), OneOf("id", (7, 8))],
        ),
        (pc.field("fare") < 5, [Compare("fare", "<", 5.0)]),
        # A row with NaN satisfies this, and no `fare < 5`.
        (~(pc.field("fare") >= 5), []),
        (pc.field("day") > DAY, [Compare("day", ">", DAY)]),
        (pc.field("moment") == NOON, [Compare("moment", "=", NOON)]),
        (pc.field("moment") == pa.scalar(NOON, pa.timestamp("ns", "UTC")), []),
        (pc.field("price") == Decimal("1.5"), [Compare("price", "=", Decimal("1.5"))]),
        (pc.field("is_paid") & ~pc.field("is_paid"), [Compare("is_paid", "=", True), Compare("is_paid", "=", False)]),
        (pc.field("place", "x") == 1, []),
        (pc.field("id") == pc.field("number"), []),
        (pc.field("id").cast("int32") == 7, []),
        (pc.field("id").isin([]), []),
        (pc.field(0) == 7, []),
        (pc.field("id") == pa.scalar(None, pa.int64()), []),
        (pc.field("fare") < (1 << 60) + 1, []),
        # Beyond what a column of whole numbers, and any decimal, is compared with.
        (pc.field("id") == pa.scalar(1 << 63, pa.uint64()), []),
        (pc.field("price") < pa.scalar(Decimal(10) ** 60, pa.decimal256(76, 0)), []),
        (pc.field("fare").is_null(nan_is_null=True), []),
    ],
    ids=str,
)
def test_an_expression_of_pyarrow_says_this_of_columns(expression: pc.Expression, predicates: list[Predicate]) -> None:
    assert list(necessary_for(expression, COLUMNS)) == predicates


ID, CITY = pl.col("id"), pl.col("city")


@pytest.mark.parametrize(
    ("expression", "predicates"),
    [
        (ID > 7, [Compare("id", ">", 7)]),
        (pl.lit(7) > ID, [Compare("id", "<", 7)]),
        (~((ID == 7) | (CITY == "Rome")), [Compare("id", "!=", 7), Compare("city", "!=", "Rome")]),
        ((ID == 7) ^ (ID == 8), []),
        (ID.is_between(7, 9, closed="left"), [Compare("id", ">=", 7), Compare("id", "<", 9)]),
        (ID.eq_missing(7), [Compare("id", "=", 7)]),
        (ID.ne_missing(7), []),
        (CITY.is_in(["Rome", "Oslo", None]), [OneOf("city", ("Rome", "Oslo"))]),
        (~CITY.is_in(["Rome", "Oslo"]), [NoneOf("city", ("Rome", "Oslo"))]),
        (CITY.is_in(["Rome", None], nulls_equal=True), [AnyOf(((IsNull("city"),), (Compare("city", "=", "Rome"),)))]),
        (~CITY.is_in(["Rome"], nulls_equal=True), [AnyOf(((IsNull("city"),), (Compare("city", "!=", "Rome"),)))]),
        (CITY.str.starts_with("Ro"), [StartsWith("city", "Ro")]),
        (CITY.str.starts_with("R%"), []),
        (CITY.is_not_null() & ID.is_null(), [IsNotNull("city"), IsNull("id")]),
        (pl.col("number").cast(pl.Int64) == 7, [Compare("number", "=", 7)]),
        (ID.cast(pl.Int8) == 7, []),
        (pl.col("fare") < 5.0, [Compare("fare", "<", 5.0)]),
        (pl.col("fare") == pl.lit(float("nan")), []),
        (pl.col("day") > DAY, [Compare("day", ">", DAY)]),
        (pl.col("moment") == pl.lit(NOON, pl.Datetime("us", "UTC")), [Compare("moment", "=", NOON)]),
        (pl.col("price").is_in([Decimal("1.50")]), [Compare("price", "=", Decimal("1.50"))]),
        (~pl.col("is_paid"), [Compare("is_paid", "=", False)]),
        (ID + 1 == 8, []),
        (CITY.str.len_bytes() == 4, []),
    ],
    ids=str,
)
def test_an_expression_of_polars_says_this_of_columns(expression: pl.Expr, predicates: list[Predicate]) -> None:
    assert list(necessary_for_polars(pushed(expression), COLUMNS)) == predicates


def test_a_condition_too_deep_to_follow_says_nothing() -> None:
    deep = reduce(lambda left, key: left | (pc.field("id") == key), range(1, 2000), pc.field("id") == 0)

    assert necessary_for(deep, COLUMNS) == ()
