"""What surrounds a call of the data source in a Python worker of Spark: log lines, and cheap garbage collections."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .logs import shown_logs

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
