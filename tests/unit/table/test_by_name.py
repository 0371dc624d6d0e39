"""Which slice a log file of table version 6 belongs to: by its name, never by times of completion."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.files.file_group import BaseFile, FileSlice, LogFile, base_file, log_file
from pyhudi.table.files.names import FileGroupId
from pyhudi.table.files.slice_rule import ByName
from pyhudi.table.files.view import FileView
from pyhudi.table.files.written import Written
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.layout import LayoutV1
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.watermark import Seen, Watermark
from support.made.timelines import instants_in

GROUP = FileGroupId("p", "a-0")


def base(time: str) -> BaseFile:
    found = base_file(f"p/a-0_0-0-0_{time}.parquet", 10)
    assert found is not None
    return found


def log(time: str, version: int = 1) -> LogFile:
    found = log_file(f"p/.a-0_{time}.log.{version}_0-0-0", 1)
    assert found is not None
    return found


def shown(slices: Sequence[FileSlice]) -> list[tuple[str, bool, list[str]]]:
    """Return base time, whether there is a base file, and of each log file its time and version."""
    return [
        (one.base_time, one.base is not None, [f"{log.named_time}.{log.name.version}" for log in one.logs])
        for one in slices
    ]


def by(bases: list[BaseFile], logs: list[LogFile]) -> list[tuple[str, bool, list[str]]]:
    """Return the slices; to ask when an instant completed fails."""
    return shown(ByName().slices(GROUP, bases, logs, {}.__getitem__))


def timeline(*instants: tuple[str, str, State]) -> Timeline:
    storage = MemoryStorage.open("memory:no-slices")
    return Timeline(tuple(Instant(*one) for one in instants), instants_in(storage, LayoutV1()))


WRITTEN = (
    ("2", "deltacommit", State.COMPLETED),
    ("3", "deltacommit", State.INFLIGHT),
    ("4", "compaction", State.REQUESTED),
    ("5", "deltacommit", State.COMPLETED),
)


def test_a_log_file_goes_with_the_base_file_of_its_name() -> None:
    assert by([base("1"), base("3")], [log("3", 2), log("1"), log("3", 1)]) == [
        ("1", True, ["1.1"]),
        ("3", True, ["3.1", "3.2"]),
    ]


def test_the_slice_of_a_pending_compaction_is_joined_to_the_one_before() -> None:
    assert by([base("1")], [log("4"), log("1", 2), log("1")]) == [("1", True, ["1.1", "1.2", "4.1"])]
    assert by([base("1"), base("4")], [log("4"), log("1")]) == [("1", True, ["1.1"]), ("4", True, ["4.1"])]


def test_log_files_without_a_base_file_make_up_the_first_slice() -> None:
    assert by([], [log("2"), log("2", 2), log("4")]) == [("2", False, ["2.1", "2.2", "4.1"])]
    assert by([base("4")], [log("2"), log("4")]) == [("2", False, ["2.1"]), ("4", True, ["4.1"])]


@pytest.mark.parametrize(("time", "counts"), [("1", True), ("2", True), ("3", False), ("4", False), ("6", False)])
def test_blocks_of_archived_and_completed_writes_count(time: str, counts: bool) -> None:
    """An instant that is younger than the first write and not on the timeline was rolled back."""
    write_timeline = timeline(*WRITTEN)
    told = pickle.loads(pickle.dumps(ByName().counting(write_timeline)))  # noqa: S301 (what was pickled right here)

    assert told(time) == write_timeline.is_committed(time) == counts


@pytest.mark.parametrize("time", ["1", "2", "3", "5", "6"])
def test_blocks_count_as_of_a_moment_as_the_timeline_of_that_moment_says(time: str) -> None:
    then = timeline(("2", "deltacommit", State.COMPLETED), ("3", "deltacommit", State.INFLIGHT))
    past = timeline(*WRITTEN).as_of(Seen(Watermark.of(then.instants)))

    assert ByName().counting(past)(time) == past.is_committed(time) == (time in {"1", "2"})


def test_a_view_shows_the_log_files_of_slices_until_its_newest_write() -> None:
    """Also of a slice whose compaction is pending, as of a time before it no longer."""
    storage = MemoryStorage.open("memory:of-slices")
    storage.write("p/.hoodie_partition_metadata", b"")
    for file in (base("2"), log("2"), log("4"), log("7")):
        storage.write(file.path, b"")
    now = Timeline(timeline(*WRITTEN).instants, instants_in(storage, LayoutV1()))

    assert shown([*FileView(now, Written()).slices("p").values()]) == [("2", True, ["2.1", "4.1"])]
    past = FileView(now.as_of_request("2"), Written()).slices("p")["a-0"]
    assert shown([past]) == [("2", True, ["2.1"])]
    assert not past.counts("5")
