"""Tables that are kept small through Spark: by `HudiTable`, by a plain write, and by services that are called."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyhudi import CommitResult, HudiTable
from pyspark.sql import DataFrame, SparkSession

ONE = {"hoodie.clean.commits.retained": 1}
NOTHING = {"hoodie.table.services.enabled": False}


def rows(spark: SparkSession, n: int) -> DataFrame:
    return spark.createDataFrame([(1, n), (2, n)], "id int, n int").coalesce(1)


def base_files(table: HudiTable) -> int:
    return len([*Path(table.path).glob("*.parquet")])


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> HudiTable:
    return HudiTable.create(spark, str(tmp_path / "t"), rows(spark, 0), record_key="id", buckets=1)


def test_a_write_of_a_table_says_what_it_cleaned(spark: SparkSession, table: HudiTable) -> None:
    """The newest slice stays, the one before for readers of then, and those of the commits that are kept."""
    results = [table.upsert(rows(spark, n), **ONE) for n in range(4)]

    assert [[(one.service, one.files, one.error) for one in result.services] for result in results] == [
        [("clean", 0, "")],
        [("clean", 0, "")],
        [("clean", 1, "")],
        [("clean", 1, "")],
    ]
    assert "clean: 1 files deleted" in repr(results[-1])
    assert results[-1].seconds["clean"] <= results[-1].seconds["total"]
    assert base_files(table) == 2
    assert [row.n for row in table.to_df().collect()] == [3, 3]


def test_a_plain_write_cleans_too(spark: SparkSession, table: HudiTable) -> None:
    for n in range(3):
        table.upsert(rows(spark, n), **NOTHING)
    assert base_files(table) == 3

    rows(spark, 3).write.format("pyhudi").options(**ONE).mode("append").save(table.path)

    assert base_files(table) == 2
    assert table.history().where("action = 'clean'").count() == 1


def test_a_write_that_was_done_before_looks_after_nothing(spark: SparkSession, table: HudiTable) -> None:
    named = {"hoodie.pyhudi.write.id": "batch-7"}
    table.upsert(rows(spark, 0), **named, **NOTHING)
    for n in range(1, 3):
        table.upsert(rows(spark, n), **NOTHING)

    again: CommitResult = table.upsert(rows(spark, 0), **named, **ONE)

    assert again.services == ()
    assert base_files(table) == 3


def test_a_service_that_fails_is_told_by_the_write(
    spark: SparkSession, table: HudiTable, caplog: pytest.LogCaptureFixture
) -> None:
    """A clean that somebody began has a plan that nobody can carry out."""
    torn = Path(table.path, ".hoodie", "timeline", "20200101000000000.clean.requested")
    torn.write_bytes(b"no plan")

    with caplog.at_level(logging.WARNING, "pyhudi"):
        result = table.upsert(rows(spark, 1))

    assert result.inserts == 2
    assert [one.service for one in result.services if "20200101000000000" in one.error] == ["clean"]
    assert "the clean after it failed" in repr(result)
    assert f"table {table.path}: the write is complete, and the clean after it failed" in caplog.text


def test_a_service_is_called_by_name(spark: SparkSession, table: HudiTable) -> None:
    for n in range(4):
        table.upsert(rows(spark, n), **NOTHING)

    dry = table.clean(dry_run=True, **ONE)
    assert (dry.dry, dry.files, base_files(table)) == (True, 2, 4)

    done = table.clean(**ONE)
    assert (done.dry, done.files, done.bytes, base_files(table)) == (False, 2, dry.bytes, 2)
    assert table.savepoints().collect() == []


def test_a_round_of_services_merges_by_tasks_and_says_what_it_did(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.create(
        spark, str(tmp_path / "t"), rows(spark, 0), record_key="id", buckets=1, table_type="MERGE_ON_READ"
    )
    for n in range(1, 7):
        table.upsert(rows(spark, n), **NOTHING)

    result = table.run_services(**ONE)

    names = ["rollback", "clean", "metadata", "archive", "compaction", "logcompaction"]
    assert [one.service for one in result.services] == names
    assert (result.failed, result.skipped, result.warnings) == ((), (), ())
    assert result.services[4].file_groups == 1
    assert "1 file group merged" in str(result)
    assert [row.n for row in table.to_df().collect()] == [6, 6]
    assert table.run_services(["compact"]).services[0].instant == ""
