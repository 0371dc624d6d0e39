"""Rows that a merge moved: what Apache Hudi reads of them, and writes over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.readers import read_hudi_rs, read_without_spark
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.result import RowCounts
from support.changing import based_on
from support.drive import DEFAULTS, write

pytestmark = pytest.mark.interop

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
MADE = TableSettings(
    name="merged", record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2
)
Rows = list[tuple[str, str, int, int]]


def table_of(rows: Rows) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


def shown(rows: pa.Table) -> Rows:
    return sorted(zip(*(rows.column(name).to_pylist() for name in SCHEMA.names), strict=True))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_apache_hudi_reads_moved_and_swapped_rows_and_goes_on(
    apache: ApacheHudi, tmp_path: Path, table_type: str
) -> None:
    """Two rows swap their keys, one moves to another partition, one goes, one takes the key of one that leaves."""
    table = tmp_path / "t"
    first = [(key, "x", 1, value) for value, key in enumerate("abcdef")]
    write(table, table_of(first), table=replace(MADE, table_type=table_type))
    changed = [("b", "x", 1, 10), ("a", "x", 1, 11), ("c", "y", 2, 12), ("e", "x", 2, 13)]
    gone = [("c", "x", 1, None), ("d", "x", 1, None), ("f", "x", 1, None)]
    flags = pa.array([False] * len(changed) + [True] * len(gone))
    rows = table_of([*changed, *gone]).append_column("_hoodie_is_deleted", flags)
    counts = RowCounts(updates=4, deletes=2, moved=4)
    done = write(table, rows, settings=based_on(table, DEFAULTS, counts))

    assert (done.updates, done.deletes, done.moved) == (4, 2, 4)
    expected = sorted(changed)
    readers = (read_without_spark, read_hudi_rs, apache.read)
    assert [shown(read(table)) for read in readers] == [expected] * 3

    options = {
        "hoodie.table.name": "merged",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.metadata.enable": "false",
    }
    apache.write(table, table_of([("c", "y", 3, 20), ("d", "x", 3, 21)]), options)
    expected = sorted([*(row for row in changed if row[0] != "c"), ("c", "y", 3, 20), ("d", "x", 3, 21)])
    assert [shown(read(table)) for read in readers] == [expected] * 3
