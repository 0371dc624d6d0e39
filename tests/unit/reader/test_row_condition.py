"""Conditions read from text, held against what they keep of some rows."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyhudi.errors import ColumnValueError, InvalidOptionError
from pyhudi.reader.row_condition import read_condition
from pyhudi.reader.skipping.predicates import AnyOf, Compare, IsNotNull, NoneOf, OneOf, StartsWith, satisfied

UTC = datetime.timezone.utc
ROWS = pa.RecordBatch.from_pydict(
    {
        "n": pa.array([1, 2, 3, None], pa.int64()),
        "m": pa.array([3, 2, 1, None], pa.int32()),
        "city": ["Rome", "Oslo", "O'Hare", None],
        "fare": [1.5, -2.0, float("nan"), None],
        "price": pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("3.00"), None], pa.decimal128(5, 2)),
        "day": [datetime.date(2026, 11, day) for day in (1, 2, 3)] + [None],
        "at": pa.array([datetime.datetime(2026, 11, day, 8, tzinfo=UTC) for day in (1, 2, 3)] + [None]),
        # Columns of other engines.
        "millis": pa.array([datetime.datetime(2026, 11, day, 8, tzinfo=UTC) for day in (1, 2, 3)] + [None]).cast(
            pa.timestamp("ms", "UTC")
        ),
        "local": pa.array([datetime.datetime(2026, 11, 2, hour) for hour in (7, 8, 9)] + [None], pa.timestamp("ms")),
        "ok": [True, False, True, None],
        "odd name": ["x", "y", "\U0001f600", None],
        "tenths": [0.3, 0.7, 0.7, None],
        "path": [r"C:\temp\a", r"D:\temp", "9%_", None],
        "inner": pa.array([{"a": 1}, {"a": 2}, None, {"a": None}]),
    }
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("n = 2", [2]),
        ("n == 2", [2]),
        ("N = 2", [2]),
        ("n <> 2", [1, 3]),
        ("n >= 2 AND n < 3", [2]),
        ("n = 1 or city = 'Oslo'", [1, 2]),
        ("(n = 1 OR n = 2) AND (city = 'Oslo' OR city IS NULL)", [2]),
        ("city = 'O''Hare'", [3]),
        (r"city = 'O\'Hare'", [3]),
        ('city = "O\'Hare"', [3]),
        (r"city = '\u0052ome'", [1]),
        ("city LIKE 'O%'", [2, 3]),
        ("city LIKE '_s%o'", [2]),
        ("city NOT LIKE 'O%'", [1]),
        ("city NOT IN ('Rome', 'Oslo')", [3]),
        ("n IN (1, 3, 99)", [1, 3]),
        ("n NOT IN (1, NULL)", []),
        ("n BETWEEN 2 AND 3", [2, 3]),
        ("NOT n BETWEEN 2 AND 3", [1]),
        ("n IS NOT NULL", [1, 2, 3]),
        ("city IS NULL", [None]),
        ("n = NULL", []),
        ("n <=> NULL", [None]),
        ("n <=> m", [2, None]),
        ("fare > -1e1", [1, 2, 3]),
        ("tenths = 0.3", [1]),
        ("tenths < 0.7", [1]),
        ("tenths >= 0.7", [2, 3]),
        ("tenths IN (0.3, 0.6)", [1]),
        ("coalesce(tenths, 0.7) = 0.7", [2, 3, None]),
        ("tenths * 1 = 0.0 + 0.3", [1]),
        ("tenths < 0.3F", [1]),
        (r"path LIKE 'C:\\\\temp%'", [1]),
        (r"path LIKE '%\\\\temp%'", [1, 2]),
        (r"path LIKE '%\\%\\_'", [3]),
        ("fare = fare", [1, 2, 3]),
        ("fare > n", [1, 3]),
        ("price = 2", [2]),
        ("price = 2.000", [2]),
        ("n < 2.5", [1, 2]),
        ("day > '2026-11-01'", [2, 3]),
        ("day > DATE '2026-11-01'", [2, 3]),
        ("at < '2026-11-02 08:00:00'", [1]),
        ("at = TIMESTAMP '2026-11-02T09:00:00+01:00'", [2]),
        ("at > '0001-01-01T00:00:00+14:00'", [1, 2, 3]),
        ("millis = at", [1, 2, 3]),
        ("millis < TIMESTAMP '2026-11-02 08:00:00.000001'", [1, 2]),
        ("millis < '2026-11-02 08:00:00.000001'", [1, 2]),
        ("local >= TIMESTAMP_NTZ '2026-11-02 08:00:00'", [2, 3]),
        ("coalesce(millis, at) = at", [1, 2, 3]),
        ("ok = true", [1, 3]),
        ("ok", [1, 3]),
        ("NOT ok", [2]),
        ("`odd name` = 'y'", [2]),
        (r"`odd name` = '\uD83D\uDE00'", [3]),
        ("n = m", [2]),
        ("m < n", [3]),
        ("inner.a = 2", [2]),
        ("n + 1 > m * 1.5", [3]),
        ("-n = -2", [2]),
        ("n / 2 = 1", [2]),
        ("price * n = 9", [3]),
        ("city || '!' = 'Rome!'", [1]),
        ("2 = n", [2]),
        ("coalesce(city, 'none') = 'none'", [None]),
        ("coalesce(NULL, n, m) = 3", [3]),
        ("Coalesce(ok, n > 5)", [1, 3]),
        ("coalesce(n, 1.5D) = 1.5D", [None]),
    ],
)
def test_a_condition_keeps_the_rows_for_which_it_is_true(text: str, kept: list[int | None]) -> None:
    condition = read_condition(text, ROWS.schema)

    assert ROWS.filter(condition.holds(ROWS)).column("n").to_pylist() == kept
    # No kept row is in a file that the predicates leave out.
    assert set(kept) <= set(ROWS.filter(satisfied(ROWS, condition.predicates)).column("n").to_pylist())


@pytest.mark.parametrize(
    ("text", "predicates"),
    [
        ("3 > n", (Compare("n", "<", 3),)),
        ("n = 1 AND n < m", (Compare("n", "=", 1),)),
        ("n = 1 OR n < m", ()),
        ("n = 1 OR n = 2", (OneOf("n", (1, 2)),)),
        ("NOT (n = 1 OR n = 2)", (NoneOf("n", (1, 2)),)),
        ("NOT (n = 1 AND city = 'x')", (AnyOf(((Compare("n", "!=", 1),), (Compare("city", "!=", "x"),))),)),
        ("NOT (n = 1 OR city IS NULL)", (Compare("n", "!=", 1), IsNotNull("city"))),
        ("city LIKE 'O%e'", (StartsWith("city", "O"),)),
        ("ok AND NOT ok", (Compare("ok", "=", True), Compare("ok", "=", False))),
        ("n < 2.5", ()),
        ("inner.a = 2", ()),
    ],
)
def test_files_are_skipped_by_what_every_kept_row_satisfies(text: str, predicates: tuple[object, ...]) -> None:
    assert read_condition(text, ROWS.schema).predicates == predicates


@pytest.mark.parametrize(
    ("text", "where"),
    [
        *(("", "at its end"), ("n", "at character 1"), ("n =", "at its end"), ("= 2", "at character 1")),
        *(("n = 2 AND", "at its end"), ("n = 2 city = 'x'", "at character 7"), ("(n = 2", "at its end")),
        *(("n = 2)", "at character 6"), ("n = 'x", "from character 5"), ("n = city", "at character 3")),
        *(("n IN ()", "at character 7"), ("n = 'two'", "'two'"), ("day = 'today'", "'today'")),
        *(("ok = 1", "at character 4"), ("city = 7", "at character 6"), ("n = 1; n = 2", "from character 6")),
        *(("coalesce(n, city) = 1", "at character 9"), ("coalesce() = 1", "at character 10")),
        *(("upper(city) = 'X'", "at character 6"), ("n NOT = 2", "at character 7"), ("n = 1 AND city", "at character")),
        *(("day + 1 > day", "at character 5"), ("price / 2 = 1", "at character 7"), ("at > day", "at character 4")),
        ("millis = local", "at character 8"),
        *(("DATE 'x' = day", "at character 6"), ("inner = inner", "at character 7"), ("n LIKE '1%'", "at character 8")),
        *(("fare > 1" + "0" * 400, "at character 8"), ("n = 1" + "0" * 5000, "at character 5")),
        *(("n = 9223372036854775808L", "at character 5"), ("n = '1" + "0" * 80 + "'", "cannot be compared")),
        (r"city LIKE 'a\\b'", "at character 11"),
        *((r"city = '\uD83D'", "at character 8"), (r"city LIKE '\U00110000%'", "at character 11")),
        ("(" * 100 + "n = 1" + ")" * 100, "too many parentheses"),
        ("NOT " * 3000 + "ok", "too many parentheses"),
    ],
)
def test_another_text_is_refused_with_its_place(text: str, where: str) -> None:
    with pytest.raises(InvalidOptionError, match=where):
        read_condition(text, ROWS.schema)


@pytest.mark.parametrize("text", ["town = 'Rome'", "inner.b = 1", "city.a = 1", "other.n = 1"])
def test_a_column_that_is_missing_is_named(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"town|field|other"):
        read_condition(text, ROWS.schema)


@pytest.mark.parametrize("text", ["n / (m - 2) = 1", "n * 9223372036854775807L = 1"])
def test_what_spark_fails_at_is_an_error(text: str) -> None:
    with pytest.raises(ColumnValueError):
        read_condition(text, ROWS.schema).holds(ROWS)
