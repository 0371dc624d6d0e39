"""What surrounds a call of the data source in a Python worker of Spark: log lines, and cheap garbage collections."""

from __future__ import annotations

import gc
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
    level_before = logger.level
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
        logger.setLevel(level_before)
        of_tables.setLevel(logging.NOTSET)
        if handler is not None:
            logger.removeHandler(handler)


def level_here() -> str:
    """Return the level of this process's logger ``pyhudi``, for Spark's processes."""
    for level in (logging.DEBUG, logging.INFO):
        if logger.isEnabledFor(level):
            return logging.getLevelName(level).lower()
    return "warning"


_frozen = False


@contextmanager
def worker_call(level: str) -> Iterator[None]:
    """Show log lines of a level within the context, and freeze what the worker has imported by its end."""
    with shown_logs(level):
        yield
    freeze_imports()


def freeze_imports() -> None:
    """Take the modules of this worker out of later garbage collections, once for each worker.

    PySpark's daemon has a worker collect its garbage after each call (``pyspark/daemon.py``). Each collection would
    look through all objects of pyhudi, PyArrow and pydantic, which takes longer than a call that writes few rows.
    """
    global _frozen  # noqa: PLW0603 (a worker is a process)
    if _frozen or sys.orig_argv[1:3] != ["-m", "pyspark.daemon"]:
        return
    _frozen = True
    # Garbage that is frozen would stay for ever.
    gc.collect()
    gc.freeze()
