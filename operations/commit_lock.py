"""The moment between "nobody changed what I changed" and the completed file, given to one writer at a time.

A file made with create-if-absent holds the instant that is committing. It is kept for milliseconds; one whose writer
died is broken by whoever first creates the breaking note for that holder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import ConcurrentWriteError
from ..storage.base import Storage

LOCK = ".hoodie/.pyhudi/commit.lock"
_POLL_S = 0.05


@contextmanager
def commit_lock(
    storage: Storage, instant_time: str, *, is_dead: Callable[[str], bool], patience_s: float = 60.0
) -> Iterator[None]:
    """Hold the table's commit lock.

    Args:
        storage: Rooted at the table.
        instant_time: Who holds it.
        is_dead: Says of another holder's instant whether its writer is gone.
        patience_s: How long to wait for a living holder.

    Raises:
        ConcurrentWriteError: A living writer held the lock all the time.
    """
    deadline = time.monotonic() + patience_s
    while not storage.create(LOCK, instant_time.encode()):
        holder = _holder(storage)
        if holder == instant_time:
            break
        if holder is not None and is_dead(holder):
            _break(storage, holder)
        elif time.monotonic() > deadline:
            raise ConcurrentWriteError(
                f"The write {holder} has been committing to the table {storage.path} for {patience_s:.0f} s.",
                f"Write again; if no writer is alive, delete {LOCK}.",
            )
        else:
            time.sleep(_POLL_S)
    try:
        yield
    finally:
        if _holder(storage) == instant_time:
            storage.delete(LOCK)


def _holder(storage: Storage) -> str | None:
    try:
        return storage.read(LOCK).decode()
    except FileNotFoundError:
        return None


def _break(storage: Storage, holder: str) -> None:
    note = f"{LOCK}.broken-{holder}"
    if storage.create(note, b"") and _holder(storage) == holder:
        storage.delete(LOCK)
        storage.delete(note)
    else:
        time.sleep(_POLL_S)
