from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import CorruptInstantError, StorageError
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.archive import archived_writes
from pyhudi.timeline.instants import Instant, State

FIXTURES = Path(__file__).parents[2] / "fixtures" / "timeline"


@pytest.fixture
def storage() -> Iterator[Storage]:
    opened = open_storage(f"memory://{uuid.uuid4().hex}")
    yield opened
    opened.delete_folder("")


def put(storage: Storage, name: str, *rows: tuple[str, str, str]) -> None:
    columns = dict(zip(["instantTime", "completionTime", "action"], map(list, zip(*rows, strict=True)), strict=True))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({**columns, "metadata": pa.nulls(len(rows), pa.binary())}), sink)
    storage.write(f"history/{name}", bytes(sink.getvalue()))


def test_the_archive_of_apache_hudi_is_read() -> None:
    found = archived_writes(open_storage(str(FIXTURES)), "archived")

    assert [(one.requested_time, one.completion_time) for one in found] == [
        ("20261121122910028", "20261121122924971"),
        ("20261121122926145", "20261121122931213"),
        ("20261121122931540", "20261121122933737"),
        ("20261121122934270", "20261121122935568"),
    ]
    assert {one.action for one in found} == {"commit"}


def test_a_table_without_archive_has_no_archived_writes(storage: Storage) -> None:
    storage.write("history/_version_", b"1")

    assert archived_writes(storage, "history") == ()
    assert archived_writes(storage, "nowhere") == ()


def test_writes_alone_count_and_each_once(storage: Storage) -> None:
    """A compacted archive repeats what the files hold that it was made of."""
    put(storage, "3_5_0.parquet", ("3", "4", "commit"), ("5", "6", "clean"))
    put(storage, "1_2_0.parquet", ("2", "9", "replacecommit"), ("1", "2", "rollback"))
    put(storage, "1_5_1.parquet", ("2", "9", "replacecommit"), ("3", "4", "commit"))

    assert archived_writes(storage, "history") == (
        Instant("2", "replacecommit", State.COMPLETED, "9"),
        Instant("3", "commit", State.COMPLETED, "4"),
    )


@pytest.mark.parametrize("data", [b"", b"PAR1", b"no parquet at all"])
def test_a_damaged_file_of_the_archive_is_named(storage: Storage, data: bytes) -> None:
    storage.write("history/1_2_0.parquet", data)

    with pytest.raises(CorruptInstantError, match=r"history/1_2_0\.parquet"):
        archived_writes(storage, "history")


def test_a_file_without_completion_times_is_named(storage: Storage) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"instantTime": ["1"], "action": ["commit"]}), sink)
    storage.write("history/1_2_0.parquet", bytes(sink.getvalue()))

    with pytest.raises(CorruptInstantError, match="completionTime"):
        archived_writes(storage, "history")


def test_an_archive_that_is_compacted_while_it_is_read_is_read_another_time(storage: Storage) -> None:
    put(storage, "1_2_0.parquet", ("1", "2", "commit"))

    class Compacting:
        path, remote = storage.path, False
        list = storage.list

        def open_input(self, path: str) -> object:
            raise FileNotFoundError(path)

    with pytest.raises(StorageError, match="Run it again"):
        archived_writes(Compacting(), "history")  # type: ignore[arg-type]
