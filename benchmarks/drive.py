"""Drive one system through the benchmark's work, in a process and an environment of its own.

    python drive.py SYSTEM DATA TABLE SCALE MEMORY

The last line of stdout is JSON: for each row of the report the seconds per phase, and what the system found in its
table at the end. A new system is a function here and an entry of `SYSTEMS`.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lineitem import KEYS, ORDERING, PARTITION, point_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
OPTIONS = {
    "hoodie.table.name": "lineitem",
    "hoodie.datasource.write.recordkey.field": ",".join(KEYS),
    "hoodie.datasource.write.partitionpath.field": PARTITION,
    "hoodie.datasource.write.precombine.field": ORDERING,
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
}


@dataclass
class Run:
    """One system's way through the work.

    Attributes:
        data: Folder of the parts.
        table: Where the system's table goes.
        scale: Scale factor of the data.
        memory: Memory of Spark's driver.
        seconds: Row of the report -> phase -> seconds.
    """

    data: Path
    table: str
    scale: float
    memory: str
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)

    def timed(self, row: str, phase: str, work: Callable[[], Any]) -> Any:
        """Do the work and note how long it took."""
        start = time.perf_counter()
        result = work()
        self.seconds.setdefault(row, {})[phase] = round(time.perf_counter() - start, 2)
        return result

    def session(self, **settings: str) -> SparkSession:
        """Start Spark, alike for every system, and let it do a job before anything is timed."""
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").appName("benchmark")
        common = {
            "spark.driver.memory": self.memory,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "8",
        }
        for key, value in (common | {key.replace("__", "."): value for key, value in settings.items()}).items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        spark.range(100_000).selectExpr("sum(id)", "count(distinct id)").collect()
        return spark

    def reads(self, row: str, read: Callable[[], DataFrame]) -> list[Any]:
        """Time the four reads; return what must agree between all systems."""
        at_point = f"l_orderkey = {point_key(self.scale)} and l_linenumber = 1"
        three = ("count(l_orderkey)", "sum(l_extendedprice)", "max(l_shipdate)")
        total = self.timed(row, "scan3", lambda: read().selectExpr(*three).collect()[0])
        self.timed(row, "scan_all", lambda: read().write.format("noop").mode("overwrite").save())
        found = self.timed(row, "point", lambda: read().where(at_point).count())
        one_year = "sum(l_extendedprice)"
        self.timed(row, "partition", lambda: read().where(f"{PARTITION} = '1995'").selectExpr(one_year).collect())
        return [total[0], str(total[1]), str(total[2]), found]

    def writes(self, row: str, write: Callable[[str], Any]) -> None:
        """Time the load and the two upserts."""
        for phase, part in (("load", "base"), ("up1", "up1"), ("up2", "up2")):
            self.timed(row, phase, lambda part=part: write(str(self.data / part)))


def apache_hudi(run: Run) -> list[Any]:
    """Apache Hudi itself: copy-on-write, bucket index, everything else as it comes."""
    spark = run.session(
        spark__jars__packages=BUNDLE,
        spark__serializer="org.apache.spark.serializer.KryoSerializer",
        spark__kryo__registrator="org.apache.spark.HoodieSparkKryoRegistrar",
        spark__sql__extensions="org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        spark__sql__catalog__spark_catalog="org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    )
    parallelism = {"hoodie.upsert.shuffle.parallelism": "8", "hoodie.bulkinsert.shuffle.parallelism": "8"}

    def write(rows: str) -> None:
        writer = spark.read.parquet(rows).write.format("hudi").options(**OPTIONS, **parallelism)
        writer.option("hoodie.datasource.write.operation", "upsert").mode("append").save(run.table)

    run.writes("Apache Hudi", write)
    return run.reads("Apache Hudi", lambda: spark.read.format("hudi").load(run.table))


def pyhudi_plain(run: Run) -> list[Any]:
    """pyhudi through Spark's own verbs; its table is read in both ways."""
    from pyhudi import HudiTable

    spark = run.session()

    def write(rows: str) -> None:
        spark.read.parquet(rows).write.format("pyhudi").options(**OPTIONS).mode("append").save(run.table)

    run.writes("pyhudi, df.write", write)
    by_table = run.reads("pyhudi, HudiTable.to_df", lambda: HudiTable(spark, run.table).to_df())
    by_format = run.reads("pyhudi, df.write", lambda: spark.read.format("pyhudi").load(run.table))
    if by_table != by_format:
        raise SystemExit(f"to_df() found {by_table}, the data source {by_format}")
    return by_format


def pyhudi_colocated(run: Run) -> list[Any]:
    """pyhudi through HudiTable, which places each file group in one task; reads are those of the plain run."""
    from pyhudi import HudiTable

    spark = run.session()
    table = HudiTable.create(
        spark,
        run.table,
        spark.read.parquet(str(run.data / "base")),
        record_key=KEYS,
        partition_by=PARTITION,
        order_by=ORDERING,
        buckets=2,
    )
    run.writes("pyhudi, HudiTable.upsert", lambda rows: table.upsert(spark.read.parquet(rows)))
    return Run(run.data, run.table, run.scale, run.memory).reads("untimed", table.to_df)


def parquet(run: Run) -> list[Any]:
    """Plain Parquet, which cannot upsert: the load and the reads of what was loaded."""
    spark = run.session()

    def write() -> None:
        rows = spark.read.parquet(str(run.data / "base"))
        rows.repartition(8, PARTITION).write.partitionBy(PARTITION).parquet(run.table)

    run.timed("Parquet", "load", write)
    return run.reads("Parquet", lambda: spark.read.parquet(run.table))


@dataclass(frozen=True)
class System:
    """How a system is run.

    Attributes:
        drive: Does the work and returns what was found at the end.
        venv: The virtual environment it needs.
        holds: The state its table ends in: "final", or "base" for one that cannot upsert.
    """

    drive: Callable[[Run], list[Any]]
    venv: str = ".venv"
    holds: str = "final"


SYSTEMS = {
    "hudi-cow-bucket": System(apache_hudi, venv=".venv-hudi"),
    "pyhudi": System(pyhudi_plain),
    "pyhudi-colocated": System(pyhudi_colocated),
    "parquet": System(parquet, holds="base"),
}


if __name__ == "__main__":
    name, data, table, scale, memory = sys.argv[1:]
    shutil.rmtree(table, ignore_errors=True)
    run = Run(Path(data), table, float(scale), memory)
    found = SYSTEMS[name].drive(run)
    print(json.dumps({"seconds": run.seconds, "found": found}))
