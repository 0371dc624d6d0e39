"""Shows pyhudi's log lines in Spark's Python processes, where logging is not configured.

A worker's standard error appears in Spark's own: the commit's in that of the driver, a task's in that of its executor,
and in local mode both in the terminal. Spark 4.1 and later can collect log records themselves
(``spark.sql.pyspark.worker.logging.enabled``); then this module adds no handler.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("pyhudi")
of_tables = logging.getLogger("pyhudi.tables")

_FORMAT = "%(asctime)s %(levelname)s pyhudi: %(message)s"


@contextmanager
def shown_logs(level: str) -> Iterator[None]:
    """Show lines of a level (``debug``, ``info``, ``warning`` or ``error``) and above within the context."""
    before = logger.level
    logger.setLevel(level.upper())
    # The line about a new table appears unless the level is error.
    of_tables.setLevel(logging.ERROR if level == "error" else logging.INFO)
    handler = None
    if not logger.hasHandlers():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter(_FORMAT))
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(before)
        of_tables.setLevel(logging.NOTSET)
        if handler is not None:
            logger.removeHandler(handler)


def level_here() -> str:
    """Return the level of this process's logger ``pyhudi``, for Spark's processes."""
    for level in (logging.DEBUG, logging.INFO):
        if logger.isEnabledFor(level):
            return logging.getLevelName(level).lower()
    return "warning"
