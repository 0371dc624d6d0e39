"""A stream that has to catch up with 5,000 commits: `python benchmarks/backlog.py`.

The commits are small, and made without Spark. `readStream` takes them as one batch, `spark.read` as the incremental
query of the same window; both drop the rows, in turns, and the median of three counts. Planning is measured in a
process of its own that does nothing else, with what it imports: its seconds, and the most memory that it had.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from figures.tables import Bound, bounds_of, table_of
from processes import environment, peak_mib
from stopwatch import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BACKLOG = "backlog: "
TYPES = ("copy-on-write", "merge-on-read")
STREAM, QUERY, ROWS = "readStream, s", "spark.read, s", "rows"
PLANNING, MEMORY = "planning, s", "its memory, MiB"
COLUMNS = (ROWS, STREAM, QUERY, PLANNING, MEMORY)
# What is promised: rows a second of spark.read's, seconds and MiB of planning.
RATIO, PLANNED_S, PLANNED_MIB = 0.8, 10.0, 512.0
ROOT = Path(__file__).parents[1]

Figures: TypeAlias = "Mapping[str, Mapping[str, float]]"

# A stream that begins at the earliest commit reads the whole table; this one and the query begin after the first.
START, SINCE = "hoodie.datasource.streaming.startOffset", "hoodie.datasource.read.begin.instanttime"

_SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
_OPTIONS = {
    "recordkey": "id",
    "partitionby": "p",
    "orderby": "ts",
    "hoodie.bucket.index.num.buckets": "1",
    # All commits stay in reach of the query.
    "hoodie.table.services.enabled": "false",
    "hoodie.pyhudi.durable": "false",
}
_ROWS = 200
# Commits of a partition: no base file or slice becomes large.
_TOGETHER = 25
_WARM_COMMITS = 20
_TURNS = 3


def make_table(path: str, table_type: str, commits: int) -> str:
    """Make a table by commits of new rows, a partition after another; return when the first of them completed."""
    from pyhudi.operations.write.run import write
    from pyhudi.options.parsing import parse_options

    kind = "COPY_ON_WRITE" if table_type == TYPES[0] else "MERGE_ON_READ"
    parsed = parse_options({**_OPTIONS, "hoodie.datasource.write.table.type": kind})
    for number in range(commits):
        ids = range(number * _ROWS, (number + 1) * _ROWS)
        columns = [ids, [f"p{number // _TOGETHER:03d}"] * _ROWS, [number] * _ROWS, [f"note {key}" for key in ids]]
        rows = pa.table([pa.array(column) for column in columns], schema=_SCHEMA)
        write(parsed.to_write_request(path, _SCHEMA, overwrite=False), [rows.to_batches()])
    names = [entry.name for entry in os.scandir(f"{path}/.hoodie/timeline")]
    return min(name for name in names if name.endswith("commit") and "_" in name).partition("_")[2].partition(".")[0]


def plan(path: str, since: str) -> dict[str, float]:
    """Plan a batch of all later commits as Spark's process of the query does, and return what that took."""
    began = time.perf_counter()
    from pyhudi import PyHudiDataSource

    source = PyHudiDataSource({"path": path, START: since})  # type: ignore[arg-type]
    reader: Any = source.streamReader(source.schema())
    start = reader.initialOffset()
    try:
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        end = reader.latestOffset(start, ReadAllAvailable())
    except ImportError:
        end = reader.latestOffset()
    partitions = reader.partitions(start, end)
    took = time.perf_counter() - began
    return {
        PLANNING: round(took, 2),
        MEMORY: round(peak_mib(), 1),
        "partitions": len(partitions),
    }


def read(run: Run, since: str, since_of_warm: str) -> dict[str, float]:
    """Read the table in both ways, once Spark is warm, and return the seconds and the rows."""
    spark = run.session()
    _by_stream(spark, f"{run.table}/warm", since_of_warm, f"{run.data}/warm")
    _by_query(spark, f"{run.table}/warm", since_of_warm)
    streamed, asked, rows = [], [], 0
    # In turns, as the first to read the table finds nothing of it in any cache.
    for turn in range(_TURNS):
        took, rows = _by_stream(spark, f"{run.table}/t", since, f"{run.data}/checkpoint-{turn}")
        streamed.append(took)
        took, rows_of_query = _by_query(spark, f"{run.table}/t", since)
        asked.append(took)
        if rows != rows_of_query:
            raise SystemExit(f"the stream has {rows} rows, the query {rows_of_query}")
    return {ROWS: rows, STREAM: round(median(streamed), 2), QUERY: round(median(asked), 2)}


