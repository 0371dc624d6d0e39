"""Rows of any Arrow types and layouts in the types of a Hudi table: each value exactly, or an error by its row."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.arrow.hudi_types import HudiTypes, needs_stored_columns
from pyhudi.errors import ColumnValueError
from pyhudi.table.schema.types import LOCAL_MICROS, UTC_MICROS
from support.seams import patch_seam, read_seam

Encode = Callable[[pa.Array], pa.Array]

UTC = datetime.timezone.utc
TIMES = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
WHOLE_SECONDS = TIMES.map(lambda time: time.replace(microsecond=0))
# By the type of a table: the types that take its values exactly, and the values that fit into all of them.
NUMBERS = [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()]
KINDS: dict[pa.DataType, tuple[list[pa.DataType], st.SearchStrategy[Any]]] = {
    pa.int32(): (NUMBERS, st.integers(0, 127)),
    pa.int64(): ([pa.int64(), pa.uint32(), pa.uint64()], st.integers(0, 2**32 - 1)),
    pa.float32(): ([pa.float16(), pa.float32()], st.floats(width=16, allow_nan=False)),
    pa.string(): ([pa.string(), pa.large_string(), pa.string_view()], st.text(max_size=20)),
    pa.binary(): (
        [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4)],
        st.binary(min_size=4, max_size=4),
    ),
    pa.date32(): ([pa.date32(), pa.date64()], st.dates()),
    pa.decimal128(9, 2): (
        [pa.decimal128(9, 2), pa.decimal256(9, 2)],
        st.decimals("-9999999", "9999999", places=2),
    ),
    UTC_MICROS: (
        [
            *(pa.timestamp(unit, "Europe/Rome") for unit in ("s", "ms", "us", "ns")),
            *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        ],
        WHOLE_SECONDS,
    ),
}


def _runs(array: pa.Array) -> pa.Array:
    return pc.run_end_encode(array)


def _dictionary(array: pa.Array) -> pa.Array:
    return array.dictionary_encode()


def _struct(array: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([array], names=["f"])


def _list(kind: Callable[[pa.DataType], pa.DataType]) -> Encode:
    return lambda array: pa.ListArray.from_arrays(np.arange(len(array) + 1), array).cast(kind(array.type))


def _same(array: pa.Array) -> pa.Array:
    return array


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Array, pa.DataType, list[Any]]:
    """Return a column in some type and layout, its type in a table, and its values as Python has them."""
    kind = draw(st.sampled_from(list(KINDS)))
    types, values = KINDS[kind]
    given_type = draw(st.sampled_from(types))
    rows = draw(st.lists(st.none() | values, max_size=12))
    encoded = [row.replace(tzinfo=UTC) if isinstance(row, datetime.datetime) and given_type.tz else row for row in rows]
    if pa.types.is_float16(given_type):
        encoded = [None if row is None else np.float16(row) for row in rows]
    array = pa.array(encoded, given_type)
    nested = draw(st.sampled_from(["flat", "struct", "list", "large_list"]))
    flat: list[Encode] = [_same, _dictionary]
    if nested == "flat":
        flat.append(_runs)
    encode = draw(st.sampled_from(flat))
    with suppress(pa.ArrowNotImplementedError):  # not every type has every layout
        array = encode(array)
    if kind == UTC_MICROS:
        rows = [None if row is None else row.replace(tzinfo=UTC) for row in rows]
    if nested == "struct":
        array, kind, rows = _struct(array), pa.struct([("f", kind)]), [{"f": row} for row in rows]
    elif nested != "flat" and not pa.types.is_dictionary(array.type):
        maker = pa.list_ if nested == "list" else pa.large_list
        array, kind = _list(maker)(array), pa.list_(pa.field("element", kind))
        rows = [[row] for row in rows]
    start = draw(st.integers(0, len(rows)))
    return array.slice(start), kind, rows[start:]


@given(columns())
def test_each_value_is_the_same_in_the_type_of_a_table(drawn: tuple[pa.Array, pa.DataType, list[Any]]) -> None:
    array, kind, values = drawn
    batch = pa.RecordBatch.from_arrays([array], names=["x"])

    types = HudiTypes.of(batch.schema, None)
    (converted_batch,) = types.batches(batch, 0)
    converted_batch.validate(full=True)

    assert types.schema.types == [kind]
    assert converted_batch.schema.types == [kind]
    assert converted_batch.column(0).to_pylist() == values


@pytest.mark.parametrize(
    ("values", "kind", "shown"),
    [
        ([1, None, 2**64 - 1, 2**63], pa.uint64(), str(2**64 - 1)),
        ([0, None, 1001, 5], pa.timestamp("ns"), "00:00:00.000001001"),
        ([0, None, 86_400_001], pa.date64(), "1970-01-02"),
        ([Decimal(1), None, Decimal(10**39)], pa.decimal256(40, 0), str(10**39)),
        ([0, None, 2**62], pa.timestamp("s"), ""),
    ],
)
@pytest.mark.parametrize("encode", [_same, _struct, _list(pa.list_)])
def test_a_value_without_an_exact_place_is_refused_by_its_row(
    values: list[Any], kind: pa.DataType, shown: str, encode: Encode
) -> None:
    is_time = pa.types.is_temporal(kind)
    array = pa.array(values, pa.int64()).view(kind) if is_time else pa.array(values, kind)
    batch = pa.RecordBatch.from_arrays([encode(array)], names=["x"])

    with pytest.raises(ColumnValueError) as raised:
        HudiTypes.of(batch.schema, None).batches(batch, 100)

    assert "Column 'x'" in str(raised.value)
    assert "row 102" in str(raised.value)
    assert shown in str(raised.value) or encode is not _same


def test_dictionary_values_that_no_row_has_refuse_nothing() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array([1000, 1001]).view(pa.timestamp("ns")))
    batch = pa.RecordBatch.from_arrays([array], names=["x"])

    (found,) = HudiTypes.of(batch.schema, None, local=True).batches(batch, 0)

    assert found.column(0).to_pylist() == [datetime.datetime(1970, 1, 1, microsecond=1)] * 2


@pytest.mark.parametrize(
    ("known", "local", "kind"),
    [
        (None, False, UTC_MICROS),
        (None, True, LOCAL_MICROS),
        (UTC_MICROS, True, UTC_MICROS),
        (LOCAL_MICROS, False, LOCAL_MICROS),
    ],
)
@pytest.mark.parametrize("wrap", [lambda kind: kind, lambda kind: pa.struct([("f", pa.list_(kind))])])
def test_the_table_decides_about_timestamps_without_zone_and_the_writer_about_new_ones(
    known: pa.DataType | None, local: bool, kind: pa.DataType, wrap: Callable[[pa.DataType], pa.DataType]
) -> None:
    given_schema = pa.schema([("x", wrap(pa.timestamp("ms")))])

    types = HudiTypes.of(given_schema, None if known is None else pa.schema([("x", wrap(known))]), local=local)

    assert str(kind) in str(types.schema.field("x").type)
    assert types.zoneless == (("x",) if known is None and not local else ())
    assert needs_stored_columns(given_schema)


def test_columns_of_nulls_take_the_type_of_the_table() -> None:
    batch = pa.RecordBatch.from_arrays([pa.nulls(2)], names=["x"])

    types = HudiTypes.of(batch.schema, pa.schema([("x", pa.string())]))

    assert needs_stored_columns(batch.schema)
    assert types.schema.field("x").type == pa.string()
    assert types.batches(batch, 0)[0].column(0).to_pylist() == [None, None]


def test_maps_and_extension_types_are_brought_to_plain_types() -> None:
    maps = pa.array([[("a", 1)], None, []], pa.map_(pa.large_string(), pa.uint8()))
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None, b"1" * 16], pa.binary(16)))
    batch = pa.RecordBatch.from_arrays([maps, uuids], names=["m", "u"])

    (converted_batch,) = HudiTypes.of(batch.schema, None).batches(batch, 0)

    assert converted_batch.schema.field("m").type == pa.map_(pa.string(), pa.int32())
    assert converted_batch.to_pydict() == {"m": [[("a", 1)], None, []], "u": [b"0" * 16, None, b"1" * 16]}


def test_a_run_below_a_null_struct_is_no_value() -> None:
    """A value that nobody sees is not refused, though it has no place in a table."""
    runs = pa.RunEndEncodedArray.from_arrays(
        pa.array([2, 4], pa.int16()), pa.array([1, 1000], pa.timestamp("ns", "UTC"))
    )
    hidden = pa.array([True, True, False, False])
    structs = pa.StructArray.from_arrays([runs], fields=[pa.field("f", runs.type)], mask=hidden)
    schema = pa.schema([pa.field("s", structs.type)])

    (batch,) = HudiTypes.of(schema, None).batches(pa.record_batch([structs], schema=schema), 0)

    moment = datetime.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    assert batch.column("s").to_pylist() == [None, None, {"f": moment}, {"f": moment}]


# The system gives memory to the pages of these zeros only once they are touched.
BEYOND_32_BITS = pa.py_buffer(np.zeros((1 << 31) + 4096, np.uint8))


def long_text() -> pa.Array:
    offsets = pa.py_buffer(np.array([0, 1 << 31, (1 << 31) + 3, (1 << 31) + 5], np.int64))
    return pa.Array.from_buffers(pa.large_string(), 3, [None, offsets, BEYOND_32_BITS])


def wide_bytes() -> pa.Array:
    return pa.Array.from_buffers(pa.binary(1024), len(BEYOND_32_BITS) // 1024, [None, BEYOND_32_BITS])


@pytest.mark.parametrize(("make", "taken", "lengths"), [(long_text, 2, [3, 2]), (wide_bytes, 3, [1024] * 3)])
def test_values_beyond_two_gibibytes_of_an_array_are_brought_over(
    make: Callable[[], pa.Array], taken: int, lengths: list[int]
) -> None:
    column = make()
    rows = pa.record_batch({"v": column.slice(len(column) - taken)})
    (batch,) = HudiTypes.of(rows.schema, None).batches(rows, 0)

    assert pc.binary_length(batch.column("v")).to_pylist() == lengths
    assert not any(batch.column("v")[taken - 1].as_py().strip("\0" if make is long_text else b"\0"))


def test_texts_that_grow_too_large_for_a_plain_array_are_cut_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a dictionary, which has each of them once."""
    converted = read_seam("a column in Hudi's type")

    def of_three_at_most(array: pa.Array, data_type: pa.DataType) -> pa.Array:
        if len(array) > 3:
            raise pa.ArrowCapacityError("array cannot contain more than 3 texts")
        return converted(array, data_type)

    patch_seam(monkeypatch, "a column in Hudi's type", of_three_at_most)
    texts = [f"text {number}" for number in range(10)]
    rows = pa.record_batch({"v": pa.array(texts).dictionary_encode()})
    batches = HudiTypes.of(rows.schema, None).batches(rows, 0)

    assert [text for batch in batches for text in batch.column("v").to_pylist()] == texts
