"""The lock under which a process changes a table's timeline, to keep writers of other software out.

Processes of pyhudi need no lock among themselves: the race for the next decision orders them (`decide`). A function
that takes a `Table` may take the lock. A function that takes a `HeldLock` runs under it, and cannot take it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from ...errors import UnsupportedTableError
from ...table.config.property_keys import LOCK_PROVIDER
from ...table.table import LockSettings, Table

# A task that waits for longer would seem dead, and a commit would block the writers that wait for it.
LONGEST_WAIT_S = 60.0


class LockProvider(Protocol):
    """A kind of lock for which writers of other software wait, too."""

    def hold(self, table: Table, wait_s: float) -> AbstractContextManager[None]:
        """Return a context in which no other writer changes the timeline.

        Entering raises `ConcurrentWriteError` if the lock is not free within ``wait_s`` seconds; the error names the
        table and a cure.
        """


# Makes the provider of a name from the settings of a table.
PROVIDERS: Mapping[str, Callable[[LockSettings], LockProvider]] = {}


@dataclass(frozen=True, slots=True)
class HeldLock:
    """The lock of a table while this process holds it; only `hold` makes it.

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
    """Return whether a table has a lock for which writers of other software wait; a process holds it only for moments.

    A process reads data files before it takes the lock, and then looks only at what came since.
    """
    return provider_of(table) is not None


def provider_of(table: Table) -> LockProvider | None:
    """Return the provider of a table's lock; None if the race for the next decision is enough."""
    if table.lock is None:
        return None
    make_provider = PROVIDERS.get(table.lock.provider)
    if make_provider is None:
        raise UnsupportedTableError(
            f"The table {table.path} has {LOCK_PROVIDER}={table.lock.provider} among its properties, a lock that this "
            "release of pyhudi does not know.",
            "Write with the software that locks the table.",
        )
    return make_provider(table.lock)
