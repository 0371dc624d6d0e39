from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.bounds import MOST_BYTES
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.writers.markers import (
    Marker,
    Markers,
    MarkerType,
    marked_instants,
)

T = "20261120224644250"
CREATE, MERGE = MarkerType.CREATE, MarkerType.MERGE


@pytest.fixture
def storage() -> Iterator[Storage]:
    opened = open_storage(f"memory://{uuid.uuid4().hex}")
    yield opened
    opened.delete_folder("")


def test_markers_of_one_attempt_are_one_file_as_of_apache_hudis_timeline_server(storage: Storage) -> None:
    create, merge = Marker(f"p=1/F-0_0-5-8_{T}.parquet", CREATE), Marker(f"G-0_0-5-8_{T}.parquet", MERGE)
    Markers(storage, T).begin()
    Markers(storage, T).begin()
    Markers(storage, T).write(9, [create])
    Markers(storage, T).write(9, [create, merge])
    Markers(storage, T).write(0, [Marker("ü/x.parquet", CREATE)])

    assert {info.path: storage.read(info.path) for info in storage.list(".hoodie", recursive=True)} == {
        f".hoodie/.temp/{T}/MARKERS.type": b"TIMELINE_SERVER_BASED",
        f".hoodie/.temp/{T}/MARKERS0": "ü/x.parquet.marker.CREATE\n".encode(),
        f".hoodie/.temp/{T}/MARKERS9": f"{create.path}.marker.CREATE\n{merge.path}.marker.MERGE\n".encode(),
    }
    assert Markers(storage, T).read() == [merge, create, Marker("ü/x.parquet", CREATE)]


def test_direct_markers_of_apache_hudi_are_read(storage: Storage) -> None:
    folder = f".hoodie/.temp/{T}"
    storage.write(f"{folder}/p=1/F-0_0-5-8_{T}.parquet.marker.CREATE", b"")
    storage.write(f"{folder}/G-0_0-5-8_{T}.parquet.marker.MERGE", b"")

    assert Markers(storage, T).read() == [
        Marker(f"G-0_0-5-8_{T}.parquet", MERGE),
        Marker(f"p=1/F-0_0-5-8_{T}.parquet", CREATE),
    ]


def test_markers_of_apache_hudis_timeline_server_are_read(storage: Storage) -> None:
    folder = f".hoodie/.temp/{T}"
    storage.write(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.write(f"{folder}/MARKERS0", b"x/a.parquet.marker.CREATE\ny/b.parquet.marker.MERGE\n")
    storage.write(f"{folder}/MARKERS17", "ü v/.c.log.1_0-0-0.marker.APPEND\n".encode())

    assert Markers(storage, T).read() == [
        Marker("x/a.parquet", MarkerType.CREATE),
        Marker("y/b.parquet", MarkerType.MERGE),
        Marker("ü v/.c.log.1_0-0-0", MarkerType.APPEND),
    ]


def test_a_batch_that_vanishes_while_it_is_read_counts_as_empty(storage: Storage) -> None:
    storage.write(f".hoodie/.temp/{T}/MARKERS0", b"x/a.parquet.marker.CREATE\n")
    storage.write(f".hoodie/.temp/{T}/MARKERS1", b"x/b.parquet.marker.CREATE\n")

    class Vanishing(MemoryStorage):
        def read(self, path: str, most: int = MOST_BYTES) -> bytes:
            if path.endswith("MARKERS0"):
                raise FileNotFoundError(path)
            return super().read(path, most)

    assert Markers(Vanishing(storage.path), T).read() == [Marker("x/b.parquet", MarkerType.CREATE)]


def test_other_files_among_markers_are_passed_over(storage: Storage) -> None:
    for name in ("x/a.parquet", "x/a.parquet.marker.", "x/a.parquet.marker.RENAME", ".marker.CREATE"):
        storage.write(f".hoodie/.temp/{T}/{name}", b"")

    assert Markers(storage, T).read() == []


def test_markers_belong_to_their_instant(storage: Storage) -> None:
    Markers(storage, T).write(1, [Marker("x/a.parquet", CREATE)])
    Markers(storage, f"{T}0").write(1, [Marker("x/b.parquet", CREATE)])
    storage.write(".hoodie/.temp/notes/x", b"")

    assert marked_instants(storage) == [T, f"{T}0"]
    Markers(storage, T).delete()
    Markers(storage, T).delete()
    assert Markers(storage, T).read() == []
    assert marked_instants(storage) == [f"{T}0"]


segments = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda name: name not in {".", ".."}
)


@given(st.lists(segments, min_size=1, max_size=3).map("/".join), st.sampled_from(MarkerType))
def test_every_path_comes_back(path: str, kind: MarkerType) -> None:
    storage = open_storage(f"memory://{uuid.uuid4().hex}")
    try:
        Markers(storage, T).write(1, [Marker(path, kind)])
        assert Markers(storage, T).read() == [Marker(path, kind)]
    finally:
        storage.delete_folder("")
