"""One system's way through the benchmark's work, and the seconds of its phases."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from lineitem import PARTITION, point_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Differences of less than half a second are chance in a single read.
READS, SOON_S = 3, 5.0


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
        """Do the work and note how long it took, on a disk that has nothing left to write of what came before."""
        os.sync()
        start = time.perf_counter()
        result = work()
        self.seconds.setdefault(row, {})[phase] = round(time.perf_counter() - start, 2)
        return result

    def synced(self, row: str, phase: str, of: str) -> None:
        """Note how long another row's phase, which has just ended, and a sync of all file systems took together."""
        start = time.perf_counter()
        os.sync()
        took = self.seconds[of][phase] + time.perf_counter() - start
        self.seconds.setdefault(row, {})[phase] = round(took, 2)

    def read(self, row: str, phase: str, work: Callable[[], Any]) -> Any:
        """Do a read and note how long it took; a short read counts by the median of several times."""
        result, took = self.timed(row, phase, work), self.seconds[row]
        seconds = [took[phase]]
        while len(seconds) < READS and seconds[0] < SOON_S:
            self.timed(row, phase, work)
            seconds.append(took[phase])
        took[phase] = median(seconds)
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

    def reads(
        self,
        row: str,
        read: Callable[[], DataFrame],
        *,
        whole: bool = True,
        named: Callable[[list[str]], DataFrame] | None = None,
        where: Callable[[str], DataFrame] | None = None,
    ) -> list[Any]:
        """Time the reads, with or without that of the whole table; return what must agree between all systems.

        Args:
            row: Name of the way to read.
            read: Opens the table.
            whole: Whether all columns are read as well.
            named: Opens it for some columns alone, if the system lets a read name them.
            where: Opens it for the rows of a condition, if the system lets a read give one.
        """
        at_point = f"l_orderkey = {point_key(self.scale)} and l_linenumber = 1"
        three = {"l_orderkey": "count", "l_extendedprice": "sum", "l_shipdate": "max"}
        totals = [f"{function}({column})" for column, function in three.items()]
        of_three = read if named is None else partial(named, list(three))
        total = self.read(row, "scan3", lambda: of_three().selectExpr(*totals).collect()[0])
        if whole:
            self.read(row, "scan_all", lambda: read().write.format("noop").mode("overwrite").save())
        of_rows = where or (lambda condition: read().where(condition))
        at_key = self.read(row, "point", lambda: of_rows(at_point).count())
        one_year = "sum(l_extendedprice)"
        self.read(row, "partition", lambda: of_rows(f"{PARTITION} = '1995'").selectExpr(one_year).collect())
        return [total[0], str(total[1]), str(total[2]), at_key]

    def writes(self, row: str, upsert: Callable[[str], Any], load: Callable[[str], Any] | None = None) -> None:
        """Time the load, which is an upsert if nothing else is given, and the two upserts."""
        for phase, part, write in (("load", "base", load or upsert), ("up1", "up1", upsert), ("up2", "up2", upsert)):
            self.timed(row, phase, lambda part=part, write=write: write(str(self.data / part)))
