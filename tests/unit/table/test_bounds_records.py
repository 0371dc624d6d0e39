"""Tests of records of bounds, as commits write them: what several of one partition say together."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyhudi.table.files.column_bounds import BoundsOfRows
from pyhudi.table.hfile.entries import Entries
from pyhudi.table.metadata.bounds_of_files import BoundedFiles, FileBounds
from pyhudi.table.metadata.bounds_records import (
    bounds_in_parts,
    bounds_records,
    can_be_bounded,
    partition_bounds_records,
)
from pyhudi.table.metadata.column_spans import column_spans
from pyhudi.table.metadata.encoding import Records
from pyhudi.table.metadata.merging import SaidRecords, merged
from pyhudi.table.metadata.record_schema import record_schema
from pyhudi.table.metadata.records import decode
from support.seams import patch_seam

NAN = float("nan")
FIELDS = [
    pa.field("cost", pa.decimal128(10, 2)),
    pa.field("octets", pa.binary()),
    pa.field("number", pa.float64()),
    pa.field("text", pa.string()),
]


def _file(name: str, *rows: tuple[Any, ...], partition: str = "p") -> FileBounds:
    row_bounds = BoundsOfRows(FIELDS)
    arrays = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(FIELDS)]
    row_bounds.add(pa.record_batch(arrays, schema=pa.schema(FIELDS)))
    return FileBounds(partition, name, len(rows), row_bounds.bounds())


FILES = [
    _file("a", (Decimal("1.20"), b"\x80", 1.0, "b"), (Decimal("-300.00"), b"\x01", -2.0, "c")),
    _file("b", (Decimal("200.00"), b"\xff", NAN, "a"), (None, None, None, None)),
    _file("c", (None, None, None, None)),
]


def _said(records: Records) -> SaidRecords:
    order = pc.sort_indices(records.keys)
    return SaidRecords(Entries(records.keys.take(order).cast(pa.binary()), records.values.take(order)), record_schema())


@pytest.mark.parametrize("apart", [True, False])
def test_bounds_of_partitions_widen_each_other(apart: bool) -> None:
    """Whether one commit has all files or each has one. Decimals compare by their numbers, beside binary values."""
    commits = [[file] for file in FILES] if apart else [FILES]
    said = [_said(partition_bounds_records(files, FIELDS, record_schema(), typed=True)) for files in commits]

    records = merged(said, adds_up=True)

    assert records is not None
    stats_by_column = {row["columnName"]: row for row in records.field("ColumnStatsMetadata").to_pylist()}
    spans = {name: [_value(row[end]) for end in ("minValue", "maxValue")] for name, row in stats_by_column.items()}
    numbers = [int.from_bytes(bound, "big", signed=True) for bound in spans.pop("cost")]
    assert numbers == [-30000, 20000]
    assert [str(bound) for bound in spans.pop("number")] == ["-2.0", "nan"]
    assert spans == {"octets": [b"\x01", b"\xff"], "text": ["a", "c"]}
    assert {(row["valueCount"], row["nullCount"], row["isTightBound"]) for row in stats_by_column.values()} == {
        (5, 2, False)
    }


def _value(wrapped: dict[str, Any]) -> Any:
    return next(value for value in wrapped.values() if value is not None)


def test_parts_of_records_come_in_the_order_of_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "records of bounds that are encoded at a time", 6)

    parts = list(bounds_in_parts(BoundedFiles.of(FILES, FIELDS), record_schema(), typed=True))

    assert [len(part) for part in parts] == [6, 6]
    assert max(parts[0].keys.to_pylist()) < min(parts[1].keys.to_pylist())
    whole = bounds_records(FILES, FIELDS, record_schema(), typed=True)
    pairs = [pair for part in parts for pair in zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True)]
    assert dict(pairs) == dict(zip(whole.keys.to_pylist(), whole.values.to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("kind", "typed", "untyped"),
    [
        (pa.decimal128(30, 15), True, True),
        (pa.decimal128(31, 15), True, False),
        (pa.decimal128(20, 16), True, False),
        (pa.timestamp("us"), True, True),
        (pa.timestamp("ms", "UTC"), True, False),
        (pa.list_(pa.int32()), False, False),
    ],
)
def test_an_older_index_has_no_bounds_of_long_decimals_and_milliseconds(
    kind: pa.DataType, typed: bool, untyped: bool
) -> None:
    assert (can_be_bounded(kind, typed=True), can_be_bounded(kind, typed=False)) == (typed, untyped)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_records_of_milliseconds_say_that_they_are_milliseconds(zone: str | None) -> None:
    """Readers by another unit would find the years of 1970 alone."""
    column, noon = pa.field("at", pa.timestamp("ms", zone)), datetime(2026, 5, 5, 12, tzinfo=timezone.utc)
    values = pa.array([noon if zone else noon.replace(tzinfo=None)], column.type)
    row_bounds = BoundsOfRows([column])
    row_bounds.add(pa.record_batch([values], names=["at"]))

    said = bounds_records([FileBounds("p", "a", 1, row_bounds.bounds())], [column], record_schema(), typed=True)

    micros = values.cast(pa.timestamp("us", zone))
    spans = column_spans(decode(said.values, record_schema()).field("ColumnStatsMetadata"), micros.type)
    assert (spans.least, spans.greatest) == (micros, micros)
