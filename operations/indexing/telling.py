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
from ...storage.base import Storage
from ...table.config import TableConfig
from .news import find_news

R = TypeVar("R")

logger = logging.getLogger("pyhudi")

# Each time somebody else told it in between, so that there is less to tell.
_TRIES = 10


def catch_up(index: Index, storage: Storage, config: TableConfig) -> None:
    """Tell an index what happened to its table since it was told last; one that reads the table needs it not.

    Args:
        index: The table's.
        storage: Rooted at the table.
        config: The table's properties.

    Raises:
        ConcurrentWriteError: Others tell it all the time.
        StorageError: The index or the store failed.
        PyHudiError: What happened cannot be read.
    """
    if not isinstance(index, OutsideIndex):
        return
    for _ in range(_TRIES):
        known = asking(config, storage, partial(index.position, storage.path))
        news = find_news(storage, config, known)
        if news is None:
            return
        take_note = index.rolled_back if news.undone else index.committed
        if asking(config, storage, partial(take_note, news)):
            return
    raise ConcurrentWriteError(
        f"The index {config.index_type} of the table {storage.path} was told by others {_TRIES} times what happened to "
        "the table, while this write tried to.",
        "Write again.",
    )


def tell(config: TableConfig, settings: LookupSettings, storage: Storage, instant_time: str) -> None:
    """Tell an index of a commit, so that who asks it next need not; where that fails, they will.

    Args:
        config: The table's properties.
        settings: How its index is opened.
        storage: Rooted at the table.
        instant_time: The commit, which stays what it is.
    """
    try:
        catch_up(index_for(config, settings), storage, config)
    except Exception:
        logger.warning(
            "table %s: the index %s was not told of %s; the next write that asks it tells it first",
            storage.path,
            config.index_type,
            instant_time,
            exc_info=True,
        )


def asking(config: TableConfig, storage: Storage, call: Callable[[], R]) -> R:
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
            f"The index {config.index_type} of the table {storage.path} failed ({type(error).__name__}: {error}).",
            "See to the index, and write again.",
        ) from error
