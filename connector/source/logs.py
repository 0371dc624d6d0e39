"""Log lines of Spark's Python processes, where nobody has configured logging, brought to where people can see them.

What a worker writes to its standard error ends up in Spark's own: of the driver for the commit, of the executors for
tasks, and on the terminal for both in local mode. Spark 4.1 and later collect log records themselves if they are told
to (``spark.sql.pyspark.worker.logging.enabled``); they are left to them then.
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
    """Let lines of a level and above be seen while a worker works.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``.
    """
    before = logger.level
    logger.setLevel(level.upper())
    # The one line about a new table is for everybody who has not asked for errors alone.
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
    """Return how much this process wants to see, by the configuration of the logger ``pyhudi``."""
    for level in (logging.DEBUG, logging.INFO):
        if logger.isEnabledFor(level):
            return logging.getLevelName(level).lower()
    return "warning"
