"""Updates of an outside index with the changes of its table, before a lookup and after a commit."""

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

# A try fails only if another writer updated the index in between, so that less is to be done.
_TRIES = 10


def catch_up(index: Index, table: Table) -> None:
    """Bring an outside index up to date with its table; an index that reads the table itself needs no update.

    Raises `ConcurrentWriteError` if other writers updated the index first each time.
    """
    if not isinstance(index, OutsideIndex):
        return
    for _ in range(_TRIES):
        position = asking(table, partial(index.position, table.path))
        news = find_news(table, position)
        if news is None:
            return
        take_note = index.rolled_back if news.undone else index.committed
        # False: another process updated the index meanwhile, so that the next news begin at another position.
        if asking(table, partial(take_note, news)):
            return
    raise ConcurrentWriteError(
        f"Other writers updated the index {table.config.index_type} of the table {table.path} {_TRIES} times, each "
        "time before this write could.",
        "Write again.",
    )


def tell(table: Table, settings: LookupSettings, instant_time: str) -> None:
    """Update an index after a commit, so that the next write need not.

    A failure does not fail the completed write: it is logged as a warning, and the next write updates the index first.
    """
    try:
        catch_up(index_for(table.config, settings), table)
    except Exception:
        logger.warning(
            "table %s: the index %s missed the commit %s; the next write that looks keys up updates the index first",
            table.path,
            table.config.index_type,
            instant_time,
            exc_info=True,
        )


def asking(table: Table, call: Callable[[], R]) -> R:
    """Return the result of a call to an index; an error that is not pyhudi's becomes a StorageError."""
    try:
        return call()
    except PyHudiError:
        raise
    except Exception as error:
        raise StorageError(
            f"The index {table.config.index_type} of the table {table.path} failed ({type(error).__name__}: {error}).",
            "Repair the index, and write again.",
        ) from error
