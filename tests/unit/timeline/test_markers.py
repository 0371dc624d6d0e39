from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.markers import Marker, MarkerType, delete_markers, marked_instants, read_markers, write_marker

T = "20261120224644250"


@pytest.fixture
def storage() -> Iterator[Storage]:
    opened = open_storage(f"memory://{uuid.uuid4().hex}")
    yield opened
    opened.delete_folder("")


def test_markers_are_empty_files_named_as_apache_hudi_does(storage: Storage) -> None:
    write_marker(storage, T, f"p=1/F-0_0-5-8_{T}.parquet", MarkerType.CREATE)
    write_marker(storage, T, f"p=1/F-0_0-5-8_{T}.parquet", MarkerType.CREATE)
    write_marker(storage, T, f"G-0_0-5-8_{T}.parquet", MarkerType.MERGE)

    assert [(info.path, info.size) for info in storage.list(".hoodie", recursive=True)] == [
        (f".hoodie/.temp/{T}/G-0_0-5-8_{T}.parquet.marker.MERGE", 0),
        (f".hoodie/.temp/{T}/p=1/F-0_0-5-8_{T}.parquet.marker.CREATE", 0),
    ]
    assert read_markers(storage, T) == [
        Marker(f"G-0_0-5-8_{T}.parquet", MarkerType.MERGE),
        Marker(f"p=1/F-0_0-5-8_{T}.parquet", MarkerType.CREATE),
    ]


def test_markers_of_apache_hudis_timeline_server_are_read(storage: Storage) -> None:
    folder = f".hoodie/.temp/{T}"
    storage.write(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.write(f"{folder}/MARKERS0", b"x/a.parquet.marker.CREATE\ny/b.parquet.marker.MERGE\n")
    storage.write(f"{folder}/MARKERS17", "ü v/.c.log.1_0-0-0.marker.APPEND\n".encode())

    assert read_markers(storage, T) == [
        Marker("x/a.parquet", MarkerType.CREATE),
        Marker("y/b.parquet", MarkerType.MERGE),
        Marker("ü v/.c.log.1_0-0-0", MarkerType.APPEND),
    ]


def test_a_batch_that_vanishes_while_it_is_read_counts_as_empty(storage: Storage) -> None:
    storage.write(f".hoodie/.temp/{T}/MARKERS0", b"x/a.parquet.marker.CREATE\n")
    storage.write(f".hoodie/.temp/{T}/MARKERS1", b"x/b.parquet.marker.CREATE\n")

    class Vanishing(MemoryStorage):
        def read(self, path: str) -> bytes:
            if path.endswith("MARKERS0"):
                raise FileNotFoundError(path)
            return super().read(path)

    assert read_markers(Vanishing(storage.path), T) == [Marker("x/b.parquet", MarkerType.CREATE)]


def test_other_files_among_markers_are_passed_over(storage: Storage) -> None:
    for name in ("x/a.parquet", "x/a.parquet.marker.", "x/a.parquet.marker.RENAME", ".marker.CREATE"):
        storage.write(f".hoodie/.temp/{T}/{name}", b"")

    assert read_markers(storage, T) == []


def test_markers_belong_to_their_instant(storage: Storage) -> None:
    write_marker(storage, T, "x/a.parquet", MarkerType.CREATE)
    write_marker(storage, f"{T}0", "x/b.parquet", MarkerType.CREATE)
    storage.write(".hoodie/.temp/notes/x", b"")

    assert marked_instants(storage) == [T, f"{T}0"]
    delete_markers(storage, T)
    delete_markers(storage, T)
    assert read_markers(storage, T) == []
    assert marked_instants(storage) == [f"{T}0"]


segments = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda name: name not in {".", ".."}
)


@given(st.lists(segments, min_size=1, max_size=3).map("/".join), st.sampled_from(MarkerType))
def test_every_path_comes_back(path: str, kind: MarkerType) -> None:
    storage = open_storage(f"memory://{uuid.uuid4().hex}")
    try:
        write_marker(storage, T, path, kind)
        assert read_markers(storage, T) == [Marker(path, kind)]
    finally:
        storage.delete_folder("")
