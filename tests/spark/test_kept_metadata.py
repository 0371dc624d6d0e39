"""A metadata table that Spark's tasks build and all ways of writing through Spark keep: tasks state the bounds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyhudi import CommitResult, HudiTable
from pyspark.sql import DataFrame, SparkSession
from support.rules.ends import assert_whole
from support.rules.health import of_metadata
from support.seams import patch_seam

ALL = ("column_stats", "files", "partition_stats")


def rows(spark: SparkSession, keys: Iterable[int], value: float) -> DataFrame:
    cells = [(key, "ab"[key % 2], value, f"n{value:g}") for key in keys]
    return spark.createDataFrame(cells, "id int, p string, value double, name string")


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HudiTable:
    """Return a table with a metadata table, which Spark's tasks built by the footers of its files."""
    patch_seam(monkeypatch, "files that this process indexes sooner", 0)
    source = rows(spark, range(8), 0.0)
    table = HudiTable.create(spark, str(tmp_path / "t"), source, record_key="id", partition_by="p", buckets=2)
    table.upsert(source)
    table.create_index("column_stats", columns=["value", "name"])
    table.create_index("partition_stats")
    assert [each.partition for each in table.detail().first().metadata] == [*ALL]
    return table


def check(table: HudiTable, result: CommitResult | None, wanted: dict[int, float]) -> None:
    """Hold the rows, the whole table and its metadata table against what they must be, and a result against both."""
    if result is not None:
        assert result.metadata is not None
        assert result.metadata.partitions == ALL
        assert result.metadata.warnings == ()
    assert {row.id: row.value for row in table.to_df().collect()} == wanted
    greatest = max(wanted.values())
    newest_rows = table.to_df(where=f"value = {greatest}").collect()
    assert {row.id for row in newest_rows} == {key for key, value in wanted.items() if value == greatest}
    assert of_metadata(Path(table.path)) == []
    assert_whole(Path(table.path))


def test_all_ways_of_writing_keep_it(spark: SparkSession, table: HudiTable, tmp_path: Path) -> None:
    wanted = dict.fromkeys(range(8), 0.0)
    rows(spark, [0, 1, 8], 1.0).write.format("pyhudi").mode("append").save(table.path)
    wanted.update(dict.fromkeys([0, 1, 8], 1.0))
    check(table, None, wanted)

    result = table.upsert(rows(spark, [1, 2, 9], 2.0))
    wanted.update(dict.fromkeys([1, 2, 9], 2.0))
    check(table, result, wanted)

    merge = table.merge(rows(spark, [2, 10], 3.0)).when_matched_update_all().when_not_matched_insert_all()
    result = merge.execute()
    wanted.update(dict.fromkeys([2, 10], 3.0))
    check(table, result, wanted)

    result = table.delete("value = 3.0")
    del wanted[2], wanted[10]
    check(table, result, wanted)

    source = tmp_path / "source"
    rows(spark, [3, 11], 4.0).write.parquet(str(source))
    stream = spark.readStream.schema("id int, p string, value double, name string").parquet(str(source))
    options = {"checkpointLocation": str(tmp_path / "checkpoint")}
    query = stream.writeStream.format("pyhudi").options(**options).trigger(availableNow=True).start(table.path)
    query.awaitTermination()
    wanted.update(dict.fromkeys([3, 11], 4.0))
    check(table, None, wanted)
