"""Work in several threads of this process: calls of a store that wait for a network, and work for all cores."""

from __future__ import annotations

import atexit
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Full, Queue
from threading import Event, Lock, Thread, current_thread
from typing import TypeVar

from .base import Storage
from .process import cores

T = TypeVar("T")
R = TypeVar("R")

THREADS = 16


def for_each(storage: Storage, call: Callable[[T], R], items: Iterable[T], *, computes: bool = False) -> list[R]:
    """Return the call's result for each item, in the items' order; the call runs in several threads.

    Items are files or the like, never rows, as all results are in memory at once. On a remote store the call runs in
    `THREADS` threads. On a local store it runs in one thread, or in one for each core if it ``computes`` for longer
    than it waits.
    """
    all_items = list(items)
    threads = min(THREADS if storage.remote else cores() if computes else 1, len(all_items))
    if threads < 2:
        return [call(item) for item in all_items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, all_items))


# How often a thread whose result waits looks whether the caller has gone.
_POLL_S = 0.1
# For how long the end of the process waits for a thread that reads.
_END_WAIT_S = 60.0


def in_order(call: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yield the call's result for each item, in the items' order; an item is taken when a thread is free for it.

    Of results that are ready, at most ``threads`` wait for the caller.
    """
    if threads < 2:
        yield from map(call, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="pyhudi") as pool:
        running: deque[Future[R]] = deque()
        try:
            for item in items:
                running.append(pool.submit(call, item))
                if len(running) > threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            # After an error, or if the caller takes no more, the results of further calls are useless.
            for future in running:
                future.cancel()


def as_they_come(read: Callable[[T], Iterator[R]], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yield what ``read`` yields for each item, in any order; a thread waits while the caller takes no result.

    After an error, or if the caller takes no more, the threads end with their next result.
    """
    if threads < 2:
        for item in items:
            yield from read(item)
        return
    results: Queue[R | _End] = Queue(threads)
    shared, is_over = SharedItems(items), Event()
    for _ in range(threads):
        # The caller may never take the rest. A process that ends does not wait for daemon threads.
        thread = Thread(target=_read_all, args=(read, shared, results, is_over), name="pyhudi-read", daemon=True)
        _READING[thread] = is_over
        thread.start()
    running_threads = threads
    try:
        while running_threads:
            result = results.get()
            if not isinstance(result, _End):
                yield result
            elif result.error is not None:
                raise result.error
            else:
                running_threads -= 1
    finally:
        is_over.set()


class SharedItems(Iterator[T]):
    """An iterator that several threads take items from, each item once."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)
        self._lock = Lock()

    def __next__(self) -> T:
        with self._lock:
            return next(self._items)


class _End:
    """The end of a thread's work, with its error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


# The threads that read, each with what ends it.
_READING: dict[Thread, Event] = {}


@atexit.register
def _end_reads() -> None:
    """End the threads that read: if Python stops a thread inside of Arrow, the process is aborted."""
    events_by_thread = list(_READING.items())
    for _, over in events_by_thread:
        over.set()
    for thread, _ in events_by_thread:
        thread.join(_END_WAIT_S)


def _read_all(read: Callable[[T], Iterator[R]], items: Iterator[T], results: Queue[R | _End], is_over: Event) -> None:
    """Read items in a thread until it has read all, or the caller takes no more.

    The last result is an `_End`, with the error if there was one.
    """
    end = _End()
    try:
        for item in items:
            for result in read(item):
                if not _put(result, results, is_over):
                    return
    except BaseException as error:  # noqa: BLE001 (the caller's thread raises it)
        end = _End(error)
    finally:
        # If the caller takes no more results, `_put` drops the end.
        _put(end, results, is_over)
        _READING.pop(current_thread(), None)


def _put(result: R | _End, results: Queue[R | _End], is_over: Event) -> bool:
    """Wait until there is room for a result; False if the caller takes no more results."""
    while not is_over.is_set():
        try:
            results.put(result, timeout=_POLL_S)
        except Full:
            continue
        return True
    return False
