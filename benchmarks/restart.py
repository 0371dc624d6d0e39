"""How long a query that is started again takes to its first new row: `python benchmarks/restart.py`.

Each start is a process of its own, whose seconds are those from its begin to the end of the query's first batch. Beside
pyhudi's sinks a stream of the same files goes to Parquet, and beside its source a stream reads Parquet files. A sink
that drops its rows and a source that counts show what Spark takes to start the processes of any in Python.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

from figures.tables import Bound, bounds_of, table_of
from phases.bare import BARE, ROWS, bare
from processes import environment, run_in
from stopwatch import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

RESTART = "restart: "
AGAIN, BEYOND_PARQUET, BEYOND = "started again, s", "beyond Parquet, s", "beyond the least in Python, s"
COLUMNS = (AGAIN, BEYOND_PARQUET, BEYOND)
# What is promised: seconds beyond those of the least that a sink, or source, in Python can do.
MOST_S = 3.0
ROOT = Path(__file__).parents[1]

Figures: TypeAlias = "Mapping[str, Mapping[str, float]]"

_SCHEMA = "id long, ts long, value long"
_OPTIONS = {"recordkey": "id", "orderby": "ts", "hoodie.bucket.index.num.buckets": "8"}
_SINK, _SOURCE = "files to Parquet", "Parquet to Parquet"
_LEAST_SINK, _LEAST_SOURCE = "files to a sink in Python that drops them", "numbers of a source in Python to Parquet"
_STARTS = 3


def to_parquet(spark: SparkSession, folder: str, rows: DataFrame | None = None) -> StreamingQuery:
    return _writer(rows or _landed(spark, folder), folder).format("parquet").start(f"{folder}/parquet")


def to_pyhudi(spark: SparkSession, folder: str, *, table_type: str) -> StreamingQuery:
    writer = _writer(_landed(spark, folder), folder).options(**_OPTIONS, **{"hoodie.table.type": table_type})
    return writer.format("pyhudi").start(f"{folder}/table")


def by_table(spark: SparkSession, folder: str) -> StreamingQuery:
    from pyhudi import HudiTable

    HudiTable.create(spark, f"{folder}/table", _SCHEMA, record_key="id", order_by="ts", buckets=8, if_not_exists=True)
    table = HudiTable(spark, f"{folder}/table")
    return table.stream(_landed(spark, folder), checkpoint=f"{folder}/checkpoint", availableNow=True)


def fill_parquet(spark: SparkSession, folder: str) -> None:
    _newest(spark, folder).coalesce(1).write.mode("append").parquet(f"{folder}/source")


def fill_pyhudi(spark: SparkSession, folder: str) -> None:
    writer = _newest(spark, folder).write.format("pyhudi").options(**_OPTIONS).mode("append")
    writer.save(f"{folder}/source")


def from_parquet(spark: SparkSession, folder: str) -> StreamingQuery:
    rows = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{folder}/source")
    return to_parquet(spark, folder, rows)


def from_pyhudi(spark: SparkSession, folder: str) -> StreamingQuery:
    rows = spark.readStream.format("pyhudi").option("maxCommitsPerTrigger", 1).load(f"{folder}/source")
    return to_parquet(spark, folder, rows.select("id", "ts", "value"))


def to_least(spark: SparkSession, folder: str) -> StreamingQuery:
    bare(spark, _SCHEMA)
    return _writer(_landed(spark, folder), folder).format(BARE).start()


def from_least(spark: SparkSession, folder: str) -> StreamingQuery:
    bare(spark, _SCHEMA, landed=Path(folder, "in"))
    return to_parquet(spark, folder, spark.readStream.format(BARE).load())


# What writes the rows of a query's source.
FILLS: dict[str, Callable[[SparkSession, str], None]] = {_SOURCE: fill_parquet, "readStream": fill_pyhudi}
_AS_SINK, _AS_SOURCE = (_SINK, _LEAST_SINK), (_SOURCE, _LEAST_SOURCE)
# What is started again, and the queries that it is held against: of Parquet, and of the least in Python.
QUERIES: dict[str, tuple[Callable[[SparkSession, str], StreamingQuery], tuple[str, ...]]] = {
    _SINK: (to_parquet, ()),
    _LEAST_SINK: (to_least, ()),
    "writeStream, copy-on-write": (partial(to_pyhudi, table_type="cow"), _AS_SINK),
    "writeStream, merge-on-read": (partial(to_pyhudi, table_type="mor"), _AS_SINK),
    "HudiTable.stream, copy-on-write": (by_table, _AS_SINK),
    _SOURCE: (from_parquet, ()),
    _LEAST_SOURCE: (from_least, ()),
    "readStream": (from_pyhudi, _AS_SOURCE),
}


def drive(name: str, folder: str, began: float, memory: str) -> float:
    """Start a query in this process, and return the seconds from the process's begin to the end of its batches."""
    spark = Run(Path(folder), f"{folder}/table", 1.0, memory).session()
    query = QUERIES[name][0](spark, folder)
    query.awaitTermination()
    if query.exception():
        raise SystemExit(f"the query failed: {query.exception()}")
    seconds = time.time() - began
    if not any(progress["numInputRows"] for progress in query.recentProgress):
        raise SystemExit("the query had no batch with rows")
    return round(seconds, 2)


