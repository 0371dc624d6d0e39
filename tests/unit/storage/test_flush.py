"""What a local file system keeps when the power goes, call by call; whole writes are in faults/test_power_cuts.py."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from pyhudi.errors import StorageError
from pyhudi.storage.base import is_unflushed
from pyhudi.storage.local import LocalStorage
from pyhudi.table.config import TableConfig, create_config
from support.faults.power import watched


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage.open(str(tmp_path))


def refusing(monkeypatch: pytest.MonkeyPatch, number: int, *, folders: bool) -> None:
    """Let flushing fail, of folders or of files."""

    def fsync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir() == folders:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("change", ["write", "create", "publish"])
def test_a_file_whose_bytes_the_disk_refuses_is_not_made(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The disk tells it once: a second flush would say that all is well."""
    refusing(monkeypatch, errno.EIO, folders=False)
    staged = storage.stage("p/a", "p")
    staged.stream.write(b"x")
    acts = {
        "write": lambda: storage.write("p/a", b"x"),
        "create": lambda: storage.create("p/a", b"x"),
        "publish": staged.publish,
    }
    with pytest.raises(StorageError, match="Input/output error") as raised:
        acts[change]()
    staged.discard()

    assert not is_unflushed(raised.value)
    assert list((tmp_path / "p").iterdir()) == []


def test_a_name_that_the_disk_refuses_is_told_apart(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody sees the file, so that it cannot be taken back."""
    refusing(monkeypatch, errno.EIO, folders=True)
    storage_of_the_folder = LocalStorage(storage.path, storage.root, durable=False)
    storage_of_the_folder.write("p/other", b"")
    with pytest.raises(StorageError, match="it is done, but the disk could not keep it: Input/output") as raised:
        storage.create("p/a", b"x")

    assert is_unflushed(raised.value)
    assert storage.read("p/a") == b"x"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EBADF])
def test_folders_that_cannot_be_flushed_are_passed_over(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Some mounted file systems keep names by other means."""
    refusing(monkeypatch, number, folders=True)
    storage.write("p/a", b"x")
    storage.delete("p/a")
    storage.flush(["p"], new=True)

    assert not storage.exists("p/a")


def test_without_hard_links_a_file_is_kept_too(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    with watched(tmp_path) as disk:
        storage.create("p/a", b"x")

        assert disk.strictest() == {"p": None, "p/a": b"x"}


def test_who_loses_a_creation_finds_a_file_that_is_kept(storage: LocalStorage, tmp_path: Path) -> None:
    """The winner is about to flush when the loser is told; the loser builds on what it was told."""
    seen = []
    with watched(tmp_path) as disk:

        def meanwhile(path: Path) -> None:
            if path.name == "p" and (tmp_path / "p/a").exists() and not seen:
                seen.append(True)
                seen[:] = [storage.create("p/a", b"theirs"), disk.strictest().get("p/a")]

        disk.before_flush = meanwhile
        storage.create("p/a", b"ours")

    assert seen == [False, b"ours"]


def test_a_new_table_is_kept_where_somebody_else_made_its_folders(tmp_path: Path) -> None:
    """A first attempt that died may have made them and not have come to flushing them."""
    with watched(tmp_path) as disk:
        (tmp_path / "lake/t/.hoodie").mkdir(parents=True)
        create_config(LocalStorage.open(str(tmp_path / "lake/t")), TableConfig({"hoodie.table.name": "t"}))

        assert disk.strictest()["lake/t/.hoodie/hoodie.properties"]


def test_a_file_never_comes_back_beside_the_checksum_of_another(storage: LocalStorage, tmp_path: Path) -> None:
    """Apache Hudi could not open it."""
    storage.write("p/a", b"old")
    (tmp_path / "p/.a.crc").write_bytes(b"of old")
    with watched(tmp_path, careless=40) as disk:
        storage.write("p/a", b"new")

    assert {cut.image["p/a"] for cut in disk.others} == {b"old", b"new"}
    assert not [cut.at for cut in disk.others if cut.image["p/a"] == b"new" and "p/.a.crc" in cut.image]


def test_a_store_that_need_not_last_flushes_nothing(tmp_path: Path) -> None:
    """Spills of a task in a folder of its own, and writes whose user gave durability up."""
    storage = LocalStorage.open(str(tmp_path), durable=False)
    with watched(tmp_path) as disk:
        storage.write("p/a", b"x")
        storage.create("p/b", b"x")
        storage.stage("q/c", "q").publish()
        storage.delete("p/a")
        storage.flush(["p", "q"], new=True)

        assert disk.strictest() == {}
