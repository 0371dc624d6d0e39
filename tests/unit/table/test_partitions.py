"""Metafiles and the listing of partitions."""

from __future__ import annotations

import uuid

import pytest
from pyhudi.errors import CorruptFileError, PartitionValueError
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.files.partitions import (
    METAFILE,
    PartitionMetadata,
    list_partitions,
    parse_partition_metafile,
    write_partition_metafile,
)

BY_JAVA = b"#partition metadata\n#Sat Nov 21 03:04:08 UTC 2026\ncommitTime=20261121030404561\npartitionDepth=1\n"


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(f"memory://{uuid.uuid4()}/t")


def test_a_metafile_of_java_is_read() -> None:
    assert parse_partition_metafile(BY_JAVA, "x") == PartitionMetadata("20261121030404561", 1)


@pytest.mark.parametrize("data", [b"", b"commitTime=20261121030404561\n", b"commitTime=x\npartitionDepth=1\n"])
def test_a_damaged_metafile_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="p/x"):
        parse_partition_metafile(data, "p/x")


@pytest.mark.parametrize(("path", "depth"), [("", 0), ("x", 1), ("p=0/q=x", 2)])
def test_a_metafile_tells_who_made_the_partition_and_how_deep_it_lies(
    storage: MemoryStorage, path: str, depth: int
) -> None:
    assert write_partition_metafile(storage, path, "20261121030404561") is True

    data = storage.read(f"{path}/{METAFILE}".lstrip("/"))
    assert data == f"#partition metadata\ncommitTime=20261121030404561\npartitionDepth={depth}\n".encode()
    assert list_partitions(storage) == [path]


def test_the_first_writer_of_a_metafile_wins(storage: MemoryStorage) -> None:
    write_partition_metafile(storage, "x", "20261121030404561")

    assert write_partition_metafile(storage, "x", "20261121030404562") is False
    assert parse_partition_metafile(storage.read(f"x/{METAFILE}"), "x").instant_time == "20261121030404561"


def test_partitions_are_the_folders_with_a_metafile(storage: MemoryStorage) -> None:
    storage.write(".hoodie/hoodie.properties", b"")
    storage.write(f".hoodie/metadata/files/{METAFILE}", BY_JAVA)
    storage.write("no/partition/data.parquet", b"")
    for path in ("b/y", "b/x", "a/z/deep"):
        storage.write(f"{path}/{METAFILE}", BY_JAVA)
        storage.write(f"{path}/data.parquet", b"")
    storage.write(f"b/y/inner/{METAFILE}", BY_JAVA)

    assert list_partitions(storage) == ["a/z/deep", "b/x", "b/y"]


def test_a_table_without_folders_has_no_partitions(storage: MemoryStorage) -> None:
    assert list_partitions(storage) == []


@pytest.mark.parametrize(
    ("first", "second"), [("a", "a/b"), ("a/b", "a"), ("a", "a/b/c"), ("a/b/c", "a"), ("a/b", "a/b/c/d")]
)
def test_a_partition_inside_another_is_refused(storage: MemoryStorage, first: str, second: str) -> None:
    """Apache Hudi's listing stops at the upper one, so that the rows of the lower would be lost to it."""
    write_partition_metafile(storage, first, "20261121030404561")

    with pytest.raises(PartitionValueError) as raised:
        write_partition_metafile(storage, second, "20261121030404562")

    assert repr(first) in raised.value.what
    assert repr(second) in raised.value.what
    assert list_partitions(storage) == [first]


def test_partitions_with_names_that_begin_alike_live_side_by_side(storage: MemoryStorage) -> None:
    for path in ("a/b", "a/bc", "ab"):
        assert write_partition_metafile(storage, path, "20261121030404561") is True

    assert list_partitions(storage) == ["a/b", "a/bc", "ab"]