def measure(starts: int = _STARTS, memory: str = "2g") -> dict[str, dict[str, float]]:
    """Return the seconds of each query, the median of several starts."""
    figures: dict[str, dict[str, float]] = {}
    # What is compiled once is no start's matter.
    environment(".venv")
    for name, (_, against) in QUERIES.items():
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "in").mkdir()
            seconds = [_started(name, folder, number, memory) for number in range(starts + 1)][1:]
        again = median(seconds)
        figures[RESTART + name] = {AGAIN: again}
        for column, other in zip(COLUMNS[1:], against, strict=False):
            figures[RESTART + name][column] = round(again - figures[RESTART + other][AGAIN], 2)
        print(time.strftime("%H:%M:%S"), name, seconds, flush=True)
    return figures


def restarts(rows: Figures) -> str:
    """Return a table of the seconds, and of what is promised."""
    return "\n".join((restarted(rows), verdicts(rows)))


def restarted(rows: Figures) -> str:
    return table_of(rows, COLUMNS, RESTART, digits=1)


def verdicts(rows: Figures) -> str:
    what = "seconds to the first row beyond the least in Python"
    by_query = {row.removeprefix(RESTART): of_row for row, of_row in rows.items() if row.startswith(RESTART)}
    return bounds_of(
        Bound(f"{row}: {what}", of_row[BEYOND], MOST_S, digits=1)
        for row, of_row in by_query.items()
        if BEYOND in of_row
    )


def _started(name: str, folder: str, number: int, memory: str) -> float:
    """Land a file, bring its rows to the query's source, and run the query to its end; each in a process."""
    _land(Path(folder, "in"), number)
    if name in FILLS:
        _run("--fill", name, folder, "--memory", memory)
    return float(_run("--drive", name, folder, time.time(), "--memory", memory))


def _run(role: str, name: str, folder: str, *arguments: object) -> str:
    python, log = ROOT / ".venv" / "bin" / "python", Path(folder, "log")
    printed = run_in([python, __file__, role, name, folder, *arguments], ".venv", log)
    if printed is None:
        raise SystemExit(f"{name} failed:\n{log.read_text(errors='replace')[-5_000:]}")
    return printed


def _land(folder: Path, number: int) -> None:
    first = number * ROWS
    lines = (json.dumps({"id": first + at, "ts": number, "value": at}) for at in range(ROWS))
    hidden = folder / f".{number}.json"
    hidden.write_text("\n".join(lines), encoding="utf-8")
    hidden.rename(folder / f"{number:04}.json")


def _landed(spark: SparkSession, folder: str) -> DataFrame:
    return spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).json(f"{folder}/in")


def _newest(spark: SparkSession, folder: str) -> DataFrame:
    return spark.read.schema(_SCHEMA).json(str(max(Path(folder, "in").iterdir())))


def _writer(rows: DataFrame, folder: str) -> Any:
    return rows.writeStream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)


def main() -> None:
    """Measure all queries and print the tables; with `--drive`, start one of them and print its seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=_STARTS, help="how often each query is started again")
    parser.add_argument("--memory", default="2g", help="memory of Spark's driver")
    parser.add_argument("--drive", nargs=3, metavar=("QUERY", "FOLDER", "BEGAN"), help=argparse.SUPPRESS)
    parser.add_argument("--fill", nargs=2, metavar=("QUERY", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.fill:
        name, folder = asked.fill
        FILLS[name](Run(Path(folder), f"{folder}/table", 1.0, asked.memory).session(), folder)
        print("filled")
        return
    if asked.drive:
        name, folder, began = asked.drive
        print(drive(name, folder, float(began), asked.memory))
        return
    print(restarts(measure(asked.starts, asked.memory)))


if __name__ == "__main__":
    main()
