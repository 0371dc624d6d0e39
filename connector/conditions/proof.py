"""What Spark says of conditions: their texts, whether two mean the same, the values of times. No job reads any data."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as sf

from ..source.spark_types import to_spark
from .literals import Moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Judge:
    """Spark's analysis of conditions on a table's columns.

    Args:
        spark: The session.
        schema: The columns.
    """

    def __init__(self, spark: SparkSession, schema: pa.Schema) -> None:
        self._spark = spark
        self._frame = spark.createDataFrame([], to_spark(schema))

    @property
    def is_late(self) -> bool:
        """Whether the session's zone is asked for again whenever rows are, as it is on Spark Connect."""
        return "connect" in type(self._spark).__module__

    def texts(self, conditions: Sequence[Column]) -> list[str] | None:
        """Return Spark's texts of conditions; None where it cannot say what one of them means."""
        try:
            return list(self._frame.select(*conditions).columns)
        except PySparkException:
            return None

    def refused(self, condition: Column) -> PySparkException | None:
        """Return why rows cannot be chosen by a condition, None where they can."""
        try:
            _ = self._frame.where(condition).columns
        except PySparkException as error:
            return error
        return None

    def agrees(self, condition: Column, other: Column) -> bool:
        """Return whether Spark makes the same of two conditions, implicit casts and all."""
        try:
            return self._frame.where(condition).sameSemantics(self._frame.where(other))
        except PySparkException:
            return False

    def values(self, moments: Sequence[Moment]) -> dict[Moment, datetime.datetime]:
        """Return the values of times in the session's zone."""
        if not moments:
            return {}
        asked = [sf.unix_micros(sf.lit(one.text).cast("timestamp")) for one in moments]
        row = self._spark.range(1).select(*asked).collect()[0]
        return {one: _EPOCH + datetime.timedelta(microseconds=micros) for one, micros in zip(moments, row, strict=True)}
