"""Log files merged through Spark: by `HudiTable`, after its writes, and after plain ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi import HudiTable, from_spark
from pyhudi.errors import CorruptFileError, MissingFileError, UnsupportedTableError
from pyhudi.operations.planning.request import WriteSettings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.drawn.upkept import OFF
from support.drive import rows_of, write
from support.readers import read_without_spark
from support.rules.sorted_files import unsorted_files
from support.seams import patch_seam

BY_HAND = {"hoodie.compact.inline": False}
ALWAYS = {"hoodie.compact.inline.max.delta.commits": 1}


def rows(spark: SparkSession, n: int, *keys: int) -> DataFrame:
    return spark.createDataFrame([(key, n) for key in keys or range(20)], "id int, n int").coalesce(1)


def log_files(table: HudiTable) -> list[Path]:
    return [*Path(table.path).glob(".*.log.*")]


def in_bases(table: HudiTable) -> list[tuple[object, ...]]:
    """The rows that a query of base files alone shows, read without Spark."""
    found = read_without_spark(Path(table.path), {"hoodie.datasource.query.type": "read_optimized"})
    return sorted(zip(found.column("id").to_pylist(), found.column("n").to_pylist(), strict=True))


def content(table: HudiTable) -> list[tuple[object, ...]]:
    """All rows, read without Spark."""
    return rows_of(table.path, "id", "n")


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> HudiTable:
    made = HudiTable.create(
        spark, str(tmp_path / "t"), rows(spark, 0), record_key="id", buckets=3, table_type="MERGE_ON_READ"
    )
    for n in (0, 1, 2):
        numbers = {"id": pa.array(range(n, 20), pa.int32()), "n": pa.array([n] * (20 - n), pa.int32())}
        write(made.path, pa.table(numbers), settings=WriteSettings(upkeep=OFF))
    return made


@pytest.mark.oldest
def test_a_table_is_compacted_by_tasks_of_spark(spark: SparkSession, table: HudiTable) -> None:
    expected = [(key, min(key, 2)) for key in range(20)]
    planned = table.schedule_compaction()
    table.upsert(rows(spark, 7, 0), **BY_HAND)
    expected[0] = (0, 7)
    assert (planned.file_groups, planned.log_files) == (3, 6)
    assert content(table) == expected

    done = table.compact()

    assert done.log_files == 7, "what was planned, and what came since"
    assert in_bases(table) == content(table) == expected
    history = {row.instant: row.action for row in table.history().collect()}
    assert history[planned.instant] == "commit"
    assert list(history.values()).count("commit") == 2
    assert table.compact().instant == ""
    assert table.validate(deep=True).count() == 0


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_is_sorted_by_tasks_of_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_type: str
) -> None:
    patch_seam(monkeypatch, "bytes of a plan that needs no tasks", 0)
    order = {"hoodie.pyhudi.sort.by": "n", "hoodie.clean.automatic": False}
    table = HudiTable.create(
        spark, str(tmp_path / "t"), rows(spark, 0), record_key="id", buckets=2, table_type=table_type, options=order
    )
    table.upsert(rows(spark, 5).withColumn("n", sf.expr("(id * 7) % 20")), **BY_HAND)

    dry_sort = table.sort(dry_run=True)
    done = table.sort(by="n,id", curve="zorder")

    assert (dry_sort.file_groups, done.file_groups) == (0, 2)
    assert unsorted_files(tmp_path / "t") == []
    assert table.to_df(where="n between 5 and 7").count() == 3
    assert table.validate(deep=True).count() == 0


def test_writes_compact_where_it_is_due(spark: SparkSession, table: HudiTable) -> None:
    """`HudiTable` on Spark, a plain write in its commit's process, which says no more than its log."""
    (by_table,) = [one for one in table.upsert(rows(spark, 3), **ALWAYS).services if one.service == "compaction"]
    assert (by_table.error, by_table.file_groups, by_table.log_files) == ("", 3, 9)
    assert in_bases(table) == content(table) == [(key, 3) for key in range(20)]

    rows(spark, 4).write.format("pyhudi").options(**ALWAYS).mode("append").save(table.path)
    assert in_bases(table) == content(table) == [(key, 4) for key in range(20)]

    bound = {**ALWAYS, "hoodie.pyhudi.commit.merge.max.bytes": 1000}
    rows(spark, 5).write.format("pyhudi").options(**bound).mode("append").save(table.path)
    assert in_bases(table) == [(key, 4) for key in range(20)]
    assert content(table) == [(key, 5) for key in range(20)]
    assert table.compact().file_groups == 3
    assert in_bases(table) == content(table)


