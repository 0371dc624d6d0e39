"""Rows of Avro data blocks: the bytes are fastavro's, and whatever it writes is read into the table's types."""

from __future__ import annotations

import datetime
import json
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyhudi.table.files.logs import avro_columns, avro_rows
from pyhudi.table.schema.avro import format_avro, parse_avro
from support.seams import patch_seam
from support.share import share_of

INT, LONG = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text("aé𝄞\0 ", max_size=150)
DAYS = st.dates()
MOMENTS = st.datetimes()
FLAT: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int32(), INT),
    (pa.int64(), LONG),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.bool_(), st.booleans()),
    (pa.string(), TEXT),
    (pa.binary(), st.binary(max_size=150)),
    (pa.date32(), DAYS),
    (pa.timestamp("us", "UTC"), MOMENTS.map(lambda one: one.replace(tzinfo=datetime.timezone.utc))),
    (pa.timestamp("us"), MOMENTS),
    (pa.decimal128(9, 2), st.decimals(-9999999, 9999999, places=2)),
    (pa.decimal128(38, 10), st.decimals(-(10**27), 10**27, places=10)),
]


def kinds() -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    """Return types, each with the strategy of its values."""

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        field = st.tuples(inner, st.booleans()).map(as_field)
        structs = st.lists(field, min_size=1, max_size=3).map(
            lambda fields: (
                pa.struct([pa.field(f"f{at}", kind, nullable=null) for at, (kind, null, _) in enumerate(fields)]),
                st.fixed_dictionaries({f"f{at}": values for at, (_, _, values) in enumerate(fields)}),
            )
        )
        lists = field.map(
            lambda one: (pa.list_(pa.field("element", one[0], nullable=one[1])), st.lists(one[2], max_size=3))
        )
        maps = field.map(
            lambda one: (
                pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", one[0], nullable=one[1])),
                st.dictionaries(TEXT, one[2], max_size=3).map(lambda found: list(found.items())),
            )
        )
        return structs | lists | maps

    return st.recursive(st.sampled_from(FLAT), nested, max_leaves=4)


def as_field(drawn: tuple[tuple[pa.DataType, st.SearchStrategy[Any]], bool]) -> tuple[pa.DataType, bool, Any]:
    (kind, values), nullable = drawn
    return kind, nullable, st.none() | values if nullable else values


@st.composite
def batches(draw: Any) -> pa.RecordBatch:
    fields = draw(st.lists(st.tuples(kinds(), st.booleans()).map(as_field), min_size=1, max_size=4))
    schema = pa.schema([pa.field(f"c{at}", kind, nullable=null) for at, (kind, null, _) in enumerate(fields)])
    count = draw(st.integers(0, 12))
    columns = [
        pa.array(draw(st.lists(values, min_size=count + 1, max_size=count + 1)), kind) for kind, _, values in fields
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema).slice(1)


def datum(value: Any, kind: pa.DataType) -> Any:
    """Return a value as fastavro takes it."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: datum(inner, kind.item_type) for key, inner in value}
    if pa.types.is_list(kind):
        return [datum(inner, kind.value_type) for inner in value]
    if pa.types.is_struct(kind):
        return {name: datum(inner, kind.field(name).type) for name, inner in value.items()}
    return value


def fastavro_bytes(batch: pa.RecordBatch, avro: Any) -> bytes:
    parsed = fastavro.parse_schema(avro)
    out = b""
    for row in batch.to_pylist():
        sink = pa.BufferOutputStream()
        fastavro.schemaless_writer(
            sink, parsed, {name: datum(row[name], batch.schema.field(name).type) for name in row}
        )
        one = sink.getvalue().to_pybytes()
        out += struct.pack(">i", len(one)) + one
    return out


def read(data: bytes, count: int, avro: str, *names: str) -> pa.Table:
    columns = pa.schema(parse_avro(avro, "x"))
    content = avro_rows.encode_head(count) + data
    source = pa.BufferReader(content)
    found = avro_rows.decode(source.read, len(content), avro, columns, names or columns.names)
    return pa.Table.from_batches(found, pa.schema([one for one in columns if not names or one.name in names]))


@settings(max_examples=share_of(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches())
def test_rows_are_written_as_fastavro_writes_them_and_come_back(batch: pa.RecordBatch) -> None:
    avro = format_avro(batch.schema, "t")

    written = b"".join(avro_rows.encode(batch))

    assert written == fastavro_bytes(batch, json.loads(avro))
    for way in (by_rows, by_columns):
        assert b"".join(part for one in way(written, batch.num_rows, avro) for part in avro_rows.encode(one)) == written


MILLIS = datetime.datetime(2024, 2, 29, 1, 2, 3, 4000, datetime.timezone.utc)
FOREIGN: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "namespace": "n",
    "fields": [
        {"name": "last", "type": ["string", "null"]},
        {"name": "wide", "type": {"type": "fixed", "name": "f", "size": 16, "logicalType": "decimal", "precision": 4}},
        {"name": "free", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}]},
        {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": ["null", {"type": "long", "logicalType": "local-timestamp-millis"}], "default": None},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid", "avro.java.string": "String"}},
        {"name": "at", "type": {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}},
        {"name": "to", "type": ["null", "P"]},
    ],
}
ROW = {
    "last": "z",
    "wide": Decimal("-12"),
    "free": Decimal("-123456789012345678.90"),
    "ms": MILLIS,
    "local": None,
    "id": "00000000-0000-0000-0000-000000000001",
    "at": {"x": 1},
    "to": {"x": 2},
}


def foreign() -> bytes:
    sink = pa.BufferOutputStream()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(FOREIGN), ROW)
    one = sink.getvalue().to_pybytes()
    return struct.pack(">i", len(one)) + one


def by_rows(data: bytes, count: int, avro: str) -> list[pa.RecordBatch]:
    columns = pa.schema(parse_avro(avro, "x"))
    return list(avro_rows._one_by_one(json.loads(avro), columns, data, count))


def by_columns(data: bytes, count: int, avro: str) -> list[pa.RecordBatch]:
    """Read by columns alone, each row's beginning being told."""
    starts = np.cumsum([0, *(len(one) for one in lines(data))])
    columns = pa.schema(parse_avro(avro, "x"))
    octets = np.frombuffer(data, dtype=np.uint8)
    assert count == 0 or avro_columns.row_starts(octets).tolist() == starts.tolist()
    return list(avro_columns.decode(octets, starts, json.loads(avro), columns, columns.names, no_other_way))


