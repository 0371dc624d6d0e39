"""`HudiTable.stream`: each micro-batch becomes one instant, also where a process dies or another writer commits."""

from __future__ import annotations

import shutil
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyhudi import HudiTable
from pyhudi.connector.table.micro_batches import MicroBatches
from pyhudi.errors import InvalidOptionError, OptionConflictError
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.drive import rows_of
from support.seams import patch_seam, read_seam
from support.threads import HANGS_S

SCHEMA = "id string, ts long, n long"
BOTH_TYPES = pytest.mark.parametrize("kind", ["cow", "mor"])
EMPTY = "hoodie.allow.empty.commit"


class Pipeline:
    """A folder of files, a stream of it and its table."""

    def __init__(self, spark: SparkSession, folder: Path, kind: str = "cow", **options: Any) -> None:
        self.spark = spark
        self.input = folder / "input"
        self.input.mkdir()
        self.checkpoint = folder / "checkpoint"
        self.table = HudiTable.create(
            spark, folder / "t", SCHEMA, record_key="id", order_by="ts", buckets=2, table_type=kind, **options
        )

    def add(self, name: str, *rows: tuple[str, int, int]) -> None:
        """Add a file of rows, which becomes a batch."""
        lines = "".join(f'{{"id": "{key}", "ts": {ts}, "n": {n}}}\n' for key, ts, n in rows)
        (self.input / f".{name}").write_text(lines)
        (self.input / f".{name}").rename(self.input / f"{name}.json")

    def rows(self) -> DataFrame:
        """Return the stream of all files, one a batch."""
        return self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(self.input))

    def run(self, make: Callable[[DataFrame], DataFrame] = lambda df: df, **options: Any) -> None:
        """Write what is there."""
        query = self.table.stream(make(self.rows()), checkpoint=str(self.checkpoint), availableNow=True, **options)
        assert query.awaitTermination(120)

    def forget_end(self, batch: int) -> None:
        """Have Spark believe that a batch did not end."""
        for name in (str(batch), f".{batch}.crc"):
            (self.checkpoint / "commits" / name).unlink()

    def instants(self) -> list[str]:
        """Return the requested times of the completed writes."""
        writes = open_table(open_storage(self.table.path)).timeline().writes
        return [one.requested_time for one in writes]

    def found(self) -> dict[Any, Any]:
        """Return the values by key, each of which is there once."""
        found = rows_of(self.table.path, "id", "n")
        assert len({key for key, _ in found}) == len(found)
        return dict(found)


