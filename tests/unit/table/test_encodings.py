"""Which columns of a base file get a dictionary, and which statistics."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.table.files.base_file import BaseFileWriter, file_schema
from pyhudi.table.files.encodings import dictionary_columns, estimate_distinct
from pyhudi.table.files.output import Output
from pyhudi.table.schema.columns import META_COLUMNS, with_meta

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


def test_a_dictionary_that_would_be_kept_is_for_columns_that_repeat_too() -> None:
    numbers = np.arange(99)
    rows = {"unique": numbers, "pairs": numbers // 2, "triples": numbers // 3, "nulls": [*numbers[:33], *[None] * 66]}

    assert dictionary_columns(pa.table(rows)) == ["triples"]


def test_all_but_numbers_of_rows_and_numbers_that_may_be_nan_have_statistics() -> None:
    """Arrow leaves NaN out of them, and Spark, which counts NaN the greatest, would not find it."""
    pair = pa.struct([("ratio", pa.float64()), ("name", pa.string())])
    schema = file_schema(
        pa.schema(
            [
                ("n", pa.int32()),
                ("d", pa.float64()),
                ("f", pa.float32()),
                ("when", pa.timestamp("us", "UTC")),
                ("pair", pair),
                ("pairs", pa.list_(pa.field("element", pa.list_(pa.field("element", pair))))),
                ("ratios", pa.map_(pa.string(), pa.float32())),
            ]
        )
    )
    row = {
        "n": 1,
        "d": 1.0,
        "f": float("nan"),
        "when": 0,
        "pair": {},
        "pairs": [[{"name": "a"}]],
        "ratios": [("k", 1.0)],
    }
    rows = pa.RecordBatch.from_pylist([row | dict.fromkeys(META_COLUMNS, "m")], with_meta(schema))
    sink = pa.BufferOutputStream()
    writer = BaseFileWriter(sink, schema, "{}", output=Output(row_group_bytes=1 << 20))
    writer.write(rows.cast(schema))
    writer.close()

    group = pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata.row_group(0)
    without = [group.column(n).path_in_schema for n in range(group.num_columns) if not group.column(n).is_stats_set]
    assert without == [
        "_hoodie_commit_seqno",
        "f",
        "pair.ratio",
        "pairs.list.element.list.element.ratio",
        "ratios.key_value.value",
    ]


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_file_of_any_number_of_rows_is_whole(rows: int) -> None:
    schema = pa.schema([("n", pa.int64())])
    sink = pa.BufferOutputStream()
    writer = BaseFileWriter(sink, file_schema(schema), "{}", output=Output(row_group_bytes=1 << 20))
    for number in range(rows):
        columns = [pa.array([number if one.name == "n" else "x"]) for one in file_schema(schema)]
        arrays = [
            column.dictionary_encode() if pa.types.is_dictionary(one.type) else column
            for column, one in zip(columns, file_schema(schema), strict=True)
        ]
        writer.write(pa.RecordBatch.from_arrays(arrays, schema=file_schema(schema)))
    writer.close()

    assert pq.read_table(pa.BufferReader(sink.getvalue())).column("n").to_pylist() == list(range(rows))
