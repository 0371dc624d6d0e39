"""Writers that stop at any step of theirs, for longer than every limit, while others go on; and then go on themselves.

Whoever says that it is done has its rows in the table, and whoever raises has none there, in whatever order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import PyHudiError
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.rollback.sweep import sweep
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.transaction.left_overs import forget
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.table import Table
from pyhudi.timeline.clock import format_time
from pyhudi.timeline.writers import heartbeat, owner
from pyhudi.timeline.writers.markers import Markers
from support.drive import at_time, noted, plan, rows_of, task, write
from support.faults.faulty import FaultyStorage
from support.faults.races import IMPATIENT, SCHEMA, TABLE, data_files, rows
from support.faults.steps import Share, steps_of
from support.faults.stops import Stop, counted
from support.places import copied, state_of
from support.rules.ends import assert_whole
from support.seams import patch_seam
from support.stores import merge_in_one_thread, wrap_stores

COLOCATED = replace(IMPATIENT, colocated=True)


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stop]:
    shared_stop = Stop()
    wrap_stores(monkeypatch, lambda store: FaultyStorage(store, shared_stop))
    merge_in_one_thread(monkeypatch)
    yield shared_stop


def others(table: Path, said: list[str]) -> None:
    """Be a writer with an impatient clock, who takes the one that sleeps for dead, until its row is in the table."""
    for _ in range(2):
        try:
            write(table, rows("a", "theirs", value=2), settings=IMPATIENT)
        except PyHudiError:
            continue  # the one that sleeps had decided, and is complete now
        said.append("theirs")
        return
    raise AssertionError("the other writer is held up")


def check(table: Path, said: list[str], name: str) -> None:
    """Assert that those are there who said so, and nobody else."""
    assert rows_of(table, "id") == sorted((one,) for one in ["k0", *said]), name


def check_next(table: Path, said: list[str], name: str) -> None:
    """Assert that the table can be written, and is whole then."""
    found = sorted((one,) for one in ["k0", *said])
    write(table, rows("b", "next", value=3), settings=IMPATIENT)
    assert rows_of(table, "id") == sorted([*found, ("next",)]), name
    assert_whole(table)


def commit(planned: WritePlan, results: list[Any], said: list[str]) -> None:
    """Commit, and abort as Spark does where that fails."""
    try:
        commit_write(planned, results)
    except PyHudiError:
        abort_write(planned)
    else:
        said.append("mine")


def each_step(place: Path, stop: Stop, share: Share, run: Callable[[Path, list[str], int], None]) -> None:
    """Run something once for each of some of its steps, with a stop there, in a table of its own each time.

    The table is written on once from each state that is left, times and invented names aside.
    """
    states: set[object] = set()
    write(place / "first", rows("a", "k0", value=0), table=TABLE)
    for number in share.of(range(1, 400)):
        table, said = place / f"t{number}", []
        copied(place / "first", table)
        stop.meanwhile = lambda table=table, said=said: others(table, said)
        run(table, said, number)
        name = f"step {number} ({stop.name_of(number)}), {said}"
        if len(stop.steps) < number:
            assert number > 15
            return
        check(table, said, name)
        state = tuple(said), state_of(table)
        if state not in states:
            states.add(state)
            check_next(table, said, name)
    raise AssertionError("there are more steps than this looks at")


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
@steps_of("write")
def test_a_commit_that_stops_at_any_step(tmp_path: Path, stop: Stop, colocated: bool, share: Share) -> None:
    def run(table: Path, said: list[str], number: int) -> None:
        planned = plan(table, SCHEMA, settings=COLOCATED if colocated else IMPATIENT)
        result = task(planned, rows("a", "mine", value=1), 0)
        with counted(stop, number):
            commit(planned, [result], said)

    each_step(tmp_path, stop, share, run)


@steps_of("write")
def test_a_commit_that_stops_at_any_step_while_one_that_began_with_it_commits(
    tmp_path: Path, stop: Stop, share: Share
) -> None:
    """Neither sees the other as pending, and the other one decides once: the number that this one has in mind."""

    def run(table: Path, said: list[str], number: int) -> None:
        mine, theirs = (plan(table, SCHEMA, settings=COLOCATED) for _ in range(2))
        result, rival = (task(one, rows("a", name, value=1), 0) for one, name in ((mine, "mine"), (theirs, "theirs")))

        def rival_commits() -> None:
            try:
                commit_write(theirs, [rival])
            except PyHudiError:
                abort_write(theirs)
            else:
                said.append("theirs")

        stop.meanwhile = rival_commits
        with counted(stop, number):
            commit(mine, [result], said)
        if len(stop.steps) >= number:
            assert len(said) == 1, stop.name_of(number)

    each_step(tmp_path, stop, share, run)


@pytest.mark.parametrize(
    "revives",
    [
        pytest.param(True, id="its victim wakes up"),
        pytest.param(False, id="both are rolled back", marks=pytest.mark.slow),
    ],
)
@steps_of("write")
def test_a_write_that_rolls_back_another_and_stops_at_any_step(
    tmp_path: Path, stop: Stop, revives: bool, share: Share
) -> None:
    """While it sleeps its victim wakes up and commits, or another writer rolls both back."""

    def run(table: Path, said: list[str], number: int) -> None:
        victim = plan(table, SCHEMA, settings=COLOCATED)
        result = task(victim, rows("a", "victim", value=1), 0)

        def revive() -> None:
            try:
                commit_write(victim, [result])
            except PyHudiError:
                abort_write(victim)
            else:
                said.append("victim")

        if revives:
            stop.meanwhile = revive
        planned = plan(table, SCHEMA, settings=IMPATIENT)
        with counted(stop, number):
            try:
                result_of_mine = task(planned, rows("c", "mine", value=1), 0)
            except PyHudiError:
                abort_write(planned)
            else:
                commit(planned, [result_of_mine], said)
        if not revives:
            # Long after all others the victim wakes up, too.
            with pytest.raises(PyHudiError):
                commit_write(victim, [result])
            abort_write(victim)

    each_step(tmp_path, stop, share, run)


@steps_of("write")
def test_an_abort_that_stops_at_any_step(tmp_path: Path, stop: Stop, share: Share) -> None:
    """It opened a partition that the other writer comes to rely on meanwhile."""

    def run(table: Path, said: list[str], number: int) -> None:
        planned = plan(table, SCHEMA, settings=COLOCATED)
        task(planned, rows("new", "mine", value=1), 0)

        def rely() -> None:
            write(table, rows("new", "theirs", value=2), settings=IMPATIENT)
            said.append("theirs")

        stop.meanwhile = rely
        with counted(stop, number):
            abort_write(planned)

    each_step(tmp_path, stop, share, run)


def test_a_commit_that_slept_longer_than_decisions_are_kept(
    tmp_path: Path, stop: Stop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number that it makes is free again, and not the newest: it does not bind."""
    patch_seam(monkeypatch, "decisions that stay", 1)
    table, said = tmp_path / "t", []
    write(table, rows("a", "k0", value=0), table=TABLE)
    planned = plan(table, SCHEMA, settings=COLOCATED)
    result = task(planned, rows("a", "mine", value=1), 0)

    def many() -> None:
        others(table, said)
        for number in range(6):
            write(table, rows("a", f"more{number}", value=2), settings=WriteSettings())
            said.append(f"more{number}")

    def stop_at_the_decision(name: str, path: str) -> bool:
        return name == "create" and "/decisions/" in path

    stop.meanwhile = many
    with counted(stop, 0):
        monkeypatch.setattr(FaultyStorage, "__getattr__", _stopping(stop, stop_at_the_decision))
        commit(planned, [result], said)
    assert "mine" not in said
    assert len(said) == 7
    check(table, said, "")
    check_next(table, said, "")


