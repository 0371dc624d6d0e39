"""Spark Connect: no SparkContext, no py4j. In a process of its own, because one process holds one kind of session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc_status", reason="needs pyspark[connect]")

SCRIPT = """
import sys
from pyhudi import HudiTable, colocate, from_spark, suggest_buckets
from pyhudi.connector.jobs import write
from pyhudi.errors import NullKeyError, OptionConflictError
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "3")
    .getOrCreate()
)
assert "connect" in type(spark).__module__
path = sys.argv[1]
df = spark.range(100).selectExpr("id", "cast(id % 3 as string) p", "0 n")
table = HudiTable.create(spark, path, df, record_key="id", partition_by="p", buckets=2)
assert table.to_df().count() == 0
assert table.upsert(df).inserts == 100
assert table.upsert(df.where("id < 10").withColumn("n", sf.lit(1))).updates == 10
assert table.delete(df.where("id >= 90")).deletes == 10
assert table.to_df().count() == spark.read.format("pyhudi").load(path).count() == 90
assert table.to_df().where("n = 1").count() == 10
done = [row.completed for row in table.history().collect()]
assert table.to_df(["id"], since=done[2], until=done[1]).count() == 10
assert table.to_df(as_of=table.history().collect()[2].instant).where("n = 0").count() == 100
assert [row.operation for row in table.history().collect()] == ["DELETE", "UPSERT", "UPSERT"]
assert suggest_buckets(df) == 1
colocate(df, table, tasks=2).write.format("pyhudi").option("hoodie.pyhudi.colocated", "true").mode("append").save(path)
assert table.last_commit().updates == 90
assert table.last_commit().inserts == 10

plain = sys.argv[2]
df.write.format("pyhudi").options(recordkey="id", partitionby="p").mode("append").save(plain)
df.limit(5).write.format("pyhudi").mode("overwrite").save(plain)
assert spark.read.format("pyhudi").option("columns", "id").load(plain).count() == 5
try:
    df.write.format("pyhudi").option("recordkey", "n").mode("append").save(plain)
except Exception as error:
    assert type(from_spark(error)) is OptionConflictError, error
else:
    raise AssertionError("another record key was accepted")

spark.conf.set("hoodie.metadata.enable", "false")
found = table.explain_options(defaults=False).find("hoodie.metadata.enable")
assert (found.value, found.source) == ("false", "the session's hoodie.metadata.enable")
assert write(spark, df.where("id = 1"), path, "upsert", {}).updates == 1
try:
    table.upsert(df.withColumn("id", sf.when(sf.col("id") != 7, sf.col("id"))))
except NullKeyError as error:
    assert str(error).startswith("PyHudiError[NULL_KEY]: ")
else:
    raise AssertionError("a null key was written")
print("all is well")
"""


def test_the_session_api_works_over_spark_connect(tmp_path: Path) -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("SPARK_CONNECT_MODE_ENABLED", None)

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "t"), str(tmp_path / "plain")],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env=environment,
        cwd=tmp_path,
    )

    assert "all is well" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
