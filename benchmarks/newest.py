"""Upserts of the newest 1% of a table's keys through Spark, and the share of the time that finding the keys takes.

    python benchmarks/newest.py

Keys are in the order of time, as those of events are, so that ranges rule out all files but one. The lookup itself is
measured without Spark by `indexes`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from indexes import LARGEST, MOST, UPSERTED
from many_files import expect, session
from phases.lookups import INDEXES
from processes import environment

NEWEST = "newest: "
WAYS = ("df.write", "HudiTable.upsert")
# In a session that is warm by then; the middle one counts.
UPSERTS, WARM = 11, 2


def measure() -> dict[str, dict[str, float]]:
    """Return how long the upserts take, and finding their keys in it, by index and way to write."""
    figures: dict[str, dict[str, float]] = {}
    for index in INDEXES:
        command = [sys.executable, __file__, "--one", index]
        process = subprocess.run(command, stdout=subprocess.PIPE, env=environment(".venv"), check=False, text=True)
        if process.returncode:
            # The work of the others is not lost for one of them.
            print(f"{index} failed on the newest keys", flush=True)
        else:
            figures |= json.loads(process.stdout.splitlines()[-1])
    return figures


def newest(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the seconds, and of the share that finding has in them."""
    lines = ["| | upsert, s | finding, s | share |", "|---|---:|---:|---:|"]
    for row, phases in rows.items():
        if row.startswith(NEWEST):
            share = phases["finding"] / phases["upsert"]
            shown = f"{share:.1%}" if share <= MOST else f"{share:.1%}, promised {MOST:.0%}"
            lines.append(f"| {row.removeprefix(NEWEST)} | {phases['upsert']:.2f} | {phases['finding']:.3f} | {shown} |")
    return "\n".join([*lines, ""])


def _one(index: str) -> dict[str, dict[str, float]]:
    """Measure one index in a session of its own."""
    from pyhudi import HudiTable

    spark = session(spark__sql__shuffle__partitions="8")
    key = "concat('20260101', lpad(id, 12, '0')) as id"
    columns = (key, "rand(1) as a", "rand(2) as b", "rand(3) as c", "cast(rand(4) as string) as text")
    rows = spark.range(UPSERTED, numPartitions=1).selectExpr(*columns)
    few = spark.range(UPSERTED - UPSERTED // 100, UPSERTED, numPartitions=2).selectExpr(*columns).persist()
    few.count()
    sizes = {"hoodie.parquet.small.file.limit": "0", "hoodie.parquet.max.file.size": str(LARGEST)}
    with tempfile.TemporaryDirectory(prefix="pyhudi-newest-") as folder:
        path = f"{folder}/t"
        made = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.index.type": index, **sizes}
        loading = rows.write.format("pyhudi").options(**made).option("hoodie.datasource.write.operation", "bulk_insert")
        loading.mode("append").save(path)
        table = HudiTable(spark, path)
        writing = few.write.format("pyhudi").options(**sizes).mode("append")

        def by_format() -> Any:
            writing.save(path)
            return table.last_commit()

        ways: tuple[Callable[[], Any], ...] = (by_format, lambda: table.upsert(few, **sizes))
        return {f"{NEWEST}{index}, {way}": _middle(write) for way, write in zip(WAYS, ways, strict=True)}


def _middle(write: Callable[[], Any]) -> dict[str, float]:
    runs = []
    for _ in range(WARM + UPSERTS):
        start = time.perf_counter()
        result = write()
        took = time.perf_counter() - start
        expect(result.updates, UPSERTED // 100)
        runs.append((took, result.lookup.seconds))
    upsert, finding = sorted(runs[WARM:], key=lambda run: run[1] / run[0])[UPSERTS // 2]
    return {"upsert": upsert, "finding": finding}


def main() -> None:
    """Print what was measured."""
    if "--one" in sys.argv:
        print(json.dumps(_one(sys.argv[-1])))
    else:
        print(newest(measure()))


if __name__ == "__main__":
    main()
