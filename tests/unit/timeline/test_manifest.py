"""Which files of the archive count, and how the next manifest is made beside others who make one."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyhudi.errors import CorruptInstantError
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.archive import manifest
from pyhudi.timeline.archive.manifest import ArchiveFile, Manifests
from support.seams import patch_seam

FOLDER = "history"
ONE, TWO, THREE = (ArchiveFile(f"{n}1_{n}9_0.parquet", 7) for n in (1, 2, 3))


@pytest.fixture
def storage() -> Iterator[Storage]:
    opened = open_storage(f"memory://{uuid.uuid4().hex}")
    yield opened
    opened.delete_folder("")


def put(storage: Storage, number: int, *files: ArchiveFile, version: int | None = None) -> None:
    named = [{"fileName": one.name, "fileLen": one.size} for one in files]
    storage.write(f"{FOLDER}/manifest_{number}", json.dumps({"files": named}).encode())
    for file in files:
        storage.write(f"{FOLDER}/{file.name}", b"whatever")
    if version is not None:
        storage.write(f"{FOLDER}/_version_", str(version).encode())


def add(storage: Storage, file: ArchiveFile, removed: tuple[str, ...] = ()) -> manifest.Manifest:
    return Manifests(storage, FOLDER).replace_files([file], removed, needed=lambda files: files)


def torn(storage: Storage, number: int) -> None:
    storage.write(f"{FOLDER}/manifest_{number}", b'{"files":[{"fil')


def test_a_file_that_no_manifest_names_does_not_count(storage: Storage) -> None:
    put(storage, 1, ONE, version=1)
    storage.write(f"{FOLDER}/{TWO.name}", b"of a crash")

    assert Manifests(storage, FOLDER).newest().files == (ONE,)


def test_the_greatest_whole_manifest_counts_whatever_the_version_says(storage: Storage) -> None:
    """Whoever slept before he wrote the version wrote one that is too small."""
    put(storage, 1, ONE, version=1)
    put(storage, 2, ONE, TWO)
    torn(storage, 3)

    assert Manifests(storage, FOLDER).newest() == manifest.Manifest(2, (ONE, TWO), 3)


@pytest.mark.parametrize("spoil", [torn, lambda storage, number: storage.delete(f"{FOLDER}/manifest_{number}")])
def test_all_files_count_where_no_manifest_tells(storage: Storage, spoil: Callable[[Storage, int], None]) -> None:
    put(storage, 1, ONE, TWO, version=1)
    spoil(storage, 1)

    assert Manifests(storage, FOLDER).newest().names == {ONE.name, TWO.name}


def test_an_older_manifest_does_not_stand_in_for_a_damaged_one(storage: Storage) -> None:
    """Instants that only the newest named have left the timeline."""
    put(storage, 1, ONE)
    put(storage, 2, ONE, TWO, version=2)
    torn(storage, 2)

    assert Manifests(storage, FOLDER).newest().names == {ONE.name, TWO.name}
    with pytest.raises(CorruptInstantError, match=r"manifest_2.*backup"):
        add(storage, THREE)


def test_a_name_that_leads_elsewhere_makes_a_manifest_none(storage: Storage) -> None:
    storage.write(f"{FOLDER}/manifest_1", b'{"files":[{"fileName":"../../1_2_0.parquet","fileLen":1}]}')

    assert Manifests(storage, FOLDER).newest().files == ()


def test_the_next_manifest_names_what_the_last_did_and_more(storage: Storage) -> None:
    add(storage, ONE)
    add(storage, TWO)
    merged = ArchiveFile("11_29_1.parquet", 9)
    storage.write(f"{FOLDER}/{merged.name}", b"")
    add(storage, merged, (ONE.name, TWO.name))

    assert Manifests(storage, FOLDER).newest() == manifest.Manifest(3, (merged,), 3)
    assert Manifests(storage, FOLDER).version() == 3


def test_a_manifest_that_a_crash_left_whole_is_gone_on_from(storage: Storage) -> None:
    put(storage, 1, ONE, version=1)
    put(storage, 2, ONE, TWO)

    assert add(storage, TWO).number == 2
    assert Manifests(storage, FOLDER).version() == 2
    assert add(storage, THREE).names == {ONE.name, TWO.name, THREE.name}


def test_the_number_of_a_torn_manifest_is_not_used_again(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "age at which a torn manifest is dead", 0.0)
    put(storage, 1, ONE, version=1)
    torn(storage, 2)

    assert add(storage, TWO) == manifest.Manifest(3, (ONE, TWO), 3)


def test_merging_what_somebody_else_has_merged_changes_nothing(storage: Storage) -> None:
    put(storage, 4, THREE, version=4)

    assert add(storage, ArchiveFile("11_29_1.parquet", 9), (ONE.name, TWO.name)).number == 4


class Overtaken:
    """A storage on which others act right before the next file is made."""

    def __init__(self, inner: Storage, act: Callable[[], Any]) -> None:
        self._inner, self._act = inner, act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create(self, path: str, data: bytes) -> bool:
        act, self._act = self._act, lambda: None
        act()
        return self._inner.create(path, data)


def test_a_number_that_others_took_meanwhile_is_not_taken_from_them(storage: Storage) -> None:
    put(storage, 1, ONE, version=1)
    found = add(Overtaken(storage, lambda: add(storage, TWO)), THREE)  # type: ignore[arg-type]

    assert found == manifest.Manifest(3, (ONE, TWO, THREE), 3)


def test_a_number_that_became_free_while_one_slept_does_not_count(storage: Storage) -> None:
    """Others went on by several numbers, and tidied up."""

    def go_on() -> None:
        add(storage, TWO)
        add(storage, ArchiveFile("41_49_0.parquet", 7))
        storage.delete(f"{FOLDER}/manifest_1", f"{FOLDER}/manifest_2")

    put(storage, 1, ONE, version=1)
    manifest = add(Overtaken(storage, go_on), THREE)  # type: ignore[arg-type]

    assert manifest.number == 4
    assert manifest.names == {ONE.name, TWO.name, THREE.name, "41_49_0.parquet"}
    assert not storage.exists(f"{FOLDER}/manifest_2")
    assert Manifests(storage, FOLDER).version() == 4


def test_the_version_never_stays_behind(storage: Storage) -> None:
    put(storage, 5, ONE, version=3)
    Manifests(storage, FOLDER).point_at_newest()
    assert Manifests(storage, FOLDER).version() == 5
    storage.write(f"{FOLDER}/_version_", b"9")
    Manifests(storage, FOLDER).point_at_newest()

    assert Manifests(storage, FOLDER).version() == 9
