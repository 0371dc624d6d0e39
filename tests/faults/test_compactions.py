"""Compactions that fail, die or sleep at every step, several at once, and beside writers: no row is lost or doubled."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import PyHudiError, RetryError
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.rollback.sweep import sweep
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.compaction.compact import compact
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.settings import KEEP_LATEST_FILE_VERSIONS, ArchiveSettings, CleanSettings
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.timeline.instants import State
from support.checks import assert_whole
from support.compacting import (
    ALL,
    IMPATIENT,
    append,
    copied,
    in_bases,
    means,
    merged,
    new_table,
    run,
    schedule,
    slices,
    timeline_of,
)
from support.faulty import Faults, FaultyStorage, Killed
from support.places import state_of
from support.stops import Stop

NEWEST = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1)
FEW = ArchiveSettings(min_commits=1, max_commits=1, delta_commits=None)
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "p", "id", "value")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two file groups that have log files, of one of which nothing is left, and one without."""
    table = tmp_path_factory.mktemp("made") / "t"
    new_table(table, ("k1", "a", 10, 1), ("k2", "b", 10, 2), ("k3", "c", 10, 3))
    append(table, ("k1", "a", 20, 11), ("k4", "a", 1, 4))
    append(table, ("k1", "a", 15, 12), gone=[("k2", "b", None)])
    return table


def attempt(table: Path, faults: Faults) -> None:
    """Compact with a storage that counts steps; what another process left counts as dead."""
    storage: Any = FaultyStorage(open_storage(str(table)), faults)
    compact(storage, ALL, means(storage))


def steps_of(made: Path, copy: Path) -> int:
    """Return how many steps a compaction takes."""
    count = Faults()
    attempt(copied(made, copy), count)
    return len(count.steps)


def tables(made: Path, folder: Path, some: tuple[int, int]) -> Iterator[tuple[int, Path]]:
    """Yield a copy of the table for some of a compaction's steps."""
    total = steps_of(made, folder / "count")
    assert total > 60
    for number in range(some[0], total + 1, some[1]):
        table = copied(made, folder / f"t{number}")
        yield number, table
        shutil.rmtree(table)


@dataclass
class Ends:
    """Goes on from what is left of a compaction, once from each state, times and invented names aside.

    Attributes:
        origin: The table of which all others are copies.
    """

    origin: Path
    _states: set[tuple[str, ...]] = field(default_factory=set)

    def check(self, table: Path, before: list[tuple[Any, ...]], name: str) -> bool:
        """Compact and assert that the table holds what it did; return whether the state was a new one."""
        state = state_of(table, self.origin)
        if state in self._states:
            return False
        self._states.add(state)
        run(table)
        assert_compacted(table, before, name)
        return True


def assert_compacted(table: Path, before: list[tuple[Any, ...]], name: str) -> None:
    """Assert that a table holds what it did, all of it in base files, and that nothing is left over."""
    assert merged(table, *META) == before, name
    assert not any(one.logs for one in slices(table)), name
    assert in_bases(table) == merged(table), name
    timeline = timeline_of(table)
    assert {one.state for one in timeline.instants} == {State.COMPLETED}, name
    for one in timeline.writes:
        if one.action == "commit":
            body = timeline.files.read_commit(one)
            named = {stat.path for stats in body.partition_to_write_stats.values() for stat in stats}
            there = {path.relative_to(table).as_posix() for path in table.rglob(f"[!.]*_{one.requested_time}.parquet")}
            assert there == named, name
    # What a process leaves that fails once all is done, the next write removes.
    storage = open_storage(str(table))
    sweep(storage, load_config(storage), IMPATIENT, own="")
    left = [path for folder in (".temp", ".heartbeat") for path in (table / ".hoodie" / folder).rglob("*")]
    assert [path for path in left if path.is_file()] == [], name
    assert validate(storage, deep=True).to_pylist() == [], name
    assert_whole(table)


# The first of the steps that are tried, and each so many of them: two halves, and a few.
SOME = [pytest.param((first, 2), marks=pytest.mark.slow) for first in (1, 2)] + [(1, 12)]


