"""Conditions read from text, held against what they keep of some rows."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyhudi.errors import InvalidOptionError
from pyhudi.reader.condition_text import read_condition
from pyhudi.reader.predicates import satisfied

UTC = datetime.timezone.utc
ROWS = pa.RecordBatch.from_pydict(
    {
        "n": pa.array([1, 2, 3, None], pa.int64()),
        "city": ["Rome", "Oslo", "O'Hare", None],
        "fare": [1.5, -2.0, float("nan"), None],
        "price": pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("3.00"), None], pa.decimal128(5, 2)),
        "day": [datetime.date(2026, 11, day) for day in (1, 2, 3)] + [None],
        "at": pa.array([datetime.datetime(2026, 11, day, 8, tzinfo=UTC) for day in (1, 2, 3)] + [None]),
        "ok": [True, False, True, None],
        "odd name": ["x", "y", "z", None],
    }
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("n = 2", [2]),
        ("n <> 2", [1, 3]),
        ("n >= 2 AND n < 3", [2]),
        ("n = 1 or city = 'Oslo'", [1, 2]),
        ("(n = 1 OR n = 2) AND (city = 'Oslo' OR city IS NULL)", [2]),
        ("city = 'O''Hare'", [3]),
        ("city LIKE 'O%'", [2, 3]),
        ("city NOT IN ('Rome', 'Oslo')", [3]),
        ("n IN (1, 3, 99)", [1, 3]),
        ("n BETWEEN 2 AND 3", [2, 3]),
        ("n IS NOT NULL", [1, 2, 3]),
        ("city IS NULL", [None]),
        ("n = NULL", []),
        ("fare > -1e1", [1, 2, 3]),
        ("price = 2", [2]),
        ("day > '2026-11-01'", [2, 3]),
        ("at < '2026-11-02 08:00:00'", [1]),
        ("at = '2026-11-02T09:00:00+01:00'", [2]),
        ("ok = true", [1, 3]),
        ("`odd name` = 'y'", [2]),
    ],
)
def test_a_condition_keeps_the_rows_for_which_it_is_true(text: str, kept: list[int | None]) -> None:
    found = ROWS.filter(satisfied(ROWS, read_condition(text, ROWS.schema)))

    assert found.column("n").to_pylist() == kept


@pytest.mark.parametrize(
    "text",
    [
        *("", "n", "n =", "= 2", "n = 2 AND", "n = 2 city = 'x'", "(n = 2", "n = 2)", "n = 'x", "n = city", "n IN ()"),
        *("n = 'two'", "day = 'today'", "ok = 1", "city LIKE '%e'", "city LIKE 'a_%'", "n == 2", "n = 1; n = 2"),
        "(" * 100 + "n = 1" + ")" * 100,
    ],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError):
        read_condition(text, ROWS.schema)


def test_a_column_that_is_missing_is_named() -> None:
    with pytest.raises(InvalidOptionError, match="'town'"):
        read_condition("town = 'Rome'", ROWS.schema)
