from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import UnsupportedTableError
from pyhudi.storage.local import LocalStorage
from pyhudi.timeline.clock import format_time
from pyhudi.timeline.writers import owner, seals
from support.seams import patch_seam, read_seam

HOUR_S = 3600.0


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage.open(str(tmp_path))


def seal(storage: LocalStorage, hours_ago: float, *, sealed_hours_ago: float | None = None, number: int = 0) -> str:
    """Seal a write that was requested so long ago, and return the seal's folder."""
    instant = format_time(int((time.time() - hours_ago * HOUR_S) * 1000) + number, "UTC")
    owner.Seal(storage, instant).set()
    folder = owner.seal_folder(instant[:10])
    age(storage, f"{folder}/{instant}", hours_ago if sealed_hours_ago is None else sealed_hours_ago)
    return folder


def age(storage: LocalStorage, path: str, hours: float) -> None:
    moment = time.time() - hours * HOUR_S
    os.utime(Path(storage.root, path), (moment, moment))


def folders(storage: LocalStorage) -> list[str]:
    return [f"{owner.SEALS}/{name}" for name in storage.look(owner.SEALS).folders]


def test_a_folder_of_seals_goes_as_a_whole_once_it_is_due(storage: LocalStorage) -> None:
    young = [seal(storage, hours) for hours in (0.0, 2.0, 25.0)]
    old = seal(storage, 30.0)
    seal(storage, 30.0, number=1)
    seals.expire(storage, "UTC")

    assert folders(storage) == sorted(young)
    assert not Path(storage.root, old).exists()


def test_a_seal_made_late_keeps_the_folder_of_its_hour(storage: LocalStorage) -> None:
    """A write that took thirty hours has stragglers, too."""
    folder = seal(storage, 30.0, sealed_hours_ago=1.0)
    seal(storage, 30.0, number=1)
    seals.expire(storage, "UTC")

    assert len(storage.list(folder)) == 2


def test_a_seal_made_while_its_folder_goes_stays(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = seal(storage, 30.0)
    listed = read_seam("list a local folder")

    def list_and_seal(self: LocalStorage, *args: Any, **kwargs: Any) -> Any:
        found = listed(self, *args, **kwargs)
        seal(storage, 30.0, sealed_hours_ago=0.0, number=1)
        return found

    patch_seam(monkeypatch, "list a local folder", list_and_seal)
    seals.expire(storage, "UTC")

    assert len(listed(storage, folder)) == 1


def test_no_more_than_two_folders_go_at_once(storage: LocalStorage) -> None:
    """The first write after a long pause does not pay for all hours before it."""
    made = sorted(seal(storage, hours) for hours in (27.5, 30.5, 40.5, 50.5, 60.5))
    seals.expire(storage, "UTC")

    assert folders(storage) == made[2:]
    seals.expire(storage, "UTC")
    seals.expire(storage, "UTC")
    assert folders(storage) == []


def test_only_folders_that_are_due_are_listed(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many writes were sealed within the last day."""
    for hours in range(25):
        for number in range(3):
            seal(storage, float(hours), number=number)
    due = seal(storage, 28.5)
    seen: list[str] = []
    look = read_seam("look into a local folder")

    def noting(self: LocalStorage, folder: str) -> Any:
        seen.append(folder)
        return look(self, folder)

    patch_seam(monkeypatch, "look into a local folder", noting)
    seals.expire(storage, "UTC")

    assert seen == [owner.SEALS, due]


def test_notes_of_writes_given_up_go_after_a_day(storage: LocalStorage) -> None:
    """The release before the folders has all its seals there, and they stay as long."""
    for name, hours in (("20261101000000000", 25.0), ("20261101000000001", 23.0)):
        owner.Seal(storage, name).set_for_good()
        age(storage, f"{owner.SEALS}/{name}", hours)
    seals.expire(storage, "UTC")

    assert not owner.Seal(storage, "20261101000000000").is_given_up()
    assert owner.Seal(storage, "20261101000000001").is_given_up()


def test_seals_of_a_newer_format_are_refused_and_other_names_left_alone(storage: LocalStorage) -> None:
    storage.write(f"{owner.SEALS}/of-a-user/a", b"")
    seals.expire(storage, "UTC")
    storage.write(f"{owner.SEALS}/2026.v3/a", b"")
    with pytest.raises(UnsupportedTableError, match=r"sealed/2026\.v3 in the format 3.*up to 2"):
        seals.expire(storage, "UTC")

    assert storage.exists(f"{owner.SEALS}/of-a-user/a")
