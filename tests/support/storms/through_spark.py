"""The part of a storm that runs in a Spark of its own: two writing threads and one of services; and the last read."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyhudi import HudiTable
from support.storms.notes import COUNT, Act, Notes
from support.storms.work import SCHEMA, TABLES, Work

if TYPE_CHECKING:
    from pyhudi.operations.result import CommitResult
    from pyspark.sql import SparkSession

WRITERS = 2


def _session() -> SparkSession:
    from pyspark.sql import SparkSession
    from support.sessions import started

    return started(
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        # Else a process that was paused for two minutes takes its own executor for dead, and ends.
        .config("spark.network.timeout", "600s")
    )


def _carry_out(spark: SparkSession, work: Work, act: Act) -> CommitResult:
    table, options = HudiTable(spark, work.table(act.table)), {**work.options, "hoodie.pyhudi.write.id": act.write_id}
    if act.operation == COUNT:
        keys = ", ".join(f"'{key}'" for key, _, _ in act.rows)
        return table.update({"value": "value + 1"}, f"id in ({keys})", **options)
    rows = spark.createDataFrame(list(act.rows), "id string, p string, value long")
    if act.operation == "delete":
        return table.delete(rows, **options)
    return (table.insert if act.operation == "insert" else table.upsert)(rows, **options)


def _write(spark: SparkSession, work: Work, notes: Notes, thread: int) -> None:
    for act in work.again[thread::WRITERS]:
        notes.around(act, partial(_carry_out, spark, work))
    for act in work.acts(thread):
        if work.over.exists():
            return
        notes.around(act, partial(_carry_out, spark, work))


def _serve(spark: SparkSession, work: Work) -> None:
    while not work.over.exists():
        for name in TABLES:
            done = HudiTable(spark, work.table(name)).run_services(**work.options)
            for failure in done.failed:
                print(f"FAILED {name}: {failure}", flush=True)  # noqa: T201 (the log of the process)
        time.sleep(10)


def _read(spark: SparkSession, work: Work) -> None:
    for name in TABLES:
        for reader, rows in {
            "HudiTable": HudiTable(spark, work.table(name)).to_df().select(*SCHEMA.names),
            "spark.read": spark.read.format("pyhudi").load(work.table(name)).select(*SCHEMA.names),
        }.items():
            found = [list(row) for row in rows.collect()]
            Path(work.folder, f"{name} by {reader}.json").write_text(json.dumps(found))


def main(work: Work) -> None:
    """Write and serve until the storm is over, or read the tables."""
    spark = _session()
    spark.sparkContext.setLogLevel("ERROR")
    if work.kind == "read":
        _read(spark, work)
    else:
        notes = Notes(work.notes)
        with ThreadPoolExecutor(WRITERS + 1) as pool:
            done = [pool.submit(_write, spark, work, notes, thread) for thread in range(WRITERS)]
            done.append(pool.submit(_serve, spark, work))
        for one in done:
            one.result()
    spark.stop()
