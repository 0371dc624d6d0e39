"""The two ways to write with pyhudi beside each other, from three rows to all of lineitem.

Each way works in a process of its own: its first write is the first of its session. Into the loaded table go upserts
of few rows, several times each, then the benchmark's own two, so that the end can be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

from bare import BARE, bare
from lineitem import KEYS, ORDERING, PARTITION

if TYPE_CHECKING:
    from stopwatch import Run

SIZE = "by size: "
PLAIN, TABLE = f"{SIZE}df.write", f"{SIZE}HudiTable.upsert"
DROPPED = f"{SIZE}a Python sink that drops the rows"
FIRST, LOAD, UPSERT = "3 rows, the first write of a session", "all of lineitem, into an empty table", "11 % of it"
FEW = {f"{count:,} rows": count for count in (3, 1_000, 50_000)}
PHASES = (FIRST, *FEW, UPSERT, LOAD)
TIMES = 5


def by_format(run: Run) -> list[Any]:
    """Spark's own verb."""
    return _write(run, PLAIN, lambda table, rows: rows.write.format("pyhudi").mode("append").save(table.path))


def by_table(run: Run) -> list[Any]:
    """The method of `HudiTable`."""
    return _write(run, TABLE, lambda table, rows: table.upsert(rows))


def by_sink(run: Run) -> list[Any]:
    """What Spark takes for the first write of a session when nothing is done with its rows."""
    spark = run.session(spark__sql__shuffle__partitions="200")
    base, few = str(run.data / "base"), f"{run.table}-rows"
    spark.read.parquet(base).limit(3).repartition(2).write.parquet(few)
    rows = spark.read.parquet(few)
    bare(spark, rows.schema)
    run.timed(DROPPED, FIRST, lambda: rows.write.format(BARE).mode("append").save())
    found = run.reads("untimed", lambda: spark.read.parquet(base))
    del run.seconds["untimed"]
    return found


def _write(run: Run, row: str, upsert: Callable[[Any, Any], Any]) -> list[Any]:
    from pyhudi import HudiTable

    # As many as Spark has when nobody says.
    spark = run.session(spark__sql__shuffle__partitions="200")
    parts = {part: spark.read.parquet(str(run.data / part)) for part in ("base", "up1", "up2")}
    table = HudiTable.create(
        spark, run.table, parts["base"], record_key=KEYS, partition_by=PARTITION, order_by=ORDERING, buckets=2
    )
    for count in FEW.values():
        parts["up1"].limit(count).repartition(2).write.parquet(f"{run.table}-rows/{count}")

    few = {phase: spark.read.parquet(f"{run.table}-rows/{count}") for phase, count in FEW.items()}
    run.timed(row, FIRST, lambda: upsert(table, few["3 rows"]))
    run.timed(row, LOAD, lambda: upsert(table, parts["base"]))
    for phase, rows in few.items():
        seconds = []
        for _ in range(TIMES):
            run.timed(row, phase, lambda rows=rows: upsert(table, rows))
            seconds.append(run.seconds[row][phase])
        run.seconds[row][phase] = median(seconds)
    run.timed(row, UPSERT, lambda: upsert(table, parts["up1"]))
    upsert(table, parts["up2"])
    found = run.reads("untimed", table.to_df)
    del run.seconds["untimed"]
    return found


def sizes(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of both ways, where both were measured, and what Spark alone takes of a first write."""
    plain, table = seconds.get(PLAIN, {}), seconds.get(TABLE, {})
    lines = ["| | df.write | HudiTable.upsert | ratio |", "|---|---:|---:|---:|"]
    lines += [
        f"| {phase} | {plain[phase]:.2f} | {table[phase]:.2f} | {table[phase] / plain[phase]:.2f} |"
        for phase in PHASES
        if plain.get(phase) and phase in table
    ]
    dropped = seconds.get(DROPPED, {}).get(FIRST)
    if dropped is not None:
        lines += ["", f"A Python sink that drops the rows takes {dropped:.2f} s for the first write of a session."]
    return "\n".join([*lines, ""])
