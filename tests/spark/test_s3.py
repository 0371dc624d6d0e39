"""A table on S3 through real Spark, whose workers are processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi import HudiTable, colocate
from pyhudi.errors import StorageError, from_spark
from pyspark.sql import DataFrame, SparkSession
from support.s3 import S3Server, new_url

PREFIX = "hoodie.pyhudi.storage."


def numbers(spark: SparkSession, count: int, value: int) -> DataFrame:
    return spark.range(count).selectExpr("id", "cast(id % 2 as string) p", f"{value} n")


def test_a_table_is_written_and_read_with_options(s3: S3Server, spark: SparkSession) -> None:
    """The options reach the planning process, every task, the commit and the readers."""
    url = new_url("s3a")
    options = {f"{PREFIX}{name}": value for name, value in {**s3.options, "key": "of-the-options"}.items()}
    table = {"recordkey": "id", "partitionby": "p", "orderby": "n", "buckets": "2"}
    with s3.watched() as requests:
        for count, value in ((100, 1), (50, 2)):
            rows = numbers(spark, count, value)
            rows.write.format("pyhudi").options(**table, **options).mode("append").save(url)
        found = spark.read.format("pyhudi").options(**options).load(url)

        assert (found.count(), found.where("n = 2").count()) == (100, 50)
        headers = [
            headers for _, key, headers in s3.seen if key.startswith(url.partition("/")[2][1:].partition("/")[2])
        ]
        asked = {one["authorization"].partition("Credential=")[2].partition("/")[0] for one in headers}

    assert asked == {"of-the-options"}
    assert requests["CREATE"] > 0


@pytest.mark.slow
def test_a_table_is_written_and_read_with_the_environment(s3: S3Server, spark: SparkSession) -> None:
    """Spark has no class for S3 here, so that the data source reads what Spark's own reader cannot."""
    url = new_url()
    table = HudiTable.create(spark, url, numbers(spark, 0, 0), record_key="id", partition_by="p", buckets=2)

    assert table.to_df().count() == 0
    assert table.upsert(numbers(spark, 100, 1)).inserts == 100
    assert table.upsert(numbers(spark, 10, 2)).updates == 10
    assert table.delete(numbers(spark, 20, 0)).deletes == 20
    for scheme in ("s3", "s3a"):
        frame = HudiTable(spark, url.replace("s3:", f"{scheme}:")).to_df(["n", "id"])
        assert frame.columns == ["n", "id"]
        assert frame.groupBy("n").count().collect()[0].asDict() == {"n": 1, "count": 80}
    assert "_hoodie_record_key" in table.to_df().columns
    placed = colocate(numbers(spark, 5, 3), url)
    placed.write.format("pyhudi").option("hoodie.pyhudi.colocated", "true").mode("append").save(url)
    assert spark.read.format("pyhudi").load(url).where("n = 3").count() == 5


def test_a_store_out_of_reach_is_named(spark: SparkSession, tmp_path: Path) -> None:
    options = {f"{PREFIX}endpoint_url": "http://127.0.0.1:9", f"{PREFIX}key": "k", f"{PREFIX}secret": "s"}
    options[f"{PREFIX}config_kwargs"] = '{"retries": {"max_attempts": 1}, "connect_timeout": 1}'
    with pytest.raises(Exception, match="PyHudiError") as raised:
        spark.read.format("pyhudi").options(**options).load("s3://bucket/t").count()

    error = from_spark(raised.value)
    assert isinstance(error, StorageError)
    assert "s3://bucket/t" in str(error)
