"""Log compactions that fail, die or sleep at every step, and beside writers: no row or delete is lost or doubled."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import PyHudiError, RetryError
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.rollback.sweep import sweep
from pyhudi.operations.services.compaction.log_compact import log_compact
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.timeline.instants import State
from support.checks import assert_whole
from support.compacting import (
    IMPATIENT,
    TWO,
    append,
    blocks,
    copied,
    in_bases,
    join,
    means,
    merged,
    new_table,
    plan_join,
    run,
    slices,
    timeline_of,
)
from support.faulty import Faults, FaultyStorage, Killed
from support.stops import Stop

META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "p", "id", "value")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two file groups that have two log files each, and one that has none."""
    table = tmp_path_factory.mktemp("made") / "t"
    new_table(table, ("k1", "a", 10, 1), ("k2", "b", 10, 2), ("k3", "c", 10, 3))
    append(table, ("k1", "a", 20, 11), ("k2", "b", 20, 12))
    append(table, ("k1", "a", 15, 12), gone=[("k2", "b", 30)])
    return table


def attempt(table: Path, faults: Faults) -> None:
    """Join log files with a storage that counts steps; what another process left counts as dead."""
    storage: Any = FaultyStorage(open_storage(str(table)), faults)
    log_compact(storage, TWO, means(storage))


def tables(made: Path, folder: Path, some: tuple[int, int]) -> Iterator[tuple[int, Path]]:
    """Yield a copy of the table for some of a log compaction's steps."""
    count = Faults()
    attempt(copied(made, folder / "count"), count)
    total = len(count.steps)
    assert total > 60
    for number in range(some[0], total + 1, some[1]):
        table = copied(made, folder / f"t{number}")
        yield number, table
        shutil.rmtree(table)


def assert_joined(table: Path, before: list[tuple[Any, ...]], name: str) -> None:
    """Assert that a table holds what it did, in as few blocks as can be, and that nothing is left over."""
    assert merged(table, *META) == before, name
    for piece in slices(table):
        assert len(blocks(table, piece)) < 2, name
    timeline = timeline_of(table)
    assert {one.state for one in timeline.instants} <= {State.COMPLETED}, name
    for one in timeline.writes:
        body = timeline.files.read_commit(one)
        if body.operation_type == "LOG_COMPACT":
            named = {stat.path for stats in body.partition_to_write_stats.values() for stat in stats}
            there = {path.relative_to(table).as_posix() for path in table.rglob(f".*_{one.requested_time}.log.*")}
            # Markers stay where it failed as it was taking them away.
            assert {path for path in there if not path.startswith(".hoodie/")} == named, name
    # What a process leaves that fails once all is done, the next write removes.
    storage = open_storage(str(table))
    sweep(storage, load_config(storage), IMPATIENT, own="")
    left = [path for folder in (".temp", ".heartbeat") for path in (table / ".hoodie" / folder).rglob("*")]
    assert [path for path in left if path.is_file()] == [], name
    assert validate(storage, deep=True).to_pylist() == [], name
    assert_whole(table)


# The first of the steps that are tried, and each so many of them: two halves, and a few.
SOME = [pytest.param((first, 2), marks=pytest.mark.slow) for first in (1, 2)] + [(1, 14)]


@pytest.mark.parametrize("some", SOME, ids=str)
@pytest.mark.parametrize("how", ["before", "after", "killed"])
def test_one_that_fails_at_any_step_is_finished_by_the_next(
    made: Path, tmp_path: Path, how: str, some: tuple[int, int]
) -> None:
    before, raised, seen = merged(made, *META), 0, 0
    for number, table in tables(made, tmp_path, some):
        faults = Faults(at=number, after=how == "after", kill=how == "killed")
        seen += 1
        try:
            attempt(table, faults)
        except (RetryError, Killed):
            raised += 1
        name = f"step {number} ({faults.name_of(number)})"
        assert merged(table, *META) == before, name
        asked = [one for one in timeline_of(table).instants if one.action == "logcompaction"]
        assert len(asked) < 2, name
        join(table)

        assert_joined(table, before, name)
    assert raised > seen // 2


@pytest.mark.parametrize("some", SOME, ids=str)
def test_one_that_sleeps_at_any_step_while_others_join_compact_and_write(
    made: Path, tmp_path: Path, some: tuple[int, int]
) -> None:
    """It counts as dead, is taken over, and wakes up when all is done, compacted, and a new delta commit is there."""
    for number, table in tables(made, tmp_path, some):

        def others(table: Path = table) -> None:
            join(table)
            run(table)
            append(table, ("k1", "a", 30, 31))

        stop = Stop(at=number, awake=True, meanwhile=others)
        with contextlib.suppress(PyHudiError):
            attempt(table, stop)

        name = f"step {number} ({stop.name_of(number)})"
        assert merged(table) == [("a", "k1", 31), ("c", "k3", 3)], name
        # The next that is planned takes along what is noted of one that failed.
        append(table, ("k1", "a", 31, 32))
        before = merged(table, *META)
        assert join(table).instant, name
        assert_joined(table, before, name)


@pytest.mark.parametrize("some", SOME, ids=str)
def test_a_writer_that_appends_at_any_step_is_seen(made: Path, tmp_path: Path, some: tuple[int, int]) -> None:
    """Before the plan its log files are joined, too; after it they come behind."""
    for number, table in tables(made, tmp_path, some):

        def writer(table: Path = table) -> None:
            append(table, ("k1", "a", 20, 31), ("k2", "b", 29, 32), gone=[("k3", "c", None)])

        stop = Stop(at=number, awake=True, meanwhile=writer)
        attempt(table, stop)

        name = f"step {number} ({stop.name_of(number)})"
        assert merged(table) == [("a", "k1", 31)], name
        before = merged(table, *META)
        join(table)
        assert_joined(table, before, name)
        run(table)
        assert in_bases(table) == merged(table), name


@pytest.mark.parametrize("some", SOME, ids=str)
def test_a_plan_that_is_taken_back_at_any_step_of_its_execution_is_gone(
    made: Path, tmp_path: Path, some: tuple[int, int]
) -> None:
    before = merged(made, *META)
    planned = copied(made, tmp_path / "planned")
    plan = plan_join(planned)
    for number, table in tables(planned, tmp_path, some):

        def another(table: Path = table) -> None:
            with contextlib.suppress(PyHudiError):
                rollback(open_storage(str(table)), plan.instant)

        stop = Stop(at=number, awake=True, meanwhile=another)
        with contextlib.suppress(PyHudiError):
            attempt(table, stop)

        name = f"step {number} ({stop.name_of(number)})"
        assert merged(table, *META) == before, name
        join(table)
        assert_joined(table, before, name)
