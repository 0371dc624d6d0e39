"""Whether `HudiTable` places rows by file group before it writes them, or leaves their merging to the commit.

Placing is worth its shuffle where the executors have more cores than the commit, and rows enough to use them. Elsewhere
the commit merges sooner: it has the driver's host to itself by then, and a thread for each file group. Whatever is
chosen, the table holds the same rows in the end; a wrong estimate costs time alone.
"""

from __future__ import annotations

import logging
import re
from multiprocessing import cpu_count
from typing import TYPE_CHECKING

from ...operations.write.merge_spills import MOST_WORKERS
from ...options.types import Placing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger("pyhudi")

# Spark makes no tasks of fewer bytes than this (spark.sql.adaptive.coalescePartitions.minPartitionSize).
_LEAST_OF_A_TASK = 1 << 20
_LOCAL = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?")


def places(df: DataFrame, wish: Placing) -> bool:
    """Return whether the rows are worth being placed; no row is looked at, and no job is run."""
    if wish != "auto":
        return wish == "always"
    cores = local_cores(df.sparkSession)
    if cores is not None and cores <= MOST_WORKERS:
        return False
    size = estimated_bytes(df)
    return size is None or size > MOST_WORKERS * _LEAST_OF_A_TASK


def local_cores(spark: SparkSession) -> int | None:
    """Return how many cores tasks have where they run on the driver's own host; None on a cluster."""
    match = _LOCAL.fullmatch(spark.conf.get("spark.master", "") or "")
    if match is None:
        return None
    # Spark Connect does not tell how many its server has; those of this machine stand in for them.
    return cpu_count() if match[1] == "*" else int(match[1] or 1)


def estimated_bytes(df: DataFrame) -> int | None:
    """Return how many bytes Spark's optimizer takes the rows for; None where it does not say, as on Spark Connect."""
    plan = getattr(df, "_jdf", None)
    if plan is None:
        return None
    try:
        return int(plan.queryExecution().optimizedPlan().stats().sizeInBytes())
    except Exception:
        # What is wrong with the rows is said by the write.
        logger.debug("Spark gives no estimate of the rows", exc_info=True)
        return None
