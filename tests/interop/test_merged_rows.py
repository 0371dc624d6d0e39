"""Rows that a merge and an update changed: what Apache Hudi reads of them, and writes over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.readers import read_hudi_rs, read_without_spark
from pyhudi import HudiTable
from pyhudi.operations.planning.request import TableSettings
from pyspark.sql import SparkSession
from support.drive import write

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
def test_apache_hudi_reads_what_a_merge_and_an_update_wrote_and_goes_on(
    spark: SparkSession, apache: ApacheHudi, tmp_path: Path, table_type: str
) -> None:
    """Two rows swap their keys, two change partition, two go, one takes the key of one that goes, one comes."""
    path = tmp_path / "t"
    first = [(key, "x", 1, value) for value, key in enumerate("abcdefg")]
    write(path, table_of(first), table=replace(MADE, table_type=table_type))
    given = [("a", "x", 1, 10), ("b", "x", 1, 11), ("c", "y", 2, 12), ("d", "x", 1, -1), ("e", "x", 1, -1)]
    given += [("f", "x", 2, 13), ("h", "x", 1, 14), ("i", "x", 1, -1)]
    table = HudiTable(spark, str(path))
    merge = table.merge(table_of(given), "source.id = target.id").when_matched_delete("source.v < target.v")
    set_all = {"id": "translate(target.id, 'abf', 'bae')", **{name: f"source.{name}" for name in ("p", "ts", "v")}}
    merge_result = merge.when_matched_update(set_all).when_not_matched_insert_all("source.v > 0").execute()
    moved = table.update({"p": "'z'", "v": "v * 10"}, "id = 'g'")

    assert (merge_result.inserts, merge_result.updates, merge_result.deletes, merge_result.moved) == (1, 4, 2, 4)
    assert (moved.updates, moved.moved) == (1, 1)
    changed = [("b", "x", 1, 10), ("a", "x", 1, 11), ("c", "y", 2, 12), ("e", "x", 2, 13)]
    changed += [("h", "x", 1, 14), ("g", "z", 1, 60)]
    expected = sorted(changed)
    readers = (read_without_spark, read_hudi_rs, apache.read)
    assert [shown(read(path)) for read in readers] == [expected] * 3

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
    apache.write(path, table_of([("c", "y", 3, 20), ("d", "x", 3, 21)]), options)
    expected = sorted([*(row for row in changed if row[0] != "c"), ("c", "y", 3, 20), ("d", "x", 3, 21)])
    assert [shown(read(path)) for read in readers] == [expected] * 3
