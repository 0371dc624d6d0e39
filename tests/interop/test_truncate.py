"""Tables that Apache Hudi's TRUNCATE TABLE emptied: both read them as empty, and write them on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.scenarios import BUCKETS
from pyhudi import HudiTable
from pyspark.sql import SparkSession
from support.drive import write
from support.models.past import TABLE

pytestmark = pytest.mark.interop

ROWS = pa.table({"id": ["a", "b"], "p": ["x", "y"], "n": pa.array([1, 2], pa.int64())})
DDL = "id string, p string, n bigint"
THEIRS = {
    "hoodie.table.name": "theirs",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.index.type": "BUCKET",
    BUCKETS: "2",
}


@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_an_emptied_table_is_empty_and_filled_again(
    apache: ApacheHudi, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    path = tmp_path / writer
    if writer == "ours":
        write(path, ROWS, table=TABLE)
    else:
        apache.write(path, ROWS, THEIRS, mode="overwrite")
    apache.sql(f"create table truncated_{writer} using hudi location '{path}'")
    apache.sql(f"truncate table truncated_{writer}")
    assert not list(path.rglob("*.parquet"))

    plain, table = spark.read.format("pyhudi"), HudiTable(spark, str(path))
    assert plain.load(str(path)).count() == 0
    assert table.to_df().count() == 0
    assert plain.schema(DDL).load(str(path)).collect() == []
    if writer == "ours":
        assert table.to_df().columns[-3:] == plain.load(str(path)).columns[-3:] == ROWS.schema.names

    assert table.upsert(spark.sql("select 'a' id, 'x' p, 1L n"), buckets=2).inserts == 1
    apache.write(path, ROWS.slice(1), {**THEIRS, "hoodie.table.name": path.name if writer == "ours" else "theirs"})
    expected = [("a", 1), ("b", 2)]
    assert sorted(zip(*apache.read(path).select(["id", "n"]).to_pydict().values(), strict=True)) == expected
    assert sorted(map(tuple, table.to_df(["id", "n"]).collect())) == expected
