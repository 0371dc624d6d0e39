"""Streaming queries that write to a table, on Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyhudi import HudiTable, OptionError, from_spark
from pyhudi.storage import open_storage
from pyhudi.table.table import Table, open_table
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from support.drive import rows_of
from support.rules.ends import assert_whole

SCHEMA = "id string, ts long, value long"
BOTH = pytest.mark.parametrize("kind", ["cow", "mor"])


class Pipeline:
    """Files of JSON, read one a batch, and the table of a query over them."""

    def __init__(self, spark: SparkSession, folder: Path, kind: str) -> None:
        self.spark = spark
        self.input, self.checkpoint, self.table = folder / "in", folder / "checkpoint", folder / "t"
        self.input.mkdir()
        self.options = {"recordkey": "id", "orderby": "ts", "buckets": "2", "hoodie.table.type": kind}

    def add(self, name: str, *rows: tuple[str, int, int]) -> None:
        lines = [f'{{"id": "{key}", "ts": {ts}, "value": {value}}}' for key, ts, value in rows]
        hidden = self.input / f".{name}"
        hidden.write_text("\n".join(lines), encoding="utf-8")
        hidden.rename(self.input / name)

    def rows(self) -> DataFrame:
        return self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(self.input))

    def writer(self, rows: DataFrame | None = None, mode: str = "append", **options: str) -> DataStreamWriter:
        writer = (self.rows() if rows is None else rows).writeStream.format("pyhudi").outputMode(mode)
        return writer.options(**{**self.options, **options}).option("checkpointLocation", str(self.checkpoint))

    def run(self, rows: DataFrame | None = None, mode: str = "append", **options: str) -> StreamingQuery:
        """Take all that is there, and end."""
        query = self.writer(rows, mode, **options).trigger(availableNow=True).start(str(self.table))
        query.awaitTermination()
        return query

    def values(self) -> list[tuple[object, ...]]:
        return rows_of(self.table, "id", "value")

    def opened(self) -> Table:
        return open_table(open_storage(str(self.table)))

    def instants(self) -> list[str]:
        return [one.requested_time for one in self.opened().timeline().writes]

    def forget_commit(self, batch: int) -> None:
        """Lose the entry of a batch in the log of commits, as where the driver died before it."""
        for name in (str(batch), f".{batch}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)
            (self.checkpoint / "commits" / f".{name}.crc").unlink(missing_ok=True)


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Callable[[str], Pipeline]:
    return lambda kind: Pipeline(spark, tmp_path, kind)


@BOTH
@pytest.mark.oldest
def test_each_batch_is_an_instant_and_a_replay_is_none(pipeline: Callable[[str], Pipeline], kind: str) -> None:
    some = pipeline(kind)
    some.add("a", ("k1", 1, 1), ("k2", 1, 1))
    some.add("b", ("k1", 2, 2))
    some.run()
    assert some.values() == [("k1", 2), ("k2", 1)]
    assert len(some.instants()) == 2

    some.forget_commit(1)
    some.run()
    assert len(some.instants()) == 2

    some.add("c", ("k3", 3, 3))
    some.run()
    assert some.values() == [("k1", 2), ("k2", 1), ("k3", 3)]
    assert len(some.instants()) == 3
    assert_whole(some.table)


@BOTH
def test_a_query_runs_beside_a_batch_writer(pipeline: Callable[[str], Pipeline], kind: str) -> None:
    some = pipeline(kind)
    some.add("0", ("k0", 0, 0))
    query = some.writer().trigger(processingTime="200 milliseconds").start(str(some.table))
    try:
        query.processAllAvailable()
        for turn in range(1, 6):
            some.add(str(turn), (f"k{turn}", turn, turn), ("k0", turn, turn))
            written = some.spark.createDataFrame([(f"b{turn}", turn, turn), ("k0", 0, 0)], SCHEMA)
            HudiTable(some.spark, some.table).upsert(written)
        query.processAllAvailable()
        assert query.exception() is None
    finally:
        query.stop()

    assert some.values() == sorted(
        [*((f"b{at}", at) for at in range(1, 6)), *((f"k{at}", at) for at in range(1, 6)), ("k0", 5)]
    )
    assert_whole(some.table)


@BOTH
def test_mode_complete_replaces_the_table(pipeline: Callable[[str], Pipeline], kind: str) -> None:
    some = pipeline(kind)
    counts = some.rows().groupBy("id").agg({"value": "sum", "ts": "max"}).toDF("id", "value", "ts")
    some.add("a", ("k1", 1, 1), ("k2", 1, 1))
    some.run(counts, "complete")
    some.add("b", ("k1", 2, 2))
    some.run(counts, "complete")

    assert some.values() == [("k1", 3), ("k2", 1)]


def test_a_batch_without_rows_is_no_instant(pipeline: Callable[[str], Pipeline]) -> None:
    some = pipeline("cow")
    some.add("a", ("k1", 1, 1))
    some.add("b", ("k2", 1, -1))
    some.run(some.rows().where("value > 0"))

    assert some.values() == [("k1", 1)]
    assert len(some.instants()) == 1


@BOTH
def test_a_query_that_fails_continues_where_it_was(pipeline: Callable[[str], Pipeline], kind: str) -> None:
    some = pipeline(kind)
    some.add("a", ("k1", 1, 1))
    some.run()
    some.add("b", ("k2", 2, 2))
    failing = some.rows().selectExpr("id", "ts", "if(value = 2, raise_error('no'), value) value")
    with pytest.raises(StreamingQueryException):
        some.run(failing)

    some.run()
    assert some.values() == [("k1", 1), ("k2", 2)]
    assert some.opened().timeline().pending == ()
    assert_whole(some.table)


def test_a_copy_of_the_checkpoint_from_before_the_newest_batch_is_refused(
    pipeline: Callable[[str], Pipeline], tmp_path: Path
) -> None:
    some = pipeline("cow")
    some.add("a", ("k1", 1, 1))
    some.run()
    shutil.copytree(some.checkpoint, tmp_path / "copy")
    some.add("b", ("k2", 2, 2))
    some.run()
    some.forget_commit(1)
    some.run()
    shutil.rmtree(some.checkpoint)
    (tmp_path / "copy").rename(some.checkpoint)
    (some.input / "b").unlink()
    some.add("c", ("k3", 3, 3))

    with pytest.raises(StreamingQueryException) as raised:
        some.run()

    error = from_spark(raised.value)
    assert isinstance(error, OptionError)
    assert some.instants()[1] in str(error)
    assert some.values() == [("k1", 1), ("k2", 2)]


def test_another_checkpoint_needs_another_name(pipeline: Callable[[str], Pipeline]) -> None:
    some = pipeline("cow")
    some.add("a", ("k1", 1, 1))
    some.run()
    shutil.rmtree(some.checkpoint)

    with pytest.raises(StreamingQueryException) as raised:
        some.run()
    assert isinstance(from_spark(raised.value), OptionError)
    assert "streaming.checkpoint.identifier" in str(raised.value)

    some.run(**{"hoodie.datasource.write.streaming.checkpoint.identifier": "second"})
    assert some.values() == [("k1", 1)]


def test_a_write_id_is_refused(pipeline: Callable[[str], Pipeline]) -> None:
    some = pipeline("cow")
    some.add("a", ("k1", 1, 1))

    with pytest.raises(StreamingQueryException, match=r"hoodie\.pyhudi\.write\.id"):
        some.run(**{"hoodie.pyhudi.write.id": "mine"})


def test_update_mode_is_refused_by_spark(pipeline: Callable[[str], Pipeline]) -> None:
    some = pipeline("cow")
    some.add("a", ("k1", 1, 1))

    with pytest.raises(Exception, match="requirement failed"):
        some.run(some.rows(), "update")
