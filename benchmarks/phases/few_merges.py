"""`HudiTable.merge` of a thousand rows by the key into all of lineitem, beside an upsert of the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

from figures.tables import Bound, bounds_of, table_of
from lineitem import KEYS, PARTS, TERMS

from phases.merging import NEWER, SAME_KEY

if TYPE_CHECKING:
    from stopwatch import Run

FEW = "few rows: "
MERGED, UPSERTED = f"{FEW}HudiTable.merge", f"{FEW}HudiTable.upsert"
COUNT, TIMES = 1_000, 5
PHASE = f"{COUNT:,} rows"
# What is promised of a warm merge.
MOST_S, MOST_TIMES = 2.0, 1.3


def by_table(run: Run, *, logs: bool = False) -> list[Any]:
    """Merge and upsert in turns, the median of several times, then do the benchmark's own upserts."""
    from pyhudi import HudiTable
    from pyspark.sql import functions as sf

    spark = run.session()
    terms = {**TERMS, "table_type": "MERGE_ON_READ" if logs else "COPY_ON_WRITE"}
    table = HudiTable.create(spark, run.table, spark.read.parquet(str(run.data / "base")), **terms)
    table.upsert(spark.read.parquet(str(run.data / "base")))
    drawn = spark.read.parquet(str(run.data / PARTS[1])).orderBy(sf.hash(*KEYS)).limit(COUNT)
    drawn.coalesce(1).write.parquet(f"{run.table}-rows")
    rows = spark.read.parquet(f"{run.table}-rows")
    merge = table.merge(rows, SAME_KEY).when_matched_update_all(NEWER).when_not_matched_insert_all()
    ways: dict[str, Callable[[], Any]] = {MERGED: merge.execute, UPSERTED: lambda: table.upsert(rows)}
    kind = ", merge-on-read" if logs else ""
    seconds: dict[str, list[float]] = {f"{row}{kind}": [] for row in ways}
    for work in ways.values():
        work()  # the first of a session
    for _ in range(TIMES):
        for row, work in ways.items():
            run.timed(f"{row}{kind}", PHASE, work)
            seconds[f"{row}{kind}"].append(run.seconds[f"{row}{kind}"][PHASE])
    for row, took in seconds.items():
        run.seconds[row][PHASE] = median(took)
    for part in PARTS[1:]:
        table.upsert(spark.read.parquet(str(run.data / part)))
    content = run.reads("untimed", table.to_df)
    del run.seconds["untimed"]
    return content


def few_merges(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds."""
    return table_of(seconds, (PHASE,), FEW)


def verdicts(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of what is promised: seconds on merge-on-read, and on copy-on-write those of the upsert."""
    promises: list[Bound] = []
    logged, merged, upserted = (seconds.get(row, {}) for row in (f"{MERGED}, merge-on-read", MERGED, UPSERTED))
    if PHASE in logged:
        promises.append(Bound(f"merge-on-read: seconds of a merge of {PHASE}", logged[PHASE], MOST_S, digits=1))
    if PHASE in merged and PHASE in upserted:
        ratio = merged[PHASE] / upserted[PHASE]
        promises.append(Bound("copy-on-write: such a merge, against an upsert", ratio, MOST_TIMES))
    return bounds_of(promises)
