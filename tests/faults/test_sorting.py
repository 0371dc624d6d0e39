"""Sorts that fail or die at every step, and beside writers: no row is lost or doubled, and the next call sorts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import CommitConflictError, RetryError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, CompactionSettings, Upkeep
from pyhudi.operations.services.sorting.sort import sort
from pyhudi.timeline.instants import State
from support.drive import write, write_after_death
from support.faults.steps import Share, steps_of
from support.made.compacting import IMPATIENT, TABLE, append, in_bases, merged, new_table, rows, slices, timeline_of
from support.made.sorting import run
from support.rules.sorted_files import unsorted_files
from support.upkeep.merge_steps import META, Ends, Merge

BY = ("value", "id")
REWRITTEN = replace(TABLE, table_type="COPY_ON_WRITE")
FIRST = (("k1", "a", 10, 9), ("k2", "b", 10, 8), ("k3", "c", 10, 7), ("k5", "a", 10, 3))
SOME = steps_of("sort", 12, by_suite=True)
KINDS = ["cow", "mor"]
OFF = Upkeep(CleanSettings(automatic=False), ArchiveSettings(automatic=False), CompactionSettings(inline=False))
WRITE = WriteSettings(upkeep=OFF)
IMPATIENT_WRITE = replace(WRITE, patience=IMPATIENT)


def check(table: Path, name: str) -> None:
    """Assert that all is in base files, which are in order, and that nothing is pending."""
    assert not any(one.logs for one in slices(table)), name
    assert in_bases(table) == merged(table), name
    assert unsorted_files(table) == [], name
    assert {one.state for one in timeline_of(table).instants} == {State.COMPLETED}, name


def sort_after_death(table: Path) -> None:
    """Sort, and again where that found a dead sort to be decided, completed it, and was itself planned before."""
    try:
        run(table, by=BY)
    except CommitConflictError as error:
        assert "completed meanwhile" in str(error)
        run(table, by=BY)


SORT = Merge(lambda storage, means: sort(storage, means, by=BY), sort_after_death, check)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Tables of each type with file groups in three partitions; that with log files has some."""
    folder = tmp_path_factory.mktemp("made")
    write(folder / "cow", rows(*FIRST), table=REWRITTEN)
    new_table(folder / "mor", *FIRST)
    append(folder / "mor", ("k1", "a", 20, 1), ("k4", "a", 1, 4))
    return lambda kind: folder / kind


@pytest.mark.parametrize("kind", KINDS)
@SOME
@pytest.mark.parametrize("how", ["before", "after", "killed"])
def test_a_sort_that_fails_at_any_step_is_done_by_the_next(
    made: Callable[[str], Path], tmp_path: Path, how: str, share: Share, kind: str
) -> None:
    before, ends = merged(made(kind), *META), Ends(SORT, made(kind))
    for table, name in SORT.failed(made(kind), tmp_path, share, how):
        assert merged(table, *META) == before, name
        ends.check(table, name)


@SOME
def test_a_write_after_a_sort_that_died_at_any_step_finds_the_table_as_it_was(
    made: Callable[[str], Path], tmp_path: Path, share: Share
) -> None:
    expected = sorted({**{row[0]: row for row in FIRST}, "k1": ("k1", "a", 30, 31)}.values())
    for table, name in SORT.failed(made("cow"), tmp_path, share, "killed"):
        write_after_death(table, rows(("k1", "a", 30, 31)), settings=IMPATIENT_WRITE)

        assert sorted((key, p, ts, value) for p, key, ts, value in merged(table, "p", "id", "ts", "value")) == expected
        assert not timeline_of(table).pending, name


@pytest.mark.parametrize("kind", KINDS)
@SOME
def test_a_writer_that_comes_at_any_step_of_a_sort_is_not_undone(
    made: Callable[[str], Path], tmp_path: Path, share: Share, kind: str
) -> None:
    """Where it changes a file group that the sort in place rewrites, one of the two gives way, and nothing is lost."""
    committed_tables: list[str] = []

    def writer(table: Path) -> None:
        with contextlib.suppress(RetryError):
            write(table, rows(("k1", "a", 30, 31)), settings=WRITE)
            committed_tables.append(str(table))

    ends = Ends(SORT, made(kind))
    for table, name in SORT.stopped(made(kind), tmp_path, share, writer):
        found = dict(merged(table, "id", "value"))
        assert found["k1"] == (31 if str(table) in committed_tables else 9 if kind == "cow" else 1), name
        assert {key: found[key] for key in ("k2", "k3", "k5")} == {"k2": 8, "k3": 7, "k5": 3}, name
        ends.check(table, name)
    assert committed_tables
