"""Work in threads: results in order or as they come, an error in the caller, and no more begun than can be done."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from pyhudi.storage.kept import keep
from pyhudi.storage.threads import SharedItems, as_they_come, in_order

THREADS = pytest.mark.parametrize("threads", [1, 4])


@THREADS
def test_results_come_in_the_order_of_the_items_and_few_items_are_taken_ahead(threads: int) -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(50):
            taken.append(number)
            yield number

    results = in_order(lambda number: (time.sleep(0.001 * (number % 3)), number)[1], items(), threads)

    assert next(results) == 0
    assert len(taken) <= threads + 1
    assert list(results) == list(range(1, 50))


@THREADS
def test_what_items_yield_comes_once_each(threads: int) -> None:
    def read(number: int) -> Iterator[int]:
        yield from range(number * 10, number * 10 + 10)

    assert sorted(as_they_come(read, range(20), threads)) == list(range(200))


@THREADS
@pytest.mark.parametrize("call", ["in_order", "as_they_come"])
def test_an_error_in_a_thread_is_the_callers(threads: int, call: str) -> None:
    def fail(number: int) -> Iterator[int]:
        if number == 7:
            raise ValueError("seven")
        return iter((number,))

    work = in_order if call == "in_order" else as_they_come

    with pytest.raises(ValueError, match="seven"):
        list(work(fail, range(20), threads))  # type: ignore[operator]


def test_threads_end_where_the_caller_takes_no_more() -> None:
    before = set(threading.enumerate())
    endless = as_they_come(lambda number: iter(lambda: number, None), range(8), 4)
    assert next(endless) in range(8)

    endless.close()  # type: ignore[attr-defined]
    for thread in set(threading.enumerate()) - before:
        thread.join(30)

    assert set(threading.enumerate()) <= before


def test_several_threads_take_each_item_once() -> None:
    shared = SharedItems(range(10_000))
    taken: list[list[int]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=lambda own=own: own.extend(shared)) for own in taken]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(number for own in taken for number in own) == list(range(10_000))


def test_a_value_is_kept_while_another_thread_keeps_one() -> None:
    class Shared(dict[str, int]):
        """Gets a value of another thread right after this thread begins to look for the first key."""

        def __iter__(self) -> Iterator[str]:
            keys = super().__iter__()
            self.setdefault("theirs", 0)
            return keys

    values = Shared(first=0)

    keep(values, "ours", 1, 1)

    assert len(values) == 1
