"""Run Spark once and archive the classes that its Java loads: a Java that finds them there starts in half the time.

Run by `make`, before the tests that start Spark; tests/conftest.py names the archive to each Java.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession
from support.sessions import started


def main(archive: str, folder: str) -> None:
    """Write and read a table."""
    # Not by the environment, of which the Java that only writes Spark's command line would make an archive too.
    builder = SparkSession.builder.master("local[2]").config(
        "spark.driver.extraJavaOptions", f"-XX:ArchiveClassesAtExit={archive} -Xlog:disable"
    )
    for key, value in (("ui.enabled", "false"), ("eventLog.enabled", "true"), ("eventLog.dir", Path(folder).as_uri())):
        builder = builder.config(f"spark.{key}", value)
    spark = started(builder)
    rows = spark.range(10).selectExpr("id", "CAST(id AS string) AS name").coalesce(1)
    rows.write.format("pyhudi").options(recordkey="id", orderby="id").mode("append").save(f"{folder}/t")
    spark.read.format("pyhudi").load(f"{folder}/t").createOrReplaceTempView("t")
    spark.sql("SELECT name, count(*) FROM t WHERE id > 2 GROUP BY name ORDER BY name").collect()
    rows.write.parquet(f"{folder}/p")
    spark.read.parquet(f"{folder}/p").filter("id > 2").collect()
    gateway = SparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as where:
        main(sys.argv[1], where)
