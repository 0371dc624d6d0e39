from __future__ import annotations

import datetime
import io
import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.reader.skipping.predicates import Compare, IsNotNull, IsNull, OneOf, Predicate, StartsWith
from pyhudi.reader.skipping.search import Search
from pyhudi.table.files.footers import text_bound, text_bounds

UTC = datetime.timezone.utc


def written(table: pa.Table, rows: int = 1, **options: object) -> pq.ParquetFile:
    """A Parquet file with ``rows`` rows in each row group."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=rows, **options)
    return pq.ParquetFile(sink)


def matching_row_groups(parquet: pq.ParquetFile, predicates: list[Predicate], schema: pa.Schema) -> list[int]:
    return Search(tuple(predicates), schema).row_groups(parquet, "a file")


def matching(column: pa.Array, predicate: Predicate, kind: pa.DataType | None = None) -> list[int]:
    table = pa.table({"a": column})
    return matching_row_groups(written(table), [predicate], pa.schema([("a", kind or column.type)]))


@pytest.mark.parametrize(
    ("values", "kind", "wanted"),
    [
        ([1, 2, 3], pa.int32(), 2),
        ([-(2**40), 0, 2**40], pa.int64(), 0),
        ([1.5, 2.5, 3.5], pa.float32(), 2.5),
        ([False, True, False], pa.bool_(), True),
        (["a", "é", "日本"], pa.string(), "é"),
        ([Decimal("-1.50"), Decimal("0.00"), Decimal("9.99")], pa.decimal128(5, 2), Decimal("0")),
        ([Decimal("-1.5"), Decimal("0"), Decimal("99999999999999999999.5")], pa.decimal128(30, 1), Decimal("0")),
        ([datetime.date(2024, 1, day) for day in (1, 2, 3)], pa.date32(), datetime.date(2024, 1, 2)),
        (
            [datetime.datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)],
            pa.timestamp("us", "UTC"),
            datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=3))),
        ),
        (
            [datetime.datetime(1900, 1, day) for day in (1, 2, 3)],
            pa.timestamp("us"),
            datetime.datetime(1900, 1, 2),
        ),
    ],
)
def test_only_the_row_group_with_the_value_is_left(values, kind: pa.DataType, wanted) -> None:
    assert matching(pa.array(values, kind), Compare("a", "=", wanted)) == [1]
    assert matching(pa.array(values, kind), OneOf("a", (wanted,))) == [1]


def test_decimals_kept_as_integers_are_understood() -> None:
    table = pa.table({"a": pa.array([Decimal("-1.50"), Decimal("0.00"), Decimal("9.99")], pa.decimal128(5, 2))})
    schema = pa.schema([("a", pa.decimal128(5, 2))])
    file = written(table, store_decimal_as_integer=True)

    assert matching_row_groups(file, [Compare("a", ">", Decimal("9"))], schema) == [2]


def test_milliseconds_and_nanoseconds_in_a_file_compare_with_microseconds() -> None:
    micros = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    for unit, raw in (("ms", [-2, 0]), ("ns", [-1_000, 0]), ("s", [-1, 0])):
        column = pa.array(raw, pa.timestamp(unit))
        assert matching(column, Compare("a", "<=", micros), pa.timestamp("us")) == [0]


def test_an_older_files_narrower_type_compares_with_the_tables() -> None:
    assert matching(pa.array([1, 5], pa.int32()), Compare("a", ">", 3), pa.int64()) == [1]
    assert matching(pa.array([1.0, 5.0], pa.float32()), Compare("a", "<", 3.0), pa.float64()) == [0]
    assert matching(pa.array([1.1, 5.0], pa.float32()), Compare("a", "=", 1.1), pa.float64()) == [0]
    wide = pa.decimal128(7, 4)
    decimals = pa.array([Decimal("1.50"), Decimal("2.50")], pa.decimal128(5, 2))
    assert matching(decimals, Compare("a", ">=", Decimal("2.5000")), wide) == [1]


@pytest.mark.parametrize(
    ("column", "kind", "value"),
    [
        (pa.array([1, 5], pa.int32()), pa.string(), "9"),
        (pa.array([1.5, 5.5]), pa.string(), "9"),
        (pa.array([1, 5], pa.int32()), pa.float64(), 9.0),
        (pa.array([1, 5], pa.int64()), pa.float64(), 9.0),
        (pa.array([1, 5], pa.int32()), pa.decimal128(20, 4), Decimal("9")),
        (pa.array([datetime.date(2024, 1, 1)] * 2), pa.string(), "9"),
        (pa.array([b"a", b"b"]), pa.string(), "9"),
    ],
)
def test_a_file_whose_type_does_not_compare_with_the_tables_is_read(column, kind: pa.DataType, value) -> None:
    assert matching(column, Compare("a", "=", value), kind) == [0, 1]


def test_null_counts_decide_about_nulls() -> None:
    column = pa.array([None, 1], pa.int32())

    assert matching(column, IsNull("a")) == [0]
    assert matching(column, IsNotNull("a")) == [1]
    mixed = written(pa.table({"a": pa.array([None, 1], pa.int32())}), rows=2)
    assert matching_row_groups(mixed, [IsNull("a")], pa.schema([("a", pa.int32())])) == [0]
    assert matching_row_groups(mixed, [Compare("a", "=", 1)], pa.schema([("a", pa.int32())])) == [0]


def test_nan_is_not_in_the_statistics_and_is_found_nevertheless() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1.0, math.nan]}), sink)

    assert matching_row_groups(pq.ParquetFile(sink), [Compare("a", ">", 5.0)], pa.schema([("a", pa.float64())])) == [0]


def test_a_column_that_the_file_lacks_is_null() -> None:
    file = written(pa.table({"b": [1]}))
    schema = pa.schema([("a", pa.int32()), ("b", pa.int64())])

    assert matching_row_groups(file, [Compare("a", "=", 1)], schema) == []
    assert matching_row_groups(file, [IsNull("a")], schema) == [0]


def test_files_without_statistics_and_nested_columns_are_read() -> None:
    table = pa.table({"a": [1, 2], "s": [{"x": 1}, {"x": 2}]})
    schema = table.schema

    assert matching_row_groups(written(table, write_statistics=False), [Compare("a", "=", 9)], schema) == [0, 1]
    assert matching_row_groups(written(table), [IsNull("s")], schema) == [0, 1]
    assert matching_row_groups(written(table), [Compare("unknown", "=", 9)], schema) == [0, 1]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.one_of(st.none(), st.text(max_size=4)), min_size=1, max_size=4), min_size=1),
    st.text(max_size=3),
)
def test_a_row_group_that_holds_a_string_is_never_left_out(groups, wanted: str) -> None:
    sink = io.BytesIO()
    schema = pa.schema([("a", pa.string())])
    with pq.ParquetWriter(sink, schema) as writer:
        for values in groups:
            writer.write_table(pa.table({"a": values}, schema))
    file = pq.ParquetFile(sink)

    for predicate, holds in (
        (Compare("a", "=", wanted), lambda value: value == wanted),
        (Compare("a", "<", wanted), lambda value: value.encode() < wanted.encode()),
        (Compare("a", ">=", wanted), lambda value: value.encode() >= wanted.encode()),
        (StartsWith("a", wanted), lambda value: value.startswith(wanted)),
    ):
        expected = {n for n, values in enumerate(groups) if any(v is not None and holds(v) for v in values)}
        assert expected <= set(matching_row_groups(file, [predicate], schema))


def test_a_bound_that_a_writer_cut_inside_a_character_is_none() -> None:
    """What is left of it would be less than the texts that it bounds."""
    assert [text_bound(raw) for raw in ("a", b"a", "aé".encode(), "aé".encode()[:-1])] == ["a", "a", "aé", None]


def test_an_empty_upper_bound_of_texts_is_none() -> None:
    """Older pyarrow reads it where a writer told the lower bound alone, because the other was too long."""
    file = written(pa.table({"a": ["", "b"]}))

    assert text_bounds(file, "a") == [("", None), ("b", "b")]
    assert matching_row_groups(file, [Compare("a", "=", "c" * 5000)], file.schema_arrow) == [0]
