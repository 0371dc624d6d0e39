"""Rows that lie in the driver's process already, handed over by Spark without a job."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...table.files.output import MIB

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("pyhudi")

# Spark's gateway hands bytes over one by one, a mebibyte in 50 ms of processor time.
MOST_BYTES = MIB
_LOCAL = "LocalRelation"
_CONVERTERS = "org.apache.spark.sql.execution.arrow.ArrowConverters$"
_MOST_ROWS = 1 << 30
_ZONE = "UTC"


def is_local(df: DataFrame) -> bool:
    """Return whether the rows seem to lie in the driver's process, by the query as it was written.

    Spark does not optimize any other query only for the answer of `local_rows`.
    """
    found = getattr(df, "_jdf", None)
    try:
        leaves = None if found is None else found.queryExecution().analyzed().collectLeaves()
        return leaves is not None and leaves.size() == 1 and bool(leaves.head().nodeName() == _LOCAL)
    except Exception:
        logger.debug("Spark does not show the leaves of a query", exc_info=True)
        return False


def local_rows(df: DataFrame) -> list[pa.RecordBatch] | None:
    """Return rows as Spark would hand them to a task; None where that takes a job, or for more than `MOST_BYTES`.

    Spark Connect's server takes the rows of local relations by the same method. A job reports errors of the query.
    """
    found: Any = getattr(df, "_jdf", None)
    try:
        plan = found.queryExecution().optimizedPlan()
        if plan.nodeName() != _LOCAL or plan.isStreaming():
            return None
        return _rows_of(found, plan)
    except Exception:
        logger.debug("Spark hands no rows over without a job", exc_info=True)
        return None


def _rows_of(found: Any, plan: Any) -> list[pa.RecordBatch] | None:
    converters = found.getClass().getClassLoader().loadClass(_CONVERTERS).getField("MODULE$").get(None)
    # No two fields of one struct have one name, and texts have small offsets: as in Spark's tasks of Python.
    streams = converters.toBatchWithSchemaIterator(
        plan.data().iterator(), plan.schema(), _MOST_ROWS, MOST_BYTES, _ZONE, True, False
    )
    if not streams.hasNext():
        return []
    rows = pa.ipc.open_stream(streams.next()).read_all()
    if streams.hasNext():
        streams.close()
        return None
    return rows.to_batches() if rows.nbytes <= MOST_BYTES else None