def _by_stream(spark: SparkSession, path: str, since: str, checkpoint: str) -> tuple[float, int]:
    """Return the seconds of the one batch, planning included, and its rows."""
    rows = spark.readStream.format("pyhudi").option(START, since).load(path)
    writer = rows.writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", checkpoint).start()
    query.awaitTermination()
    [batch] = [report for report in query.recentProgress if report["numInputRows"]]
    return batch["durationMs"]["triggerExecution"] / 1000, batch["numInputRows"]


def _by_query(spark: SparkSession, path: str, since: str) -> tuple[float, int]:
    """Return the seconds of the incremental query, planning included, and its rows."""

    def rows() -> Any:
        changes = spark.read.format("pyhudi").option("hoodie.datasource.query.type", "incremental")
        return changes.option(SINCE, since).load(path)

    began = time.perf_counter()
    rows().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began, rows().count()


def measure(commits: int = 5_000, memory: str = "4g") -> dict[str, dict[str, float]]:
    """Return the figures of each table type, each step in a process of its own."""
    figures: dict[str, dict[str, float]] = {}
    for table_type in TYPES:
        with tempfile.TemporaryDirectory() as folder:
            since = make_table(f"{folder}/tables/t", table_type, commits + 1)
            since_of_warm = make_table(f"{folder}/tables/warm", table_type, _WARM_COMMITS)
            print(time.strftime("%H:%M:%S"), f"made {commits:,} commits, {table_type}", flush=True)
            planned = _done("plan", f"{folder}/tables/t", since)
            figures[f"{BACKLOG}{table_type}"] = planned | _done("read", folder, since, since_of_warm, memory)
        print(time.strftime("%H:%M:%S"), table_type, figures[f"{BACKLOG}{table_type}"], flush=True)
    return figures


def _done(*step: str) -> dict[str, float]:
    """Do a step in a process of its own."""
    command = [str(ROOT / ".venv/bin/python"), __file__, "--step", *step]
    process = subprocess.run(command, capture_output=True, text=True, env=environment(".venv"), check=False)
    if process.returncode:
        raise SystemExit(f"{step[0]} failed:\n{process.stderr[-5_000:]}")
    result: dict[str, float] = json.loads(process.stdout.splitlines()[-1])
    return result


def backlogs(rows: Figures) -> str:
    """Return tables of the seconds, and of what is promised."""
    return "\n".join((reads(rows), verdicts(rows)))


def reads(rows: Figures) -> str:
    return table_of(rows, COLUMNS, BACKLOG)


def verdicts(rows: Figures) -> str:
    promises: list[Bound] = []
    for row, phases in rows.items():
        if row.startswith(BACKLOG):
            kind = row.removeprefix(BACKLOG)
            promises += (
                Bound(f"{kind}: rows a second, against spark.read", phases[QUERY] / phases[STREAM], least=RATIO),
                Bound(f"{kind}: planning, s", phases[PLANNING], PLANNED_S, digits=1),
                Bound(f"{kind}: memory, MiB", phases[MEMORY], PLANNED_MIB, digits=0),
            )
    return bounds_of(promises)


def main() -> None:
    """Measure both table types and print the tables; with `--step`, do that step and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=5_000)
    parser.add_argument("--memory", default="4g", help="memory of Spark's driver")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if not asked.step:
        print(backlogs(measure(asked.commits, asked.memory)))
    elif asked.step[0] == "plan":
        print(json.dumps(plan(*asked.step[1:])))
    else:
        _, folder, since, since_of_warm, memory = asked.step
        print(json.dumps(read(Run(Path(folder), f"{folder}/tables", 1.0, memory), since, since_of_warm)))


if __name__ == "__main__":
    main()
