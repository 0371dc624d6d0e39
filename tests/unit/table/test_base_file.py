"""Base files of other writers: what Parquet says of a value otherwise than the table's columns do."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.files.base_file import BaseFileReader

PATH = "p/f_0-1-2_20260101000000000.parquet"
LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999_000)


def opened(rows: pa.Table, **how: Any) -> BaseFileReader:
    """Return a reader of a file with some rows, which Parquet writes as ``how`` says."""
    storage = MemoryStorage.open("memory:base-file")
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, store_schema=False, **how)
    storage.write(PATH, sink.getvalue().to_pybytes())
    return BaseFileReader(storage, PATH)


@pytest.mark.parametrize("kind", [pa.timestamp(unit, zone) for unit in ("us", "ms") for zone in ("UTC", None)], ids=str)
def test_times_in_int96_are_those_of_the_column(kind: pa.DataType) -> None:
    """INT96 has no zone, and holds years that nanoseconds do not."""
    stored = pa.array([dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29, 1), None, LAST], pa.timestamp("us"))
    wanted = pa.schema([pa.field("t", kind)])

    with opened(pa.table({"t": stored}), use_deprecated_int96_timestamps=True) as reader:
        (batch,) = reader.batches(wanted)

    assert batch.column("t").cast(pa.int64()) == stored.cast(pa.timestamp(kind.unit)).cast(pa.int64())
    assert batch.schema == wanted
