"""Units of a table service as tasks of Spark: one each, on any session, with nothing but a Python function."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType

from ..source.own_errors import own_errors

Unit = TypeVar("Unit")
Done = TypeVar("Done")


class SparkTasks:
    """An executor on Spark; what it calls must be safe to run twice, as Spark runs tasks again.

    Args:
        spark: The session.
        what: Is done, for Spark's own pages.
    """

    def __init__(self, spark: SparkSession, what: str) -> None:
        self._spark = spark
        self._what = what

    def __call__(self, call: Callable[[Unit], Done], units: Sequence[Unit]) -> list[Done]:
        """Return what the call returned for each unit, in the units' order.

        Raises:
            PyHudiError: A call raised it, again and again.
        """
        waiting = list(units)
        if not waiting:
            return []

        def run(number: int) -> bytes:
            return pickle.dumps(call(waiting[number]))

        # Arrow would want pandas on Spark 4.0.
        task = sf.udf(run, BinaryType(), useArrow=False)
        numbers = self._spark.range(0, len(waiting), 1, len(waiting))
        with own_errors():
            done = numbers.select("id", task("id").alias(self._what)).collect()
        return [pickle.loads(row[1]) for row in sorted(done, key=lambda row: row[0])]  # noqa: S301 (made above)
