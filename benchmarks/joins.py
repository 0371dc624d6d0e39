"""Joins of TPC-H's lineitem and orders on the order's key, by bucket and by Spark's shuffle over the same files.

    python benchmarks/joins.py [--scale 1] [--buckets 8 64]

Both tables have their buckets by the order's key. Nothing is broadcast. Both ways take turns, and their first rounds do
not count: a JVM gets faster for minutes, and the way that came second would gain by it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from figures.tables import table_of
from many_files import session
from processes import environment

ROOT = Path(__file__).parents[1]
JOIN = "joins: "
BY_BUCKET, BY_SHUFFLE = "pyhudi.bucket_join", "HudiTable.to_df, shuffled"
# A sum by priority over four columns; all columns handed to a sink that drops them; until Spark has planned the sum.
PHASES = ("sum", "all", "planned")
BUCKETS = (8, 64)
# Rounds that do not count, and those whose median counts.
WARM, TIMES = 3, 5
ON = {"l_orderkey": "o_orderkey"}
SUMMED = ("l_quantity", "l_extendedprice", "l_discount", "l_tax")
PRIORITY = "o_orderpriority"


def row(buckets: int, how: str) -> str:
    """Return the name of the row of one way to join tables of some buckets."""
    return f"{JOIN}{buckets} buckets, {how}"


def measure(scale: float = 1.0, buckets: tuple[int, ...] = BUCKETS) -> dict[str, Any]:
    """Return the seconds by row and phase; tables of each number of buckets in a process of their own."""
    figures: dict[str, Any] = {}
    folder = tempfile.mkdtemp(prefix="joins-")
    try:
        generate = Path(sys.executable).with_name("tpchgen-cli")
        tables = "--tables=lineitem,orders"
        subprocess.run([generate, "parquet", "-s", str(scale), tables, f"--output-dir={folder}"], check=True)
        for number in buckets:
            command = [sys.executable, __file__, "--one", str(number), "--folder", folder]
            process = subprocess.run(command, stdout=subprocess.PIPE, env=environment(".venv"), check=False, text=True)
            if process.returncode:
                # The work of the others is not lost for one of them.
                print(f"joins of {number} buckets failed", flush=True)
            else:
                figures |= json.loads(process.stdout.splitlines()[-1])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return figures


def joins(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds."""
    return table_of(seconds, PHASES, JOIN)


def one(folder: str, buckets: int) -> dict[str, dict[str, float]]:
    """Make both tables, and join them both ways."""
    from pyhudi import HudiTable, TableRows, bucket_join
    from pyspark.sql import functions as sf

    spark = session(spark__sql__autoBroadcastJoinThreshold="-1")

    def make(name: str, record_key: tuple[str, ...]) -> Any:
        rows = spark.read.parquet(f"{folder}/{name}.parquet")
        hashed = {"hoodie.bucket.index.hash.field": record_key[0]}
        path = f"{folder}/{name}-{buckets}"
        made = HudiTable.create(spark, path, rows, record_key=record_key, buckets=buckets, options=hashed)
        made.bulk_insert(rows)
        return made

    lines, orders = make("lineitem", ("l_orderkey", "l_linenumber")), make("orders", ("o_orderkey",))
    some = ("l_orderkey", *SUMMED), ("o_orderkey", PRIORITY)
    every = lines.to_df(meta=False).columns, orders.to_df(meta=False).columns

    def by_bucket(left: Any, right: Any) -> Any:
        return bucket_join(TableRows(lines, left), TableRows(orders, right), ON)

    def by_shuffle(left: Any, right: Any) -> Any:
        mine, theirs = lines.to_df(left), orders.to_df(right)
        return mine.join(theirs, mine.l_orderkey == theirs.o_orderkey)

    def summed(join: Callable[[Any, Any], Any]) -> Any:
        return join(*some).groupBy(PRIORITY).agg(*map(sf.sum, SUMMED)).orderBy(PRIORITY)

    def dropped(join: Callable[[Any, Any], Any]) -> None:
        join(*every).write.format("noop").mode("overwrite").save()

    ways = {BY_BUCKET: by_bucket, BY_SHUFFLE: by_shuffle}
    answers = [summed(join).collect() for join in ways.values()]
    if answers[0] != answers[1]:
        raise SystemExit(f"the joins found {answers}")
    works: dict[str, Callable[[Any], Any]] = {
        "sum": lambda join: summed(join).collect(),
        "all": dropped,
        "planned": lambda join: summed(join)._jdf.queryExecution().executedPlan(),
    }
    took = {
        phase: in_turns({name: partial(work, join) for name, join in ways.items()}) for phase, work in works.items()
    }
    return {row(buckets, name): {phase: took[phase][name] for phase in works} for name in ways}


def in_turns(works: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median of the seconds of each work, which take turns."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(WARM + TIMES):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            taken[name].append(time.perf_counter() - start)
    return {name: round(statistics.median(seconds[WARM:]), 3) for name, seconds in taken.items()}


def main() -> None:
    """Print a table, or as the process of one number of buckets its seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--buckets", nargs="+", type=int, default=list(BUCKETS))
    parser.add_argument("--one", type=int)
    parser.add_argument("--folder", default="")
    arguments = parser.parse_args()
    if arguments.one is None:
        print(joins(measure(arguments.scale, tuple(arguments.buckets))))
        return
    print(json.dumps(one(arguments.folder, arguments.one)))


if __name__ == "__main__":
    sys.exit(main())
