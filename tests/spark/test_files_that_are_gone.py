"""What a write of `HudiTable` says where another writer's clean takes files while Spark reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyhudi import HudiTable
from pyhudi.connector.source.own_errors import own_errors
from pyhudi.errors import StorageError
from pyhudi.operations.result import CommitResult
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from support.made.cleaning import clean


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> HudiTable:
    made = HudiTable.create(spark, tmp_path / "t", "id string, n long", record_key="id", buckets=1)
    made.upsert(spark.createDataFrame([("k", 1)], "id string, n long"))
    return made


def test_a_file_that_is_gone_when_a_task_reads_it(table: HudiTable) -> None:
    rows = table.to_df()
    (file,) = Path(table.path).glob("*.parquet")
    file.unlink()
    with pytest.raises(StorageError, match=f"{file.name} was removed while Spark read it. Run it again"), own_errors():
        rows.localCheckpoint()


def test_a_file_that_is_gone_after_a_task_has_opened_it() -> None:
    """Hadoop opens a local file a second time to read several parts of it at once."""
    name = "00000001-befa-50cb-8ab9-c0230f178369-0_0-0-0_20261127172110826.parquet"
    text = (
        f"An error occurred while calling o1274.localCheckpoint.\n: org.apache.spark.SparkException: "
        f"[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///t/a/{name}.  SQLSTATE: KD001\n"
        f"\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:920)\n"
        f"Caused by: java.nio.file.NoSuchFileException: /t/a/{name}\n"
    )
    with pytest.raises(StorageError, match=f"{name} was removed while Spark read it. Run it again"), own_errors():
        raise RuntimeError(text)


def test_a_file_that_is_gone_when_spark_plans_its_scan(spark: SparkSession, table: HudiTable) -> None:
    (file,) = Path(table.path).glob("*.parquet")
    file.unlink()
    with pytest.raises(StorageError, match=file.name), own_errors():
        _ = spark.read.parquet(str(file)).schema


def test_a_file_of_the_user_that_is_gone_is_an_error_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match="PATH_NOT_FOUND"), own_errors():
        _ = spark.read.parquet(str(tmp_path / "mine.parquet")).schema


class MeetsAClean(HudiTable):
    """A table whose file is replaced, and taken by a clean, when a merge or an update has chosen its snapshot."""

    waiting = True

    def _open_target(self, given: Any) -> Any:
        target = super()._open_target(given)
        if self.waiting:
            self.waiting = False
            HudiTable(self._spark, self.path).upsert(self._spark.createDataFrame([("k", 5)], "id string, n long"))
            assert clean(self.path, retain=1)
        return target


def test_an_update_whose_snapshot_a_clean_takes_is_run_again(spark: SparkSession, table: HudiTable) -> None:
    done: CommitResult = MeetsAClean(spark, table.path).update({"n": "n + 1"}, "id = 'k'")

    assert done.attempts == 2
    assert [row.n for row in table.to_df().collect()] == [6]


def test_a_merge_by_keys_whose_snapshot_a_clean_takes_is_run_again(spark: SparkSession, table: HudiTable) -> None:
    rows = spark.createDataFrame([("k", 7)], "id string, n long")
    clause = MeetsAClean(spark, table.path).merge(rows, "source.id = target.id").when_matched_update_all()

    assert clause.execute().attempts == 2
    assert [row.n for row in table.to_df().collect()] == [7]
