"""Chooses whether `HudiTable` places rows by file group before writing, or leaves the merge to the commit.

Placing is worth its shuffle if executors have more cores than the commit uses, and enough rows to use them.
Otherwise the commit is faster: the driver's host is idle by then, and the commit merges each file group in a thread.
Both choices give the same rows; a wrong estimate costs only time.
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

# Spark's smallest task, in bytes (spark.sql.adaptive.coalescePartitions.minPartitionSize).
_LEAST_OF_A_TASK = 1 << 20
_LOCAL = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?")


def places(df: DataFrame, wish: Placing, *, needs_whole_groups: bool = False) -> bool:
    """Return whether to place rows; ``wish`` is the user's option.

    With ``needs_whole_groups``, tasks cannot write rows that are not placed, so the commit would write all of them.
    """
    if wish != "auto":
        return wish == "always"
    cores = local_cores(df.sparkSession)
    # The commit merges in as many threads as these cores could run tasks.
    if cores is not None and cores <= MOST_WORKERS and not needs_whole_groups:
        return False
    # Fewer rows would not give each worker of the commit a task of Spark's least size.
    size = estimated_bytes(df)
    return size is None or size > MOST_WORKERS * _LEAST_OF_A_TASK


def local_cores(spark: SparkSession) -> int | None:
    """Return the number of cores of tasks that run on the driver's host; None on a cluster."""
    match = _LOCAL.fullmatch(spark.conf.get("spark.master", "") or "")
    if match is None:
        return None
    # A Spark Connect server does not report its cores, so assume those of this machine.
    return cpu_count() if match[1] == "*" else int(match[1] or 1)


def estimated_bytes(df: DataFrame) -> int | None:
    """Return the optimizer's estimate of the rows' bytes; None without an estimate, as on Spark Connect."""
    plan = getattr(df, "_jdf", None)
    if plan is None:
        return None
    try:
        return int(plan.queryExecution().optimizedPlan().stats().sizeInBytes())
    except Exception:
        # The write reports errors of the query.
        logger.debug("Spark gives no estimate of the rows", exc_info=True)
        return None
