"""lineitem sorted along a Z-order of two columns, and what queries of a range of each read then.

Every system sorts the table as it was loaded, with files of about the same size. Bytes are those that Spark's process
reads of files, of a query that was run once before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures.tables import table_of
from lineitem import TERMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from stopwatch import Run

ROWS = "sorted: "
OURS, OURS_LOGS = f"{ROWS}HudiTable.sort", f"{ROWS}HudiTable.sort, merge-on-read"
# Iceberg takes no decimals into a Z-order.
COLUMNS = ("l_partkey", "l_suppkey")
SORT, WHOLE = "sort", "all rows, MiB"
PHASES = (SORT, WHOLE, *(f"a range of {column}, MiB" for column in COLUMNS))
# lineitem at scale 1 has as much in each of its fourteen file groups.
FILE_BYTES = 16 << 20
MIB = 1 << 20


def file_bytes(run: Run) -> int:
    """Return the size of the files that the other systems are to make."""
    return max(int(FILE_BYTES * run.scale), MIB)


def conditions(run: Run) -> dict[str, str]:
    """Return a condition on each column that about one row of a hundred satisfies."""
    first_part, first_supplier = int(80_000 * run.scale), int(4_000 * run.scale)
    parts = f"l_partkey between {first_part} and {first_part + int(2_000 * run.scale)}"
    suppliers = f"l_suppkey between {first_supplier} and {first_supplier + int(100 * run.scale) - 1}"
    return dict(zip(COLUMNS, (parts, suppliers), strict=True))


def by_table(run: Run, *, logs: bool = False) -> list[Any]:
    """`HudiTable.sort` of a table that was loaded by one upsert."""
    from pyhudi import HudiTable

    spark, row = run.session(), OURS_LOGS if logs else OURS
    base = spark.read.parquet(str(run.data / "base"))
    terms = {**TERMS, "table_type": "MERGE_ON_READ" if logs else "COPY_ON_WRITE"}
    table = HudiTable.create(spark, run.table, base, **terms)
    table.upsert(base)
    return measured(run, spark, row, lambda: table.sort(by=COLUMNS, curve="zorder"), table.to_df)


def measured(
    run: Run, spark: SparkSession, row: str, sort: Callable[[], object], read: Callable[[], DataFrame]
) -> list[Any]:
    """Time the sort, note the bytes that queries read afterwards, and return what the table holds."""
    run.timed(row, SORT, sort)
    wheres = {WHOLE: "true", **{f"a range of {name}, MiB": text for name, text in conditions(run).items()}}
    for phase, where in wheres.items():
        for _ in range(2):
            before = _bytes_read(spark)
            read().where(where).write.format("noop").mode("overwrite").save()
            run.seconds[row][phase] = round((_bytes_read(spark) - before) / MIB, 1)
    content = run.reads("untimed", read)
    del run.seconds["untimed"]
    return content


def _bytes_read(spark: SparkSession) -> int:
    """Return how many bytes Spark's process has read so far, of files and all else."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    told = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text(encoding="utf-8").splitlines())
    return int(told["rchar"])


def sorting(seconds: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds of the sort, and of the MiB that queries read."""
    return table_of(seconds, PHASES, ROWS)
