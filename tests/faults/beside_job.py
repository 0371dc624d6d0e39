"""A stream of files into a table, and batch upserts beside it: two programs that test_long_streams.py starts."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

SCHEMA = "id string, ts long, value long"
OPTIONS = {"recordkey": "id", "orderby": "ts", "buckets": "4"}
# Keys that the stream and the batches both change, and keys of the batches alone, in all buckets.
SHARED, OWN = 8, 200


def main(role: str, folder: Path, kind: str) -> None:
    from pyspark.sql import SparkSession
    from support.sessions import started

    spark = started(
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
    )
    spark.sparkContext.setLogLevel("ERROR")
    result = ROLES[role](spark, folder, kind)
    (folder / f"{role}.json").write_text(json.dumps(result), encoding="utf-8")


def stream(spark: Any, folder: Path, kind: str) -> dict[str, int]:
    """Write what lands until the file `stop` is there; return how many batches there were."""
    query = (
        spark.readStream.schema(SCHEMA)
        .json(str(folder / "in"))
        .writeStream.format("pyhudi")
        .options(**OPTIONS, **{"hoodie.table.type": kind})
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .start(str(folder / "table"))
    )
    while not (folder / "stop").exists() and query.isActive:
        time.sleep(0.1)
    query.processAllAvailable()
    assert query.exception() is None
    query.stop()
    # Spark keeps the notes of the last hundred batches.
    return {"batches": 1 + max(int(path.name) for path in (folder / "checkpoint" / "commits").glob("[0-9]*"))}


def batches(spark: Any, folder: Path, kind: str) -> dict[str, int]:
    """Upsert rows of all buckets until the file `stop` is there; return how often, and the last ordering value."""
    from pyhudi import HudiTable

    while not (folder / "table" / ".hoodie" / "hoodie.properties").exists():
        time.sleep(0.1)
    table, turns, ts = HudiTable(spark, str(folder / "table")), 0, 0
    while not (folder / "stop").exists():
        turns, ts = turns + 1, 2 * (time.time_ns() // 1000) + 1
        keys = [f"b{number}" for number in range(OWN)] + [f"h{number}" for number in range(SHARED)]
        table.upsert(spark.createDataFrame([(key, ts, ts) for key in keys], SCHEMA))
        (folder / "began").touch()
    return {"upserts": turns, "last": ts}


ROLES = {"stream": stream, "batches": batches}

if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
