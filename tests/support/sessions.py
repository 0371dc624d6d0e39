"""Spark sessions of tests: how they start, and options for a while."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
from interop.hudi_server import leave_permissions_alone
from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from pyspark.sql import SparkSession

# On the path of Spark's Python processes it has them import what they need before they are forked.
WARM = Path(__file__).with_name("warm")

# Whether Spark tells sources in Python of filters, from 4.1 on.
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
# Queries of a few rows never repay the Java that Spark writes and compiles for each of them. The tests of the oldest
# Spark keep to it, so that expressions are run in both ways.
INTERPRETED = (
    {}
    if pyspark.__version__.startswith("4.0.")
    else {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
)

# Skewed partitions are split, and shuffles read where they were written, as soon as Spark may.
RESTLESS = {
    "spark.sql.shuffle.partitions": "20",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1k",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.1",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1",
    "spark.sql.adaptive.forceOptimizeSkewedJoin": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "10m",
}


# With each query Spark describes its plan to listeners, at length by default. Around each call on a column PySpark
# tells Java the line of Python, for messages that no test is about, by eight more calls. Sessions that tests start in
# processes of their own keep to both.
BRIEF = {"spark.sql.ui.explainMode": "simple", "spark.python.sql.dataFrameDebugging.enabled": "false"}

# Of the two ways in which Spark keeps the files of a checkpoint, the one without processes: Hadoop has no other means,
# where its native library is not there, to look at links and to set permissions.
_STREAMING = (
    f"org.apache.spark.sql.execution.streaming{'' if pyspark.__version__.startswith('4.0.') else '.checkpointing'}"
)
CHECKPOINTS = {"spark.sql.streaming.checkpointFileManagerClass": f"{_STREAMING}.FileSystemBasedCheckpointFileManager"}


def keep_names_of_java() -> None:
    """Ask Java once what a name means.

    PySpark asks anew each time, and Java looks for each package of a class as for a class, in all of Spark's jars: a
    tenth of its work.
    """
    for asked in (JVMView, JavaPackage):
        ask = asked.__getattr__
        if ask.__module__ != __name__:
            asked.__getattr__ = _kept(ask)


def _kept(ask: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def get(self: Any, name: str) -> Any:
        member = ask(self, name)
        if isinstance(member, (JavaClass, JavaPackage)):
            self.__dict__[name] = member
        return member

    return get


def started(builder: SparkSession.Builder) -> SparkSession:
    """Start a session whose Python processes are warm, and whose Java compiles no queries and starts no processes."""
    keep_names_of_java()
    for key, value in {**INTERPRETED, **BRIEF, **CHECKPOINTS}.items():
        builder = builder.config(key, value)
    with pytest.MonkeyPatch.context() as patch:
        # Workers have the environment of the JVM, and that the one in which it is started.
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(WARM), os.environ.get("PYTHONPATH")])))
        session = builder.getOrCreate()
    leave_permissions_alone(session)
    return session


@contextmanager
def said(spark: SparkSession, options: Mapping[str, str]) -> Iterator[None]:
    """Set options of the session for a while."""
    before = {key: spark.conf.get(key, None) for key in options}
    try:
        for key, value in options.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)
