from __future__ import annotations

import builtins
import errno
import os
import shutil
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import StorageError
from pyhudi.storage.local import LocalStorage
from support.seams import patch_seam, read_seam


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage.open(str(tmp_path))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def failing(number: int):
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/a/b", "/a/b"),
        ("/a/b//", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b/", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("/a/c/../b", "/a/b"),
        ("file:/a%20b", "/a%20b"),
        ("/", "/"),
    ],
)
def test_every_spelling_of_a_local_path_leads_to_its_folder(path: str, root: str) -> None:
    assert LocalStorage.open(path).root == root


def test_the_path_is_kept_as_given_without_trailing_slashes() -> None:
    assert LocalStorage.open("file:/a/b/").path == "file:/a/b"


def test_a_relative_path_means_the_folder_of_the_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = LocalStorage.open("t")
    monkeypatch.chdir("/")
    storage.write("a", b"x")

    assert (tmp_path / "t" / "a").read_bytes() == b"x"


def test_uris_are_absolute_and_unescaped() -> None:
    assert LocalStorage.open("file:/a b").uri("p=1/x.parquet") == "file:///a b/p=1/x.parquet"


@pytest.mark.parametrize("change", ["write", "create", "delete", "publish"])
def test_a_stale_checksum_sidecar_goes_with_the_file_it_was_made_for(
    storage: LocalStorage, tmp_path: Path, change: str
) -> None:
    stale = tmp_path / "p" / ".data.crc"
    stale.parent.mkdir()
    stale.write_bytes(b"crc")
    if change == "write":
        storage.write("p/data", b"x")
    elif change == "create":
        storage.create("p/data", b"x")
    elif change == "delete":
        storage.delete("p/data")
    else:
        storage.stage("p/data", "aside").publish()

    assert not stale.exists()


def test_the_sidecar_of_a_hidden_file_has_two_dots(storage: LocalStorage, tmp_path: Path) -> None:
    stale = tmp_path / "..hoodie_partition_metadata.crc"
    stale.write_bytes(b"crc")

    storage.write(".hoodie_partition_metadata", b"x")

    assert not stale.exists()


def test_a_lost_creation_leaves_the_winners_sidecar(storage: LocalStorage, tmp_path: Path) -> None:
    storage.write("data", b"x")
    (tmp_path / ".data.crc").write_bytes(b"crc")

    assert storage.create("data", b"y") is False
    assert (tmp_path / ".data.crc").exists()


def test_sidecars_and_files_in_the_making_are_not_listed(storage: LocalStorage, tmp_path: Path) -> None:
    storage.write("data", b"x")
    (tmp_path / ".data.crc").write_bytes(b"crc")
    (tmp_path / ".pyhudi-0.crc").write_bytes(b"half")
    (tmp_path / "notes.crc").write_bytes(b"")

    assert [info.path for info in storage.list("")] == ["data", "notes.crc"]


def test_no_temporary_file_stays(storage: LocalStorage, tmp_path: Path) -> None:
    storage.write("a", b"x")
    storage.create("b", b"x")
    storage.create("b", b"y")

    assert names(tmp_path) == ["a", "b"]


