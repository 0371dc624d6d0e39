"""Values that move into a wider type: what Apache Hudi 1.2 made of them, on Java 17."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyhudi.table.arrow.java_text import float_text
from pyhudi.table.schema.casts import as_exact_numbers, cast, fits, keeps_values

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("kind", "value", "wider", "expected"),
    [
        (pa.int32(), -2147483648, pa.int64(), -2147483648),
        (pa.int32(), -2147483648, pa.float64(), -2147483648.0),
        (pa.int32(), 16777217, pa.float32(), 16777216.0),
        (pa.int64(), 9007199254740993, pa.float64(), 9007199254740992.0),
        (pa.int64(), 9007199254740993, pa.string(), "9007199254740993"),
        (pa.int32(), -7, pa.decimal128(5, 2), Decimal("-7.00")),
        (pa.int64(), 9007199254740993, pa.decimal128(20, 4), Decimal("9007199254740993.0000")),
        (pa.float32(), 1.1, pa.float64(), 1.1),
        (pa.float32(), -INF, pa.float64(), -INF),
        (pa.float64(), 2.2, pa.decimal128(5, 2), Decimal("2.20")),
        (pa.float32(), 1e10, pa.decimal128(20, 4), Decimal("10000000000.0000")),
        (pa.float32(), 0.3, pa.string(), "0.3"),
        (pa.float32(), 1e10, pa.string(), "1.0E10"),
        (pa.float64(), 12345678.0, pa.string(), "1.2345678E7"),
        (pa.float64(), 9999999.0, pa.string(), "9999999.0"),
        (pa.float64(), 100.0, pa.string(), "100.0"),
        (pa.float64(), 0.001, pa.string(), "0.001"),
        (pa.float64(), 0.00099, pa.string(), "9.9E-4"),
        (pa.float64(), -123.456, pa.string(), "-123.456"),
        (pa.float64(), 1e-5, pa.string(), "1.0E-5"),
        (pa.float64(), 1.7976931348623157e308, pa.string(), "1.7976931348623157E308"),
        (pa.float64(), -0.0, pa.string(), "-0.0"),
        (pa.float64(), 0.0, pa.string(), "0.0"),
        (pa.float64(), NAN, pa.string(), "NaN"),
        (pa.float64(), INF, pa.string(), "Infinity"),
        (pa.float64(), -INF, pa.string(), "-Infinity"),
        (pa.decimal128(5, 2), Decimal("-1.50"), pa.decimal128(9, 4), Decimal("-1.5000")),
        (pa.decimal128(5, 2), Decimal("-1.50"), pa.string(), "-1.50"),
        (pa.decimal128(5, 0), Decimal("100"), pa.string(), "100"),
        (pa.decimal128(20, 10), Decimal("1E-10"), pa.string(), "1E-10"),
        (pa.string(), "12.3", pa.decimal128(5, 2), Decimal("12.30")),
        (pa.date32(), dt.date(2024, 2, 29), pa.string(), "2024-02-29"),
        (pa.string(), "2021-03-04", pa.date32(), dt.date(2021, 3, 4)),
        (pa.binary(), b"caf\xc3\xa9", pa.string(), "caf\u00e9"),
        (pa.string(), "caf\u00e9", pa.binary(), b"caf\xc3\xa9"),
    ],
)
def test_a_value_is_what_apache_hudi_makes_of_it(
    kind: pa.DataType, value: Any, wider: pa.DataType, expected: Any
) -> None:
    assert fits(kind, wider)
    assert cast(pa.array([value, None], kind), wider).to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        (pa.int32(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.int64(), pa.string()),
        (pa.float32(), pa.string()),
        (pa.decimal128(5, 2), pa.decimal128(7, 4)),
    ],
)
def test_what_keeps_its_values_fits_and_there_is_no_way_back(kind: pa.DataType, other: pa.DataType) -> None:
    assert keeps_values(kind, other)
    assert fits(kind, other)
    assert not keeps_values(other, kind)


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        (pa.int32(), pa.float32()),
        (pa.int64(), pa.float32()),
        (pa.int64(), pa.float64()),
        (pa.float64(), pa.string()),
        (pa.decimal128(7, 2), pa.decimal128(7, 4)),
        (pa.binary(), pa.string()),
        (pa.string(), pa.date32()),
    ],
)
def test_a_type_that_would_change_values_does_not_keep_them(kind: pa.DataType, other: pa.DataType) -> None:
    assert not keeps_values(kind, other)


@given(st.lists(st.one_of(st.none(), st.floats(allow_subnormal=False))))
@example([None])
@example([])
def test_any_double_is_spelt_by_javas_rules(values: list[float | None]) -> None:
    """It reads back as itself, with an exponent outside 10^-3 to 10^7 alone and a digit on both sides of the point."""
    texts = float_text(pa.array(values, pa.float64()))

    assert texts.type == pa.string()
    for value, text in zip(values, texts.to_pylist(), strict=True):
        if value is None:
            assert text is None
        elif math.isfinite(value):
            assert float(text) == value
            assert math.copysign(1, float(text)) == math.copysign(1, value)
            digits, _, exponent = text.lstrip("-").partition("E")
            whole, _, fraction = digits.partition(".")
            assert bool(exponent) == (value != 0 and not 1e-3 <= abs(value) < 1e7)
            assert fraction
            assert whole == str(int(whole))
            assert not exponent or (whole != "0" and len(whole) == 1)
            assert fraction == "0" or not fraction.endswith("0")


@given(st.lists(st.floats(width=32, allow_nan=False)))
def test_a_float_and_the_double_it_becomes_read_alike(values: list[float]) -> None:
    floats = pa.array(values, pa.float32())
    doubles = cast(floats, pa.float64())

    assert pc.all(pc.equal(doubles.cast(pa.float32()), floats), min_count=0).as_py() is not False
    assert doubles.to_pylist() == [float(text) for text in floats.cast(pa.string()).to_pylist()]


@pytest.mark.parametrize(
    ("given", "kind", "bits"),
    [(pa.string(), pa.int32(), 32), (pa.string(), pa.int64(), 64), (pa.int64(), pa.int32(), 32)],
)
def test_the_least_and_the_greatest_number_have_a_place_beside_values_that_have_none(
    given: pa.DataType, kind: pa.DataType, bits: int
) -> None:
    greatest = (1 << (bits - 1)) - 1
    numbers = [-greatest - 2, -greatest - 1, None, greatest, greatest + 1]
    _, strange = as_exact_numbers(pa.array([None if one is None else str(one) for one in numbers]).cast(given), kind)

    assert strange is not None
    assert strange.to_pylist() == [True, False, False, False, True]
