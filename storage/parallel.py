"""Many calls of one store: in threads if each call waits for a network, else in a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .base import Storage
from .process import cores

T = TypeVar("T")
R = TypeVar("R")

THREADS = 16


def for_each(storage: Storage, call: Callable[[T], R], items: Iterable[T], *, computes: bool = False) -> list[R]:
    """Return the call's result for each item, in the items' order; the call runs in several threads.

    There are O(files) items, no rows. A call that ``computes`` for longer than it waits keeps as many threads busy as
    there are cores for the files of a local store.
    """
    waiting = list(items)
    threads = min(THREADS if storage.remote else cores() if computes else 1, len(waiting))
    if threads < 2:
        return [call(item) for item in waiting]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, waiting))