def test_what_killed_processes_left_in_the_making_goes_when_it_is_old(storage: LocalStorage, tmp_path: Path) -> None:
    for name in ("p/.pyhudi-old.crc", "p/.pyhudi-young.crc", "p/.data.crc", "q/.pyhudi-old.crc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"half")
        if "young" not in name:
            os.utime(tmp_path / name, (0, 0))

    storage.sweep(["p", "none"], older_than_s=3600)

    assert names(tmp_path / "p") == [".data.crc", ".pyhudi-young.crc"]
    assert names(tmp_path / "q") == [".pyhudi-old.crc"]


def test_a_sweep_removes_folders_that_are_empty_where_it_is_asked_to(storage: LocalStorage) -> None:
    """One call of the disk decides: what came into a folder meanwhile keeps it."""
    for folder in ("empty", "full"):
        storage.write(f"{folder}/f", b"x")
    storage.delete("empty/f")
    storage.sweep(["empty", "full"], older_than_s=3600)
    assert storage.look("").folders == ("empty", "full")
    storage.sweep(["empty", "full", "none"], older_than_s=3600, empty=True)

    assert storage.look("").folders == ("full",)
    assert storage.exists("full/f")


def test_without_hard_links_a_file_is_still_created_once(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "hardlink_to", failing(errno.EPERM))

    assert storage.create("a", b"first") is True
    assert storage.create("a", b"second") is False
    assert storage.read("a") == b"first"
    assert names(tmp_path) == ["a"]


def test_a_link_whose_answer_was_lost_counts_as_made(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def made_but_refused(target: Path, source: Path) -> NoReturn:
        os.link(source, target)
        raise FileExistsError(errno.EEXIST, "exists")

    monkeypatch.setattr(Path, "hardlink_to", made_but_refused)

    assert storage.create("a", b"ours") is True


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_the_race_is_lost_to_another_writer(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """Without hard links the exclusive creation of the file decides it."""

    def faster(*_: object) -> NoReturn:
        (tmp_path / "a").write_bytes(b"theirs")
        raise FileExistsError(errno.EEXIST, "exists") if links else OSError(errno.ENOTSUP, "no links")

    monkeypatch.setattr(Path, "hardlink_to", faster)

    assert storage.create("a", b"ours") is False
    assert storage.read("a") == b"theirs"


@pytest.mark.parametrize(
    ("of", "broken", "operation", "verb"),
    [
        (Path, "replace", lambda s: s.write("p/a", b"x"), "write"),
        (Path, "open", lambda s: s.write("p/a", b"x"), "write"),
        (Path, "hardlink_to", lambda s: s.create("p/a", b"x"), "create"),
        (Path, "open", lambda s: s.create("p/a", b"x"), "create"),
        (Path, "unlink", lambda s: s.delete("p/a"), "delete"),
        (builtins, "open", lambda s: s.read("p/a"), "read"),
        (os, "stat", lambda s: s.modified("p/a"), "look at"),
    ],
)
def test_a_failing_disk_is_reported_with_path_and_operation(
    storage: LocalStorage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    of: ModuleType | type,
    broken: str,
    operation,
    verb: str,
) -> None:
    (tmp_path / "p").mkdir()
    monkeypatch.setattr(of, broken, failing(errno.EIO))

    with pytest.raises(StorageError) as raised:
        operation(storage)

    assert f"could not {verb} {tmp_path}/p/a: Input/output error" in str(raised.value)


def test_a_failed_write_leaves_the_old_file_and_no_rest(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.write("a", b"old")
    monkeypatch.setattr(Path, "replace", failing(errno.ENOSPC))

    with pytest.raises(StorageError, match="No space left on device"):
        storage.write("a", b"new")

    assert storage.read("a") == b"old"
    assert names(tmp_path) == ["a"]


def test_a_full_disk_is_reported_through_parquet(storage: LocalStorage, tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    staged = storage.stage("p/data.parquet", "aside")
    (aside,) = (tmp_path / "aside").iterdir()
    device = os.open(full, os.O_WRONLY)
    os.dup2(device, staged.stream.raw._raw.fileno())
    os.close(device)

    with pytest.raises(StorageError, match=r"could not write .*/p/data\.parquet: No space left on device"):
        pq.write_table(pa.table({"n": pa.array(range(1_000_000))}), staged.stream, compression="none")
    staged.discard()

    assert not aside.exists()


def test_publishing_what_was_taken_away_is_an_error_and_makes_no_file(storage: LocalStorage, tmp_path: Path) -> None:
    staged = storage.stage("p/data", "aside")
    staged.stream.write(b"x")
    shutil.rmtree(tmp_path / "aside")

    with pytest.raises(StorageError, match="could not publish"):
        staged.publish()

    assert not storage.exists("p/data")


def test_files_that_vanish_during_a_listing_are_left_out(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        storage.write(f"p/{name}", b"x")
    scandir = os.scandir

    class Vanishing:
        def __init__(self, folder: Path) -> None:
            with scandir(folder) as entries:
                self._entries = list(entries)

        def __enter__(self):
            (tmp_path / "p" / "b").unlink()
            return iter(self._entries)

        def __exit__(self, *_: object) -> None:
            return None

    monkeypatch.setattr(os, "scandir", Vanishing)

    assert [info.path for info in storage.list("p")] == ["p/a", "p/c"]


def test_a_folder_that_is_filled_while_it_is_deleted_goes_all_the_same(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.write("p/a", b"x")
    rmdir = Path.rmdir
    late = iter(["late"])

    def filled_before(folder: Path) -> None:
        for name in late:
            (folder / name).write_bytes(b"")
        rmdir(folder)

    monkeypatch.setattr(Path, "rmdir", filled_before)
    storage.delete_folder("p")

    assert not (tmp_path / "p").exists()


def test_deleting_a_folder_does_not_follow_links_out_of_it(storage: LocalStorage, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"x")
    inside = LocalStorage.open(str(tmp_path / "table"))
    inside.write("p/a", b"x")
    (tmp_path / "table" / "p" / "link").symlink_to(outside)

    inside.delete_folder("p")

    assert (outside / "kept").exists()
    assert not inside.exists("p")


def test_a_folder_removed_under_a_writer_is_made_again(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Path.mkdir
    removals = iter([True])

    def removed_once(folder: Path, *args: object, **options: object) -> None:
        mkdir(folder, parents=True, exist_ok=True)
        if next(removals, False):
            folder.rmdir()

    monkeypatch.setattr(Path, "mkdir", removed_once)
    storage.write("p/a", b"x")

    assert (tmp_path / "p" / "a").read_bytes() == b"x"


def test_a_file_is_made_in_a_folder_that_sweeps_remove_again_and_again(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[Path] = []
    make = read_seam("make a local folder")

    def make_and_remove(path: Path, *, durable: bool) -> None:
        make(path, durable=durable)
        if len(removed) < 8:
            removed.append(path)
            path.rmdir()

    patch_seam(monkeypatch, "make a local folder", make_and_remove)

    assert storage.create("a/owner.json", b"x")
    assert len(removed) == 8
