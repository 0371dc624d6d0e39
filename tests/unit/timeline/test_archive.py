from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import CorruptInstantError, StorageError, UnreadableTimeError
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.archive.lsm import LsmArchive
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.avro_codec import decode
from pyhudi.timeline.metadata.codec import InstantBody
from pyhudi.timeline.metadata.models import CommitMetadata
from pyhudi.timeline.watermark import Seen, Watermark
from support.made.timelines import timeline_of

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
    instants = LsmArchive(open_storage(str(FIXTURES)), "archived").writes()

    assert [(one.requested_time, one.completion_time) for one in instants] == [
        ("20261121122910028", "20261121122924971"),
        ("20261121122926145", "20261121122931213"),
        ("20261121122931540", "20261121122933737"),
        ("20261121122934270", "20261121122935568"),
    ]
    assert {one.action for one in instants} == {"commit"}


def test_a_table_without_archive_has_no_archived_writes(storage: Storage) -> None:
    storage.write("history/_version_", b"1")

    assert LsmArchive(storage, "history").writes() == ()
    assert LsmArchive(storage, "nowhere").writes() == ()


def test_writes_alone_count_and_each_once(storage: Storage) -> None:
    """A compacted archive repeats what the files hold that it was made of."""
    put(storage, "3_5_0.parquet", ("3", "4", "commit"), ("5", "6", "clean"))
    put(storage, "1_2_0.parquet", ("2", "9", "replacecommit"), ("1", "2", "rollback"))
    put(storage, "1_5_1.parquet", ("2", "9", "replacecommit"), ("3", "4", "commit"))

    assert LsmArchive(storage, "history").writes() == (
        Instant("2", "replacecommit", State.COMPLETED, "9"),
        Instant("3", "commit", State.COMPLETED, "4"),
    )


def test_what_an_archived_commit_did_is_read_as_apache_hudi_wrote_it() -> None:
    storage = open_storage(str(FIXTURES))
    wanted = LsmArchive(storage, "archived").writes()[1:3]

    bodies_by_instant = LsmArchive(storage, "archived").bodies(
        [*wanted, Instant("20261121122931541", "commit", State.COMPLETED, "1")]
    )

    assert set(bodies_by_instant) == set(wanted)
    for one, body in bodies_by_instant.items():
        files = decode(CommitMetadata, InstantBody(body, "")).partition_to_write_stats[""]
        assert {str(file.path).rpartition("_")[2] for file in files} == {f"{one.requested_time}.parquet"}
    assert LsmArchive(storage, "archived").bodies([]) == {}


def test_every_action_counts_where_all_are_asked_for(storage: Storage) -> None:
    """A clean may bear the time of a commit."""
    put(storage, "1_3_0.parquet", ("3", "4", "commit"), ("3", "6", "clean"), ("1", "2", "rollback"))

    found = [(one.requested_time, one.action) for one in LsmArchive(storage, "history").instants()]

    assert found == [("1", "rollback"), ("3", "clean"), ("3", "commit")]


def test_what_was_archived_since_a_moment_is_new_unless_it_was_there(storage: Storage) -> None:
    put(storage, "1_2_0.parquet", ("1", "2", "commit"))
    before = LsmArchive(storage, "history").state()
    there = Instant("3", "commit", State.COMPLETED, "4")
    mark = replace(timeline_of((there,)).watermark(), archive=before)
    now = timeline_of((Instant("9", "commit", State.COMPLETED, "99"),))
    gone = [("3", "4", "commit"), ("5", "6", "commit"), ("7", "8", "rollback"), ("9", "99", "commit")]
    put(storage, "3_9_0.parquet", *gone)

    assert before != LsmArchive(storage, "history").state()
    assert [one.requested_time for one in LsmArchive(storage, "history").completed_since(now, Seen(mark))] == ["5", "7"]
    # Nobody looked at the archive then, or it has not changed since.
    assert len(LsmArchive(storage, "history").completed_since(now, Seen(replace(mark, archive="")))) == 2
    unchanged = Seen(replace(mark, archive=LsmArchive(storage, "history").state()))
    assert LsmArchive(storage, "history").completed_since(now, unchanged) == ()


def test_a_moment_that_neither_timeline_nor_archive_tells_is_named(storage: Storage) -> None:
    completed = [Instant(f"{n}", "commit", State.COMPLETED, f"{n}") for n in range(1000, 2000)]
    mark = Watermark.of(completed)
    put(storage, "1000_1001_0.parquet", ("1000", "1000", "commit"), ("1001", "1001", "commit"))

    assert LsmArchive(storage, "history").seen_at(timeline_of(tuple(completed[2:])), mark).saw(completed[0])
    with pytest.raises(UnreadableTimeError, match=rf"{storage.path}.* at 1999 .*Make the DataFrame anew"):
        LsmArchive(storage, "history").seen_at(timeline_of(tuple(completed[3:])), mark)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"no parquet at all"])
def test_a_damaged_file_of_the_archive_is_named(storage: Storage, data: bytes) -> None:
    storage.write("history/1_2_0.parquet", data)

    with pytest.raises(CorruptInstantError, match=r"history/1_2_0\.parquet"):
        LsmArchive(storage, "history").writes()


def test_a_file_without_completion_times_is_named(storage: Storage) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"instantTime": ["1"], "action": ["commit"]}), sink)
    storage.write("history/1_2_0.parquet", bytes(sink.getvalue()))

    with pytest.raises(CorruptInstantError, match="completionTime"):
        LsmArchive(storage, "history").writes()


def test_an_archive_that_is_compacted_while_it_is_read_is_read_another_time(storage: Storage) -> None:
    put(storage, "1_2_0.parquet", ("1", "2", "commit"))

    class Compacting:
        path, remote = storage.path, False
        list = storage.list

        def open_input(self, path: str) -> object:
            raise FileNotFoundError(path)

    with pytest.raises(StorageError, match="Run it again"):
        LsmArchive(Compacting(), "history").writes()  # type: ignore[arg-type]
