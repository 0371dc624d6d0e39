"""Followers of a table's files: whole wherever the process dies that prepared for them, whichever process finishes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults.test_decisions import nothing_is_carried_out
from pyhudi.errors import CommitConflictError, StorageError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.service_settings import CleanSettings, CompactionSettings
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.compaction.compact import compact
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.config import load_config
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import rows_of, write, write_after_death
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.steps import Share, steps_of
from support.made.compacting import IMPATIENT as PATIENCE
from support.made.compacting import means, timeline_of
from support.made.following import OUT_OF_USE, KeepingFollower, aside_files, check_kept, check_steps
from support.places import copied
from support.rules.ends import assert_whole
from support.seams import patch_seam
from support.stores import wrap_stores
from support.write_settings import write_settings

QUIET = replace(IMPATIENT, upkeep=OFF)
# Its writers do not take each other for dead.
PATIENT = WriteSettings(upkeep=OFF)
TABLE = replace(PARTED, table_type="MERGE_ON_READ")


@pytest.fixture
def follower(monkeypatch: pytest.MonkeyPatch) -> KeepingFollower:
    made = KeepingFollower()
    patch_seam(monkeypatch, "followers of a table", (made,))
    return made


def upsert(path: Path, *keys: int, value: int, partition: str = "a", settings: WriteSettings = QUIET) -> str:
    return write(path, [parted(partition, *keys, value=value)], table=TABLE, settings=settings).instant


def act_on(path: Path, kind: str, faults: Faults) -> None:
    storage: Any = FaultyStorage(open_storage(str(path)), faults)
    if kind == "write":
        upsert(path, 1, 2, value=9)
    elif kind == "compaction":
        compact(storage, CompactionSettings(), means(storage))
    elif kind == "clean":
        clean(storage, CleanSettings(commits=1))
    else:
        rollback(storage, timeline_of(path).writes[-1].requested_time, patience=PATIENCE)


@pytest.mark.parametrize("kind", ["write", "compaction", "clean", "rollback"])
@steps_of("write", 5)
def test_a_follower_is_whole_after_its_maker_died_at_any_step(
    tmp_path: Path, follower: KeepingFollower, share: Share, kind: str
) -> None:
    """Its file is published and its change noted before each completed file, by its maker or by the next writer."""
    origin = tmp_path / "origin"
    for value in (1, 2):
        upsert(origin, 1, 2, 3, value=value)
    if kind == "clean":
        act_on(origin, "compaction", Faults())
        upsert(origin, 1, 2, value=3)
    steps = died(copied(origin, tmp_path / "count"), kind, Faults())
    for number in share.of(failing(steps, "killed")):
        path = copied(origin, tmp_path / f"t{number}")
        died(path, kind, Faults(at=number, kill=True))
        check_steps(path)

        for value in (11, 12):
            write_after_death(path, [parted("b", 5, value=value)], settings=QUIET)

        if kind in {"compaction", "clean"}:
            # What is planned stays planned until a service carries it out.
            act_on(path, kind, Faults())
        assert rows_of(path, "id")[-1] == ("k5",)
        check_kept(path)
        assert_whole(path)


def died(path: Path, kind: str, faults: Faults) -> list[str]:
    """Let a process die at a step of what it does, and look at the follower's files before each; return the steps."""
    faults.watch = lambda: check_steps(path)
    with pytest.MonkeyPatch.context() as patch:
        wrap_stores(patch, lambda storage: FaultyStorage(storage, faults))
        with contextlib.suppress(Killed):
            act_on(path, kind, faults)
    return faults.steps


def test_followers_prepare_again_where_an_instant_touches_what_they_wrote(
    tmp_path: Path, follower: KeepingFollower
) -> None:
    upsert(tmp_path, 1, value=1)
    follower.prepared.clear()
    follower.meanwhile = lambda: upsert(tmp_path, 5, value=2, partition="b", settings=PATIENT) and None

    mine = upsert(tmp_path, 1, value=3, settings=PATIENT)

    times = [instant.requested_time for instant, _ in follower.prepared]
    assert times.count(mine) == 2
    assert len(times) == 3
    check_kept(tmp_path)


