"""Spark jobs whose tasks stop in the middle of their rows; a program that test_kills.py starts, feeds and kills."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyhudi
from pyhudi.errors import from_spark
from pyhudi.storage.process import responsible_process

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The test that starts this program imports it too, in a process without Spark.

DDL = "id bigint, p string, ts bigint, value bigint"
TABLE = {"recordkey": "id", "partitionby": "p", "orderby": "ts", "buckets": "2"}
ROWS = 30_000
# Late enough for the first rows to have reached the table's writer through all buffers.
STOP_AT = 25_000


@dataclass(frozen=True)
class Job:
    """One write of `ROWS` rows a task.

    Attributes:
        path: The table.
        flags: Folder through which the job and its test speak; a task that stops says so in ``stopped-<partition>``,
            and what came of the write is in ``answer``.
        value: Ordering value and value of all rows.
        tasks: Number of tasks; with 2 each has half of the rows, colocated too.
        stops: Partitions whose first attempt stops until ``go-<partition>`` is there.
        fails: Partitions that fail when they are told to go on.
        colocated: Whether each file group's rows are brought into one task.
        index: That of a table whose keys are looked up, and whose rows `HudiTable` then places; empty for buckets.
        options: Options of the write.
    """

    path: str
    flags: str
    value: int = 1
    tasks: int = 2
    stops: tuple[int, ...] = ()
    fails: tuple[int, ...] = ()
    colocated: bool = False
    index: str = ""
    options: dict[str, str] = field(default_factory=dict)

    def encode(self) -> str:
        """Return the job as one line."""
        return json.dumps(asdict(self))


def tuples(job: Job) -> list[tuple[int, str, int, int]]:
    """Return the job's rows as the table shows them, sorted by id."""
    return [(n, f"p{n % 3}", job.value, job.value) for n in range(ROWS * job.tasks)]


def stop(job: Job, partition: int, rows: Iterator[Any]) -> Iterator[Any]:
    """Yield the rows of one partition, stopping on the way if the job says so."""
    flags = Path(job.flags)
    note = flags / f"stopped-{partition}"
    # Not by the attempt's number: a stage that is run again counts from 0.
    stops = partition in job.stops and not note.exists()
    for number, row in enumerate(rows):
        if number == STOP_AT and stops:
            unfinished = flags / f".stopped-{partition}"
            unfinished.write_text(str(responsible_process().pid))
            unfinished.rename(note)
            while not (flags / f"go-{partition}").exists():
                time.sleep(0.1)
            if partition in job.fails:
                raise ValueError(f"partition {partition} fails on purpose")
        yield row


def frame(spark: SparkSession, job: Job) -> DataFrame:
    """Return the job's rows, stops included."""
    rows = spark.sparkContext.range(0, ROWS * job.tasks, numSlices=job.tasks)
    df = spark.createDataFrame(rows.map(lambda n: (n, f"p{n % 3}", job.value, job.value)), DDL)
    if job.colocated:
        df = pyhudi.colocate(df, job.path, tasks=job.tasks)
    return spark.createDataFrame(df.rdd.map(tuple).mapPartitionsWithIndex(partial(stop, job)), df.schema)


def write(spark: SparkSession, job: Job) -> str:
    """Write and return what came of it: ``COMMITTED`` or the code of the error."""
    options = {**TABLE, **job.options, "hoodie.pyhudi.colocated": str(job.colocated).lower()}
    if job.index:
        del options["buckets"]
        options["hoodie.index.type"] = job.index
    try:
        if job.index and Path(job.path).exists():
            pyhudi.HudiTable(spark, job.path).upsert(
                frame(spark, job), **{**job.options, "hoodie.pyhudi.place.rows": "always"}
            )
        else:
            frame(spark, job).write.format("pyhudi").options(**options).mode("append").save(job.path)
    except Exception as error:
        pyhudi_error = from_spark(error)
        if pyhudi_error is None and not job.fails:
            raise
        return "FAILED" if pyhudi_error is None else pyhudi_error.code
    return "COMMITTED"


def main(master: str) -> None:
    """Carry out the job of each line, until there is none left."""
    from pyspark.sql import SparkSession
    from support.sessions import INTERPRETED

    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "700m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
        .config(map=INTERPRETED)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for line in sys.stdin:
        said = json.loads(line)
        job = Job(**{**said, "stops": tuple(said["stops"]), "fails": tuple(said["fails"])})
        unfinished = Path(job.flags, ".answer")
        unfinished.write_text(write(spark, job))
        unfinished.rename(Path(job.flags, "answer"))


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    main(sys.argv[1])
