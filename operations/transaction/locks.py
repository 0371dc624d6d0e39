"""The lock under which a process changes a table's timeline, where writers of other software have to be kept out.

Processes of pyhudi need none among themselves: the race for the next decision orders them (`decide`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from ...table.table import Table


class LockProvider(Protocol):
    def hold(self, table: Table) -> AbstractContextManager[None]:
        """Return a context in which no other writer changes the timeline; entering may raise `ConcurrentWriteError`."""


class NoLock:
    """No lock: the race for the next decision is enough where all writers are pyhudi."""

    def hold(self, table: Table) -> AbstractContextManager[None]:
        return nullcontext()


_NO_LOCK = NoLock()


def lock_of(table: Table) -> LockProvider:
    """Return the lock of a table; no option chooses one yet."""
    return _NO_LOCK
