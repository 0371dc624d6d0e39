"""What it takes a stream to upsert its batches, beside the streams of others: `python benchmarks/streams.py`.

Spark's source `rate-micro-batch` gives every system the same batches. Their keys are among those of the table, which
has a million rows in eight buckets or files. A batch becomes visible when the file appears that completes its commit;
its seconds are those since Spark began it. Each system works in a process of its own, with a table for each load.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from figures.tables import Bound, bounds_of, table_of
from processes import run_in
from stopwatch import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

STREAM = "stream: "
# Rows of a batch by load: the one begins a batch each second, the other when the batch before it is over.
SMALL, LARGE = 1_000, 100_000
P50, P99 = "1,000 rows: p50, s", "p99, s"
RATE, LARGE_P50 = "100,000 rows: rows a second", "p50 of the batch, s"
COLUMNS = (P50, P99, RATE, LARGE_P50)
OURS = {
    "pyhudi, writeStream": "copy-on-write",
    "pyhudi, HudiTable.stream": "copy-on-write",
    "pyhudi, writeStream, merge-on-read": "merge-on-read",
    "pyhudi, HudiTable.stream, merge-on-read": "merge-on-read",
}
# What a table type of pyhudi is held against.
RIVALS = {
    "copy-on-write": ("Apache Hudi", "Delta Lake", "Iceberg, copy-on-write"),
    "merge-on-read": ("Apache Hudi, merge-on-read", "Delta Lake, deletion vectors", "Iceberg, merge-on-read"),
}
ROOT = Path(__file__).parents[1]

Figures: TypeAlias = "Mapping[str, Mapping[str, float]]"

_ROWS = 1_000_000
_BUCKETS = 8
# Coprime to the number of rows, so that a million successive rows have a million keys.
_STEP = 611_953
# What runs while Spark still compiles does not count.
WARM_S = 15.0
_WATCHED_S = 0.25
_LEAST_BATCHES = 3
_HUDI = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": str(_BUCKETS),
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}


@dataclass(frozen=True)
class Sink:
    """A table of one system that a stream upserts into.

    Attributes:
        start: Starts the query that writes a stream's rows, given what holds its checkpoint and trigger.
        read: Returns the table.
        commits: The folder in which a file appears with each commit.
        completes: The end of such a file's name.
    """

    start: Callable[[DataFrame, Mapping[str, Any]], StreamingQuery]
    read: Callable[[], DataFrame]
    commits: str
    completes: str


Maker: TypeAlias = "Callable[[Run], tuple[SparkSession, Callable[[str], Sink]]]"


def pyhudi(run: Run, *, table_type: str, by_table: bool) -> tuple[SparkSession, Callable[[str], Sink]]:
    from pyhudi import HudiTable

    spark = run.session()

    def make(path: str) -> Sink:
        table = HudiTable.create(
            spark, path, _all_rows(spark), record_key="id", order_by="ts", buckets=_BUCKETS, table_type=table_type
        )
        table.bulk_insert(_all_rows(spark))

        def start(rows: DataFrame, terms: Mapping[str, Any]) -> StreamingQuery:
            if by_table:
                return table.stream(rows, checkpoint=terms["checkpoint"], processingTime=terms["every"])
            return _writer(rows, terms).format("pyhudi").start(path)

        completes = ".deltacommit" if table_type == "mor" else ".commit"
        return Sink(start, lambda: spark.read.format("pyhudi").load(path), f"{path}/.hoodie/timeline", completes)

    return spark, make


def apache_hudi(run: Run, *, table_type: str) -> tuple[SparkSession, Callable[[str], Sink]]:
    from systems import PARALLELISM, hudi_session

    spark = hudi_session(run)
    options = _HUDI | {"hoodie.datasource.write.table.type": table_type}

    def make(path: str) -> Sink:
        _all_rows(spark).write.format("hudi").options(**options, **PARALLELISM).mode("append").save(path)

        def start(rows: DataFrame, terms: Mapping[str, Any]) -> StreamingQuery:
            return _writer(rows, terms).format("hudi").options(**options, **PARALLELISM).start(path)

        completes = ".deltacommit" if table_type == "MERGE_ON_READ" else ".commit"
        return Sink(start, lambda: spark.read.format("hudi").load(path), f"{path}/.hoodie/timeline", completes)

    return spark, make


def delta(run: Run, *, vectors: bool) -> tuple[SparkSession, Callable[[str], Sink]]:
    from systems import delta_session

    spark, _ = delta_session(run, deletion_vectors=vectors)

    def make(path: str) -> Sink:
        _all_rows(spark).repartition(_BUCKETS, "id").write.format("delta").save(path)

        def start(rows: DataFrame, terms: Mapping[str, Any]) -> StreamingQuery:
            return _each_batch(rows, terms, partial(_merge, f"delta.`{path}`"))

        return Sink(start, lambda: spark.read.format("delta").load(path), f"{path}/_delta_log", ".json")

    return spark, make


def iceberg(run: Run, *, mode: str) -> tuple[SparkSession, Callable[[str], Sink]]:
    from systems import iceberg_session

    spark, _ = iceberg_session(run, mode)

    def make(path: str) -> Sink:
        name = f"local.db.{Path(path).name}"
        writer = _all_rows(spark).repartition(_BUCKETS, "id").writeTo(name)
        writer.tableProperty("format-version", "2").tableProperty("write.merge.mode", mode).create()

        def start(rows: DataFrame, terms: Mapping[str, Any]) -> StreamingQuery:
            return _each_batch(rows, terms, partial(_merge, name))

        folder = f"{run.table}/db/{Path(path).name}/metadata"
        return Sink(start, lambda: spark.table(name), folder, ".metadata.json")

    return spark, make


def _merge(target: str, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("s")
    rows.sparkSession.sql(
        f"merge into {target} t using s on t.id = s.id "
        "when matched and s.ts >= t.ts then update set * when not matched then insert *"
    )


def _writer(rows: DataFrame, terms: Mapping[str, Any]) -> DataStreamWriter:
    writer = rows.writeStream.option("checkpointLocation", terms["checkpoint"]).outputMode("append")
    return writer.trigger(processingTime=terms["every"])


def _each_batch(rows: DataFrame, terms: Mapping[str, Any], write: Callable[[DataFrame], Any]) -> StreamingQuery:
    return _writer(rows, terms).foreachBatch(lambda batch, _: write(batch)).start()


def _all_rows(spark: SparkSession) -> DataFrame:
    return spark.range(_ROWS).selectExpr("id", "0L as ts", "cast(id as double) as amount", "uuid() as note")


def _stream(spark: SparkSession, rows: int) -> DataFrame:
    """Return the rows of a stream, in whose column ``ts`` their numbers are, from 1 on."""
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()
    columns = ("value + 1 as ts", "cast(value as double) as amount", "cast(hash(value) as string) as note")
    return numbers.selectExpr(f"value * {_STEP} % {_ROWS} as id", *columns)


SYSTEMS: dict[str, tuple[str, Maker]] = {
    "pyhudi, writeStream": (".venv", partial(pyhudi, table_type="cow", by_table=False)),
    "pyhudi, HudiTable.stream": (".venv", partial(pyhudi, table_type="cow", by_table=True)),
    "pyhudi, writeStream, merge-on-read": (".venv", partial(pyhudi, table_type="mor", by_table=False)),
    "pyhudi, HudiTable.stream, merge-on-read": (".venv", partial(pyhudi, table_type="mor", by_table=True)),
    "Apache Hudi": (".venv-hudi", partial(apache_hudi, table_type="COPY_ON_WRITE")),
    "Apache Hudi, merge-on-read": (".venv-hudi", partial(apache_hudi, table_type="MERGE_ON_READ")),
    "Delta Lake": (".venv-spark40", partial(delta, vectors=False)),
    "Delta Lake, deletion vectors": (".venv-spark40", partial(delta, vectors=True)),
    "Iceberg, copy-on-write": (".venv-spark40", partial(iceberg, mode="copy-on-write")),
    "Iceberg, merge-on-read": (".venv-spark40", partial(iceberg, mode="merge-on-read")),
}


@dataclass(frozen=True)
class Batch:
    """A batch that Spark reports: its number, and when it began and was over, in seconds of the clock."""

    number: int
    began: float
    over: float


def drive(
    spark: SparkSession, sink: Sink, folder: str, rows: int, seconds: float, warm: float
) -> tuple[list[float], float]:
    """Run a stream and return each batch's seconds until it was visible, and the rows a second, less what warms up.

    Raises:
        SystemExit: A batch has no commit, or the table holds other rows than it should.
    """
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    every = "1 second" if rows == SMALL else "0 seconds"
    with watched(sink) as commits:
        query = sink.start(_stream(spark, rows), {"checkpoint": f"{folder}/checkpoint", "every": every})
        until = time.monotonic() + seconds + warm
        # However slow a machine is, a few batches are needed.
        while query.isActive and (time.monotonic() < until or len(batches_of(query.recentProgress)) < _LEAST_BATCHES):
            query.awaitTermination(1)
        query.stop()
    if query.exception():
        raise SystemExit(f"the query failed: {query.exception()}")
    batches = batches_of(query.recentProgress)
    check(sink.read(), rows, len(batches))
    counted = [batch for batch in batches if batch.began >= batches[0].began + warm]
    if not counted:
        raise SystemExit("no batch began once Spark was warm: give it more --seconds")
    visible = [seen_after(batch, commits) for batch in counted]
    return visible, len(counted) * rows / (counted[-1].over - counted[0].began)


@contextmanager
def watched(sink: Sink) -> Iterator[list[float]]:
    """Note when each commit became visible, by the time of its file, before archiving takes the file away."""
    commits: list[float] = []
    seen: set[str] = set()
    over = threading.Event()

    def look() -> None:
        for entry in os.scandir(sink.commits):
            if entry.name.endswith(sink.completes) and entry.name not in seen and not entry.name.startswith("."):
                with suppress(FileNotFoundError):
                    commits.append(entry.stat().st_mtime)
                    seen.add(entry.name)

    def keep_looking() -> None:
        while not over.wait(_WATCHED_S):
            look()

    look()
    commits.clear()
    watcher = threading.Thread(target=keep_looking, daemon=True)
    watcher.start()
    try:
        yield commits
    finally:
        over.set()
        watcher.join()
        look()
        commits.sort()


def batches_of(reports: Sequence[Any]) -> list[Batch]:
    """Return the batches that had rows."""
    batches = []
    for report in reports:
        if report["numInputRows"]:
            began = datetime.fromisoformat(report["timestamp"].replace("Z", "+00:00")).timestamp()
            batches.append(Batch(report["batchId"], began, began + report["durationMs"]["triggerExecution"] / 1000))
    return batches


def seen_after(batch: Batch, commits: Sequence[float]) -> float:
    """Return the seconds from a batch's begin to its commit's file; the disk's clock ticks each 4 ms."""
    for commit in commits:
        if batch.began - 0.005 <= commit <= batch.over + 0.005:
            return max(0.0, commit - batch.began)
    raise SystemExit(f"batch {batch.number} was not committed while it ran: {batch}")


