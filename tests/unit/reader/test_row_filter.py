"""Filters of reads without an engine: expressions of Arrow, and which columns they need."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyhudi.errors import InvalidOptionError
from pyhudi.reader.row_filter import ExpressionFilter, expression_values, read_where

ROWS = pa.RecordBatch.from_pydict({"n": [1, 2, None], "m": [2.0, 2.0, 2.0], "inner": [{"a": 1}, {"a": 5}, None]})


@pytest.mark.parametrize(
    ("expression", "kept", "columns"),
    [
        (pc.field("n") >= pc.field("m"), [2], {"n", "m"}),
        (pc.field("inner", "a") == 5, [2], {"inner"}),
        (pc.struct_field(pc.field("inner"), [0]) == 5, [2], {"inner"}),
        (~(pc.field("n") == 1), [2], {"n"}),
        (pc.field("n").is_null(), [None], {"n"}),
        (pc.scalar(True), [1, 2, None], set()),
    ],
)
def test_arrow_decides_about_each_row_by_the_columns_it_needs(
    expression: pc.Expression, kept: list[int | None], columns: set[str]
) -> None:
    row_filter = read_where(expression, ROWS.schema, "t")

    assert isinstance(row_filter, ExpressionFilter)
    assert ROWS.filter(row_filter.holds(ROWS)).column("n").to_pylist() == kept
    assert row_filter.columns == columns


@pytest.mark.parametrize(
    "where",
    [pc.field("other") == 1, pc.field("n") + 1, pc.field("n") == "x", (pc.field(0) == 1) & pc.field("n"), 7, None],
)
def test_what_is_no_condition_on_the_columns_is_refused(where: object) -> None:
    with pytest.raises(InvalidOptionError, match="the table t"):
        read_where(where, ROWS.schema, "t")  # type: ignore[arg-type]


def test_a_value_is_calculated_for_each_row_in_their_order() -> None:
    assert expression_values(pc.field("n") * 2, ROWS).to_pylist() == [2, 4, None]
