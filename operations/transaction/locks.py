"""The lock under which a process changes a table's timeline, where writers of other software have to be kept out.

Processes of pyhudi need none among themselves: the race for the next decision orders them (`decide`). A function that
takes a `Table` may open the lock. A function that takes a `HeldLock` runs under it, and cannot open it once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from ...errors import UnsupportedTableError
from ...table.config.property_keys import LOCK_PROVIDER
from ...table.lock_settings import LockSettings
from ...table.table import Table

# A task that waited for longer would seem dead, and a commit would block the writers that wait for it.
LONGEST_WAIT_S = 60.0


class LockProvider(Protocol):
    def hold(self, table: Table, wait_s: float) -> AbstractContextManager[None]:
        """Return a context in which no other writer changes the timeline.

        Entering raises `ConcurrentWriteError`, which names the table and what is to be done, where the lock is not free
        within ``wait_s`` seconds.
        """


# Makes the provider of a name from the settings of a table.
PROVIDERS: Mapping[str, Callable[[LockSettings], LockProvider]] = {}


@dataclass(frozen=True, slots=True)
class HeldLock:
    """The lock of a table while this process holds it; `hold` alone makes one.

    ``keeps_out`` says whether writers of other software wait meanwhile.
    """

    table: Table
    keeps_out: bool


@contextmanager
def hold(table: Table) -> Iterator[HeldLock]:
    """Hold the lock of a table until the block ends. Raises `ConcurrentWriteError` if it stays another writer's."""
    provider = provider_of(table)
    if provider is None:
        yield HeldLock(table, keeps_out=False)
        return
    with provider.hold(table, LONGEST_WAIT_S):
        yield HeldLock(table, keeps_out=True)


def has_lock(table: Table) -> bool:
    """Return whether writers of other software wait while the lock of a table is held, so that it is held for moments.

    What reads data files does so before, and looks under the lock only at what came since.
    """
    return provider_of(table) is not None


def provider_of(table: Table) -> LockProvider | None:
    """Return what locks a table; None if the race for the next decision is enough."""
    if table.lock is None:
        return None
    make = PROVIDERS.get(table.lock.provider)
    if make is None:
        raise UnsupportedTableError(
            f"The table {table.path} has {LOCK_PROVIDER}={table.lock.provider} among its properties, a lock that this "
            "release of pyhudi does not know.",
            "Write with the software that locks the table.",
        )
    return make(table.lock)
