"""The load several times over in one session, in turns with Spark's own Parquet writer.

A single load differs from the next by a fifth on a busy disk, and the first load of a session pays for the start of
Spark, its Python and the JVM's compiler. So loads are compared by their medians; the cost of a session's first write is
a row of its own (`sizes.py`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

from lineitem import PARTITION, TERMS

if TYPE_CHECKING:
    from stopwatch import Run

# Rows of the loads in turns; no format is one of them.
TURNS = "in turns: "
# pyhudi says that a write is done when the disk keeps it, Spark's own writer before that.
SYNCED = "Parquet, then sync"
BY_PARQUET = f"{TURNS}{SYNCED}"
BY_FORMAT, BY_TABLE = f"{TURNS}df.write", f"{TURNS}HudiTable.upsert"
LOAD = "load"
TIMES = 5


def loads(run: Run) -> list[Any]:
    """Load the table in each way, again and again, each time into an empty folder."""
    from pyhudi import HudiTable

    spark = run.session()
    base = spark.read.parquet(str(run.data / "base"))

    def parquet() -> None:
        base.repartition(8, PARTITION).write.partitionBy(PARTITION).parquet(run.table)
        os.sync()

    def by_format() -> None:
        table = HudiTable.create(spark, run.table, base, **TERMS)
        base.write.format("pyhudi").mode("append").save(table.path)

    def by_table() -> None:
        HudiTable.create(spark, run.table, base, **TERMS).upsert(base)

    ways: dict[str, Callable[[], None]] = {BY_PARQUET: parquet, BY_FORMAT: by_format, BY_TABLE: by_table}
    seconds: dict[str, list[float]] = {row: [] for row in ways}
    for _ in range(TIMES):
        for row, way in ways.items():
            shutil.rmtree(run.table, ignore_errors=True)
            run.timed(row, LOAD, way)
            seconds[row].append(run.seconds[row][LOAD])
    for row, took in seconds.items():
        run.seconds[row][LOAD] = median(took)
    content = run.reads("untimed", HudiTable(spark, run.table).to_df)
    del run.seconds["untimed"]
    return content
