"""The size that Spark is to believe, as far as it follows from types and settings alone."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.connector.source.believed_size import _steps, parse_bytes, row_width, wide_column


@pytest.mark.parametrize(
    ("text", "expected"),
    [("128m", 128 << 20), ("134217728b", 128 << 20), ("10 MB", 10 << 20), ("9223372036854775807", 2**63 - 1), ("x", 0)],
)
def test_settings_of_bytes_are_read_as_spark_reads_them(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


def test_a_row_is_as_wide_as_spark_takes_it_for() -> None:
    inner = pa.struct([("a", pa.int32()), ("b", pa.string())])
    columns = pa.schema([("x", pa.int64()), ("y", pa.list_(inner)), ("z", pa.map_(pa.string(), pa.decimal128(20, 0)))])

    assert row_width(columns) == 8 + 8 + (4 + 20) + (20 + 16)


COLUMNS = pa.schema([("id", pa.int64()), ("text", pa.string())])


@given(st.integers(1, 1 << 34), st.integers(1 << 20, 1 << 27))
def test_a_scan_passes_for_no_more_than_it_may_once_its_wide_column_is_left_out(size: int, most: int) -> None:
    wide = wide_column(size, most, COLUMNS)
    width = row_width(COLUMNS)

    assert (wide is None) == (size <= most)
    if wide is not None:
        assert size * width / (width + 100 * len(wide.dataType.fields)) <= most


@given(st.floats(1.001, 1e13), st.integers(9, 2000))
def test_steps_make_rows_pass_for_as_small_as_wanted_without_very_wide_columns(factor: float, width: int) -> None:
    steps = list(_steps(factor, width))

    assert math.prod((width + 100 * fields) / width for fields in steps) >= factor
    assert max(steps) <= 502
