"""Which columns of a base file get a dictionary."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.table.base_file import BaseFileWriter, file_schema
from pyhudi.table.encodings import dictionary_columns, estimate_distinct

ROWS = 300_000


@pytest.mark.parametrize("distinct", [3, 1_000, 30_000, 200_000])
def test_the_number_of_distinct_values_is_estimated_from_a_sample(distinct: int) -> None:
    sample = np.random.default_rng(7).integers(0, distinct, 16_384)

    assert estimate_distinct(len(sample), len(np.unique(sample))) == pytest.approx(distinct, rel=0.1)


def test_a_sample_without_repetition_bounds_nothing() -> None:
    assert math.isinf(estimate_distinct(1_000, 1_000))


def test_a_dictionary_is_for_columns_that_repeat() -> None:
    numbers = np.arange(ROWS)
    rows = pa.table(
        {
            "unique": numbers,
            "few": numbers % 7,
            "sorted_runs": numbers // 1_000,
            "many": np.random.default_rng(1).integers(0, 1 << 40, ROWS),
            "nulls": pa.nulls(ROWS, pa.int64()),
            "encoded": pa.array(np.char.mod("k%d", numbers % 5)).dictionary_encode(),
            "nested": pa.array([[1]] * ROWS),
        }
    )

    assert dictionary_columns(rows) == ["few", "sorted_runs", "nulls", "encoded"]


def test_a_small_file_keeps_its_dictionaries() -> None:
    assert dictionary_columns(pa.table({"unique": np.arange(100)})) == ["unique"]


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_file_of_any_number_of_rows_is_whole(rows: int) -> None:
    schema = pa.schema([("n", pa.int64())])
    sink = pa.BufferOutputStream()
    writer = BaseFileWriter(sink, file_schema(schema), "{}", compression="zstd", row_group_bytes=1 << 20)
    for number in range(rows):
        columns = [pa.array([number if one.name == "n" else "x"]) for one in file_schema(schema)]
        arrays = [
            column.dictionary_encode() if pa.types.is_dictionary(one.type) else column
            for column, one in zip(columns, file_schema(schema), strict=True)
        ]
        writer.write(pa.RecordBatch.from_arrays(arrays, schema=file_schema(schema)))
    writer.close()

    assert pq.read_table(pa.BufferReader(sink.getvalue())).column("n").to_pylist() == list(range(rows))