def check(table: DataFrame, rows: int, batches: int) -> None:
    """Compare a table with what its newest row says that it has to hold; a batch may have been cut off at the end."""
    newest, total, count = table.selectExpr("max(ts)", "sum(ts)", "count(1)").collect()[0]
    last = min(newest, _ROWS)
    expected = last * newest - last * (last - 1) // 2
    if count != _ROWS or total != expected or newest % rows or not batches <= newest // rows <= batches + 1:
        raise SystemExit(
            f"the table holds {count} rows to {newest} with a sum of {total}, not {expected}, after {batches} batches"
        )


def figures(run: Run, system: str, seconds: float, warm: float) -> dict[str, float]:
    """Return what is measured of a system, in this process."""
    spark, make = SYSTEMS[system][1](run)
    phases: dict[str, float] = {}
    for rows in (SMALL, LARGE):
        folder = f"{run.data}/{rows}"
        visible, rate = drive(spark, make(f"{run.table}/t{rows}"), folder, rows, seconds, warm)
        half, most = quantile(visible, 0.5), quantile(visible, 0.99)
        phases |= {P50: half, P99: most} if rows == SMALL else {RATE: round(rate), LARGE_P50: half}
    return phases


def quantile(values: Sequence[float], share: float) -> float:
    """Return the least value that this share of them does not exceed."""
    return round(sorted(values)[math.ceil(share * len(values)) - 1], 3)


