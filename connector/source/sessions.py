"""The Spark session of a program: the active session, or a new session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_session(name: str) -> SparkSession:
    """Return the active session, or a new session called ``name``."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder
    if SparkSession.getActiveSession() is None:
        builder = builder.appName(name)
    return builder.getOrCreate()
