"""A stream into a table goes from Apache Hudi's sink to pyhudi's and back, by one checkpoint folder."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.test_streamed_reads import forget_last
from pyhudi import HudiTable, arrow, from_spark
from pyhudi.errors import OptionConflictError
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from support.drive import rows_of

pytestmark = pytest.mark.interop

SCHEMA = "id string, ts long, value long"
ROWS = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])


@dataclass
class Stream:
    """A query over files of JSON, a file a batch, which either engine runs.

    Attributes:
        kind: The table's type.
    """

    spark: SparkSession
    apache: ApacheHudi
    folder: Path
    kind: str

    @property
    def table(self) -> Path:
        return self.folder / "t"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def input(self) -> Path:
        return self.folder / "in"

    @property
    def options(self) -> dict[str, str]:
        return {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": self.kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "2",
            "hoodie.metadata.enable": "false",
            "hoodie.datasource.compaction.async.enable": "false",
        }

    def add(self, key: str, value: int) -> None:
        self.input.mkdir(exist_ok=True)
        hidden = self.input / f".{key}-{value}"
        hidden.write_text(json.dumps({"id": key, "ts": value, "value": value}), encoding="utf-8")
        hidden.rename(self.input / f"{key}-{value}.json")

    def by_apache(self) -> None:
        self.apache.write_stream(self.table, self.input, SCHEMA, self.checkpoint, self.options)

    def by_pyhudi(self, checkpoint: str = "checkpoint") -> None:
        rows = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(self.input))
        writer = rows.writeStream.format("pyhudi").options(**self.options)
        writer = writer.option("checkpointLocation", str(self.folder / checkpoint)).trigger(availableNow=True)
        writer.start(str(self.table)).awaitTermination()

    @property
    def writes(self) -> int:
        return len(open_table(open_storage(str(self.table))).timeline().writes)

    @property
    def values(self) -> list[tuple[object, ...]]:
        return rows_of(self.table, "id", "value")


@pytest.fixture
def stream(spark: SparkSession, apache: ApacheHudi, tmp_path: Path, request: pytest.FixtureRequest) -> Stream:
    return Stream(spark, apache, tmp_path, request.param)


@pytest.mark.parametrize(
    ("stream", "repeats"),
    [("COPY_ON_WRITE", False), ("MERGE_ON_READ", True)],
    ids=["at an end", "a batch repeated"],
    indirect=["stream"],
)
def test_a_stream_goes_from_apache_hudi_to_pyhudi_and_back(stream: Stream, repeats: bool) -> None:
    """A batch that one engine completed, and of which Spark does not know, the other does not write again."""
    stream.add("k1", 1)
    stream.by_apache()
    stream.add("k2", 2)
    stream.by_apache()
    assert stream.writes == 2

    for number, engine in enumerate((stream.by_pyhudi, stream.by_apache, stream.by_pyhudi, stream.by_pyhudi), 3):
        if repeats:
            forget_last(stream.checkpoint)
        stream.add(f"k{number}", number)
        engine()
        if repeats:
            # The run that repeats a batch may end there.
            engine()
        assert stream.writes == number
        assert stream.values == [(f"k{one}", one) for one in range(1, number + 1)]


@pytest.mark.parametrize("stream", ["COPY_ON_WRITE", "MERGE_ON_READ"], indirect=True)
def test_a_history_of_pyhudi_arrow_hudi_tables_streams_and_apache_hudi_is_one(stream: Stream) -> None:
    """Each writer finds the rows of those before it, updates some and adds others; Apache Hudi reads all."""
    expected: dict[str, int] = {}

    def rows(value: int) -> pa.Table:
        # The key of this write, the one that every write updates, and the one that the writer before added.
        keys = list(dict.fromkeys([f"k{value}", "hot", f"k{value - 1}"]))
        expected.update(dict.fromkeys(keys, value))
        return pa.table([keys, [value] * len(keys), [value] * len(keys)], schema=ROWS)

    def by_stream(value: int) -> None:
        for row in rows(value).to_pylist():
            stream.add(row["id"], row["value"])
        stream.by_pyhudi()

    writers = {
        "arrow": lambda value: arrow.Table(stream.table).upsert(rows(value)),
        "arrow once": lambda value: arrow.Table(stream.table).upsert(iter(rows(value).to_batches(max_chunksize=1))),
        "HudiTable": lambda value: HudiTable(stream.spark, str(stream.table)).upsert(rows(value)),
        "stream": by_stream,
        "Apache Hudi": lambda value: stream.apache.write(stream.table, rows(value), stream.options),
    }
    arrow.write(stream.table, rows(1), **stream.options)
    names = [*writers, *random.Random(stream.kind).sample(list(writers), len(writers))]
    for value, name in enumerate(names, 2):
        writers[name](value)

        assert dict(stream.values) == expected, name
    found = stream.apache.read(stream.table).select(["id", "value"]).to_pylist()
    assert {row["id"]: row["value"] for row in found} == expected


@pytest.mark.parametrize("stream", ["MERGE_ON_READ"], indirect=True)
def test_a_batch_that_apache_hudi_did_not_complete_is_written(stream: Stream) -> None:
    """The hand-over comes between the plan of a batch and its completion."""
    stream.add("k1", 1)
    stream.by_apache()
    stream.add("k2", 2)
    stream.by_pyhudi()
    # As if the last batch had never come to the table: Spark repeats it.

    table = open_table(open_storage(str(stream.table)))
    rollback(table.storage, table.timeline().writes[-1].requested_time)
    forget_last(stream.checkpoint)
    stream.by_apache()

    assert stream.values == [("k1", 1), ("k2", 2)]
    assert stream.writes == 2


@pytest.mark.parametrize("stream", ["COPY_ON_WRITE"], indirect=True)
def test_a_new_checkpoint_is_no_continuation_of_apache_hudis_stream(stream: Stream) -> None:
    stream.add("k1", 1)
    stream.by_apache()

    with pytest.raises(StreamingQueryException) as raised:
        stream.by_pyhudi("new")
    assert isinstance(from_spark(raised.value), OptionConflictError)
    assert stream.values == [("k1", 1)]
