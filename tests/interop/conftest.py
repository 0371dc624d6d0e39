"""One Spark 4 with pyhudi and one Spark 3.5 with Apache Hudi for all interop tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from interop.apache_hudi import ApacheHudi
from interop.readers import Readers
from interop.scenarios import Scenario
from interop.writer import Writer
from pyspark.sql import SparkSession
from support.sessions import started

os.environ["PYSPARK_PYTHON"] = sys.executable  # else Spark's workers take python3 from the PATH


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark 4 with nothing set that pyhudi would need."""
    session = started(
        SparkSession.builder.master("local[2]")
        .appName("pyhudi-interop")
        .config("spark.driver.memory", "1500m")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheHudi]:
    """Apache Hudi, started once."""
    process = ApacheHudi(tmp_path_factory.mktemp("apache-hudi"))
    yield process
    process.close()


@pytest.fixture(scope="session")
def readers(spark: SparkSession, apache: ApacheHudi) -> Readers:
    """All readers."""
    return Readers(spark, apache)


@pytest.fixture
def table(tmp_path: Path, scenario: Scenario) -> Path:
    """Where the table will be; its folder's name has a blank."""
    return tmp_path / f"a {scenario.name}"


@pytest.fixture
def hudi(apache: ApacheHudi, scenario: Scenario) -> Iterator[ApacheHudi]:
    """Apache Hudi with the Hadoop options that the scenario needs."""
    apache.call("hadoop", settings=dict(scenario.hadoop))
    yield apache
    apache.call("hadoop", settings=dict.fromkeys(scenario.hadoop))


@pytest.fixture
def pyhudi(spark: SparkSession, table: Path, tmp_path: Path) -> Writer:
    """pyhudi, without any option that the table itself can tell."""
    return Writer(spark, table, tmp_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure: what was not tried was not proved."""
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped: {report.longrepr}"
    return report
