"""Archiving that fails, dies or sleeps at any of its steps, while others archive, write, or begin late."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyhudi.errors import PyHudiError
from pyhudi.storage import open_storage
from support.drive import rows_of
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.steps import Share, steps_of
from support.faults.stops import Stop
from support.places import copied, state_of
from support.upkeep.archiving import (
    ROWS,
    STEPS,
    assert_tidy,
    check_begins_late,
    in_archive,
    move,
    on_timeline,
    tables,
    written,
)

Meanwhile = Callable[[Path, list[str]], None]


@pytest.fixture(scope="module", params=[9, 6], ids="version {}".format)
def first(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of which four of six instants are to go."""
    return written(tmp_path_factory.mktemp("first") / "t", 6, version=request.param)


SLOW = pytest.mark.slow


@pytest.mark.parametrize("how", [pytest.param("before", marks=SLOW), pytest.param("after", marks=SLOW), "killed"])
@steps_of("archiving")
def test_every_step_that_fails_is_made_good_by_the_next_round(
    first: Path, tmp_path: Path, how: str, share: Share
) -> None:
    """Nobody's rows and nobody's history are missing in between, and nothing is left of it afterwards.

    It is gone on with once from each state that is left.
    """
    before, states, count = on_timeline(first), set(), Faults()
    move(FaultyStorage(open_storage(str(copied(first, tmp_path / "count"))), count))
    assert len(count.steps) > 20
    for number in share.of(failing(count.steps, how)):
        table = copied(first, tmp_path / f"t{number}")
        faults = Faults(at=number, after=how == "after", kill=how == "killed")
        with contextlib.suppress(PyHudiError, Killed):
            move(FaultyStorage(open_storage(str(table)), faults))
        name = f"step {number} ({faults.name_of(number)})"
        assert rows_of(table, "id") == ROWS, name
        assert on_timeline(table) | in_archive(table) == before, name
        state = state_of(table, first)
        if state not in states:
            states.add(state)
            written(table, 1, first=6)
            active_instants = on_timeline(table)
            assert active_instants | in_archive(table) == before | active_instants, name
            move(table)
            assert rows_of(table, "id") == [*ROWS, ("k6",)], name
            assert active_instants | before == on_timeline(table) | in_archive(table), name
            assert_tidy(table)
        shutil.rmtree(table)


def others_archive(table: Path, said: list[str]) -> None:
    written(table, 2, first=6)
    said += ["k6", "k7"]
    move(table)


def others_write(table: Path, said: list[str]) -> None:
    written(table, 1, first=6)
    said.append("k6")


@pytest.mark.parametrize("meanwhile", [others_archive, pytest.param(others_write, marks=SLOW)])
@steps_of("archiving")
def test_an_archiver_that_sleeps_at_any_step_while_others_go_on(
    first: Path, tmp_path: Path, meanwhile: Meanwhile, share: Share
) -> None:
    """Whoever archives meanwhile may be done with the same instants, and with later ones."""
    states = set()
    for number, table in tables(first, tmp_path, share.of(STEPS)):
        said: list[str] = []
        stop = Stop(at=number, awake=True, meanwhile=lambda table=table, said=said: meanwhile(table, said))
        with contextlib.suppress(PyHudiError):
            move(FaultyStorage(open_storage(str(table)), stop))
        name = f"step {number} ({stop.name_of(number)})"
        assert rows_of(table, "id") == sorted([*ROWS, *((one,) for one in said)]), name
        assert len(on_timeline(table) | in_archive(table)) == 6 + len(said), name
        state = state_of(table, first)
        if state not in states:
            states.add(state)
            move(table)
            assert rows_of(table, "id") == sorted([*ROWS, *((one,) for one in said)]), name
            assert len(on_timeline(table) | in_archive(table)) == 6 + len(said), name
            assert_tidy(table)
        if len(stop.steps) < number:
            return


def test_a_write_that_was_planned_long_ago_begins_at_any_step(tmp_path: Path) -> None:
    """It is on the timeline before the archiver looks, or is refused; what it writes is there if it says so."""
    check_begins_late(tmp_path)
