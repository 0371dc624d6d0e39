"""A disk that is full at any moment of a write, in one process that lives on: given up, and written again at once."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import PyHudiError, StorageError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.timeline.writers.owner import SEALS
from support.attempts import SCHEMA, attempt, rows
from support.drive import KEYED, plan, rows_of, task, write
from support.faults.full_disk import Disk, FullDiskStorage
from support.faults.races import IMPATIENT
from support.places import copied, state_of
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam
from support.share import ONE_OF
from support.stores import merge_in_one_thread, wrap_stores

FIRST = rows(1, 2, 3, 4, 5, value=1)
SECOND = [rows(2, 4, 6, value=2, ts=2), rows(3, 7, value=2, ts=2)]
BEFORE = [(f"k{n}", 1) for n in range(1, 6)]
AFTER = [("k1", 1), ("k2", 2), ("k3", 2), ("k4", 2), ("k5", 1), ("k6", 2), ("k7", 2)]
# Fine enough that each file that a write makes is the first one not to fit, at some of them.
EVERY = 1 << 10


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    limited_disk = Disk(tmp_path / "disk")
    wrap_stores(monkeypatch, lambda store: FullDiskStorage(store, limited_disk))
    merge_in_one_thread(monkeypatch)
    patch_seam(monkeypatch, "size of the reserve on the disk", 8 << 10)
    yield limited_disk


@pytest.mark.parametrize("settings", [IMPATIENT, replace(IMPATIENT, colocated=True)], ids=["plain", "colocated"])
def test_a_write_that_a_full_disk_ends_anywhere_is_taken_again_at_once(
    tmp_path: Path, disk: Disk, settings: WriteSettings
) -> None:
    """The same process is not held up by what it knows to be dead, and what was there stays.

    It goes on once from each state that is left.
    """
    parts = [rows(2, 3, 4, 6, 7, value=2, ts=2)] if settings.colocated else SECOND
    write(tmp_path / "first", FIRST, table=KEYED)
    given_up, states = 0, set[object]()
    for step in range(0, 1000, ONE_OF):
        copied(tmp_path / "first", disk.folder)
        disk.room = disk.used() + step * EVERY
        failed = False
        try:
            attempt(disk.folder, parts, settings)
        except StorageError:
            failed = True
        left = rows_of(disk.folder, "id", "value")
        assert left == (BEFORE if failed else AFTER), disk.room
        given_up += failed
        if failed and (disk.folder / SEALS).exists() and step > 10:
            assert not list(disk.folder.rglob("*.spill")), "what the write held is free"
        disk.room = None
        state = (failed, state_of(disk.folder, tmp_path / "first"))
        if state not in states:
            states.add(state)
            write(disk.folder, SECOND, settings=settings if not settings.colocated else IMPATIENT)

            assert rows_of(disk.folder, "id", "value") == AFTER
            write(disk.folder, SECOND, settings=IMPATIENT)
            assert_whole(disk.folder)
        shutil.rmtree(disk.folder)
        if not failed:
            assert given_up > 20 / ONE_OF
            return
    raise AssertionError("the write needs more room than this test gives")


def test_a_write_that_cannot_even_be_sealed_does_not_hold_up_its_own_process(tmp_path: Path, disk: Disk) -> None:
    """Others have taken all that it gave back: the deleted reserve alone says that it is given up."""
    write(disk.folder, FIRST, table=KEYED)
    planned = plan(disk.folder, SCHEMA, settings=WriteSettings(colocated=True))
    result = task(planned, rows(2, value=2, ts=2), 0)
    disk.room = 0
    with pytest.raises(StorageError):
        commit_write(planned, [result])
    with pytest.raises(StorageError):
        abort_write(planned)
    disk.room = None
    write(disk.folder, rows(3, value=3, ts=3))

    assert rows_of(disk.folder, "id", "value") == [("k1", 1), ("k2", 1), ("k3", 3), ("k4", 1), ("k5", 1)]
    assert_whole(disk.folder)


def test_a_rollback_on_a_full_disk_names_its_victim_before_it_deletes(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a dead write left may be all that fills the disk: its successor gives up a little of its own room first.

    The table is written on once from each state that is left.
    """
    held: list[str] = []
    states: set[object] = set()
    hold = read_seam("hold a reserve on the disk")
    patch_seam(monkeypatch, "hold a reserve on the disk", lambda *a: (hold(*a), held.append(a[0].instant_time)))
    write(tmp_path / "first", FIRST, table=KEYED)
    dead = plan(tmp_path / "first", SCHEMA, settings=replace(IMPATIENT, colocated=True))
    task(dead, rows(2, value=2, ts=2), 0)
    for step in range(0, 1000, ONE_OF):
        copied(tmp_path / "first", disk.folder)
        disk.room = disk.used() + step * EVERY
        before = set(disk.folder.rglob("*.parquet"))
        held.clear()
        completed = False
        with contextlib.suppress(PyHudiError):
            attempt(disk.folder, [rows(3, value=3, ts=3)], replace(IMPATIENT, colocated=True))
            completed = True
        named = list((disk.folder / ".hoodie/timeline").glob("*.rollback.requested"))
        assert named or before <= set(disk.folder.rglob("*.parquet")), disk.room
        assert named or not held, "who has a reserve can name its victim"
        disk.room = None
        state = (completed, state_of(disk.folder, tmp_path / "first"))
        if state not in states:
            states.add(state)
            write(disk.folder, rows(3, value=3, ts=3), settings=IMPATIENT)

            assert rows_of(disk.folder, "id", "value") == [("k1", 1), ("k2", 1), ("k3", 3), ("k4", 1), ("k5", 1)]
            write(disk.folder, rows(3, value=3, ts=3), settings=IMPATIENT)
            assert_whole(disk.folder)
        shutil.rmtree(disk.folder)
        if completed:
            assert step > 10
            return
    raise AssertionError("the write needs more room than this test gives")