def test_followers_prepare_once_where_other_instants_touch_nothing_of_theirs(
    tmp_path: Path, follower: KeepingFollower
) -> None:
    upsert(tmp_path, 1, value=1)
    follower.prepared.clear()
    follower.touches = False
    follower.meanwhile = lambda: upsert(tmp_path, 5, value=2, partition="b", settings=PATIENT) and None

    upsert(tmp_path, 1, value=3, settings=PATIENT)

    assert len(follower.prepared) == 2


def test_what_followers_prepared_for_a_write_that_is_refused_goes_with_its_left_overs(
    tmp_path: Path, follower: KeepingFollower
) -> None:
    mine = write_settings(PATIENT, retry_s=0.0)
    write(tmp_path, [parted("a", 1, value=1)], table=PARTED, settings=mine)
    follower.meanwhile = lambda: write(tmp_path, [parted("a", 1, value=2)], settings=mine) and None

    with pytest.raises(CommitConflictError):
        write(tmp_path, [parted("a", 1, value=3)], settings=mine)

    assert rows_of(tmp_path, "value") == [(2,)]
    check_kept(tmp_path)


def test_a_follower_that_fails_fails_the_write(
    tmp_path: Path, follower: KeepingFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert(tmp_path, 1, value=1)

    def fail() -> None:
        raise StorageError("No room for the list.", "Make room.")

    follower.meanwhile = fail
    with pytest.raises(StorageError, match="No room for the list"):
        upsert(tmp_path, 1, value=2)

    assert rows_of(tmp_path, "value") == [(1,)]
    upsert(tmp_path, 1, value=3)
    check_kept(tmp_path)
    assert_whole(tmp_path)


@pytest.mark.parametrize("damage", ["deleted", "cut", "flipped"])
def test_a_follower_whose_file_aside_is_lost_goes_out_of_use(
    tmp_path: Path, follower: KeepingFollower, damage: str
) -> None:
    """The instant was decided, so it completes; no reader of the follower may take the list before for the newest."""
    upsert(tmp_path, 1, value=1)
    with nothing_is_carried_out(Killed()), pytest.raises(Killed):
        upsert(tmp_path, 1, value=2)
    [aside] = aside_files(tmp_path)
    data = (tmp_path / aside).read_bytes()
    (tmp_path / aside).unlink()
    if damage != "deleted":
        (tmp_path / aside).write_bytes(data[:-1] if damage == "cut" else data[:-1] + b"}")
    calls = len(follower.prepared)

    write_after_death(tmp_path, [parted("b", 5, value=3)], settings=QUIET)

    assert rows_of(tmp_path, "id", "value") == [("k1", 2), ("k5", 3)]
    assert load_config(open_storage(str(tmp_path))).properties[OUT_OF_USE] == "true"
    assert len(follower.prepared) - calls <= 1, "the writer that finished the other's decision called a follower"
    assert_whole(tmp_path)


def test_a_file_that_another_process_put_in_place_keeps_the_follower_in_use(
    tmp_path: Path, follower: KeepingFollower
) -> None:
    """Its maker deleted the file aside between two looks of this process at its place."""
    upsert(tmp_path, 1, value=1)
    with nothing_is_carried_out(Killed()), pytest.raises(Killed):
        upsert(tmp_path, 1, value=2)
    [aside] = aside_files(tmp_path)

    def put_in_place() -> None:
        name = aside.rpartition("-")[2]
        (tmp_path / ".hoodie/fake" / name).write_bytes((tmp_path / aside).read_bytes())
        (tmp_path / aside).unlink()

    def opened(storage: Storage) -> Any:
        return _Meanwhile(storage, aside, put_in_place)

    with pytest.MonkeyPatch.context() as patch:
        wrap_stores(patch, opened)
        write_after_death(tmp_path, [parted("b", 5, value=3)], settings=QUIET)

    assert rows_of(tmp_path, "id", "value") == [("k1", 2), ("k5", 3)]
    check_kept(tmp_path)


class _Meanwhile:
    """A storage in which something happens right before a file is opened."""

    def __init__(self, inner: Storage, path: str, act: Callable[[], None]) -> None:
        self._inner = inner
        self._path = path
        self._act = act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open_input(self, path: str) -> Any:
        if path == self._path:
            self._act()
        return self._inner.open_input(path)
