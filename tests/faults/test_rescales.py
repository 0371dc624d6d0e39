"""Rescales that fail, or die, at every step: no row is lost or doubled, and Apache Hudi never finds a wrong rule."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import PyHudiError, RetryError
from pyhudi.operations.rollback.sweep import sweep
from pyhudi.operations.services.restore import restore
from pyhudi.storage import open_storage
from pyhudi.table.buckets.numbers import FIRST
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import State
from support.drive import rows_of, write
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.steps import Share, steps_of
from support.faults.stops import Stop
from support.made.compacting import IMPATIENT, rows, timeline_of
from support.made.rescales import numbers, rescale
from support.places import copied, state_of
from support.rules.ends import assert_whole
from support.seams import patch_seam
from support.upkeep.meetings import QUIET
from support.upkeep.merge_steps import META
from support.upkeep.rescales import attempt_rescale, check_rule, java_goes_by, make_buckets

WRITES = replace(QUIET, patience=IMPATIENT)
SOME = steps_of("rescale", 9, by_suite=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with base and log files of two buckets in two partitions."""
    return make_buckets(tmp_path_factory.mktemp("made") / "t")


def check_end(table: Path, before: list[tuple[Any, ...]], name: str) -> None:
    """Rescale the other partitions, and assert that the table is as without the interruption."""
    rescale(table, 4)
    assert rows_of(table, *META) == before, name
    assert (numbers(table).default, numbers(table).differ) == (4, False), name
    storage = open_storage(str(table))
    sweep(open_table(storage), IMPATIENT, own_time="")
    left = [path for folder in (".temp", ".heartbeat") for path in (table / ".hoodie" / folder).rglob("*")]
    assert [path for path in left if path.is_file()] == [], name
    assert {one.state for one in timeline_of(table).instants} == {State.COMPLETED}, name
    assert_whole(table, deep=True, tolerated=())


@SOME
@pytest.mark.parametrize("how", ["before", "after", "killed"])
def test_a_rescale_that_fails_at_any_step_is_taken_up_by_the_next(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, share: Share
) -> None:
    if how == "killed":
        patch_seam(monkeypatch, "bytes that one rescale reads", 0)
    before, states, count = rows_of(made, *META), set(), Faults()
    attempt_rescale(copied(made, tmp_path / "count"), count)
    for number in share.of(failing(count.steps, how)):
        table = copied(made, tmp_path / f"t{number}")
        faults = Faults(at=number, after=how == "after", kill=how == "killed")
        with contextlib.suppress(RetryError, Killed):
            attempt_rescale(table, faults)
        name = f"step {number} ({faults.name_of(number)})"
        check_rule(table, name)
        assert rows_of(table, *META) == before, name
        state = state_of(table, made)
        if state not in states:
            states.add(state)
            check_end(table, before, name)
        shutil.rmtree(table)


@SOME
def test_a_rescale_that_sleeps_at_any_step_while_others_take_it_for_dead(
    made: Path, tmp_path: Path, share: Share
) -> None:
    """They undo it, rescale to another number and write; once awake, it leaves all of that as it is."""
    count = Faults()
    attempt_rescale(copied(made, tmp_path / "count"), count)
    for number in share.of(failing(count.steps, "before")):
        table = copied(made, tmp_path / f"t{number}")

        def others(table: Path = table) -> None:
            rescale(table, 3)
            write(table, rows(("k1", "a", 9, 91), ("k9", "b", 9, 99)), settings=WRITES)

        stop = Stop(at=number, awake=True, meanwhile=others)
        with contextlib.suppress(PyHudiError):
            attempt_rescale(table, stop)
        name = f"step {number} ({stop.name_of(number)})"
        check_rule(table, name)
        stored_rows = rows_of(table, "id", "value")
        slept = len(stop.steps) >= number
        assert stored_rows == sorted(
            [("k1", 91 if slept else 11), ("k2", 2), ("k3", 3), ("k4", 4)] + slept * [("k9", 99)]
        )
        assert numbers(table).unknown == "", name
        write(table, rows(("k2", "a", 9, 22)), settings=WRITES)
        assert len(rows_of(table, "id")) == len(stored_rows), name
        assert_whole(table, deep=True, tolerated=())
        shutil.rmtree(table)


@steps_of("undo", 5)
def test_a_restore_that_dies_at_any_step_leaves_no_rule_of_what_it_undid(
    made: Path, tmp_path: Path, share: Share
) -> None:
    origin = copied(made, tmp_path / "origin")
    first = timeline_of(origin).writes[-1].requested_time
    rescale(origin, 4)
    before, count = rows_of(made, *META), Faults()
    restore(FaultyStorage(open_storage(str(copied(origin, tmp_path / "count"))), count), first)  # type: ignore[arg-type]
    for number in share.of(failing(count.steps, "killed")):
        table = copied(origin, tmp_path / f"t{number}")
        faults = Faults(at=number, kill=True)
        storage: Any = FaultyStorage(open_storage(str(table)), faults)
        with contextlib.suppress(Killed):
            restore(storage, first)
        name = f"step {number} ({faults.name_of(number)})"
        check_rule(table, name)
        restore(open_storage(str(table)), first, patience=IMPATIENT)
        assert rows_of(table, *META) == before, name
        assert java_goes_by(table) == FIRST, name
        shutil.rmtree(table)
