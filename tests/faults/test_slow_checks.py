"""Commits whose checks take as long as many commits of others: each round of the race looks at what is new alone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import CommitConflictError
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.operations.write.task import TaskResult
from pyhudi.table.files.names import FileGroupId
from support.drawn.lookups import APART, TABLE, assert_healthy, planned, rows
from support.drive import rows_of, task, write
from support.faults import races
from support.seams import patch_seam, read_seam

Waiting = list[tuple[WritePlan, TaskResult]]


def begun(table: Path, *keys: tuple[int, ...]) -> Waiting:
    """Begin writes that add some keys each, to a file group of its own."""
    plans = [planned(table, settings=APART) for _ in keys]
    return [(one, task(one, rows(*some, value=1), 0)) for one, some in zip(plans, keys, strict=True)]


def commit_next(waiting: Waiting) -> None:
    one, result = waiting.pop(0)
    commit_write(one, [result])


def test_a_check_of_many_seconds_beside_ten_commits_a_second_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it looks at twenty commits ten more complete, and five while it looks at those."""
    write(tmp_path, rows(1, value=1), table=TABLE, settings=APART)
    (mine, result), *waiting = begun(tmp_path, *((10 + number,) for number in range(40)))
    for _ in range(20):
        commit_next(waiting)
    find = read_seam("find a key that another commit added")
    looked: list[set[FileGroupId]] = []

    def slow(*known: Any) -> Any:
        _, _, _, instant_time, theirs, _ = known
        added_key = find(*known)
        if instant_time == result.instant_time:
            looked.append(set(theirs))
            for _ in range(len(theirs) // 2):
                commit_next(waiting)
        return added_key

    patch_seam(monkeypatch, "find a key that another commit added", slow)
    commit_write(mine, [result])

    assert [len(one) for one in looked] == [20, 10, 5, 2, 1]
    assert len(set().union(*looked)) == sum(map(len, looked))
    for write_plan, _ in waiting:
        abort_write(write_plan)
    assert len(rows_of(tmp_path, "id")) == 1 + 1 + 38
    assert_healthy(tmp_path)


def test_a_key_that_a_commit_adds_during_the_check_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, rows(1, value=1), table=TABLE, settings=APART)
    (mine, result), *waiting = begun(tmp_path, (5, 6), (10,), (11,), (5,))
    commit_next(waiting)
    find = read_seam("find a key that another commit added")

    def slow(*known: Any) -> Any:
        added_key = find(*known)
        if known[3] == result.instant_time and waiting:
            commit_next(waiting)
        return added_key

    patch_seam(monkeypatch, "find a key that another commit added", slow)
    with pytest.raises(CommitConflictError, match="record key 'k5'"):
        commit_write(mine, [result])
    abort_write(mine)

    assert rows_of(tmp_path, "id") == [("k1",), ("k10",), ("k11",), ("k5",)]
    assert_healthy(tmp_path)


def test_a_write_that_was_pending_in_one_round_is_looked_at_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, races.rows("a", "k1", value=1), table=races.TABLE)
    mine, other = (races.plan(tmp_path, races.SCHEMA) for _ in range(2))
    results = [task(one, races.rows("a", "k1", value=value), 0) for value, one in ((2, mine), (3, other))]
    check = read_seam("check conflicts")
    checked: list[Collection[str]] = []

    def watched(work: Any, timeline: Any, changes: Any, known: Any) -> None:
        check(work, timeline, changes, known)
        if work.instant_time == results[0].instant_time:
            checked.append({one.requested_time for one in known.instants})
            commit_write(other, [results[1]])

    patch_seam(monkeypatch, "check conflicts", watched)
    with pytest.raises(CommitConflictError, match=results[1].instant_time):
        commit_write(mine, [results[0]])
    abort_write(mine)

    assert [results[1].instant_time in one for one in checked] == [True]
    assert rows_of(tmp_path, "id", "value") == [("k1", 3)]
