"""Many calls of one store: at once where each of them waits for a network, else one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .base import Storage

T = TypeVar("T")
R = TypeVar("R")

THREADS = 16


def for_each(storage: Storage, call: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return what the call returned for each item, in the items' order.

    Args:
        storage: Whose methods the call uses.
        call: Safe to run in several threads.
        items: O(files), no rows.
    """
    waiting = list(items)
    if not storage.remote or len(waiting) < 2:
        return [call(item) for item in waiting]
    with ThreadPoolExecutor(min(THREADS, len(waiting))) as pool:
        return list(pool.map(call, waiting))
