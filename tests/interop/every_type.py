"""A table with a column of every type that pyhudi, Apache Hudi and hudi-rs all hold, and rows with odd values in it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

INF, NAN = float("inf"), float("nan")
UTC = dt.timezone.utc


def _list(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))


def _struct(**kinds: pa.DataType) -> pa.StructType:
    """Return a struct; a name that ends in `_` is a field that may not be null."""
    return pa.struct(
        [pa.field(name.rstrip("_"), kind, nullable=not name.endswith("_")) for name, kind in kinds.items()]
    )


def _decimals(digits: int, scale: int) -> list[Decimal]:
    # From text, because Decimal's arithmetic rounds to 28 digits.
    greatest = 10**digits - 1
    return [Decimal(f"{unscaled}E-{scale}") for unscaled in (greatest, -greatest, 1, 0)]


def _moments(*more: dt.datetime) -> list[dt.datetime]:
    before, last = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)
    return [before.replace(tzinfo=UTC), dt.datetime(1900, 1, 1, tzinfo=UTC), last.replace(tzinfo=UTC), *more]


VISIT = _struct(day=pa.date32(), count=pa.int32())
DEEP = _struct(a=_struct(b_=_struct(c_=pa.int32(), d=pa.string()), e=pa.float64()))

# Column -> its type, and the values that its rows have in turn.
VALUES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "bo": (pa.bool_(), [True, False]),
    "ti": (pa.int8(), [-(2**7), 2**7 - 1, 0]),
    "sm": (pa.int16(), [-(2**15), 2**15 - 1]),
    "it": (pa.int32(), [-(2**31), 2**31 - 1]),
    "bi": (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1]),
    "fl": (pa.float32(), [NAN, INF, -INF, -0.0, 0.0, 1.401298464324817e-45, 3.4028234663852886e38]),
    "do": (pa.float64(), [NAN, INF, -INF, -0.0, 0.0, 5e-324, 1.7976931348623157e308, 1 / 3]),
    "d5": (pa.decimal128(5, 2), _decimals(5, 2)),
    "d15": (pa.decimal128(15, 4), _decimals(15, 4)),
    "d18": (pa.decimal128(18, 0), _decimals(18, 0)),
    "d38": (pa.decimal128(38, 18), _decimals(38, 18)),
    "dfrac": (pa.decimal128(38, 38), _decimals(38, 38)),
    "st": (pa.string(), ["", "a\0b", "😀\U0010ffff", "日本 é", " ", "NULL"]),
    "by": (pa.binary(), [b"", b"\0", b"\xff\xfe", bytes(range(256))]),
    "da": (pa.date32(), [dt.date(1582, 10, 15), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
    "tz": (pa.timestamp("us", "UTC"), _moments()),
    "ar": (_list(pa.int32()), [[], [1], [3, 1, 2]]),
    "ars": (_list(pa.string()), [[], [""], ["a", "", "😀"]]),
    "arr": (_list(_list(pa.int64())), [[], [[]], [[1], [], [2, 3]]]),
    "arst": (_list(VISIT), [[], [{"day": None, "count": None}], [{"day": dt.date(2024, 2, 29), "count": 1}] * 2]),
    "arma": (_list(pa.map_(pa.string(), pa.int32())), [[], [[]], [[("a", 1)], [("b", None)]]]),
    "ma": (pa.map_(pa.string(), pa.int64()), [[], [("", 0)], [("a", 1), ("b", None)]]),
    "mar": (pa.map_(pa.string(), _list(pa.float64())), [[], [("a", [])], [("a", [NAN, -0.0]), ("b", None)]]),
    "mast": (pa.map_(pa.string(), VISIT), [[], [("x", None)], [("x", {"day": None, "count": 1})]]),
    "mama": (pa.map_(pa.string(), pa.map_(pa.string(), pa.string())), [[], [("a", [("b", "c")]), ("d", [])]]),
    "de": (
        DEEP,
        [
            {"a": None},
            {"a": {"b": {"c": 1, "d": None}, "e": None}},
            {"a": {"b": {"c": -1, "d": ""}, "e": -INF}},
        ],
    ),
}
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("p", pa.string(), nullable=False),
        pa.field("must", pa.float64(), nullable=False),
        pa.field("place", _struct(x_=pa.int32(), y=pa.string()), nullable=False),
        pa.field("long", pa.string()),
        *((name, kind) for name, (kind, _) in VALUES.items()),
    ]
)


def row(number: int, version: int) -> dict[str, Any]:
    """Make a row; every seventh is null wherever it may be, and one in fifty holds a string of 1 MiB."""
    columns = {
        "id": number,
        "p": "xyz"[number % 3],
        "must": number / 7 + version,
        "place": {"x": version, "y": f"{number}" if number % 2 else None},
        "long": None,
    }
    if number % 7 == 0:
        return columns | dict.fromkeys(VALUES)
    if number % 50 == 8:
        columns["long"] = "é" * (1 << 19)
    # The columns have different numbers of values, so that rows combine them anew with every version.
    return columns | {name: values[(number + version) % len(values)] for name, (_, values) in VALUES.items()}
