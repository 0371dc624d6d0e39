"""Rollbacks, savepoints and restores that fail or are killed at every step, and two at once: one end in every case."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyhudi.errors import CommitConflictError, PyHudiError, StorageError
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import delete_savepoint, savepoint
from pyhudi.storage import Storage, open_storage
from support.attempts import IMPATIENT, parted
from support.drive import write
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.steps import Share, steps_of
from support.places import state_of
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam
from support.upkeep.undoing import Life, content, lived, logged, timeline_at

Act = Callable[[Storage, Life], object]
read = read_seam("read an instant")


def roll_back_an_upsert(storage: Storage, life: Life) -> object:
    return rollback(storage, life.instants[-1])


def roll_back_an_overwrite(storage: Storage, life: Life) -> object:
    return rollback(storage, life.instants[2])


def restore_to_the_first(storage: Storage, life: Life) -> object:
    return restore(storage, life.instants[0])


def keep_the_second(storage: Storage, life: Life) -> object:
    return savepoint(storage, life.instants[1])


def let_the_second_go(storage: Storage, life: Life) -> object:
    return delete_savepoint(storage, life.instants[1])


def back_to(number: int) -> Callable[[Life], object]:
    """Return what takes a table back to one of its first writes."""
    return lambda life: restore(open_storage(str(life.path)), life.instants[number - 1])


# What is done before, what is done, and which moments of the table's life it leads from and to.
ACTS: dict[str, tuple[Callable[[Life], object], Act, int, int]] = {
    "upsert": (lambda life: None, roll_back_an_upsert, 5, 4),
    "overwrite": (lambda life: restore(open_storage(str(life.path)), life.instants[2]), roll_back_an_overwrite, 3, 2),
    "restore": (lambda life: None, restore_to_the_first, 5, 1),
    "savepoint": (lambda life: None, keep_the_second, 5, 5),
    "delete savepoint": (
        lambda life: savepoint(open_storage(str(life.path)), life.instants[1]),
        let_the_second_go,
        5,
        5,
    ),
    "append": (back_to(5), lambda storage, life: rollback(storage, life.instants[4]), 5, 4),
    "compaction": (back_to(3), lambda storage, life: rollback(storage, life.instants[2]), 3, 2),
    "restore over a compaction": (back_to(5), restore_to_the_first, 5, 1),
}
LOGGED = {"append", "compaction", "restore over a compaction"}


def made(name: str, path: Path) -> Life:
    """Make the table of one of the acts."""
    return (logged if name in LOGGED else lived)(path)


def instants(life: Life) -> list[str]:
    """Return what is on the timeline, but for when it was done."""
    return [
        f"{one.requested_time if one.requested_time in life.instants else ''} {one.action} {one.state.name}"
        for one in timeline_at(life.path).instants
    ]


OFTEN = {
    ("restore over a compaction", "killed"),
    ("upsert", "killed"),
    ("restore", "killed"),
    ("savepoint", "after"),
    ("delete savepoint", "after"),
}


@pytest.mark.parametrize(
    ("name", "how"),
    [
        pytest.param(name, how, marks=() if (name, how) in OFTEN else pytest.mark.slow)
        for name in ACTS
        for how in ("after", "killed")
    ],
)
@steps_of("undo")
def test_an_act_that_stops_at_any_step_and_is_done_again(tmp_path: Path, name: str, how: str, share: Share) -> None:
    """A reader finds some moment in between, and whoever does it again the same end as if it had never stopped.

    It is done again once from each state that is left.
    """
    before, act, first, last = ACTS[name]
    life = made(name, tmp_path / "t")
    before(life)
    whole, faults = life.copied(tmp_path / "whole"), Faults()
    act(FaultyStorage(open_storage(str(whole.path)), faults), whole)  # type: ignore[arg-type]
    assert content(whole.path) == life.contents[last]
    assert len(faults.steps) > 5
    states: set[tuple[str, ...]] = set()
    # That a step without an effect fails is asked nowhere else.
    for number in share.of(failing(faults.steps, "killed" if how == "killed" else "before")):
        copy = life.copied(tmp_path / f"t{number}")
        faults = Faults(at=number, after=how == "after", kill=how == "killed")
        with contextlib.suppress(StorageError, Killed):
            act(FaultyStorage(open_storage(str(copy.path)), faults), copy)  # type: ignore[arg-type]
        step = f"step {number} ({faults.name_of(number)})"
        assert content(copy.path) in life.contents[last : first + 1], step
        state = state_of(copy.path, life.path)
        if state not in states:
            states.add(state)
            # A savepoint that is gone is not deleted again.
            with contextlib.suppress(PyHudiError if name == "delete savepoint" else ()):  # type: ignore[arg-type]
                act(open_storage(str(copy.path)), copy)
            assert content(copy.path) == life.contents[last], step
            assert instants(copy) == instants(whole), step
            assert_whole(copy.path)
        shutil.rmtree(copy.path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["upsert", "overwrite", "append", "compaction"])
@steps_of("undo")
def test_a_rollback_that_was_killed_at_any_step_is_finished_by_the_next_write(
    tmp_path: Path, name: str, share: Share
) -> None:
    """Whatever it had undone; where it had not begun, the write that it was to undo stays.

    A decision that was made and not carried out is found by the first write when it commits, and acted on by the next.
    Both go on once from each state that is left.
    """
    before, act, first, last = ACTS[name]
    life = made(name, tmp_path / "t")
    before(life)
    faults = Faults()
    whole = life.copied(tmp_path / "whole")
    act(FaultyStorage(open_storage(str(whole.path)), faults), whole)  # type: ignore[arg-type]
    ends, states = set(), set()
    for number in share.of(failing(faults.steps, "killed")):
        copy = life.copied(tmp_path / f"t{number}")
        faults = Faults(at=number, kill=True)
        with contextlib.suppress(Killed):
            act(FaultyStorage(open_storage(str(copy.path)), faults), copy)  # type: ignore[arg-type]
        state = state_of(copy.path, life.path)
        if state in states:
            continue
        states.add(state)
        with contextlib.suppress(CommitConflictError):
            write(copy.path, parted("z", 1, value=9), settings=IMPATIENT)
        write(copy.path, parted("z", 1, value=9), settings=IMPATIENT)
        found = content(copy.path)
        added = [("z", "k1", 9)]
        assert found in ([*life.contents[first], *added], [*life.contents[last], *added]), f"step {number}"
        ends.add(any(one.requested_time == life.instants[first - 1] for one in timeline_at(copy.path).instants))
        assert_whole(copy.path)
        shutil.rmtree(copy.path)
    assert len(ends) == 2


@pytest.mark.parametrize("name", ["upsert", "restore", "savepoint"])
def test_two_processes_do_the_same_at_once(tmp_path: Path, name: str) -> None:
    """Both come to the one end, whoever took which step."""
    before, act, _, last = ACTS[name]
    life = lived(tmp_path / "t")
    before(life)
    whole = life.copied(tmp_path / "whole")
    act(open_storage(str(whole.path)), whole)
    for number in range(6):
        copy, failed = life.copied(tmp_path / f"t{number}"), []

        def run(copy: Life = copy, failed: list[Exception] = failed) -> None:
            try:
                act(open_storage(str(copy.path)), copy)
            except Exception as error:  # noqa: BLE001 (told by the other thread)
                failed.append(error)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert content(copy.path) == life.contents[last]
        assert instants(copy) == instants(whole)
        assert_whole(copy.path)


@pytest.mark.parametrize("name", ["upsert", "overwrite", "restore"])
def test_an_instant_that_another_process_undoes_before_it_is_read_is_undone_once(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, act, _, last = ACTS[name]
    life = lived(tmp_path / "t")
    before(life)
    reads = itertools.count()
    with monkeypatch.context() as patch:
        patch_seam(patch, "read an instant", lambda *given: (next(reads), read(*given))[1])
        act(open_storage(str(life.copied(tmp_path / "counted").path)), life)
    for number in range(next(reads)):
        copy, met = life.copied(tmp_path / f"t{number}"), itertools.count()

        def overtaken(*given: object, copy: Life = copy, met: Iterator[int] = met, number: int = number) -> object:
            if next(met) == number:
                with monkeypatch.context() as patch:
                    patch_seam(patch, "read an instant", read)
                    act(open_storage(str(copy.path)), copy)
            return read(*given)

        with monkeypatch.context() as patch:
            patch_seam(patch, "read an instant", overtaken)
            act(open_storage(str(copy.path)), copy)
        assert content(copy.path) == life.contents[last], f"read {number}"
        assert_whole(copy.path)


def test_a_savepoint_and_a_rollback_of_one_write_do_not_both_succeed(tmp_path: Path) -> None:
    """Either the write is kept, and there, or it is gone, and nothing says that it is kept."""
    life = lived(tmp_path / "t")
    for number in range(6):
        copy, refused = life.copied(tmp_path / f"t{number}"), []

        def run(act: Callable[[Storage, str], object], copy: Life = copy, refused: list[str] = refused) -> None:
            try:
                act(open_storage(str(copy.path)), copy.instants[-1])
            except PyHudiError as error:
                refused.append(error.code)

        threads = [threading.Thread(target=run, args=(act,)) for act in (savepoint, rollback)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept = any(one.action == "savepoint" for one in timeline_at(copy.path).instants)
        assert content(copy.path) == life.contents[5 if kept else 4]
        assert len(refused) == 1
        assert set(refused) <= {"UNDO", "STORAGE"}
        assert_whole(copy.path)
