"""The two ways to write with pyhudi beside each other, from three rows to all of lineitem.

Each way works in a process of its own: its first write is the first of its session. Into the loaded table go upserts
of few rows, several times each, then the benchmark's own two, so that the end can be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

from lineitem import TERMS

from phases.bare import BARE, bare

if TYPE_CHECKING:
    from stopwatch import Run

SIZE = "by size: "
PLAIN, TABLE = f"{SIZE}df.write", f"{SIZE}HudiTable.upsert"
PLAIN_LOGS, TABLE_LOGS = f"{PLAIN}, merge-on-read", f"{TABLE}, merge-on-read"
DROPPED = f"{SIZE}a Python sink that drops the rows"
FIRST, LOAD, UPSERT = "3 rows, the first write of a session", "all of lineitem, into an empty table", "11 % of it"
# A thousandth of lineitem at scale 1.
THOUSANDTH = "6,000 rows"
FEW = {f"{count:,} rows": count for count in (3, 1_000, 6_000, 50_000)}
PHASES = (FIRST, *FEW, UPSERT, LOAD)
TIMES = 5


def by_format(run: Run, *, logs: bool = False) -> list[Any]:
    """Spark's own verb."""

    def upsert(table: Any, rows: Any) -> None:
        rows.write.format("pyhudi").mode("append").save(table.path)

    return _write(run, PLAIN_LOGS if logs else PLAIN, upsert, logs=logs)


def by_table(run: Run, *, logs: bool = False) -> list[Any]:
    """The method of `HudiTable`."""
    return _write(run, TABLE_LOGS if logs else TABLE, lambda table, rows: table.upsert(rows), logs=logs)


def by_sink(run: Run) -> list[Any]:
    """What Spark takes for the first write of a session when nothing is done with its rows."""
    spark = run.session(spark__sql__shuffle__partitions="200")
    base, few = str(run.data / "base"), f"{run.table}-rows"
    spark.read.parquet(base).limit(3).repartition(2).write.parquet(few)
    rows = spark.read.parquet(few)
    bare(spark, rows.schema)
    run.timed(DROPPED, FIRST, lambda: rows.write.format(BARE).mode("append").save())
    content = run.reads("untimed", lambda: spark.read.parquet(base))
    del run.seconds["untimed"]
    return content


def _write(run: Run, row: str, upsert: Callable[[Any, Any], Any], *, logs: bool) -> list[Any]:
    from pyhudi import HudiTable

    # As many as Spark has when nobody says.
    spark = run.session(spark__sql__shuffle__partitions="200")
    parts = {part: spark.read.parquet(str(run.data / part)) for part in ("base", "up1", "up2")}
    table = HudiTable.create(
        spark,
        run.table,
        parts["base"],
        **TERMS,
        table_type="MERGE_ON_READ" if logs else "COPY_ON_WRITE",
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
    content = run.reads("untimed", table.to_df)
    del run.seconds["untimed"]
    return content


def sizes(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of all ways that were measured, and what Spark alone takes of a first write."""
    ways = [row for row in (PLAIN, TABLE, PLAIN_LOGS, TABLE_LOGS) if row in seconds]
    lines = [f"| | {' | '.join(row.removeprefix(SIZE) for row in ways)} |", f"|---|{'---:|' * len(ways)}"]
    lines += [f"| {phase} | {' | '.join(f'{seconds[row][phase]:.2f}' for row in ways)} |" for phase in PHASES]
    dropped = seconds.get(DROPPED, {}).get(FIRST)
    if dropped is not None:
        lines += ["", f"A Python sink that drops the rows takes {dropped:.2f} s for the first write of a session."]
    return "\n".join([*lines, ""])
