"""Rows that wait on disk come back as they were, or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import StorageError
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.arrow.spill import SpillReader, SpillWriter

ROWS = [pa.record_batch({"k": ["a", "b"], "n": [1, 2]})]


def read(storage: Storage) -> dict[tuple[str, int], list[pa.RecordBatch]]:
    reader = SpillReader(storage, "s")
    return {file_slice.key: list(reader.batches(file_slice)) for file_slice in reader.pieces}


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    writer = SpillWriter(storage, "s", "")
    writer.append({("p", 0): ROWS, ("q", 1): ROWS})
    writer.publish()
    whole = storage.read("s")

    assert read(storage) == {("p", 0): ROWS, ("q", 1): ROWS}
    for at in [*range(0, len(whole), 5), *range(len(whole) - 12, len(whole))]:
        storage.write("s", whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(StorageError, match="damaged"):
            read(storage)


@pytest.mark.parametrize("length", [0, 5, 100, -1])
def test_a_file_that_is_cut_off_is_noticed(tmp_path: Path, length: int) -> None:
    storage = open_storage(str(tmp_path))
    writer = SpillWriter(storage, "s", "")
    writer.append({("p", 0): ROWS})
    writer.publish()
    storage.write("s", storage.read("s")[:length])

    with pytest.raises(StorageError, match="cut off"):
        read(storage)