def measure(
    seconds: float = 600.0,
    of_others: float = 180.0,
    warm: float = WARM_S,
    memory: str = "4g",
    systems: Sequence[str] = tuple(SYSTEMS),
) -> dict[str, dict[str, float]]:
    """Return the figures of each system, which works in a process and an environment of its own."""
    by_row = {}
    for system in systems:
        venv = SYSTEMS[system][0]
        with tempfile.TemporaryDirectory() as folder:
            lasts = seconds if system in OURS else min(seconds, of_others)
            command = [ROOT / venv / "bin" / "python", __file__, "--drive", system, folder, "--seconds", lasts]
            log = Path(folder, "log")
            printed = run_in([*command, "--warm", warm, "--memory", memory], venv, log)
            if printed is None:
                # The work of the others is not lost for one of them.
                print(f"{system} failed:\n{log.read_text(errors='replace')[-5_000:]}", flush=True)
                continue
        by_row[STREAM + system] = json.loads(printed)
        print(time.strftime("%H:%M:%S"), system, by_row[STREAM + system], flush=True)
    return by_row


def streams(rows: Figures) -> str:
    """Return a table of the seconds and rates, and of what is promised."""
    return "\n".join((sinks(rows), verdicts(rows)))


def sinks(rows: Figures) -> str:
    return table_of(rows, COLUMNS, STREAM)


