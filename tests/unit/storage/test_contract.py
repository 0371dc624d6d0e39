"""What every writable store does alike."""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import StorageError
from pyhudi.storage import Storage, open_storage
from support.s3 import new_url
from support.threads import at_once


@pytest.fixture(params=["local", "memory", "s3", "direct s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    path = new_url()
    if request.param == "local":
        path = str(tmp_path / "table")
    elif request.param == "memory":
        path = f"memory://{uuid.uuid4().hex}/table"
    else:
        request.getfixturevalue(request.param.replace(" ", "_"))
    opened = open_storage(path)
    yield opened
    opened.delete_folder("")


def tick(storage: Storage) -> float:
    """Return the seconds in whose steps a store's clock may go: S3 dates its objects by whole ones."""
    return 1.0 if storage.remote else 0.1


def test_written_bytes_are_read_back(storage: Storage) -> None:
    storage.write("a/b/c", b"one")
    storage.write("a/b/c", b"two")

    assert storage.read("a/b/c") == b"two"


def test_reading_what_is_absent_says_so(storage: Storage) -> None:
    with pytest.raises(FileNotFoundError):
        storage.read("a/b")
    with pytest.raises(FileNotFoundError):
        storage.open_input("a/b")


def test_create_makes_a_file_once(storage: Storage) -> None:
    assert storage.create("a/b", b"first") is True
    assert storage.create("a/b", b"second") is False
    assert storage.read("a/b") == b"first"


def test_of_many_creators_one_wins_and_its_bytes_are_there_whole(storage: Storage) -> None:
    bodies = [str(n).encode() * 50_000 for n in range(8)]

    made = at_once(len(bodies), lambda number: storage.create("race/file", bodies[number - 1]))

    assert [body for body, won in zip(bodies, made, strict=True) if won] == [storage.read("race/file")]
    assert [info.path for info in storage.list("race")] == ["race/file"]


def test_a_created_file_is_never_seen_in_part(storage: Storage) -> None:
    body = b"x" * 2_000_000
    seen: set[int] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            seen.update(info.size for info in storage.list("f"))

    watcher = threading.Thread(target=look)
    watcher.start()
    for n in range(30):
        storage.create(f"f/{n}", body)
        storage.write("f/again", body)
    over.set()
    watcher.join()

    assert seen <= {len(body)}


def test_listing_is_of_one_folder_sorted_and_without_folders(storage: Storage) -> None:
    for path in ("p/b", "p/a", "p/q/c", "pp/d", "e"):
        storage.write(path, path.encode())

    assert [(info.path, info.size) for info in storage.list("p")] == [("p/a", 3), ("p/b", 3)]
    assert [info.path for info in storage.list("p", recursive=True)] == ["p/a", "p/b", "p/q/c"]
    assert [info.path for info in storage.list("")] == ["e"]
    assert [info.path for info in storage.list("", recursive=True)] == ["e", "p/a", "p/b", "p/q/c", "pp/d"]
    assert storage.look("").folders == ("p", "pp")
    assert storage.look("p").folders == ("q",)


def test_an_absent_folder_lists_as_empty(storage: Storage) -> None:
    assert storage.list("none") == []
    assert storage.list("none", recursive=True) == []
    assert storage.look("none").folders == ()


def test_deleting_what_is_absent_is_no_error(storage: Storage) -> None:
    storage.delete("a/b")
    storage.delete_folder("a")
    storage.write("a/b", b"")
    storage.delete("a/b")
    storage.delete("a/b")

    assert not storage.exists("a/b")


def test_deleting_below_a_file_is_no_error(storage: Storage) -> None:
    storage.write("a", b"")

    storage.delete("a/b")

    assert storage.exists("a")
    assert not storage.exists("a/b")


def test_a_folder_goes_with_all_that_is_in_it_and_nothing_else(storage: Storage) -> None:
    for path in ("a/b", "a/c/d", "ab"):
        storage.write(path, b"")

    storage.delete_folder("a")

    assert [info.path for info in storage.list("", recursive=True)] == ["ab"]
    assert not storage.has_files("a")


def test_files_exist_and_folders_have_files(storage: Storage) -> None:
    storage.write("a/b/c", b"")
    storage.write("a/b.c", b"")

    assert [storage.exists(path) for path in ("a/b/c", "a/b", "a", "", "a/b/cd")] == [True, False, False, False, False]
    assert [storage.has_files(path) for path in ("a/b/c", "a/b", "a", "", "b")] == [False, True, True, True, False]
    assert storage.modified("a/b") is None


def test_one_look_shows_files_and_folders(storage: Storage) -> None:
    for path in ("p/b", "p/a", "p/q/c", "p/r/s/d"):
        storage.write(path, b"x")
    listing = storage.look("p")

    assert [info.path for info in listing.files] == ["p/a", "p/b"]
    assert listing.folders == ("q", "r")
    assert storage.look("none").files == storage.look("none").folders == ()


def test_a_path_below_a_file_is_absent(storage: Storage) -> None:
    storage.write("a", b"x")

    with pytest.raises(FileNotFoundError):
        storage.read("a/b")
    with pytest.raises(FileNotFoundError):
        storage.open_input("a/b")
    assert storage.list("a") == []
    assert storage.look("a").files == storage.look("a").folders == ()


def test_many_files_are_deleted_at_once(storage: Storage) -> None:
    for path in ("a/1", "a/2", "b", "c"):
        storage.write(path, b"")

    storage.delete("a/1", "absent", "b", "a/2")
    storage.delete()

    assert [info.path for info in storage.list("", recursive=True)] == ["c"]


def test_modification_times_follow_the_stores_clock(storage: Storage) -> None:
    before = storage.now()
    storage.write("a", b"")
    modified = storage.modified("a")

    assert modified is not None
    assert before - tick(storage) <= modified <= storage.now() + tick(storage)
    assert storage.list("")[0].modified == modified
    assert storage.modified("b") is None


def test_a_rewritten_file_is_younger(storage: Storage) -> None:
    storage.write("a", b"")
    first = storage.modified("a")
    threading.Event().wait(1.1 * tick(storage))
    storage.write("a", b"")
    second = storage.modified("a")

    assert first is not None
    assert second is not None
    assert second > first


def test_a_staged_file_is_seen_when_published_and_whole(storage: Storage) -> None:
    table = pa.table({"n": list(range(10_000))})
    staged = storage.stage("p/data.parquet", "aside")
    pq.write_table(table, staged.stream)

    assert storage.list("p") == []
    size = staged.publish()

    assert [(info.path, info.size) for info in storage.list("p")] == [("p/data.parquet", size)]
    assert pq.read_table(storage.open_input("p/data.parquet")).equals(table)
    assert storage.list("aside") == []


def test_a_staged_file_replaces_one_of_its_name(storage: Storage) -> None:
    storage.write("p/data", b"old")
    staged = storage.stage("p/data", "aside")
    staged.stream.write(b"newer")

    assert staged.publish() == 5
    assert storage.read("p/data") == b"newer"


def test_two_attempts_may_stage_one_name_at_once(storage: Storage) -> None:
    first, second = storage.stage("p/data", "aside"), storage.stage("p/data", "aside")
    first.stream.write(b"first")
    second.stream.write(b"second")
    second.publish()
    first.discard()

    assert storage.read("p/data") == b"second"


def test_a_discarded_file_leaves_nothing(storage: Storage) -> None:
    staged = storage.stage("p/data", "aside")
    staged.stream.write(b"x" * 3_000_000)
    staged.discard()
    staged.discard()

    assert storage.list("", recursive=True) == []


def test_discarding_after_publishing_does_nothing(storage: Storage) -> None:
    staged = storage.stage("data", "")
    staged.stream.write(b"x")
    staged.publish()
    staged.discard()

    assert storage.read("data") == b"x"


def test_input_can_be_read_at_any_place(storage: Storage) -> None:
    storage.write("a", b"0123456789")
    source = storage.open_input("a")

    assert isinstance(source, pa.NativeFile)
    assert source.size() == 10
    assert source.read_at(3, 4) == b"456"
    source.seek(8)
    assert source.read() == b"89"


def test_a_pickled_storage_sees_the_same_files(storage: Storage) -> None:
    storage.write("a", b"x")
    other = pickle.loads(pickle.dumps(storage))  # noqa: S301

    assert other == storage
    assert other.read("a") == b"x"


@pytest.mark.parametrize("path", ["../a", "a/../../b", "/etc/passwd", "a/.."])
def test_no_path_leaves_the_table(storage: Storage, path: str) -> None:
    for action in (storage.read, storage.delete, storage.delete_folder, storage.list, storage.exists):
        with pytest.raises(StorageError, match="not below the table's root"):
            action(path)
    with pytest.raises(StorageError, match="not below the table's root"):
        storage.write(path, b"")
    with pytest.raises(StorageError, match="not below the table's root"):
        storage.stage("ok", path)


@pytest.mark.parametrize("name", ["a b", "ü", "a%20b", "p=1", "2026-01-01 00:00:00", "a..b", "..."])
def test_names_are_taken_as_they_are(storage: Storage, name: str) -> None:
    storage.write(f"{name}/{name}", b"x")

    assert storage.look("").folders == (name,)
    assert [info.path for info in storage.list(name)] == [f"{name}/{name}"]
    assert storage.read(f"{name}/{name}") == b"x"
    assert storage.uri(name).endswith(f"/{name}")
