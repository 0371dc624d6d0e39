"""Compactions and log compactions that stop at each of their steps: the loops, and what holds of either's end."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyhudi.errors import PyHudiError, RetryError
from pyhudi.operations.rollback.sweep import sweep
from pyhudi.operations.services.compaction.compact import Means
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.table import open_table
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.steps import Share
from support.faults.stops import Stop
from support.made.compacting import IMPATIENT, means, merged
from support.places import copied, state_of
from support.rules.ends import assert_whole

META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "p", "id", "value")
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Merge:
    """A service that merges log files.

    Attributes:
        act: Plans it and carries it out.
        go_on: Does so in a table in which nobody is in the way.
        check: Asserts that a table is as it leaves it, besides what holds of both.
    """

    act: Callable[[Storage, Means], object]
    go_on: Callable[[Path], object]
    check: Callable[[Path, str], None]

    def attempt(self, table: Path, faults: Faults) -> None:
        """Merge with a storage that counts steps; what another process left counts as dead."""
        storage: Any = FaultyStorage(open_storage(str(table)), faults)
        self.act(storage, means(storage))

    def tables(self, made: Path, folder: Path, share: Share, how: str = "before") -> Iterator[tuple[int, Path]]:
        """Yield a copy of a table for some of the steps that it takes there, whose failures differ."""
        count = Faults()
        self.attempt(copied(made, folder / "count"), count)
        assert len(count.steps) > 60
        for number in share.of(failing(count.steps, how)):
            table = copied(made, folder / f"t{number}")
            yield number, table
            shutil.rmtree(table)

    def stopped(
        self, made: Path, folder: Path, share: Share, meanwhile: Callable[[Path], object], *, ends: bool = False
    ) -> Iterator[tuple[Path, str]]:
        """Yield the tables in which it stopped at one of its steps while something else happened, and went on.

        Args:
            made: The table of which they are copies.
            folder: Where they go.
            share: At which steps.
            meanwhile: What happens, given the table.
            ends: Whether it must succeed whatever happened.
        """
        for number, table in self.tables(made, folder, share):
            stop = Stop(at=number, awake=True, meanwhile=lambda table=table: meanwhile(table))  # type: ignore[misc]
            with contextlib.nullcontext() if ends else contextlib.suppress(PyHudiError):
                self.attempt(table, stop)
            yield table, f"step {number} ({stop.name_of(number)})"

    def failed(self, made: Path, folder: Path, share: Share, how: str) -> Iterator[tuple[Path, str]]:
        """Yield the tables in which it failed before or after one of its steps, or was killed there."""
        raised = seen = 0
        for number, table in self.tables(made, folder, share, how):
            faults = Faults(at=number, after=how == "after", kill=how == "killed")
            seen += 1
            try:
                self.attempt(table, faults)
            except (RetryError, Killed):
                raised += 1
            yield table, f"step {number} ({faults.name_of(number)})"
        assert raised >= seen // 4


@dataclass
class Ends:
    """Goes on from what is left of a merge, once from each state, times and invented names aside.

    Attributes:
        merge: What is gone on with.
        origin: The table of which all others are copies.
    """

    merge: Merge
    origin: Path
    _states: set[tuple[str, ...]] = field(default_factory=set)

    def is_new(self, table: Path) -> bool:
        """Return whether nobody has gone on from such a state."""
        state = state_of(table, self.origin)
        if state in self._states:
            return False
        self._states.add(state)
        return True

    def check(self, table: Path, name: str) -> bool:
        """Merge and assert that the table holds what it did; return whether the state was a new one."""
        if not self.is_new(table):
            return False
        before = merged(table, *META)
        self.merge.go_on(table)
        assert_merged(self.merge, table, before, name)
        return True


def check_taken_back(merge: Merge, planned: Path, plan: str, folder: Path, share: Share) -> None:
    """Take the plan of a table back at some steps of its execution, and go on from what is there."""
    before, ends = merged(planned, *META), Ends(merge, planned)

    def take_back(table: Path) -> None:
        with contextlib.suppress(PyHudiError):
            rollback(open_storage(str(table)), plan)

    for table, name in merge.stopped(planned, folder, share, take_back):
        assert merged(table, *META) == before, name
        ends.check(table, name)


def assert_merged(merge: Merge, table: Path, before: Rows, name: str) -> None:
    """Assert that a table holds what it did, as a merge leaves it, and that nothing is left over."""
    assert merged(table, *META) == before, name
    merge.check(table, name)
    # What a process leaves that fails once all is done, the next write removes.
    storage = open_storage(str(table))
    sweep(open_table(storage), IMPATIENT, own_time="")
    left = [path for folder in (".temp", ".heartbeat") for path in (table / ".hoodie" / folder).rglob("*")]
    assert [path for path in left if path.is_file()] == [], name
    assert_whole(table, deep=True, tolerated=())
