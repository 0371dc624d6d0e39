"""A lock that is entered once, around each change of a timeline, and around no read of a data file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from pyhudi.operations.transaction.locks import LONGEST_WAIT_S
from pyhudi.table.files.file_group import data_file
from pyhudi.table.table import Table
from support.faults.traces import Trace, TracedStorage, merge_in_one_thread
from support.seams import patch_seam
from support.stores import wrap_stores

_CHANGES = {"create", "write", "delete", "publish"}
_READS = {"open_input", "read"}


@dataclass
class FakeLock:
    """A lock that refuses to be taken twice, and knows whether it is held.

    Attributes:
        enters: Runs right before the lock is taken.
        broken: What broke the rules; some callers log errors.
    """

    enters: Callable[[], None] = lambda: None
    held: bool = False
    taken: int = 0
    broken: list[str] = field(default_factory=list)

    @contextmanager
    def hold(self, table: Table, wait_s: float) -> Iterator[None]:
        """Hold it; only one holder at a time."""
        assert 0 < wait_s <= LONGEST_WAIT_S
        if self.held:
            self.broken.append("it was taken twice")
            raise AssertionError(self.broken[-1])
        self.enters()
        self.held, self.taken = True, self.taken + 1
        try:
            yield
        finally:
            self.held = False


@dataclass
class LockTrace(Trace):
    """Store calls that break the rules of the lock; the other calls are left out."""

    lock: FakeLock = field(default_factory=FakeLock)

    def add(self, verb: str, *given: object, **named: object) -> None:
        """Note a call that breaks a rule."""
        for path in (one for one in given if isinstance(one, str)):
            if verb in _CHANGES and path.startswith(".hoodie/timeline/") and not self.lock.held:
                self.lock.broken.append(f"{self.lines[-1]}: {verb} {path} without the lock")
            if verb in _READS and self.lock.held and data_file(path, changes=True) is not None:
                self.lock.broken.append(f"{self.lines[-1]}: {verb} {path} under the lock")


def watch_lock(patch: pytest.MonkeyPatch) -> LockTrace:
    """Have all tables locked, and return what notes calls that break the rules."""
    trace = LockTrace()
    patch_seam(patch, "lock of a table", lambda _: trace.lock)
    patch_seam(patch, "threads of store calls", 1)
    merge_in_one_thread(patch)
    wrap_stores(patch, lambda storage: TracedStorage(storage, trace))
    return trace
