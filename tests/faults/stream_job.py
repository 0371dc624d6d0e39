"""Two streams, of files into a table and of that table into another; a program that test_long_streams.py kills."""

from __future__ import annotations

import sys
from pathlib import Path

SCHEMA = "id string, ts long, value long"
OPTIONS = {"recordkey": "id", "orderby": "ts", "buckets": "2"}


def main(folder: Path, kind: str) -> None:
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
    landed = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    options = {**OPTIONS, "hoodie.table.type": kind}
    first = (
        landed.writeStream.format("pyhudi")
        .options(**options)
        .option("checkpointLocation", str(folder / "checkpoint-first"))
        .trigger(availableNow=True)
        .start(str(folder / "first"))
    )
    first.awaitTermination()
    read = spark.readStream.format("pyhudi").option("maxCommitsPerTrigger", 3).load(str(folder / "first"))
    second = (
        read.select("id", "ts", "value")
        .writeStream.format("pyhudi")
        .options(**options)
        .option("checkpointLocation", str(folder / "checkpoint-second"))
        .trigger(availableNow=True)
        .start(str(folder / "second"))
    )
    second.awaitTermination()
    (folder / "done").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
