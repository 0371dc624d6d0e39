"""Streams of tables through Spark; which rows each batch has is tested in `tests/contract/test_streamed_reads.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import OptionConflictError, PyHudiError, SchemaMismatchError, UnreadableTimeError, from_spark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import datasource as spark_datasource
from pyspark.sql.streaming import StreamingQuery
from support.drive import KEYED, write
from support.made.cleaning import archive
from support.models.past import Past, Shown

NAMES = ["p", "id", "value", "_hoodie_commit_time"]
# Spark 4.0 and 4.1 pass no limits, so that a query with the trigger AvailableNow ends after a batch.
TAKES_LIMITS = hasattr(spark_datasource, "ReadLimit")


@dataclass
class Stream:
    """A streaming read of a table, whose checkpoint is kept between its runs, and the rows of its batches."""

    spark: SparkSession
    table: Path
    checkpoint: Path
    columns: Sequence[str] = tuple(NAMES)
    batches: dict[int, list[tuple[object, ...]]] = field(default_factory=dict)

    def start(self, schema: str | None = None, *, trigger: bool = True, **options: str) -> StreamingQuery:
        """Start the query; with the trigger AvailableNow, or with the default trigger."""
        reader = self.spark.readStream.format("pyhudi").options(**options)
        frame = (reader if schema is None else reader.schema(schema)).load(str(self.table))
        writer = frame.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(availableNow=True) if trigger else writer).start()

    def run(self, schema: str | None = None, **options: str) -> list[list[tuple[object, ...]]]:
        """Read what is available, and return the rows of each batch that has rows."""
        self.batches.clear()
        self.start(schema, **options).awaitTermination()
        return [rows for _, rows in sorted(self.batches.items()) if rows]

    def fail(self, **options: str) -> PyHudiError:
        """Return the error with which the query ends."""
        with pytest.raises(Exception, match="PyHudiError") as caught:
            self.run(**options)
        error = from_spark(caught.value)
        assert error is not None
        return error

    def forget_last(self) -> None:
        """Leave the checkpoint as a query that dies between the plan and the end of its last batch."""
        last = max((self.checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink()

    def _take(self, frame: DataFrame, number: int) -> None:
        self.batches[number] = sorted(map(tuple, frame.select(*self.columns).collect()))


@pytest.fixture(params=[False, True], ids=["copy-on-write", "merge-on-read"])
def past(request: pytest.FixtureRequest, tmp_path: Path) -> Past:
    """Four commits: two to partition a, one to b, then one to a again."""
    return made(tmp_path / "t", merge_on_read=request.param)


@pytest.fixture
def plain(tmp_path: Path) -> Past:
    return made(tmp_path / "t", merge_on_read=False)


def made(path: Path, *, merge_on_read: bool) -> Past:
    past = Past(path, merge_on_read=merge_on_read)
    past.upsert("a", ["k1", "k2"], 1)
    past.upsert("b", ["k1"], 2)
    past.upsert("a", ["k2", "k3"], 3)
    past.upsert("a", ["k3"], 4)
    return past


def stream(spark: SparkSession, past: Past) -> Stream:
    path = Path(str(past.path))
    return Stream(spark, path, path.parent / "checkpoint")


def windows(past: Past, ends: Sequence[str], begin: str | None = None) -> list[list[Shown]]:
    """Return the rows of the windows between some times."""
    return [past.changes(start, end) for start, end in zip([begin, *ends], ends, strict=False)]


@pytest.mark.oldest
def test_a_stream_reads_what_is_there_then_what_came_and_repeats_a_batch_that_did_not_end(
    spark: SparkSession, past: Past
) -> None:
    source = stream(spark, past)
    assert source.run() == [past.as_of("3")]
    first = past.commits[-1].completed
    assert source.run() == []
    past.upsert("a", ["k1"], 5)
    second = past.upsert("b", ["k2"], 6).completed
    assert source.run() == [past.changes(first, second)]
    source.forget_last()
    past.upsert("b", ["k2"], 7)

    assert source.run() + source.run() == [past.changes(first, second), past.changes(second, None)]


@pytest.mark.oldest
def test_limits_hold_with_every_trigger(spark: SparkSession, past: Past) -> None:
    source = stream(spark, past)
    limit = {"maxCommitsPerTrigger": "3"}
    runs = [source.run(**limit)] if TAKES_LIMITS else [source.run(**limit), source.run(**limit)]
    expected = windows(past, [past.commits[2].completed, past.commits[3].completed])
    assert [rows for run in runs for rows in run] == expected
    assert source.run(**limit) == []

    begin = past.commits[-1].completed
    ends = [past.upsert("b", [f"k{number}"], number).completed for number in range(3)]
    source.batches.clear()
    query = source.start(trigger=False, maxBytesPerTrigger="1")
    query.processAllAvailable()
    query.stop()
    assert [rows for _, rows in sorted(source.batches.items()) if rows] == windows(past, ends, begin)


@pytest.mark.oldest
def test_a_stream_from_the_latest_begins_there_although_its_first_batch_is_repeated(
    spark: SparkSession, plain: Past
) -> None:
    source = stream(spark, plain)
    latest = {"hoodie.datasource.streaming.startOffset": "latest"}
    begin = plain.commits[-1].completed
    query = source.start(trigger=False, **latest)
    query.processAllAvailable()
    plain.upsert("b", ["k9"], 9)
    query.processAllAvailable()
    query.stop()
    assert [rows for _, rows in sorted(source.batches.items()) if rows] == [plain.changes(begin, None)]

    plain.upsert("b", ["k8"], 8)
    assert source.run(**latest) == [plain.changes(plain.commits[-2].completed, None)]


def test_a_stream_begins_after_a_time_and_shows_the_columns_that_are_asked_for(
    spark: SparkSession, plain: Past
) -> None:
    second = plain.commits[1].completed
    expected = sorted((key, value) for _, key, value, _ in plain.changes(second, None))
    start = {"hoodie.datasource.streaming.startOffset": second}
    folder = Path(str(plain.path))

    named = Stream(spark, folder, folder.parent / "named", ("id", "value"))
    assert named.run(columns="id,value", **start) == [expected]
    given = Stream(spark, folder, folder.parent / "given", ("id", "value"))
    assert given.run("id string, value bigint", **start) == [expected]


def test_what_shows_one_moment_is_refused(spark: SparkSession, plain: Past) -> None:
    error = stream(spark, plain).fail(**{"as.of.instant": plain.commits[0].instant})

    assert type(error) is OptionConflictError
    assert "startOffset" in str(error)


def test_a_stream_that_is_to_be_incremental_is_told_that_it_is(spark: SparkSession, plain: Past) -> None:
    """Spark asks for the columns first, without a word on whether that is for a stream."""
    kind = {"hoodie.datasource.query.type": "incremental"}
    without = stream(spark, plain).fail(**kind)
    assert "leave hoodie.datasource.query.type out" in str(without)
    assert "startOffset" in str(without)

    error = stream(spark, plain).fail(**kind, **{"hoodie.datasource.read.begin.instanttime": "earliest"})
    assert type(error) is OptionConflictError
    assert "it is incremental without it" in str(error)
    assert "startOffset" in str(error)


def test_a_batch_that_was_archived_meanwhile_is_refused_by_name(spark: SparkSession, plain: Past) -> None:
    source = stream(spark, plain)
    source.run()
    source.forget_last()
    end = plain.commits[-1].completed
    for number in range(2):
        plain.upsert("a", ["k1"], number)
    archive(plain.path, 5)

    error = source.fail()
    assert type(error) is UnreadableTimeError
    assert f"until {end} cannot be read" in error.what
    assert f"first readable end is {plain.commits[4].completed}" in error.what


def test_columns_are_fixed_while_a_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    """Added columns are left out; a column of another type fails the query by name, and the next start takes it."""
    path = tmp_path / "t"

    def put(key: int, value: pa.Array, **more: pa.Array) -> None:
        columns = {"id": pa.array([key]), "ts": pa.array([1], pa.int64()), "value": value, **more}
        write(path, pa.table(columns), table=KEYED)

    put(1, pa.array([1], pa.int32()))
    source = Stream(spark, path, tmp_path / "checkpoint", ("id", "value"))
    query = source.start(trigger=False)
    query.processAllAvailable()
    put(2, pa.array([2], pa.int32()), more=pa.array(["x"]))
    query.processAllAvailable()
    assert [rows for _, rows in sorted(source.batches.items())] == [[(1, 1)], [(2, 2)]]
    put(3, pa.array([3], pa.int64()), more=pa.array(["y"]))
    with pytest.raises(Exception, match="PyHudiError") as caught:
        query.processAllAvailable()
    error = from_spark(caught.value)
    assert type(error) is SchemaMismatchError
    assert [one.column for one in error.differences] == ["value"]

    assert source.run() == [[(3, 3)]]
