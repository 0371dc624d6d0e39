"""The turns of the threads of a process that write few rows to one table."""

from __future__ import annotations

import os
from threading import Lock
from weakref import WeakValueDictionary

# By the table's path, as long as a thread has the turn or waits for it.
_TURNS: WeakValueDictionary[str, Lock] = WeakValueDictionary()
_GUARD = Lock()


class Turn:
    """The turn of a thread to write to a table in this process.

    Python runs one thread at a time, so several such writes at once take longer than one after another, and meet each
    other. A thread takes its turn before any ticket, so that no other writer waits for the ticket of a waiting thread.
    """

    def __init__(self, path: str) -> None:
        with _GUARD:
            self._lock = _TURNS.setdefault(path, Lock())
        self._taken = False

    def __enter__(self) -> Turn:
        self._lock.acquire()
        self._taken = True
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Let the next thread write; a second call has no effect."""
        if self._taken:
            self._taken = False
            self._lock.release()


def _forget_turns() -> None:
    """Give a forked child process turns of its own: the threads that have the parent's turns are not in the child."""
    global _TURNS, _GUARD
    _TURNS, _GUARD = WeakValueDictionary(), Lock()


os.register_at_fork(after_in_child=_forget_turns)
