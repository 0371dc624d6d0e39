"""A streaming read goes from Apache Hudi's source to pyhudi's and back, by one checkpoint."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from pyspark.sql import DataFrame, SparkSession
from support.models.past import Past

pytestmark = pytest.mark.interop

Row = tuple[str, str, int]


def by_apache(apache: ApacheHudi, table: Path, checkpoint: Path) -> list[Row]:
    """Return the rows that Apache Hudi's source reads until nothing is left."""
    rows = apache.read_stream(table, checkpoint)
    return sorted(zip(*(rows.column(name).to_pylist() for name in ("p", "id", "value")), strict=True))


def by_pyhudi(spark: SparkSession, table: Path, checkpoint: Path, **options: str) -> list[Row]:
    """Return the rows that pyhudi's source reads until nothing is left."""
    rows: list[Row] = []

    def take(frame: DataFrame, number: int) -> None:
        rows.extend((row.p, row.id, row.value) for row in frame.collect())

    stream = spark.readStream.format("pyhudi").options(**options).load(str(table)).writeStream.foreachBatch(take)
    stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return sorted(rows)


def offsets(checkpoint: Path) -> list[dict[str, object]]:
    """Return the offsets of a checkpoint's batches."""
    files = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    return [json.loads(file.read_text().splitlines()[-1]) for file in files]


def forget_last(checkpoint: Path) -> None:
    """Leave the checkpoint as a query that dies between the plan and the end of its last batch."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()


@pytest.mark.parametrize(
    ("merge_on_read", "repeats"), [(True, False), (False, True)], ids=["at an end", "a batch repeated"]
)
def test_a_checkpoint_goes_from_apache_hudi_to_pyhudi_and_back(
    spark: SparkSession, apache: ApacheHudi, tmp_path: Path, merge_on_read: bool, repeats: bool
) -> None:
    past = Past(tmp_path / "t", merge_on_read=merge_on_read)
    table, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    past.upsert("a", ["k1", "k2"], 1)
    first = past.upsert("b", ["k1"], 2)
    assert by_apache(apache, table, checkpoint) == [("a", "k1", 1), ("a", "k2", 1), ("b", "k1", 2)]
    assert offsets(checkpoint) == [{"offsetCommitTime": first.completed}]

    repeated: list[Row] = []
    if repeats:
        forget_last(checkpoint)
        repeated = [("a", "k1", 1), ("a", "k2", 1), ("b", "k1", 2)]
    past.upsert("a", ["k2", "k3"], 3)
    second = past.upsert("b", ["k1"], 4)
    found = by_pyhudi(spark, table, checkpoint, maxCommitsPerTrigger="1")
    found += by_pyhudi(spark, table, checkpoint, maxCommitsPerTrigger="1")
    assert sorted(found) == sorted([*repeated, ("a", "k2", 3), ("a", "k3", 3), ("b", "k1", 4)])
    assert offsets(checkpoint)[-1]["offsetCommitTime"] == second.completed

    repeated = []
    if repeats:
        forget_last(checkpoint)
        repeated = [("b", "k1", 4)]
    past.upsert("a", ["k9"], 5)
    assert sorted(by_apache(apache, table, checkpoint)) == sorted([*repeated, ("a", "k9", 5)])

    # Where Spark takes no checkpoint of another version, the offset of the last batch is the start.
    start = str(offsets(checkpoint)[-1]["offsetCommitTime"])
    past.upsert("a", ["k2"], 6)
    option = {"hoodie.datasource.streaming.startOffset": start}
    assert by_pyhudi(spark, table, tmp_path / "new", **option) == [("a", "k2", 6)]


def test_a_table_of_apache_hudi_streams_as_its_incremental_query_shows_it(
    spark: SparkSession, apache: ApacheHudi, tmp_path: Path
) -> None:
    """Its compactions bring no rows, its replaced rows are gone from the batch that saw them replaced."""
    table = tmp_path / "t"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "value",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.metadata.enable": "false",
    }

    def put(value: int, *keys: str, **more: str) -> None:
        rows = pa.table({"id": list(keys), "p": ["a"] * len(keys), "value": pa.array([value] * len(keys))})
        apache.write(table, rows, {**options, **more})

    put(1, "k1", "k2")
    checkpoint = tmp_path / "checkpoint"
    assert by_pyhudi(spark, table, checkpoint) == [("a", "k1", 1), ("a", "k2", 1)]
    put(2, "k1")
    put(3, "k3")
    assert list((table / ".hoodie" / "timeline").glob("*.commit")), "Apache Hudi compacted"
    assert by_pyhudi(spark, table, checkpoint) == [("a", "k1", 2), ("a", "k3", 3)]
    put(4, "k5", **{"hoodie.datasource.write.operation": "insert_overwrite_table"})
    assert by_pyhudi(spark, table, checkpoint) == [("a", "k5", 4)]
    shutil.rmtree(checkpoint)
    assert by_pyhudi(spark, table, checkpoint) == [("a", "k5", 4)]
