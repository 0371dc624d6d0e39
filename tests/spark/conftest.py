"""One local Spark for all tests of this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import datasource as spark_datasource
from support.s3 import S3Server
from support.seams import patch_seam
from support.sessions import PUSHDOWN, started


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, s3: S3Server) -> Iterator[SparkSession]:
    """Two cores, few shuffle partitions, no UI, a time zone of its own so that nothing depends on UTC by chance."""
    assert os.environ["AWS_ENDPOINT_URL"] == s3.endpoint, "the JVM, and with it every worker, has this environment"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Workers have the environment that the JVM started with, so the folder is named now and filled by the tests.
    folder = tmp_path_factory.mktemp("conf")
    (folder / "hudi-defaults.conf").touch()
    os.environ["HUDI_CONF_DIR"] = str(folder)
    session = started(
        SparkSession.builder.master("local[2]")
        .appName("pyhudi tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.session.timeZone", "America/Los_Angeles")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        # Most of what a query makes is garbage when it ends: the fewer collections, the less is copied.
        .config("spark.driver.extraJavaOptions", "-Xms1g -Xmn500m")
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def plans_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of Spark carry out all plans of services, although those of the tests' tables are small."""
    patch_seam(monkeypatch, "bytes of a plan that needs no tasks", 0)


@pytest.fixture(autouse=True)
def rows_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of Spark write all rows, although those of the tests are few and lie in this process already."""
    patch_seam(monkeypatch, "write few rows without tasks", lambda *_: None)


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    """Spark pushes filters."""
    if not hasattr(spark_datasource, "EqualTo"):
        pytest.skip("filters are pushed since Spark 4.1")
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.unset(PUSHDOWN)