def no_other_way(*_: Any) -> Iterator[pa.RecordBatch]:
    raise AssertionError


def lines(written: bytes) -> Iterator[bytes]:
    """Yield rows, each with its length."""
    while written:
        end = 4 + struct.unpack_from(">i", written)[0]
        yield written[:end]
        written = written[end:]


LISTS = pa.list_(pa.field("element", pa.map_(pa.string(), pa.int64())))


def test_lists_are_read_at_once_until_they_are_very_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many rows, some null, some empty, their items out of step; with a bound of a few items by either way."""
    lists = [None if n % 7 == 0 else [{str(m): m for m in range(n % 4)} for _ in range(n % 5)] for n in range(300)]
    rows = pa.record_batch(
        [
            pa.array([None if one is None else [list(each.items()) for each in one] for one in lists], LISTS),
            pa.array(range(300)),
        ],
        schema=pa.schema([pa.field("l", LISTS), ("n", pa.int64())]),
    )
    avro, written = format_avro(rows.schema, "t"), b"".join(avro_rows.encode(rows))

    assert pa.Table.from_batches(by_columns(written, 300, avro)) == pa.Table.from_batches([rows])
    assert read(written, 300, avro, "n").column("n").to_pylist() == list(range(300))
    patch_seam(monkeypatch, "longest Avro list that is read at once", 3)
    assert read(written, 300, avro) == pa.Table.from_batches([rows])


def test_a_list_in_blocks_that_say_their_sizes_is_read() -> None:
    """As Avro's own blocking encoder in Java writes it."""
    avro = format_avro(pa.schema([pa.field("l", pa.list_(pa.field("element", pa.int32(), False)), False)]), "t")
    body = bytes([3, 4, 2, 4, 2, 6, 0])
    data = struct.pack(">i", len(body)) + body

    assert read(data, 1, avro).to_pylist() == [{"l": [1, 2, 3]}]
    assert by_rows(data, 1, avro)[0].to_pylist() == [{"l": [1, 2, 3]}]


def test_the_beginnings_of_rows_are_found_among_zeros() -> None:
    dice = np.random.default_rng(5)
    bodies = [bytes(dice.integers(0, 3, dice.integers(0, 40), dtype=np.uint8)) for _ in range(3_000)]
    written = b"".join(struct.pack(">i", len(one)) + one for one in bodies)
    octets = np.frombuffer(written, dtype=np.uint8)

    starts = np.cumsum([0, *(4 + len(one) for one in bodies)]).tolist()
    for end in [len(written), starts[-2], starts[-2] + 1, starts[-2] + 5, starts[1], starts[2] + 3]:
        whole = [one for one in starts if one <= end]
        assert avro_columns.row_starts(octets[:end]).tolist() == whole
    assert avro_columns.row_starts(octets[: starts[1] - 1]) is None


def test_rows_too_long_to_be_found_at_once_are_read_one_by_one() -> None:
    rows = pa.record_batch({"a": ["y", "x" * 70_000, "z"], "b": [1, 2, 3]})
    written = b"".join(avro_rows.encode(rows))

    assert len(avro_columns.row_starts(np.frombuffer(written, dtype=np.uint8))) == 2
    assert read(written, 3, format_avro(rows.schema, "t")).to_pylist() == rows.to_pylist()


@pytest.mark.parametrize(("fetched", "window"), [(1 << 25, 1 << 22), (100_000, 70_000), (997, 331), (31, 29)])
def test_many_rows_are_read_in_pieces(fetched: int, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which none ends where a row does."""
    patch_seam(monkeypatch, "bytes of Avro rows that are read at once", fetched)
    patch_seam(monkeypatch, "bytes of Avro rows that are looked through at once", window)
    count = 40_000 if window > 1_000 else 300
    numbers = pa.record_batch({"n": pa.array(range(count)), "t": [f"t{one}" for one in range(count)]})
    written = b"".join(avro_rows.encode(numbers))

    decoded_rows = read(written, count, format_avro(numbers.schema, "t"))

    assert decoded_rows.column("n").num_chunks > 2
    assert pa.table(numbers.to_pydict()) == decoded_rows.combine_chunks()


def test_schemas_that_others_write_are_read() -> None:
    """Unions the other way round, decimals of any bytes, milliseconds, and types that are named a second time."""
    assert read(foreign() * 2, 2, json.dumps(FOREIGN)).to_pylist() == [ROW, ROW]


@pytest.mark.parametrize("names", [("to",), ("ms", "last"), ("free", "no such column")])
def test_some_columns_are_read(names: tuple[str, ...]) -> None:
    found = read(foreign(), 1, json.dumps(FOREIGN), *names).to_pylist()

    assert found == [{name: ROW[name] for name in ROW if name in names}]
