"""Telling an index outside of its table what happened to the table, before it is asked and after a commit."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ...errors import ConcurrentWriteError, PyHudiError, StorageError
from ...index.base import Index
from ...index.outside import OutsideIndex
from ...index.registry import index_for
from ...index.settings import LookupSettings
from ...table.table import Table
from .changes import find_news

R = TypeVar("R")

logger = logging.getLogger("pyhudi")

# Each time somebody else told it in between, so that there is less to tell.
_TRIES = 10


def catch_up(index: Index, table: Table) -> None:
    """Tell an index what happened to its table since it was told last; one that reads the table needs it not.

    Raises:
        ConcurrentWriteError: Others tell it all the time.
        StorageError: The index or the store failed.
        PyHudiError: What happened cannot be read.
    """
    if not isinstance(index, OutsideIndex):
        return
    for _ in range(_TRIES):
        known = asking(table, partial(index.position, table.path))
        news = find_news(table, known)
        if news is None:
            return
        take_note = index.rolled_back if news.undone else index.committed
        if asking(table, partial(take_note, news)):
            return
    raise ConcurrentWriteError(
        f"The index {table.config.index_type} of the table {table.path} was told by others {_TRIES} times what "
        "happened to the table, while this write tried to.",
        "Write again.",
    )


def tell(table: Table, settings: LookupSettings, instant_time: str) -> None:
    """Tell an index of a commit, so that the next write need not; a failure is logged as a warning."""
    try:
        catch_up(index_for(table.config, settings), table)
    except Exception:
        logger.warning(
            "table %s: the index %s was not told of %s; the next write that asks it tells it first",
            table.path,
            table.config.index_type,
            instant_time,
            exc_info=True,
        )


def asking(table: Table, call: Callable[[], R]) -> R:
    """Return what an index answers, and make an error of ours of one of its own.

    Raises:
        StorageError: The index failed.
        PyHudiError: What it was told of cannot be read.
    """
    try:
        return call()
    except PyHudiError:
        raise
    except Exception as error:
        raise StorageError(
            f"The index {table.config.index_type} of the table {table.path} failed ({type(error).__name__}: {error}).",
            "See to the index, and write again.",
        ) from error