def test_what_fails_in_a_task_is_told_as_what_it_is(spark: SparkSession, table: HudiTable) -> None:
    planned = table.schedule_compaction()
    lost = log_files(table)[0]
    content_of_it = lost.read_bytes()
    before = content(table)

    lost.unlink()
    with pytest.raises(MissingFileError, match="take the plan back"):
        table.compact()
    lost.write_bytes(content_of_it)
    table.rollback(planned.instant)

    assert table.compact().file_groups == 3
    assert content(table) == before


def test_where_spark_has_no_tasks_this_process_compacts(
    spark: SparkSession, table: HudiTable, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Within its bound; what fails in a task that did run is told as what it is."""
    expected = content(table)
    with monkeypatch.context() as patch:
        patch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python")
        left = table.compact(**{"hoodie.pyhudi.commit.merge.max.bytes": 1000})
        assert (left.instant, left.file_groups) == ("", 0)
        assert "Spark can run no tasks of Python" in left.skipped

        assert table.compact().file_groups == 3

    assert "this process merges the 3 file groups" in caplog.text
    assert in_bases(table) == expected


def test_a_copy_on_write_table_is_not_compacted(spark: SparkSession, tmp_path: Path) -> None:
    table = HudiTable.create(spark, str(tmp_path / "t"), rows(spark, 0), record_key="id", buckets=1)

    with pytest.raises(UnsupportedTableError, match="copy-on-write"):
        table.compact()


def test_log_files_are_joined_by_tasks_of_spark_and_after_writes(spark: SparkSession, table: HudiTable) -> None:
    """By `HudiTable` when asked, and after its writes and plain ones where that is due."""
    before = in_bases(table)
    planned = table.schedule_log_compaction(**{"hoodie.log.compaction.blocks.threshold": 2})
    compaction = table.log_compact()

    assert (compaction.instant, compaction.file_groups, compaction.log_files, compaction.files) == (
        planned.instant,
        3,
        6,
        3,
    )
    assert content(table) == [(key, min(key, 2)) for key in range(20)]
    assert in_bases(table) == before
    (row,) = table.history(limit=1).collect()
    assert (row.instant, row.action, row.operation, row.log_files) == (
        compaction.instant,
        "deltacommit",
        "LOG_COMPACT",
        3,
    )
    assert table.detail().first().read_optimized_lacks == 2
    assert table.validate(deep=True).count() == 0

    often = {**BY_HAND, "hoodie.log.compaction.inline": True, "hoodie.log.compaction.blocks.threshold": 1}
    (by_table,) = [one for one in table.upsert(rows(spark, 3), **often).services if one.service == "logcompaction"]
    assert (by_table.error, by_table.file_groups) == ("", 3)
    rows(spark, 4).write.format("pyhudi").options(**often).mode("append").save(table.path)
    operations = [row.operation for row in table.history(limit=4).collect()]
    assert operations == ["LOG_COMPACT", "UPSERT", "LOG_COMPACT", "UPSERT"]
    assert content(table) == [(key, 4) for key in range(20)]


def test_the_error_of_a_damaged_log_file_ends_with_the_call_that_repairs_it(table: HudiTable) -> None:
    """Every read path refuses the file; the call is run as the error spells it."""
    log = max(log_files(table), key=lambda one: one.name.partition(".log.")[0].rpartition("_")[2])
    log.write_bytes(log.read_bytes()[:-7])
    spark = table._spark
    for frame in (table.to_df(), spark.read.format("pyhudi").load(table.path)):
        with pytest.raises(Exception, match="CORRUPT_FILE") as raised:
            frame.collect()
    error = from_spark(raised.value)
    assert isinstance(error, CorruptFileError)
    call = str(error)[str(error).index("HudiTable(") :]
    assert call.endswith(")")

    done = eval(call, {"HudiTable": HudiTable, "spark": spark})  # noqa: S307 (the test's own error)

    assert [one.file for one in done.repaired] == [log.name]
    assert [key for key, _ in content(table)] == list(range(20))
    assert {row.code for row in table.validate().collect()} == {"REPAIRED"}
