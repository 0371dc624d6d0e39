from __future__ import annotations

import pickle
import uuid
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.utils import infer_storage_options
from pyhudi.errors import InvalidOptionError, StorageError
from pyhudi.storage import open_storage
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.remote import RemoteStorage


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/a/b", LocalStorage),
        ("a/b", LocalStorage),
        ("file:/a/b", LocalStorage),
        ("file:///a/b", LocalStorage),
        ("memory://a/b", MemoryStorage),
    ],
)
def test_the_scheme_chooses_the_store(path: str, kind: type) -> None:
    assert isinstance(open_storage(path), kind)


def test_memory_is_shared_by_path_and_between_nested_roots() -> None:
    name = uuid.uuid4().hex
    open_storage(f"memory://{name}/t/").write("a/b", b"x")

    assert open_storage(f"memory://{name}/t").read("a/b") == b"x"
    assert open_storage(f"memory://{name}/t/a").read("b") == b"x"
    assert open_storage(f"memory://{name}/u").list("", recursive=True) == []
    assert open_storage(f"memory://{name}/t/").path == f"memory://{name}/t"


@pytest.mark.parametrize("path", ["nowhere://bucket/t", "nowhere:/bucket/t"])
def test_a_scheme_that_leads_nowhere_is_named(path: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"{path} cannot be opened by its scheme {path.partition(':')[0]}: "):
        open_storage(path)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ImportError("Please install gcsfs")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)

    with pytest.raises(StorageError, match="Please install gcsfs"):
        open_storage("gs://bucket/t")


@pytest.mark.parametrize(
    ("path", "error", "instead"),
    [
        ("dbfs:/mnt/t", TypeError("an instance is missing"), "Give the path that Databricks mounts, /dbfs/"),
        ("hdfs://host/t", OSError("no libhdfs\n" + "at java.lang.Class\n" * 1000), "Mount HDFS"),
        ("hdfs://host/t", OSError("no libhdfs in " + "/usr/lib:" * 2000), "Mount HDFS"),
    ],
    ids=["dbfs", "pages", "a long line"],
)
def test_a_store_that_its_client_cannot_reach_says_in_short_what_to_do_instead(
    path: str, error: Exception, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreached(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(fsspec, "get_filesystem_class", unreached)
    with pytest.raises((InvalidOptionError, StorageError), match=instead) as raised:
        open_storage(path)

    assert path in str(raised.value)
    assert len(str(raised.value)) < 700


class FilesOfHosts(MemoryFileSystem):
    """A store that keeps each host's files apart, as HDFS does."""

    protocol = "hosted"

    def __init__(self, host: str = "", port: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.host, self.port = host, port

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        return f"{self.host} {self.port}".encode()

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        named = infer_storage_options(path)
        return {name: named[name] for name in ("host", "port") if name in named}


def test_a_host_in_the_path_is_the_host_that_is_asked() -> None:
    fsspec.register_implementation("hosted", FilesOfHosts, clobber=True)

    assert open_storage("hosted://near:8020/t").read("a") == b"near 8020"
    assert open_storage("hosted://far/t", {"port": "9000"}).read("a") == b"far 9000"
    assert open_storage("hosted://far:8020/t", {"host": "near"}).read("a") == b"near 8020"


def test_a_store_is_opened_without_a_request() -> None:
    """No server answers at this address, and no bucket has this name."""
    opened = open_storage("s3://no-such-bucket/t", {"endpoint_url": "http://127.0.0.1:1", "key": "k", "secret": "s"})

    assert opened.path == "s3://no-such-bucket/t"


@pytest.fixture
def remote() -> RemoteStorage:
    """A read-only view of fsspec's own in-memory file system."""
    root = f"/{uuid.uuid4().hex}"
    files = fsspec.filesystem("memory")
    for path, data in {"t/a": b"0123", "t/.a.crc": b"crc", "t/p/b": b"b", "t/p/q/c": b"c", "tt/d": b"d"}.items():
        files.pipe(f"{root}/{path}", data)
    return RemoteStorage.open(f"memory:/{root}/t/", {})


def test_a_remote_table_can_be_read(remote: RemoteStorage) -> None:
    assert remote.read("a") == b"0123"
    assert [(info.path, info.size) for info in remote.list("")] == [("a", 4)]
    assert [info.path for info in remote.list("", recursive=True)] == ["a", "p/b", "p/q/c"]
    assert [info.path for info in remote.list("p")] == ["p/b"]
    assert remote.list("none") == []
    assert remote.look("").folders == ("p",)
    assert remote.exists("a")
    assert not remote.exists("p")
    assert remote.has_files("p")
    assert not remote.has_files("b")
    assert not remote.exists("b")
    assert remote.modified("b") is None
    assert remote.open_input("a").read_at(2, 1) == b"12"
    with pytest.raises(FileNotFoundError):
        remote.read("b")
    with pytest.raises(FileNotFoundError):
        remote.open_input("b")


def test_a_remote_file_has_a_modification_time_near_now(remote: RemoteStorage) -> None:
    modified = remote.modified("a")

    assert modified is not None
    assert abs(remote.now() - modified) < 60


def test_a_remote_listing_shows_what_was_added_since(remote: RemoteStorage) -> None:
    remote.list("")
    fsspec.filesystem("memory").pipe(f"{remote.path.removeprefix('memory:/')}/new", b"x")

    assert [info.path for info in remote.list("")] == ["a", "new"]


def test_parquet_is_read_from_a_remote_file(remote: RemoteStorage) -> None:
    import pyarrow as pa

    table = pa.table({"n": [1, 2, 3]})
    with fsspec.filesystem("memory").open(f"{remote.path.removeprefix('memory:/')}/x.parquet", "wb") as file:
        pq.write_table(table, file)

    assert pq.read_table(remote.open_input("x.parquet")).equals(table)


def test_a_remote_table_cannot_be_written(remote: RemoteStorage) -> None:
    for action in (
        lambda: remote.write("x", b""),
        lambda: remote.create("x", b""),
        lambda: remote.delete("a"),
        lambda: remote.delete_folder("p"),
        lambda: remote.stage("x", ""),
    ):
        with pytest.raises(StorageError, match=r"cannot be written: .* of the scheme memory"):
            action()
    assert remote.exists("a")


def test_a_remote_store_that_fails_is_reported_with_path_and_operation(
    remote: RemoteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("503 Slow Down")

    for name in ("cat_file", "ls", "info", "open"):
        monkeypatch.setattr(fsspec.implementations.memory.MemoryFileSystem, name, fail)
    for verb, action in {
        "read": lambda: remote.read("a"),
        "list": lambda: remote.list("a"),
        "look at": lambda: remote.exists("a"),
        "open": lambda: remote.open_input("a"),
    }.items():
        with pytest.raises(StorageError, match=f"could not {verb} {remote.path}/a: 503 Slow Down"):
            action()


def test_a_pickled_remote_storage_is_the_same(remote: RemoteStorage) -> None:
    assert pickle.loads(pickle.dumps(remote)).read("a") == b"0123"  # noqa: S301
