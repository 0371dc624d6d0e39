"""From raw files to a table of totals by two streams: bike rides that arrive as JSON, cleaned and then counted.

    python examples/rides.py

Docks upload the rides of an hour in one file, here every second. Some lines are broken, and some rides come twice.

    files of JSON  --clean-->  table rides  --sum up-->  table totals

Each arrow is a stream of Spark. `clean` is stopped in the middle of its work and started again, as it would be by a
deployment. At the end both tables must equal a plain computation over the files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyhudi import HudiTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, current_timestamp, to_date
from pyspark.sql.functions import sum as total
from pyspark.sql.streaming import StreamingQuery

STATIONS = ("Alfama", "Belém", "Chiado", "Estrela", "Graça")
RIDES_A_FILE = 200
UPLOADED = "ride long, station string, begun timestamp, minutes int"
TOTALS = "station string, rides long, minutes long, counted timestamp"


@dataclass(frozen=True)
class Places:
    """Where everything of this pipeline is."""

    folder: str

    @property
    def uploads(self) -> str:
        return f"{self.folder}/uploads"

    @property
    def rides(self) -> str:
        return f"{self.folder}/rides"

    @property
    def totals(self) -> str:
        return f"{self.folder}/totals"

    def checkpoint(self, stage: str) -> str:
        return f"{self.folder}/checkpoints/{stage}"


def clean(spark: SparkSession, places: Places) -> StreamingQuery:
    """Start the stream that brings each ride of the files into the table of rides once."""
    uploaded = spark.readStream.schema(UPLOADED).option("maxFilesPerTrigger", 2).json(places.uploads)
    rides = (
        uploaded.where("ride is not null and minutes > 0")
        .withWatermark("begun", "2 hours")
        .dropDuplicatesWithinWatermark(["ride"])
        .withColumn("day", to_date("begun").cast("string"))
    )
    writer = rides.writeStream.format("pyhudi").queryName("clean").trigger(processingTime="1 second")
    # These name the key, the folders and the newer of two rows with one key. The first batch makes the table by them.
    writer = writer.options(recordkey="ride", partitionby="day", orderby="begun")
    # No ride comes twice, so that nothing has to be looked up.
    writer = writer.option("operation", "insert")
    return writer.option("checkpointLocation", places.checkpoint("clean")).start(places.rides)


def sum_up(spark: SparkSession, places: Places) -> StreamingQuery:
    """Start the stream that keeps the totals of each station up to date, from what was committed to the rides."""
    rides = spark.readStream.format("pyhudi").load(places.rides)
    totals = rides.groupBy("station").agg(
        count("ride").alias("rides"), total("minutes").alias("minutes"), current_timestamp().alias("counted")
    )
    table = HudiTable.create(spark, places.totals, TOTALS, record_key="station", order_by="counted")
    # In output mode "update" a batch has the stations whose totals changed. Their rows are upserted.
    return table.stream(totals, checkpoint=places.checkpoint("sum up"), output_mode="update")


def upload(places: Places, files: int, every: float) -> Iterator[int]:
    """Land the files one by one, and yield the number of each."""
    for number in range(files):
        hidden = Path(places.uploads, f".{number:04d}")
        hidden.write_text("\n".join(lines_of_file(number)), encoding="utf-8")
        # A file appears as a whole, or Spark would read half of it.
        hidden.rename(hidden.with_name(f"{number:04d}.json"))
        yield number
        time.sleep(every)


def lines_of_file(number: int) -> list[str]:
    """Return the lines of a file: its rides, some of the file before it again, and broken lines."""
    again = rides_of_file(number - 1)[: RIDES_A_FILE // 10] if number else []
    lines = [json.dumps(ride) for ride in rides_of_file(number) + again]
    return [*lines, '{"ride": 12, "stat', json.dumps({"ride": -number, "station": "Chiado", "minutes": -1})]


def rides_of_file(number: int) -> list[dict[str, object]]:
    """Return the rides that a file is the first to have; the same ones each time."""
    drawn = random.Random(number)  # noqa: S311 (nothing is secret)
    return [
        {
            "ride": number * RIDES_A_FILE + ride,
            "station": drawn.choice(STATIONS),
            "begun": f"2026-07-{1 + number // 24:02d}T{number % 24:02d}:{ride % 60:02d}:00Z",
            "minutes": drawn.randint(1, 90),
        }
        for ride in range(RIDES_A_FILE)
    ]


def expected_totals(files: int) -> dict[str, tuple[int, int]]:
    """Return the rides and minutes of each station, computed without Spark."""
    rides, minutes = Counter[str](), Counter[str]()
    for number in range(files):
        for ride in rides_of_file(number):
            station, took = str(ride["station"]), ride["minutes"]
            rides[station] += 1
            minutes[station] += int(str(took))
    return {station: (rides[station], minutes[station]) for station in STATIONS}


def run(spark: SparkSession, places: Places, files: int = 40, every: float = 1.0) -> bool:
    """Run the pipeline until all files are counted, and return whether both tables are as expected."""
    Path(places.uploads).mkdir(parents=True)
    cleaning, counting = clean(spark, places), None
    for number in upload(places, files, every):
        print(f"\r   {number + 1} files uploaded", end="", flush=True)
        if counting is None and HudiTable.exists(spark, places.rides):
            counting = sum_up(spark, places)
        if number == files // 2:
            cleaning.stop()
            cleaning = clean(spark, places)
    print()
    cleaning.processAllAvailable()
    counting = counting or sum_up(spark, places)
    counting.processAllAvailable()
    cleaning.stop()
    counting.stop()
    return compare(spark, places, files)


def compare(spark: SparkSession, places: Places, files: int) -> bool:
    """Print the totals of each station, and return whether the tables hold what they should."""
    expected = expected_totals(files)
    rides = HudiTable(spark, places.rides)
    by_station = totals_of(HudiTable(spark, places.totals).to_df(["station", "rides", "minutes"]))
    from_rides = totals_of(rides.to_df().groupBy("station").agg(count("ride"), total("minutes")))
    print(f"   {'station':<10} {'rides':>7} {'minutes':>9}")
    for station, wanted in expected.items():
        alike = by_station.get(station) == from_rides.get(station) == wanted
        counted, minutes = by_station.get(station, (0, 0))
        verdict = "as expected" if alike else f"EXPECTED {wanted}, and the rides have {from_rides.get(station)}"
        print(f"   {station:<10} {counted:>7,} {minutes:>9,}  {verdict}")
    commits = rides.history().where("operation = 'INSERT'").count()
    print(f"   {sum(rides for rides, _ in by_station.values()):,} rides of {files} files, in {commits} commits")
    return by_station == from_rides == expected


def totals_of(frame: DataFrame) -> dict[str, tuple[int, int]]:
    """Return the first numbers of each station."""
    return {row[0]: (row[1], row[2]) for row in frame.collect()}


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
    alike = run(spark, Places(folder), asked.files)
    spark.stop()
    shutil.rmtree(folder)
    if not alike:
        sys.exit("The tables differ from the files.")


if __name__ == "__main__":
    main()
