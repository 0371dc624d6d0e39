"""Tests of the bounds of columns that travel with a new base file."""

from __future__ import annotations

import struct
from datetime import date
from decimal import Decimal
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.table.files.column_bounds import (
    MOST_OF_A_BOUND,
    BoundsOfRows,
    ColumnBounds,
    greatest_within,
    least_within,
)
from pyhudi.table.files.footer_bounds import column_bounds
from pyhudi.table.files.packed_bounds import PackedBounds
from support.seams import patch_seam

# Few characters, so that texts begin alike; the last ones have no greater character, or one of more bytes.
_TEXTS = st.text("aé\x7f\u07ff\ud7ff\uffff\U0010ffff", max_size=80)


@given(_TEXTS)
def test_the_bounds_of_a_text_are_short_texts_around_it(text: str) -> None:
    value = text.encode()

    least, greatest = least_within(value, is_text=True), greatest_within(value, is_text=True)

    assert least.decode() <= text
    assert greatest is None or text <= greatest.decode()
    assert max(len(least), len(greatest or b"")) <= MOST_OF_A_BOUND
    assert (greatest is None) == (len(value) > MOST_OF_A_BOUND and not text[:16].strip("\U0010ffff"))


@given(st.binary(max_size=80) | st.integers(60, 80).map(lambda count: b"\xff" * count))
def test_the_bounds_of_a_binary_value_are_short_values_around_it(value: bytes) -> None:
    least, greatest = least_within(value, is_text=False), greatest_within(value, is_text=False)

    assert least <= value
    assert greatest is None or value <= greatest
    assert max(len(least), len(greatest or b"")) <= MOST_OF_A_BOUND
    assert (greatest is None) == (len(value) > MOST_OF_A_BOUND and not value[:MOST_OF_A_BOUND].strip(b"\xff"))


@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        (pa.array([3, None, -5, 7], pa.int32()), -5, 7),
        (pa.array([3, None, -5, 1 << 40], pa.int64()), -5, 1 << 40),
        (pa.array([date(2026, 1, 2), None, date(1969, 1, 2), date(1970, 1, 1)]), -364, 20455),
        (pa.array([Decimal("1.50"), None, Decimal("-2.00"), Decimal("0.10")], pa.decimal128(20, 2)), -200, 150),
    ],
)
def test_numbers_are_bounded_over_all_row_groups(values: pa.Array, least: int, greatest: int) -> None:
    (bounds,) = column_bounds(_footer(values), ["c"])

    order: Any = "big" if pa.types.is_decimal(values.type) else "little"
    assert bounds.nulls == 1
    assert bounds.least is not None and int.from_bytes(bounds.least, order, signed=True) == least
    assert bounds.greatest is not None and int.from_bytes(bounds.greatest, order, signed=True) == greatest


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["é" * 40, None, "b" * 3000, "a"]),
        pa.array([None, None, "b", "a"]),
        pa.array(["b" * 5000, "b", "a", "a"]),
        pa.array([None] * 4, pa.string()),
        pa.array(["", "", None, ""]),
    ],
    ids=["long", "null in a row group", "too long for the footer", "null", "empty"],
)
def test_texts_are_bounded_where_the_footer_bounds_each_row_group(values: pa.Array) -> None:
    (bounds,) = column_bounds(_footer(values), ["c"])

    spans = [pc.min_max(part) for part in (values[:2], values[2:])]
    texts = [(span["min"].as_py(), span["max"].as_py()) for span in spans if span["min"].is_valid]
    bounded = bool(texts) and all(most and len(most) < 4096 for _, most in texts)
    assert bounds.nulls == values.null_count
    assert (bounds.greatest is not None) == bounded
    for least, greatest in texts:
        assert bounds.least is None or bounds.least.decode() <= least
        assert bounds.greatest is None or greatest <= bounds.greatest.decode()


def test_columns_of_written_files_are_bounded_though_another_thread_drops_them_from_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = pa.array([3, None, -5, 7], pa.int32())
    patch_seam(monkeypatch, "most schemas of written files that the process knows", 0)

    assert column_bounds(_footer(values), ["c"], written=pa.schema({"c": values.type})) == column_bounds(
        _footer(values), ["c"]
    )


def test_an_empty_greatest_binary_value_in_a_footer_is_no_bound() -> None:
    """A reader of footers may take a greatest value that is missing for an empty one."""
    (found,) = column_bounds(_footer(pa.array([b"", b""], pa.binary())), ["c"])

    assert (found.least, found.greatest) == (b"", None)


def test_a_nested_column_and_a_column_that_the_file_lacks_have_no_bounds() -> None:
    found = column_bounds(_footer(pa.array([[1], [2]])), ["c", "other"])

    assert found == ()


@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        ([1.5, float("nan")], 1.5, float("nan")),
        ([float("nan"), None], float("nan"), float("nan")),
        ([0.0, 2.0], -0.0, 2.0),
        ([-2.0, -0.0], -2.0, 0.0),
        ([None], None, None),
    ],
)
def test_numbers_of_rows_are_bounded_in_the_order_of_spark(
    values: list[float | None], least: float | None, greatest: float | None
) -> None:
    row_bounds = BoundsOfRows([pa.field("c", pa.float64())])
    for value in values:
        row_bounds.add(pa.record_batch({"c": pa.array([value], pa.float64())}))

    (bounds,) = row_bounds.bounds()

    expected = [None if bound is None else struct.pack("<d", bound) for bound in (least, greatest)]
    assert [bounds.least, bounds.greatest] == expected
    assert bounds.nulls == values.count(None)


def test_bounds_are_the_same_after_they_have_travelled() -> None:
    bounds = (
        ColumnBounds("é", b"", b"\xff" * 64, 3, 1 << 40, 0),
        ColumnBounds("nothing", None, None, None),
        ColumnBounds("", b"a", None, 0, 5, 6),
    )

    assert tuple(PackedBounds.of(bounds)) == bounds


def _footer(values: pa.Array) -> pq.FileMetaData:
    file = BytesIO()
    with pq.ParquetWriter(file, pa.schema([("c", values.type)])) as writer:
        writer.write_table(pa.table({"c": values}), row_group_size=2)
    return pq.read_metadata(file)