@pytest.mark.parametrize("some", SOME, ids=str)
@pytest.mark.parametrize("how", ["before", "after", "killed"])
def test_a_compaction_that_fails_at_any_step_is_finished_by_the_next(
    made: Path, tmp_path: Path, how: str, some: tuple[int, int]
) -> None:
    before, raised, seen, ends = merged(made, *META), 0, 0, Ends(made)
    for number, table in tables(made, tmp_path, some):
        faults = Faults(at=number, after=how == "after", kill=how == "killed")
        seen += 1
        try:
            attempt(table, faults)
        except (RetryError, Killed):
            raised += 1
        name = f"step {number} ({faults.name_of(number)})"
        assert merged(table, *META) == before, name
        # Whoever comes next finds nothing that it has to wait for, and compacts once, under the time that was planned.
        asked = [one for one in timeline_of(table).instants if one.group == "commit"]
        assert len(asked) < 2, name
        if not ends.check(table, before, name):
            continue
        done = [one.requested_time for one in timeline_of(table).writes if one.action == "commit"]
        assert [one.requested_time for one in asked] in ([], done), name
    assert raised > seen // 2


@pytest.mark.parametrize("some", SOME, ids=str)
def test_one_that_sleeps_at_any_step_while_others_compact_and_write(
    made: Path, tmp_path: Path, some: tuple[int, int]
) -> None:
    """It counts as dead, is taken over, and wakes up when all is done and a new delta commit is there."""
    ends = Ends(made)
    for number, table in tables(made, tmp_path, some):

        def others(table: Path = table) -> None:
            run(table)
            append(table, ("k1", "a", 30, 31))

        stop = Stop(at=number, awake=True, meanwhile=others)
        with contextlib.suppress(PyHudiError):
            attempt(table, stop)

        name = f"step {number} ({stop.name_of(number)})"
        assert merged(table) == [("a", "k1", 31), ("a", "k4", 4), ("c", "k3", 3)], name
        ends.check(table, merged(table, *META), name)


@pytest.mark.parametrize("some", SOME, ids=str)
def test_a_writer_that_appends_at_any_step_is_seen(made: Path, tmp_path: Path, some: tuple[int, int]) -> None:
    """Before the plan it is merged, after it the row belongs to the slice that the compaction begins."""
    ends = Ends(made)
    for number, table in tables(made, tmp_path, some):

        def writer(table: Path = table) -> None:
            append(table, ("k1", "a", 30, 31), ("k2", "b", 40, 32), gone=[("k3", "c", None)])

        stop = Stop(at=number, awake=True, meanwhile=writer)
        attempt(table, stop)

        name = f"step {number} ({stop.name_of(number)})"
        assert merged(table) == [("a", "k1", 31), ("a", "k4", 4), ("b", "k2", 32)], name
        ends.check(table, merged(table, *META), name)


@pytest.mark.parametrize("some", SOME, ids=str)
def test_a_plan_that_is_taken_back_at_any_step_of_its_execution_is_gone(
    made: Path, tmp_path: Path, some: tuple[int, int]
) -> None:
    before = merged(made, *META)
    planned = copied(made, tmp_path / "planned")
    plan, ends = schedule(planned), Ends(planned)
    for number, table in tables(planned, tmp_path, some):
        taken: list[bool] = []

        def another(table: Path = table, taken: list[bool] = taken) -> None:
            with contextlib.suppress(PyHudiError):
                rollback(open_storage(str(table)), plan.instant)
                taken.append(True)

        stop = Stop(at=number, awake=True, meanwhile=another)
        with contextlib.suppress(PyHudiError):
            attempt(table, stop)

        name = f"step {number} ({stop.name_of(number)})"
        assert merged(table, *META) == before, name
        ends.check(table, before, name)


@pytest.mark.parametrize("how", ["done", "taken back"])
def test_a_plan_that_is_over_before_it_is_read_is_nobodys_work(made: Path, tmp_path: Path, how: str) -> None:
    """Whoever found it pending a moment ago has nothing to carry out, and nothing is wrong with the table."""
    planned = copied(made, tmp_path / "planned")
    plan = schedule(planned)
    for number in range(1, 13):
        table = copied(planned, tmp_path / f"t{number}")

        def another(table: Path = table) -> None:
            storage = open_storage(str(table))
            if how == "done":
                run(table)
                clean(storage, NEWEST)
                archive(storage, FEW)
            else:
                rollback(storage, plan.instant)

        stop = Stop(at=number, awake=True, meanwhile=another)
        with contextlib.suppress(RetryError):
            attempt(table, stop)
        run(table)
        assert in_bases(table) == merged(made), f"step {number} ({stop.name_of(number)})"
        shutil.rmtree(table)
