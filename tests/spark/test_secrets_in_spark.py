"""Secrets of a store, searched for in what Spark shows: plans, event logs, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyhudi import HudiTable
from pyspark.sql import SparkSession
from support.s3 import S3Server, new_url
from support.sessions import said

PREFIX = "hoodie.pyhudi.storage."
NEEDLE = "vErYsEcReT"


@pytest.fixture
def event_log(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Gives what an event log of this test holds by now."""
    jvm, context = spark.sparkContext._jvm, spark._jsc.sc()
    plain = context.conf().clone().set("spark.eventLog.compress", "false")
    log = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "test", jvm.scala.Option.empty(), jvm.java.net.URI(tmp_path.as_uri()), plain, context.hadoopConfiguration()
    )
    log.start()
    context.addSparkListener(log)

    def read() -> str:
        context.listenerBus().waitUntilEmpty()
        return "".join(file.read_text() for file in tmp_path.rglob("*") if file.is_file())

    yield read
    context.removeSparkListener(log)
    log.stop()


def test_plans_and_event_logs_show_none(
    s3: S3Server,
    spark: SparkSession,
    event_log: Callable[[], str],
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By the names that Spark hides, which `HudiTable` gives to options by itself; the plan of a view shows them."""
    url = new_url()
    reached = {f"{PREFIX}endpoint_url": s3.endpoint, f"{PREFIX}region": "us-east-1"}
    plain = {**reached, f"{PREFIX}key": f"{NEEDLE}1", f"{PREFIX}secret": f"{NEEDLE}2"}
    hidden = {**reached, f"{PREFIX}secret.key": f"{NEEDLE}1", f"{PREFIX}secret.secret": f"{NEEDLE}2"}
    rows = spark.range(9).selectExpr("id", "id % 2 as p")
    # At the length that Spark describes plans by itself.
    with said(spark, {"spark.sql.ui.explainMode": "formatted"}):
        table = HudiTable.create(spark, url, rows, record_key="id", partition_by="p", buckets=2, options=plain)
        table.upsert(rows)
        table.to_df().createOrReplaceTempView("by_table")
        rows.write.format("pyhudi").options(**hidden).mode("append").save(url)
        spark.read.format("pyhudi").options(**hidden).load(url).createOrReplaceTempView("by_format")
        for view in ("by_table", "by_format"):
            shown = spark.table(view).where("id = 1")
            shown.explain(extended=True)

            assert shown.count() == 1
        with pytest.raises(Exception, match="MISSING_COLUMN") as raised:
            rows.drop("id").write.format("pyhudi").options(**hidden).mode("append").save(url)

    events = event_log()
    assert f"{PREFIX}secret.key=*********(redacted)" in events
    assert NEEDLE not in events
    assert NEEDLE not in f"{raised.value}{caplog.text}{''.join(capfd.readouterr())}"
