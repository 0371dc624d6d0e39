"""Options that nobody gave to the operation: of the session, and of `hudi-defaults.conf`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyhudi import HudiTable
from pyspark.sql import SparkSession


@pytest.fixture
def defaults(spark: SparkSession) -> Iterator[Path]:
    path = Path(os.environ["HUDI_CONF_DIR"]) / "hudi-defaults.conf"
    yield path
    path.write_text("")


@pytest.fixture
def own(spark: SparkSession) -> SparkSession:
    """A session with settings of its own in the same application."""
    return spark.newSession()


def codec(path: Path) -> str:
    newest = max(path.glob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])
    return str(pq.ParquetFile(newest).metadata.row_group(0).column(0).compression).lower()


def test_the_defaults_file_counts_wherever_spark_runs_the_source(
    spark: SparkSession, tmp_path: Path, defaults: Path
) -> None:
    """The file's record key is another table's: it makes new tables, and breaks none that is there."""
    defaults.write_text("hoodie.parquet.compression.codec snappy\nhoodie.datasource.write.recordkey.field=id\n")
    path = tmp_path / "with blank, ü: and colon"
    df = spark.range(3)
    df.write.format("pyhudi").mode("append").save(str(path))
    assert codec(path) == "snappy"

    defaults.write_text("hoodie.datasource.write.recordkey.field=uuid\nhoodie.pyhudi.read.split.size=1\n")
    df.write.format("pyhudi").mode("append").save(str(path))
    assert codec(path) == "zstd"
    assert spark.read.format("pyhudi").load(str(path)).count() == 3

    defaults.write_text("hoodie.pyhudi.read.split.size=nothing")
    with pytest.raises(Exception, match=rf"INVALID_OPTION.*{defaults}:1"):
        spark.read.format("pyhudi").load(str(path)).collect()


def test_a_table_takes_options_from_its_session_and_says_so(own: SparkSession, tmp_path: Path, defaults: Path) -> None:
    defaults.write_text("hoodie.parquet.compression.codec gzip\nhoodie.write.batch.size 1m\n")
    own.conf.set("hoodie.parquet.compression.codec", "snappy")
    own.conf.set("spark.hoodie.bucket.index.num.buckets", "1")
    table = HudiTable.create(own, str(tmp_path / "t"), "id bigint", record_key="id", buckets=2)

    table.upsert(own.range(3))

    assert codec(tmp_path / "t") == "snappy"
    rows = table.explain_options(defaults=False)
    assert rows.find("hoodie.parquet.compression.codec").source == "the session's hoodie.parquet.compression.codec"
    assert rows.find("hoodie.write.batch.size").source == f"{defaults}:2"
    assert rows.find("buckets").value == "2"
    assert rows.find("path").value == str(tmp_path / "t")

    table.upsert(own.range(3), **{"hoodie.parquet.compression.codec": "gzip"})
    assert codec(tmp_path / "t") == "gzip"


def test_a_plain_write_knows_nothing_of_the_session(own: SparkSession, tmp_path: Path) -> None:
    """As in Apache Hudi; Spark gives a Python data source no session."""
    own.conf.set("hoodie.parquet.compression.codec", "snappy")

    own.range(3).write.format("pyhudi").option("recordkey", "id").mode("append").save(str(tmp_path / "t"))

    assert codec(tmp_path / "t") == "zstd"