def verdicts(rows: Figures) -> str:
    promises: list[Bound] = []
    for system, kind in OURS.items():
        ours = rows.get(STREAM + system)
        rivals = [phases for rival in RIVALS[kind] if (phases := rows.get(STREAM + rival))]
        if ours is None or not rivals:
            continue
        for what, phase in (("p50", P50), ("p99", P99)):
            ratio = ours[phase] / min(found[phase] for found in rivals)
            promises.append(Bound(f"{system}: {what} of 1,000 rows, against the best other", ratio, 0.5))
        ratio = ours[RATE] / max(found[RATE] for found in rivals)
        promises.append(Bound(f"{system}: rows a second, against the best other", ratio, least=3.0))
        if kind == "merge-on-read":
            promises.append(Bound(f"{system}: batches of 100,000 rows a second", ours[RATE] / LARGE, least=1.0))
    return bounds_of(promises)


def main() -> None:
    """Measure the systems and print the tables; with `--drive`, drive one of them and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--seconds", type=float, default=600.0, help="how long each of our streams runs")
    parser.add_argument("--of-others", type=float, default=180.0, help="how long each other stream runs, at most")
    parser.add_argument("--warm", type=float, default=WARM_S, help="seconds of a stream that do not count")
    parser.add_argument("--memory", default="4g", help="memory of Spark's driver")
    parser.add_argument("--drive", nargs=2, metavar=("SYSTEM", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if not asked.drive:
        print(streams(measure(asked.seconds, asked.of_others, asked.warm, asked.memory, asked.systems)))
        return
    system, folder = asked.drive
    run = Run(Path(folder), f"{folder}/tables", 1.0, asked.memory)
    print(json.dumps(figures(run, system, asked.seconds, asked.warm)))


if __name__ == "__main__":
    main()
