"""Columns of any Arrow type and layout, drawn as raw values, and what a Hudi table must show of each.

What is expected is worked out of the raw values alone, by the rules of docs/arrow.md, and not by pyhudi or by casts.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

_DAY_MS = 86_400_000
_MOST = 1 << 63
# How many units of a timestamp a second has.
_UNITS = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


class Misfit:
    """In the place of a value that no Hudi table can hold."""


MISFIT = Misfit()


@dataclass(frozen=True)
class Drawn:
    """A column.

    Attributes:
        expected: What a table must show of each row; `MISFIT`, or what has it inside, where the write is to be refused.
    """

    array: pa.Array
    expected: list[Any]

    def taken(self, positions: Sequence[int | None]) -> list[Any]:
        """Return what is expected of the values at some positions; None for None."""
        return [None if at is None else self.expected[at] for at in positions]


def first_misfit(expected: Sequence[Any]) -> int | None:
    """Return the first row that has a value without an exact place."""
    return next((row for row, value in enumerate(expected) if _has_misfit(value)), None)


def _has_misfit(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_misfit, value))
    return any(map(_has_misfit, value.values())) if isinstance(value, dict) else value is MISFIT


def told(array: pa.Array) -> list[Any]:
    """Return the values of an array as they can be compared: floats by their digits, times as whole numbers."""
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [told(part) for part in array.flatten()]
        names = [field.name for field in kind]
        rows = [dict(zip(names, values, strict=True)) for values in zip(*parts, strict=True)]
        return [row if there else None for row, there in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        if pa.types.is_map(kind):
            values: list[Any] = [*zip(told(array.keys), told(array.items), strict=True)]
        else:
            values = told(array.values)
        return [
            values[start:end] if there else None
            for start, end, there in zip(
                array.offsets.to_pylist(), array.offsets.to_pylist()[1:], array.is_valid().to_pylist(), strict=False
            )
        ]
    if pa.types.is_temporal(kind):
        return list(array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist())
    if pa.types.is_floating(kind):
        return [None if value is None else digits(value) for value in array.to_pylist()]
    return list(array.to_pylist())


def digits(value: float) -> str:
    """Return a float as text that tells -0.0 from 0.0."""
    return "nan" if math.isnan(value) else repr(float(value))


# --- flat columns


def _rows(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | values, min_size=1, max_size=6)


def _flat(kind: pa.DataType, values: st.SearchStrategy[Any], show: Callable[[Any], Any]) -> st.SearchStrategy[Drawn]:
    def made(rows: list[Any]) -> Drawn:
        return Drawn(pa.array(rows, kind), [None if row is None else show(row) for row in rows])

    return _rows(values).map(made)


def _same(value: Any) -> Any:
    return value


def _whole(kind: pa.DataType) -> st.SearchStrategy[Drawn]:
    bits = kind.bit_width
    signed = pa.types.is_signed_integer(kind)
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    values = st.integers(least, most) | st.sampled_from([least, most, 0])
    return _flat(kind, values, lambda value: value if value < _MOST else MISFIT)


def _raw_times(kind: pa.DataType, show: Callable[[int], Any], *near: int) -> st.SearchStrategy[Drawn]:
    bits = kind.bit_width
    values = st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) | st.sampled_from(near) | st.integers(-(10**10), 10**10)
    values = values.filter(lambda value: abs(value) < 1 << bits - 1)

    def made(rows: list[Any]) -> Drawn:
        array = pa.array(rows, pa.int32() if bits == 32 else pa.int64()).view(kind)
        return Drawn(array, [None if row is None else show(row) for row in rows])

    return _rows(values).map(made)


def _micros(unit: str) -> Callable[[int], Any]:
    def show(value: int) -> Any:
        found, rest = divmod(value * 1_000_000, _UNITS[unit])
        return MISFIT if rest or abs(found) >= _MOST else found

    return show


def _days(value: int) -> Any:
    return MISFIT if value % _DAY_MS or abs(value // _DAY_MS) >= 1 << 31 else value // _DAY_MS


def _floats(kind: pa.DataType) -> st.SearchStrategy[Drawn]:
    width = kind.bit_width
    values = st.floats(width=width) | st.sampled_from([-0.0, math.inf, math.nan])  # type: ignore[arg-type]

    def made(rows: list[Any]) -> Drawn:
        given = [None if row is None else np.float16(row) for row in rows] if width == 16 else rows
        shown = [None if row is None else digits(_of_width(row, width)) for row in rows]
        return Drawn(pa.array(given, kind), shown)

    return _rows(values).map(made)


def _of_width(value: float, width: int) -> float:
    return struct.unpack("f", struct.pack("f", value))[0] if width == 32 else value


def _decimals(kind: pa.DataType) -> st.SearchStrategy[Drawn]:
    most = 10**kind.precision - 1
    unscaled = st.integers(-most, most) | st.sampled_from([most, -most, 0]) | st.integers(-99, 99)

    def show(value: Decimal) -> Any:
        return value if len(value.as_tuple().digits) <= 38 else MISFIT

    exact = unscaled.map(lambda number: Decimal((number < 0, tuple(map(int, str(abs(number)))), -kind.scale)))
    return _flat(kind, exact, show)


def _as_bool8(column: Drawn) -> Drawn:
    return Drawn(pa.ExtensionArray.from_storage(pa.bool8(), column.array), column.expected)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_BYTES = st.binary(max_size=8)
FLAT: dict[str, st.SearchStrategy[Drawn]] = {
    **{str(kind): _whole(kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(kind): _whole(kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    **{str(kind): _floats(kind) for kind in (pa.float16(), pa.float32(), pa.float64())},
    "bool": _flat(pa.bool_(), st.booleans(), _same),
    "bool8": _flat(pa.int8(), st.sampled_from([0, 1]), bool).map(_as_bool8),
    **{str(kind): _flat(kind, _TEXT, _same) for kind in (pa.string(), pa.large_string(), pa.string_view())},
    **{str(kind): _flat(kind, _BYTES, _same) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())},
    "fixed_size_binary": _flat(pa.binary(3), st.binary(min_size=3, max_size=3), _same),
    "date32": _raw_times(pa.date32(), _same, 0, -1, 20_000),
    "date64": _raw_times(pa.date64(), _days, 0, -_DAY_MS, 1, _DAY_MS * (1 << 31)),
    **{
        f"timestamp {unit} {zone}": _raw_times(pa.timestamp(unit, zone), _micros(unit), 0, -1, 10**12, 10**15)
        for unit in _UNITS
        for zone in (None, "UTC", "Europe/Rome", "+05:30")
    },
    **{
        str(kind): _decimals(kind)
        for kind in (
            pa.decimal32(7, 2),
            pa.decimal64(15, 0),
            pa.decimal128(38, 10),
            pa.decimal256(38, 38),
            pa.decimal256(45, 3),
        )
    },
    "null": st.integers(1, 6).map(lambda count: Drawn(pa.nulls(count), [None] * count)),
}


# --- layouts


def _dictionary(column: Drawn, data: st.DataObject) -> Drawn:
    """Return rows that name values by their places, some values often and some never."""
    count = len(column.expected)
    places = data.draw(st.lists(st.none() | st.integers(0, count - 1), min_size=1, max_size=6))
    index = data.draw(st.sampled_from([pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()]))
    array = pa.DictionaryArray.from_arrays(pa.array(places, index), column.array, ordered=data.draw(st.booleans()))
    return Drawn(array, column.taken(places))


def _runs(column: Drawn, data: st.DataObject) -> Drawn:
    counts = [data.draw(st.integers(1, 3)) for _ in column.expected]
    ends = pa.array(np.cumsum(counts), data.draw(st.sampled_from([pa.int16(), pa.int32(), pa.int64()])))
    expected = [value for value, count in zip(column.expected, counts, strict=True) for _ in range(count)]
    try:
        return Drawn(pa.RunEndEncodedArray.from_arrays(ends, column.array), expected)
    except pa.ArrowInvalid:
        # pyarrow refuses dates with a time of day there.
        return column


def _struct(column: Drawn, data: st.DataObject) -> Drawn:
    count = len(column.expected)
    gone = [data.draw(st.booleans()) for _ in range(count)]
    other = pa.array(range(count), pa.int32())
    array = pa.StructArray.from_arrays([column.array, other], ["f", "g"], mask=pa.array(gone))
    rows = [{"f": value, "g": number} for number, value in enumerate(column.expected)]
    return Drawn(array, [None if missing else row for row, missing in zip(rows, gone, strict=True)])


def _lists(column: Drawn, data: st.DataObject) -> Drawn:
    """Return lists of any layout, some of them null over values that are there all the same."""
    count = len(column.expected)
    cuts = sorted(data.draw(st.lists(st.integers(0, count), min_size=0, max_size=3)))
    bounds = [0, *cuts, count]
    gone = [data.draw(st.booleans()) for _ in bounds[1:]]
    layout = data.draw(st.sampled_from(["list", "large", "view", "large view", "map"]))
    rows: list[Any] = [column.expected[start:end] for start, end in itertools.pairwise(bounds)]
    lacking = pa.array(gone)
    small, large = pa.array(bounds, pa.int32()), pa.array(bounds, pa.int64())
    if layout == "map":
        keys = pa.array([f"k{number}" for number in range(count)])
        entries = [*zip(keys.to_pylist(), column.expected, strict=True)]
        rows = [entries[start:end] for start, end in itertools.pairwise(bounds)]
        array = pa.MapArray.from_arrays(small, keys, column.array, mask=lacking)
    elif layout == "list":
        array = pa.ListArray.from_arrays(small, column.array, mask=lacking)
    elif layout == "large":
        array = pa.LargeListArray.from_arrays(large, column.array, mask=lacking)
    else:
        maker, offsets = (pa.ListViewArray, small) if layout == "view" else (pa.LargeListViewArray, large)
        sizes = pc.subtract(offsets[1:], offsets[:-1])
        array = maker.from_arrays(offsets[:-1], sizes, column.array, mask=lacking)
    return Drawn(array, [None if missing else row for row, missing in zip(rows, gone, strict=True)])


def _fixed_lists(column: Drawn, data: st.DataObject) -> Drawn:
    size = data.draw(st.sampled_from([one for one in (1, 2, 3) if len(column.expected) % one == 0]))
    count = len(column.expected) // size
    gone = [data.draw(st.booleans()) for _ in range(count)]
    array = pa.FixedSizeListArray.from_arrays(column.array, size, mask=pa.array(gone))
    rows = [column.expected[at * size : (at + 1) * size] for at in range(count)]
    return Drawn(array, [None if missing else row for row, missing in zip(rows, gone, strict=True)])


def _sliced(column: Drawn, data: st.DataObject) -> Drawn:
    start = data.draw(st.integers(0, len(column.expected) - 1))
    end = data.draw(st.integers(start + 1, len(column.expected)))
    return Drawn(column.array.slice(start, end - start), column.expected[start:end])


LAYOUTS: dict[str, Callable[[Drawn, st.DataObject], Drawn]] = {
    "dictionary": _dictionary,
    "runs": _runs,
    "struct": _struct,
    "lists": _lists,
    "fixed lists": _fixed_lists,
    "sliced": _sliced,
}


def draw_column(data: st.DataObject) -> Drawn:
    """Draw a column, up to three layouts deep."""
    column = data.draw(FLAT[data.draw(st.sampled_from(list(FLAT)))])
    for _ in range(data.draw(st.integers(0, 3))):
        name = data.draw(st.sampled_from(list(LAYOUTS)))
        if len(column.expected) > 0:
            column = LAYOUTS[name](column, data)
    return column
