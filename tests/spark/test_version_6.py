"""Tables of version 6 through Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi import HudiTable
from pyspark.sql import DataFrame, SparkSession
from support.recorded.recorded_past import AS_OF
from support.recorded.recorded_version_6 import NEW, answers, unpack, writes

NAMES = ["id", "name"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("made"))


def recorded(table: str, time: str | None = None) -> list[tuple[object, ...]]:
    """Return what Apache Hudi showed at one of a table's instants, or now."""
    query = {} if time is None else {AS_OF: time}
    found = next(answer for answer in answers(table, NEW) if answer.query == query)
    at = [found.columns.index(name) for name in NAMES]
    return sorted(tuple(row[one] for one in at) for row in found.rows or ())


def rows(found: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in found.select(*NAMES).collect())


@pytest.mark.parametrize("name", ["cow_past", "mor_pending"])
def test_spark_shows_now_and_the_past_of_a_table(spark: SparkSession, made: Path, name: str) -> None:
    """The log files that a pending compaction joins travel to tasks with what says whose blocks count."""
    path = str(made / name)
    time = writes(made / name)[-2]

    assert rows(spark.read.format("pyhudi").load(path)) == recorded(name)
    assert rows(HudiTable(spark, path).to_df(where="name != 'no such name'")) == recorded(name)
    past = spark.read.format("pyhudi").option(AS_OF, time).load(path)
    assert rows(past) == recorded(name, time)
    [detail] = HudiTable(spark, path).detail().collect()
    assert detail.version == 6


def test_a_stream_brings_a_table(spark: SparkSession, made: Path, tmp_path: Path) -> None:
    brought: list[tuple[object, ...]] = []

    def add(batch: DataFrame, number: int) -> None:
        brought.extend(rows(batch))

    stream = spark.readStream.format("pyhudi").load(str(made / "mor_event_time"))
    writer = stream.writeStream.foreachBatch(add).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()

    assert sorted(brought) == recorded("mor_event_time")


def test_an_upgrade_compacts_a_table_and_its_past_is_shown(spark: SparkSession, tmp_path: Path) -> None:
    """By tasks, to which the rules of version 6 travel; the blocks of old log files count as they did."""
    path = unpack(tmp_path) / "mor_rolled_back"
    time = writes(path)[-2]
    table = HudiTable(spark, str(path))

    done = table.upgrade(**{"hoodie.pyhudi.commit.merge.max.bytes": 1})

    assert done.to_version == 9
    assert rows(table.to_df()) == recorded("mor_rolled_back")
    assert rows(spark.read.format("pyhudi").option(AS_OF, time).load(str(path))) == recorded("mor_rolled_back", time)


@pytest.mark.parametrize("name", ["cow_defaults", "new_cow"])
def test_spark_writes_a_table_of_apache_hudi(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Without an option: a write, a merge, a stream and the services leave the version as it is."""
    path, table = str(unpack(tmp_path) / name), HudiTable(spark, str(tmp_path / name))
    stored = table.to_df()
    columns = [column for column in stored.columns if not column.startswith("_hoodie")]
    [first, *_] = sorted(row.id for row in stored.collect())
    rows_count = stored.count()
    changed = stored.where(f"id = '{first}'").select(*columns)

    changed.selectExpr(*("'by df.write' AS name" if one == "name" else one for one in columns)).write.format(
        "pyhudi"
    ).mode("append").save(path)
    assert table.to_df(where=f"id = '{first}'").collect()[0].name == "by df.write"
    table.update({"name": "'by update'"}, f"id = '{first}'")

    changed.write.parquet(str(tmp_path / "arrived"))
    arrived = spark.readStream.schema(changed.schema).parquet(str(tmp_path / "arrived"))
    brought = arrived.selectExpr(*("'by a stream' AS name" if one == "name" else one for one in columns))
    writer = brought.writeStream.format("pyhudi").option("checkpointLocation", str(tmp_path / "checkpoint"))
    # A stream asks for the index of a table with partitions.
    writer.option("hoodie.index.type", "SIMPLE").trigger(availableNow=True).start(path).awaitTermination()
    table.sort(by="name")
    table.run_services()

    assert table.to_df(where=f"id = '{first}'").collect()[0].name == "by a stream"
    assert table.to_df().count() == rows_count
    assert table.detail().collect()[0].version == 6
    assert table.validate().count() == 0
