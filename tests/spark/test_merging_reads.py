"""Merge-on-read tables through Spark: slices with logs are merged in tasks, Spark's own reader reads the others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pyhudi import HudiTable
from pyhudi.errors import OptionConflictError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from support.models.past import Past
from support.seams import patch_seam

SHOWN = ["p", "id", "value", "_hoodie_commit_time"]

pytestmark = pytest.mark.oldest


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """Three commits: base files in two partitions, then log files in one of them."""
    past = Past(tmp_path_factory.mktemp("merging") / "t", merge_on_read=True)
    past.upsert("a", [f"k{n}" for n in range(20)], 1)
    past.upsert("b", [f"k{n}" for n in range(20)], 2)
    past.upsert("a", ["k3", "k7", "k30"], 3)
    assert list(Path(past.path, "a").glob(".*.log.*")) and not list(Path(past.path, "b").glob(".*.log.*"))
    return past


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.select(*SHOWN).collect()))


def test_both_ways_of_reading_show_every_query_as_it_was(spark: SparkSession, past: Past) -> None:
    table, source = HudiTable(spark, past.path), spark.read.format("pyhudi")
    first, second, third = past.commits
    kind, begin = "hoodie.datasource.query.type", "hoodie.datasource.read.begin.instanttime"
    asked: list[tuple[dict[str, Any], dict[str, str], list[Any]]] = [
        ({}, {}, past.as_of(third.instant)),
        ({"as_of": second.instant}, {"as.of.instant": second.instant}, past.as_of(second.instant)),
        (
            {"since": first.completed},
            {kind: "incremental", begin: first.completed},
            past.changes(first.completed, None),
        ),
        ({"read_optimized": True}, {kind: "read_optimized"}, past.as_of(second.instant)),
    ]
    for given, options, expected in asked:
        assert rows(table.to_df(**given)) == expected
        assert rows(source.options(**options).load(str(past.path))) == expected
        source = spark.read.format("pyhudi")

    with pytest.raises(OptionConflictError, match="read_optimized"):
        table.to_df(since="earliest", read_optimized=True)


def test_one_data_frame_shows_one_moment_in_both_its_parts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether tasks are told what to merge, or the data source plans it: of many slices, and without pandas."""
    past = Past(tmp_path / "t", merge_on_read=True)
    past.upsert("a", ["k1", "k2"], 1)
    past.upsert("b", ["k1"], 2)
    before = past.upsert("a", ["k2"], 3)
    table = HudiTable(spark, past.path)
    told, narrow = table.to_df(), table.to_df(["value"])
    with monkeypatch.context() as patch:
        patch_seam(patch, "most bytes that each task gets", 0)
        by_source = table.to_df()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pandas", None)
        without = table.to_df()
    past.upsert("a", ["k1", "k2"], 4)
    past.upsert("b", ["k1", "k5"], 5)

    for frame, merged in ((told, "MapInArrow"), (by_source, "BatchScan"), (without, "BatchScan")):
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert plan.count("FileScan parquet") == 1
        assert [name for name in ("MapInArrow", "BatchScan") if name in plan] == [merged]
        assert rows(frame) == past.as_of(before.instant)
        assert sorted(map(tuple, frame.where("value = 3 or p = 'b'").select("id", "value").collect())) == [
            ("k1", 2),
            ("k2", 3),
        ]
    assert told.schema == by_source.schema
    assert sorted(row.value for row in narrow.collect()) == [1, 2, 3]
    assert rows(table.to_df()) == past.as_of("3")
    for log in Path(past.path, "a").glob(f".*_{before.instant}.log.*"):
        log.unlink()
    with pytest.raises(PythonException, match=r"log file a/.* was removed .*Make the DataFrame anew\."):
        told.collect()


def test_merged_rows_are_joined_as_what_their_files_make_them(spark: SparkSession, past: Past) -> None:
    """Spark broadcasts what it takes for small, which rows that tasks make of a number must not pass for."""
    merged = HudiTable(spark, past.path).to_df(["id", "value"], where={"p": "a"})
    plan = merged._jdf.queryExecution().optimizedPlan()
    bytes_on_disk = sum(file.stat().st_size for file in Path(past.path, "a").iterdir())
    assert "MapInArrow" in plan.toString()
    assert bytes_on_disk / 4 < plan.stats().sizeInBytes() < bytes_on_disk * 100
    assert merged.join(merged.withColumnRenamed("value", "again"), "id").where("value = again").count() == 21
