"""Calls from several threads that begin together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
# What has not happened by then never will, however busy the machine is: tests wait for events, and so long at most.
HANGS_S = 900.0


def at_once(count: int, call: Callable[[int], T]) -> list[T | Exception]:
    """Call from so many threads, by the numbers from 1 on, and return each result, or the error in its place."""
    start = threading.Barrier(count)

    def run(number: int) -> T | Exception:
        start.wait()
        try:
            return call(number)
        except Exception as error:  # noqa: BLE001
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(1, count + 1)))
