"""What completed writes say of files, folded once and continued, against the same asked anew of every commit."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyhudi.errors import StorageError
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.files.file_group import StatedLog
from pyhudi.table.files.read_written import read_written
from pyhudi.table.files.written import Written, bases_in, logs_in
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import CommitMetadata, ReplaceCommitMetadata, WriteStat
from pyhudi.timeline.timeline import Timeline
from support.made.timelines import instants_in, timeline_in
from support.seams import patch_seam, read_seam


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


def complete(storage: Storage, number: int, groups: list[str], replaced: list[str] | None = None) -> Instant:
    """Put a completed write on the timeline that names a file of each group, and files that are no base files."""
    action = "commit" if replaced is None else "replacecommit"
    instant = Instant(f"{number:017d}", action, State.COMPLETED, f"{number + 500:017d}")
    stats = [
        *(WriteStat(file_id=one, path=f"p/{one}_0-0-0_{instant.requested_time}.parquet") for one in groups),
        WriteStat(file_id="logged", path=f"p/.logged_{instant.requested_time}.log.1_0-0-0"),
        WriteStat(file_id="failed"),
        WriteStat(),
    ]
    body = (
        CommitMetadata(partition_to_write_stats={"p": stats})
        if replaced is None
        else ReplaceCommitMetadata(
            partition_to_write_stats={"p": stats}, partition_to_replace_file_ids={"p": replaced, "q": []}
        )
    )
    storage.write(instants_in(storage).path(instant), encode(body))
    return instant


def anew(storage: Storage, timeline: Timeline) -> Written:
    """Ask every commit, as a process that knows nothing."""
    cached_files = read_seam("written files that the process knows")
    before = cached_files.copy()
    cached_files.clear()
    written_files = read_written(timeline)
    cached_files.clear()
    cached_files.update(before)
    return written_files


def test_the_newest_file_of_each_group_and_what_was_replaced(storage: Storage) -> None:
    complete(storage, 1, ["a", "b"])
    last = complete(storage, 2, ["b"], replaced=["a"])
    written_files = read_written(timeline_in(storage))

    one, two = f"{1:017d}", f"{2:017d}"
    assert dict(written_files.names("p"))["a"] == f"a_0-0-0_{one}.parquet"
    assert dict(written_files.names("p"))["b"] == f"b_0-0-0_{two}.parquet"
    assert written_files.replaced_by == {last: {("p", "a")}}


@pytest.mark.parametrize("seed", range(3))
def test_a_continued_answer_is_that_of_all_commits(storage: Storage, seed: int) -> None:
    """Commits complete out of order, are archived and rolled back; some looks are back in time."""
    dice = random.Random(seed)
    waiting = dice.sample(range(1, 60), 40)
    waiting.sort(key=lambda number: number + dice.randrange(8))
    commits: list[Instant] = []
    for number in waiting:
        groups = dice.sample("abcdef", dice.randrange(4))
        commits.append(complete(storage, number, groups, dice.sample("abc", 1) if dice.random() < 0.2 else None))
        commits.sort(key=lambda one: one.requested_time)
        while len(commits) > 12:
            storage.delete(instants_in(storage).path(commits.pop(0)))
        if dice.random() < 0.1:
            storage.delete(instants_in(storage).path(commits.pop()))
        timeline = timeline_in(storage)
        for moment in (timeline, timeline.as_of_request(dice.choice(commits).requested_time) if commits else timeline):
            assert read_written(moment) == anew(storage, moment)


def test_no_body_is_read_twice(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = read_seam("read the files of a commit")
    patch_seam(
        monkeypatch,
        "read the files of a commit",
        lambda self, one: read.append(one.requested_time) or original(self, one),
    )
    for number in range(1, 8):
        complete(storage, number, ["a"])
        if number > 3:
            storage.delete(instants_in(storage).path(timeline_in(storage).writes[0]))
        read_written(timeline_in(storage))

    assert read == [f"{number:017d}" for number in range(1, 8)]


def test_a_commit_that_is_archived_while_it_is_read_is_left_out(storage: Storage) -> None:
    first, second = complete(storage, 1, ["a"]), complete(storage, 2, ["b"])
    timeline = timeline_in(storage)
    storage.delete(instants_in(storage).path(first))

    assert list(read_written(timeline).newest["p"]) == ["b"]
    storage.delete(instants_in(storage).path(second))
    with pytest.raises(StorageError, match="archived or rolled back"):
        anew(storage, timeline)


def test_the_greatest_size_and_number_of_records_that_a_write_states_count() -> None:
    name = f".logged_{1:017d}.log.1_0-0-0"
    stats = [
        {"fileId": "logged", "path": f"p/{name}", "fileSizeInBytes": size, "numWrites": rows, "numDeletes": gone}
        for size, rows, gone in ((900, 1, 1), (1200, 4, 1), (0, 3, 0))
    ]

    write = Instant("1", "deltacommit", State.COMPLETED, "2")
    assert list(logs_in(stats, write, True)) == [("logged", name, StatedLog(1200, 5, True, ("1",)))]


def test_a_base_file_that_a_write_states_in_several_sizes_has_none() -> None:
    """Apache Hudi's writers for Flink write a file anew under its name, and keep the statistic of each attempt."""
    stats = [{"fileId": group, "path": f"p/{group}_0-0-0_1.parquet", "fileSizeInBytes": size} for group, size in SIZES]

    assert {file_id: base.size for file_id, base in bases_in(stats).items()} == {"a": 7, "b": 0, "c": 0}


SIZES = (("a", 7), ("a", 7), ("b", 7), ("b", 8), ("c", None))


def test_a_process_forgets_tables_that_it_looked_at_long_ago(storage: Storage, tmp_path: Path) -> None:
    for number in range(read_seam("most tables that the process knows") + 5):
        other = open_storage(str(tmp_path / str(number)))
        complete(other, 1, ["a"])
        read_written(timeline_in(other))

    assert len(read_seam("written files that the process knows")) == read_seam("most tables that the process knows")


def test_log_files_are_remembered_until_a_newer_base_file_takes_their_place(storage: Storage) -> None:
    """Each of ``complete`` takes 500 longer than it was requested: what completed before the base file is forgotten."""
    first, second, third = (complete(storage, number, []) for number in (1, 2, 600))
    logs = read_written(timeline_in(storage)).logs["p"]["logged"].values()
    assert [log.instant for log in logs] == [first, second, third]

    complete(storage, 502, ["logged"])

    written_files = read_written(timeline_in(storage))
    assert [log.instant.requested_time for log in written_files.logs["p"]["logged"].values()] == [
        f"{number:017d}" for number in (2, 600, 502)
    ]
    assert written_files == anew(storage, timeline_in(storage))
    assert sorted(name[:7] for file_id, name in written_files.names("p") if file_id == "logged") == [".logged"] * 3 + [
        "logged_"
    ]