@pytest.mark.oldest
@BOTH_TYPES
def test_each_batch_is_one_instant_and_a_replay_none(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    pipe = Pipeline(spark, tmp_path, kind)
    pipe.add("a", ("a", 1, 1), ("b", 1, 1))
    pipe.add("b", ("b", 2, 2), ("c", 2, 2))
    pipe.run(query_name=f"replays {kind}")
    assert pipe.found() == {"a": 1, "b": 2, "c": 2}
    first_instants = pipe.instants()
    assert len(first_instants) == 2

    pipe.forget_end(1)
    pipe.run()
    assert pipe.instants() == first_instants

    pipe.add("c", ("d", 3, 3))
    pipe.run()
    assert pipe.found() == {"a": 1, "b": 2, "c": 2, "d": 3}
    assert pipe.instants()[:2] == first_instants
    assert len(pipe.instants()) == 3


def test_a_copy_of_the_checkpoint_from_before_the_newest_batch_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pipe = Pipeline(spark, tmp_path)
    pipe.add("a", ("a", 1, 1))
    pipe.run()
    shutil.copytree(pipe.checkpoint, tmp_path / "copy")
    pipe.add("b", ("b", 2, 2))
    pipe.run()
    shutil.rmtree(pipe.checkpoint)
    (tmp_path / "copy").rename(pipe.checkpoint)
    pipe.add("c", ("c", 3, 3))

    with pytest.raises(StreamingQueryException, match="another batch of that number"):
        pipe.run()

    assert pipe.found() == {"a": 1, "b": 2}


def test_placed_rows_under_an_index_that_looks_keys_up(spark: SparkSession, tmp_path: Path) -> None:
    pipe = Pipeline(spark, tmp_path)
    path = str(tmp_path / "looked_up")
    pipe.table = HudiTable.create(spark, path, SCHEMA, record_key="id", order_by="ts", index="BLOOM")
    pipe.add("a", ("a", 1, 1), ("b", 1, 1))
    pipe.add("b", ("b", 2, 2), ("c", 2, 2))
    pipe.run(**{"hoodie.pyhudi.place.rows": "always"})

    assert pipe.found() == {"a": 1, "b": 2, "c": 2}
    assert len(pipe.instants()) == 2


# tests/contract/test_known_keys.py has each index on tables of both types.
@pytest.mark.parametrize(
    ("index", "kind"), [("BLOOM", "cow"), pytest.param("GLOBAL_SIMPLE", "mor", marks=pytest.mark.slow)]
)
def test_the_driver_knows_keys_between_batches(spark: SparkSession, tmp_path: Path, kind: str, index: str) -> None:
    pipe = Pipeline(spark, tmp_path)
    pipe.table = HudiTable.create(
        spark, tmp_path / "known", SCHEMA, record_key="id", order_by="ts", index=index, table_type=kind
    )
    always: dict[str, Any] = {"hoodie.pyhudi.place.rows": "always", "hoodie.pyhudi.stream.upkeep.ms": 0}
    read = []
    for turn in range(4):
        pipe.add(str(turn), *((key, turn, turn) for key in "abcd"))
        pipe.run(**always)
        read.append(pipe.table.last_commit().lookup.bytes)
    assert read[1] > 0
    assert read[2:] == [0, 0]

    pipe.table.upsert(spark.createDataFrame([("e", 9, 9), ("a", 9, 9)], SCHEMA))
    pipe.add("last", ("a", 10, 10), ("e", 10, 10), ("f", 10, 10))
    pipe.run(**always)
    assert pipe.found() == {"a": 10, "b": 3, "c": 3, "d": 3, "e": 10, "f": 10}


def totals(df: DataFrame) -> DataFrame:
    """Return the number of rows of each key."""
    return df.groupBy("id").agg(sf.count("id").alias("n"), sf.max("ts").alias("ts")).select("id", "ts", "n")


def test_updates_of_an_aggregation_are_upserts(spark: SparkSession, tmp_path: Path) -> None:
    pipe = Pipeline(spark, tmp_path, "mor")
    pipe.add("a", ("a", 1, 0), ("a", 2, 0), ("b", 1, 0))
    pipe.add("b", ("b", 3, 0))
    pipe.run(totals, output_mode="update")

    assert pipe.found() == {"a": 2, "b": 2}
    (last,) = pipe.table.history(1).collect()
    assert last.updates == 1 or last.inserts == 1


def test_complete_results_replace_the_table(spark: SparkSession, tmp_path: Path) -> None:
    pipe = Pipeline(spark, tmp_path)
    pipe.table.upsert(spark.createDataFrame([("old", 0, 0)], SCHEMA))
    pipe.add("a", ("a", 1, 0), ("a", 2, 0), ("b", 1, 0))
    pipe.run(totals, output_mode="complete")
    assert pipe.found() == {"a": 2, "b": 1}

    pipe.add("b", ("b", 3, 0))
    pipe.run(lambda df: totals(df).where("n > 9"), output_mode="complete")
    assert pipe.found() == {}


def test_an_empty_batch_leaves_an_instant_only_where_asked(spark: SparkSession, tmp_path: Path) -> None:
    pipe = Pipeline(spark, tmp_path)
    pipe.add("a", ("a", 1, 1))
    pipe.run()
    pipe.add("b", ("b", 2, 2))
    pipe.run(lambda df: df.where("id = 'none'"))
    assert len(pipe.instants()) == 1
    pipe.add("c", ("c", 3, 3))
    pipe.run(lambda df: df.where("id = 'none'"), **{EMPTY: True})
    assert len(pipe.instants()) == 2


def test_what_is_no_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pipe = Pipeline(spark, tmp_path)
    with pytest.raises(InvalidOptionError, match="no stream"):
        pipe.table.stream(spark.createDataFrame([("a", 1, 1)], SCHEMA), checkpoint=str(pipe.checkpoint))
    with pytest.raises(InvalidOptionError, match="output_mode"):
        pipe.table.stream(pipe.rows(), checkpoint=str(pipe.checkpoint), output_mode="Append")
    with pytest.raises(OptionConflictError, match="many"):
        pipe.table.stream(pipe.rows(), checkpoint=str(pipe.checkpoint), **{"hoodie.pyhudi.write.id": "w"})
    with pytest.raises(OptionConflictError, match="complete"):
        pipe.table.stream(totals(pipe.rows()), checkpoint="c", output_mode="complete", operation="insert")


@pytest.mark.parametrize("ends_in", ["a job", "a lookup of the data source"])
def test_spark_sees_that_a_batch_was_stopped(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_in: str
) -> None:
    texts: list[str] = []
    begun, started = threading.Event(), list[Any]()

    def find_no_source(df: DataFrame, path: str, *_: Any, **__: Any) -> None:
        """Ask for a data source once the query is being stopped, and get the answer of an interrupted lookup."""
        while not started or started[0].isActive:
            time.sleep(0.05)
        df.sparkSession.read.format("nothing").load(path)

    def write(batches: MicroBatches, df: DataFrame, batch_id: int) -> None:
        begun.set()
        try:
            usual(batches, df, batch_id)
        except Exception:
            texts.append(traceback.format_exc())
            raise

    usual = read_seam("write a batch for Spark")
    pipe = Pipeline(spark, tmp_path)
    pipe.add("a", ("a", 1, 1))
    rows = pipe.rows().where("java_method('java.lang.Thread', 'sleep', 4000L) is not null")
    with monkeypatch.context() as patch:
        patch_seam(patch, "write a batch for Spark", write)
        if ends_in != "a job":
            patch_seam(patch, "write the rows of a batch", find_no_source)
        query = pipe.table.stream(rows, checkpoint=str(pipe.checkpoint))
        started.append(query)
        assert begun.wait(HANGS_S)
        until = time.monotonic() + HANGS_S
        while ends_in == "a job" and not spark.sparkContext.statusTracker().getActiveJobsIds():
            assert time.monotonic() < until
            time.sleep(0.1)
        query.stop()

    (text,) = texts
    jvm: Any = spark._jvm
    known = jvm.org.apache.spark.sql.execution.streaming.runtime.StreamExecution.isInterruptionException
    assert known(jvm.py4j.Py4JException(text), jvm.org.apache.spark.SparkContext.getOrCreate())
    assert query.exception() is None
    pipe.run()
    assert pipe.found() == {"a": 1}


@pytest.mark.parametrize("kind", [pytest.param("cow", marks=pytest.mark.slow), "mor"])
def test_a_batch_writer_of_the_same_buckets_fails_no_query(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    pipe = Pipeline(spark, tmp_path, kind)
    keys = [f"k{key}" for key in range(6)]
    query = pipe.table.stream(pipe.rows(), checkpoint=str(pipe.checkpoint), processingTime="1 second")
    stop, written = threading.Event(), []

    def write() -> None:
        while not stop.is_set():
            turn = len(written)
            rows = [(f"batch-{turn}", 1, turn), *((key, 1, -1) for key in keys)]
            pipe.table.upsert(spark.createDataFrame(rows, SCHEMA))
            written.append(turn)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(4):
            pipe.add(str(number), (f"stream-{number}", 1, number), *((key, 2 + number, number) for key in keys))
            time.sleep(1)
        query.processAllAvailable()
    finally:
        stop.set()
        writer.join()
        query.stop()

    assert query.exception() is None
    assert written
    assert pipe.found() == {
        **{f"batch-{turn}": turn for turn in written},
        **{f"stream-{number}": number for number in range(4)},
        **dict.fromkeys(keys, 3),
    }
