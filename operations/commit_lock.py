"""The moments in which a write becomes part of the table, or is forbidden to, given to one process at a time.

A file made with create-if-absent says which process holds the lock. It is kept for moments; one whose process is gone,
or that is older than any such moment could be, is broken by whoever first makes the breaking note for it.
"""

from __future__ import annotations

import json
import logging
import random
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from ..errors import ConcurrentWriteError, StorageError
from ..storage import process
from ..storage.base import Storage
from ..timeline.owner import ROOT, Owner, is_gone, parse_owner

logger = logging.getLogger("pyhudi")

LOCK = f"{ROOT}/commit.lock"
STALE_S = 120.0
PATIENCE_S = 180.0
# Before its last step a holder leaves others the time to see that step.
HOLD_S = 60.0
_POLL_S = 0.04
_LONGEST_POLL_S = 1.0


class Held:
    """The commit lock in the hands of who made it.

    Args:
        path: The table's path.
        since_s: When the lock was asked for, by this process's steady clock.
    """

    def __init__(self, path: str, since_s: float) -> None:
        self._path = path
        self._since_s = since_s

    def check(self) -> None:
        """Refuse to take the decisive step when the lock may soon be, or has been, taken for stale by others.

        Raises:
            ConcurrentWriteError: It has been held for too long.
        """
        held_s = time.monotonic() - self._since_s
        if held_s > HOLD_S:
            raise ConcurrentWriteError(
                f"The commit lock {LOCK} of the table {self._path} was held for {held_s:.0f} s without coming to an "
                "end, so that others may soon take its holder for dead.",
                "Write again; if it happens again, look why the store answers so slowly.",
            )


@contextmanager
def commit_lock(storage: Storage, instant_time: str, *, patience_s: float = PATIENCE_S) -> Iterator[Held]:
    """Hold the table's commit lock, which its holder must not ask for again.

    Args:
        storage: Rooted at the table.
        instant_time: The instant on whose behalf it is held, for people who find the file.
        patience_s: How long to wait for another holder; longer than a lock can be stale.

    Raises:
        ConcurrentWriteError: Somebody else held the lock all the time.
    """
    held = _content(instant_time)
    deadline = time.monotonic() + patience_s
    pause = _POLL_S
    while True:
        asked = time.monotonic()
        if storage.create(LOCK, held, durable=False):
            break
        if asked > deadline:
            raise ConcurrentWriteError(
                f"The commit lock {LOCK} of the table {storage.path} was held by others for {patience_s:.0f} s.",
                "Write again; if no writer is alive, delete the file.",
            )
        found = _read(storage)
        if found == held:
            break
        if found is None or not _break_if_dead(storage, found):
            # Not all who wait at once again, nor a remote store as often as a disk.
            time.sleep(random.uniform(0, pause))  # noqa: S311 (keeps no secret)
            pause = min(2 * pause, _LONGEST_POLL_S)
    try:
        yield Held(storage.path, asked)
    finally:
        _release(storage, held)


def _content(instant_time: str) -> bytes:
    this = process.this_process()
    holder = Owner(
        host=process.host_name(),
        boot_id=process.machine_id(),
        pid=this.pid,
        process_started=this.started,
        application=instant_time,
        write_id=uuid.uuid4().hex,
    )
    return json.dumps(asdict(holder)).encode()


def _read(storage: Storage) -> bytes | None:
    try:
        return storage.read(LOCK)
    except FileNotFoundError:
        return None


def _release(storage: Storage, held: bytes) -> None:
    """Give the lock back; a failure may not turn a completed write into a failed one."""
    try:
        if _read(storage) == held:
            storage.delete(LOCK, durable=False)
    except StorageError:
        logger.warning("table %s: the commit lock stays until it is stale", storage.path, exc_info=True)


def _break_if_dead(storage: Storage, found: bytes) -> bool:
    """Remove a dead holder's lock; True when it is worth trying again at once."""
    if not _is_dead(storage, found):
        return False
    note = f"{LOCK}.broken-{uuid.uuid5(uuid.NAMESPACE_OID, found.decode(errors='replace')).hex}"
    if not storage.create(note, b"", durable=False):
        # Whoever made the note may have died right after.
        if _age(storage, note) > STALE_S:
            storage.delete(note, durable=False)
        return False
    try:
        if _read(storage) == found:
            storage.delete(LOCK, durable=False)
    finally:
        storage.delete(note, durable=False)
    return True


def _is_dead(storage: Storage, found: bytes) -> bool:
    try:
        if is_gone(parse_owner(found)):
            return True
    except ValueError:
        logger.warning("table %s: the commit lock holds %r, which no pyhudi wrote", storage.path, found[:100])
    return _age(storage, LOCK) > STALE_S


def _age(storage: Storage, path: str) -> float:
    modified = storage.modified(path)
    return 0.0 if modified is None else storage.now() - modified
