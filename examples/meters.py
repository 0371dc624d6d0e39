"""A stream and an hourly batch in one table, with the table's services beside them: the readings of meters.

    python examples/meters.py

A stream upserts new readings every second. Every hour, here every eight seconds, a batch corrects the readings of one
street. Neither cleans, archives or compacts: a third party runs the services that are due. All three work on the same
table at once, and none knows of the others. At the end the table must equal a plain computation.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyhudi import CommitResult, HudiTable, ServicesResult
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

METERS, STREETS = 2_000, 5
READINGS_A_FILE = 500
COLUMNS = "meter long, street string, kwh long, revision long"
SCHEMA = pa.schema([("meter", pa.int64()), ("street", pa.string()), ("kwh", pa.int64()), ("revision", pa.int64())])
# Of two readings of a meter the one with the greater revision counts, whichever comes first.
CORRECTED = 1_000_000
# Writers leave the services to the third party.
NO_SERVICES = {"hoodie.table.services.enabled": "false"}

Done = TypeVar("Done")


def readings(meters: np.ndarray, revision: int) -> pa.Table:
    """Return a reading of each of these meters; no two revisions of a meter have the same value."""
    streets = [f"street {meter % STREETS}" for meter in meters.tolist()]
    columns = [pa.array(meters), pa.array(streets), pa.array(meters * 3 + revision), pa.repeat(revision, len(meters))]
    return pa.table(columns, schema=SCHEMA)


def readings_of_file(number: int) -> pa.Table:
    """Return the readings of the stream's file: 500 meters, other ones in the next file."""
    return readings((np.arange(READINGS_A_FILE) * 3 + number * 700) % METERS, number)


def corrections(hour: int) -> pa.Table:
    """Return the hour's corrections: all meters of one street."""
    return readings(np.arange(hour % STREETS, METERS, STREETS), CORRECTED + hour)


def stream(spark: SparkSession, files: str, table: HudiTable, checkpoint: str) -> StreamingQuery:
    """Start the stream, which upserts a file each second."""
    rows = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(files)
    writer = rows.writeStream.format("pyhudi").options(**NO_SERVICES).trigger(processingTime="1 second")
    return writer.option("checkpointLocation", checkpoint).start(table.path)


@contextmanager
def repeated(work: Callable[[int], Done], every: float) -> Iterator[list[Done]]:
    """Do some work again and again in a thread of its own, give it the turn's number, and collect what it returns."""
    over = threading.Event()
    results: list[Done] = []

    def keep_working() -> None:
        while not over.wait(every):
            results.append(work(len(results)))

    with ThreadPoolExecutor(1) as pool:
        worker = pool.submit(keep_working)
        try:
            yield results
        finally:
            over.set()
        # Raises what the work failed of.
        worker.result()


def run(spark: SparkSession, folder: str, files: int = 40, hour: float = 8.0) -> bool:
    """Let all three work until the stream has read its files, and return whether the table is as expected."""
    landed = Path(folder, "files")
    landed.mkdir(parents=True)
    for number in range(files):
        pq.write_table(readings_of_file(number), landed / f"{number:04d}.parquet")
    table = HudiTable.create(
        spark,
        f"{folder}/meters",
        COLUMNS,
        record_key="meter",
        partition_by="street",
        order_by="revision",
        buckets=1,
        table_type="mor",
    )

    def correct(turn: int) -> CommitResult:
        return HudiTable(spark, table.path).upsert(corrections(turn), **NO_SERVICES)

    def serve(turn: int) -> ServicesResult:
        services = HudiTable(spark, table.path).run_services()
        print(f"   {services}", flush=True)
        return services

    with repeated(correct, hour) as corrected, repeated(serve, hour / 2) as rounds:
        query = stream(spark, str(landed), table, f"{folder}/checkpoint")
        query.processAllAvailable()
        query.stop()
    print(f"   {len(corrected)} hours corrected, {len(rounds)} rounds of services")
    for failed in [failed for done in rounds for failed in done.failed]:
        print(f"   FAILED: {failed}")
    return compare(table, files, len(corrected)) and not any(done.failed for done in rounds)


def compare(table: HudiTable, files: int, hours: int) -> bool:
    """Print the sums of each street, and return whether the table holds what it should."""
    newest = {}
    for rows in [*map(readings_of_file, range(files)), *map(corrections, range(hours))]:
        newest |= {row["meter"]: row for row in rows.to_pylist()}
    by_meter = {row.meter: row.asDict() for row in table.to_df(meta=False).collect()}
    for number in range(STREETS):
        street = f"street {number}"
        sums = [sum(row["kwh"] for row in rows.values() if row["street"] == street) for rows in (by_meter, newest)]
        print(f"   {street}: {sums[0]:>13,} kWh  {'as expected' if sums[0] == sums[1] else f'EXPECTED {sums[1]:,}'}")
    writes = table.history().where("operation = 'UPSERT'").count()
    print(f"   {len(by_meter):,} meters, {writes} writes on the timeline")
    return by_meter == newest


def main() -> None:
    """Run the example in a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=40)
    asked = parser.parse_args()
    # Spark's own processes have to run the Python that has pyhudi.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    folder = tempfile.mkdtemp()
    alike = run(spark, folder, asked.files)
    spark.stop()
    shutil.rmtree(folder)
    if not alike:
        sys.exit("The table differs from what was written.")


if __name__ == "__main__":
    main()