def _stopping(stop: Stop, where: Callable[[str, str], bool]) -> Callable[[FaultyStorage, str], Any]:
    """Return what makes a storage stop before the first call that fits."""

    def get(self: FaultyStorage, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if name not in {"create"}:
            return attribute

        def call(path: str, *args: Any, **options: Any) -> Any:
            if not stop.asleep and stop.awake and where(name, path):
                stop.asleep, stop.awake = True, False
                stop.meanwhile()
                stop.asleep = False
            return attribute(path, *args, **options)

        return call

    return get


@steps_of("write")
def test_a_commit_that_sleeps_until_its_instant_may_be_archived(
    tmp_path: Path, stop: Stop, monkeypatch: pytest.MonkeyPatch, share: Share
) -> None:
    """What somebody else has completed and archived for it must not come back as the timeline's beginning."""
    patch_seam(monkeypatch, "seconds after which a commit is late", 0.0)

    def run(table: Path, said: list[str], number: int) -> None:
        def others_archive() -> None:
            others(table, said)
            write(table, rows("b", "more", value=2), settings=IMPATIENT)
            said.append("more")
            archive(open_storage(str(table)), ArchiveSettings(min_commits=1, max_commits=1))

        planned = plan(table, SCHEMA, settings=COLOCATED)
        result = task(planned, rows("a", "mine", value=1), 0)
        stop.meanwhile = others_archive
        with counted(stop, number):
            commit(planned, [result], said)

    each_step(tmp_path, stop, share, run)


@pytest.mark.parametrize("pause", [2, 3])
def test_a_sweep_that_stops_twice_takes_nothing_of_a_write_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: int
) -> None:
    """The write slept before it was on the timeline; then it makes its files, and completes: whole, or not at all."""
    patch_seam(monkeypatch, "wait for the first attempt of a task", 0.0)
    outcomes, at, sweeping = set(), 0, Stop()
    write(tmp_path / "first", rows("a", "k0", value=0), table=TABLE)
    while len(sweeping.steps) >= at:
        at += 1
        table = copied(tmp_path / "first", tmp_path / f"t{at}")
        planned, storage = plan(table, SCHEMA, settings=COLOCATED), open_storage(str(table))
        work = at_time(planned, format_time(int(storage.now() * 1000), "UTC")).transaction
        heartbeat.Heartbeat(storage, work.instant_time).touch()
        owner.Claim(storage, work.instant_time).make(work.owner)
        Markers(storage, work.instant_time).begin()
        sweeping, said, results = Stop(at=at, awake=True), list[str](), list[Any]()

        def ends(planned: WritePlan = planned, results: list[Any] = results, said: list[str] = said) -> None:
            commit(planned, results, said) if results else abort_write(planned)

        def goes_on(
            planned: WritePlan = planned,
            sweeping: Stop = sweeping,
            results: list[Any] = results,
            ends: Callable[[], None] = ends,
        ) -> None:
            with contextlib.suppress(PyHudiError):
                results.append(task(planned, rows("a", "mine", value=1), 0))
            sweeping.at, sweeping.meanwhile = sweeping.at + pause, ends

        sweeping.meanwhile = goes_on
        sweep(Table(FaultyStorage(storage, sweeping), load_config(storage)), COLOCATED.patience, own_time="")  # type: ignore[arg-type]
        if len(sweeping.steps) < sweeping.at:
            ends()
        name = f"step {at} ({sweeping.name_of(at)})"
        check(table, said, name)
        check_next(table, said, name)
        outcomes.update(said)
    assert outcomes


def test_an_abort_takes_files_along_whose_markers_a_late_sweep_took(tmp_path: Path) -> None:
    write(tmp_path / "t", rows("a", "k0", value=1), table=TABLE)
    planned, before = plan(tmp_path / "t", SCHEMA, settings=COLOCATED), data_files(tmp_path / "t")
    task(planned, rows("a", "k0", value=2), 0)
    forget(open_storage(str(tmp_path / "t")), noted(planned))
    abort_write(planned)

    assert data_files(tmp_path / "t") == before
    assert_whole(tmp_path / "t")
