"""Which slice a log file belongs to: by when its delta commit completed, never by its own name alone."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.files.file_group import BaseFile, FileSlice, LogFile, base_file, log_file
from pyhudi.table.files.log_names import NamedByEither, NamedByMaker
from pyhudi.table.files.names import FileGroupId
from pyhudi.table.files.slice_rule import ByCompletionTime
from pyhudi.table.files.view import FileView
from pyhudi.table.files.written import Written
from pyhudi.timeline.archive.lsm import LsmArchive
from pyhudi.timeline.archive.lsm_writer import Row, append
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.timeline import Timeline
from support.made.timelines import timeline_of

GROUP = FileGroupId("p", "a-0")
Shown = list[tuple[str, bool, list[str]]]


def base(time: str) -> BaseFile:
    found = base_file(f"p/a-0_0-0-0_{time}.parquet", 10)
    assert found is not None
    return found


def log(time: str, version: int = 1, attempt: str = "0-0-0") -> LogFile:
    found = log_file(f"p/.a-0_{time}.log.{version}_{attempt}", 1)
    assert found is not None
    return found


def shown(slices: tuple[FileSlice, ...]) -> Shown:
    """Return base time, whether there is a base file, and what each log file's name says behind ``.log.``."""
    return [
        (one.base_time, one.base is not None, [f"{log.named_time}.{log.path.split('.log.')[1]}" for log in one.logs])
        for one in slices
    ]


def by(bases: list[BaseFile], logs: list[LogFile], completed: Mapping[str, str]) -> Shown:
    """Return the slices; to ask when an instant completed of which that is not told fails."""
    return shown(ByCompletionTime().slices(GROUP, bases, logs, completed.__getitem__))


def test_nobody_is_asked_when_a_log_file_completed_that_is_younger_than_all_base_files() -> None:
    assert by([base("1"), base("3")], [log("4"), log("5")], {}) == [
        ("1", True, []),
        ("3", True, ["4.1_0-0-0", "5.1_0-0-0"]),
    ]


@pytest.mark.parametrize(("completed", "slices"), [("4", ["1"]), ("5", ["5"]), ("7", ["5"])])
def test_an_append_that_was_at_work_when_a_compaction_was_requested(completed: str, slices: list[str]) -> None:
    """It was merged if it was complete by then. A completion at the very time of the request can not have been."""
    found = by([base("5"), base("1")], [log("3")], {"3": completed})

    assert [time for time, _, logs in found if logs] == slices


@pytest.mark.parametrize("completed", ["4", "5", "7"])
def test_a_compaction_has_to_merge_what_readers_do_not_put_on_its_base_file(completed: str) -> None:
    rule, append = ByCompletionTime(), Instant("3", "deltacommit", State.COMPLETED, completed)
    slices = by([base("5"), base("1")], [log("3")], {"3": completed})

    assert rule.is_merged(log("3"), "5", lambda _: completed) == (
        slices == [("1", True, ["3.1_0-0-0"]), ("5", True, [])]
    )
    assert NamedByMaker().fits(log("3").path, append, "5") == (slices == [("1", True, []), ("5", True, ["3.1_0-0-0"])])


@pytest.mark.parametrize(
    ("named", "made_by", "fits"),
    [("3", "3", True), ("5", "6", True), ("4", "6", False), ("3", "4", False)],
)
def test_a_name_of_version_6_fits_by_its_base_instant_and_any_other_by_its_delta_commit(
    named: str, made_by: str, fits: bool
) -> None:
    """Of delta commits that completed when a base file of the time 5 was there."""
    append = Instant(made_by, "deltacommit", State.COMPLETED, "7")

    assert NamedByEither().fits(log(named).name.format(), append, "5") is fits


def test_log_files_without_a_base_file_make_up_one_slice_before_all_others() -> None:
    """Until a compaction makes the first base file, and also after that, those that it merged."""
    logs = [log("4"), log("2"), log("3")]
    completed = {"2": "25", "3": "35", "4": "65"}

    assert by([], logs, {}) == [("2", False, ["2.1_0-0-0", "3.1_0-0-0", "4.1_0-0-0"])]
    assert by([base("6")], logs, completed) == [("2", False, ["2.1_0-0-0", "3.1_0-0-0"]), ("6", True, ["4.1_0-0-0"])]


def test_a_rewrite_inside_a_delta_commit_begins_a_slice_as_a_compaction_does() -> None:
    bases, logs = [base("1"), base("4")], [log("2"), log("3"), log("6")]

    assert by(bases, logs, {"2": "25", "3": "35"}) == [
        ("1", True, ["2.1_0-0-0", "3.1_0-0-0"]),
        ("4", True, ["6.1_0-0-0"]),
    ]


def test_versions_are_numbers_and_write_tokens_are_text() -> None:
    logs = [log("2", 10), log("2", 9), log("2", 9, "9-0-0"), log("2", 9, "10-0-0"), log("1", 11)]

    assert by([base("0")], logs, {}) == [
        ("0", True, ["1.11_0-0-0", "2.9_0-0-0", "2.9_10-0-0", "2.9_9-0-0", "2.10_0-0-0"])
    ]


def test_a_slice_counts_all_its_files() -> None:
    whole, without = ByCompletionTime().slices(GROUP, [base("5")], [log("6"), log("1")], {"1": "2"}.__getitem__)[::-1]

    assert (whole.files, whole.size, whole.log_bytes) == (("p/a-0_0-0-0_5.parquet", "p/.a-0_6.log.1_0-0-0"), 11, 1)
    assert (without.files, without.size, without.log_bytes) == (("p/.a-0_1.log.1_0-0-0",), 1, 1)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


def view(storage: Storage, instants: list[Instant], *names: str) -> FileView:
    for name in names:
        storage.write(f"p/{name}", b"x")
    return FileView(timeline_of(instants, storage), Written())


def delta(requested: str, completed: str | None) -> Instant:
    return Instant(requested, "deltacommit", State.COMPLETED if completed else State.INFLIGHT, completed)


def test_a_view_shows_committed_log_files_and_no_change_data(storage: Storage) -> None:
    file_system_view = view(
        storage,
        [delta("2", "25"), delta("3", None), delta("4", "45")],
        "a-0_0-0-0_2.parquet",
        ".a-0_3.log.1_0-0-0",
        ".a-0_4.log.1_0-0-0",
        ".a-0_4.log.1_0-0-0.cdc",
        ".b-0_4.log.1_0-0-0",
    )

    assert {file_id: shown((file_slice,)) for file_id, file_slice in file_system_view.slices("p").items()} == {
        "a-0": [("2", True, ["4.1_0-0-0"])],
        "b-0": [("4", False, ["4.1_0-0-0"])],
    }


def test_a_compaction_takes_over_when_its_base_file_is_committed(storage: Storage) -> None:
    """As of before it, what it merged is read from the log files still; as of its request, what it did is seen."""
    compaction = Instant("4", "commit", State.COMPLETED, "6")
    instants = [delta("1", "15"), delta("2", "25"), delta("3", "5"), compaction, delta("7", "75")]
    names = ["a-0_0-0-0_1.parquet", *(f".a-0_{time}.log.1_0-0-0" for time in "237"), "a-0_0-0-0_4.parquet"]
    view(storage, instants, *names)

    def newest(timeline: Timeline) -> Shown:
        return shown((FileView(timeline, Written()).slices("p")["a-0"],))

    now = timeline_of(instants, storage)
    assert newest(now) == [("4", True, ["3.1_0-0-0", "7.1_0-0-0"])]
    assert newest(now.as_of_request("3")) == [("1", True, ["2.1_0-0-0", "3.1_0-0-0"])]
    assert newest(now.as_of_request("4")) == [("4", True, ["3.1_0-0-0"])]
    assert newest(now.as_of_completion("5")) == [("1", True, ["2.1_0-0-0", "3.1_0-0-0"])]
    assert newest(now.as_of_completion("6")) == [("4", True, ["3.1_0-0-0"])]
    pending = timeline_of([*instants[:3], Instant("4", "compaction", State.INFLIGHT), instants[4]], storage)
    assert newest(pending) == [("1", True, ["2.1_0-0-0", "3.1_0-0-0", "7.1_0-0-0"])]


def test_the_archive_tells_when_an_archived_delta_commit_completed(storage: Storage) -> None:
    """One of which it does not know is older than the base file; and it is asked only where that matters."""
    for one in (delta("20", "50"), delta("21", "31"), delta("10", "60")):
        append(LsmArchive(storage, ".hoodie/timeline/history"), [Row(one, b"", b"")])
    names = [f".a-0_{time}.log.1_0-0-0" for time in ("10", "20", "21", "22")]
    found = view(storage, [Instant("70", "commit", State.COMPLETED, "71")], *names)

    assert shown(found.groups("p")["a-0"].slices) == [("10", False, [f"{time}.1_0-0-0" for time in (10, 20, 21, 22)])]

    storage.write("p/a-0_0-0-0_40.parquet", b"x")
    assert shown(view(storage, [Instant("70", "commit", State.COMPLETED, "71")]).groups("p")["a-0"].slices) == [
        ("21", False, ["21.1_0-0-0", "22.1_0-0-0"]),
        ("40", True, ["10.1_0-0-0", "20.1_0-0-0"]),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_every_moment_of_a_random_life_shows_each_complete_append_once(seed: int) -> None:
    """Slices are held against a replay: a compaction takes over what had completed when it was requested."""
    random_ = random.Random(seed)
    times = iter(f"{number:04d}" for number in range(1, 1000))
    pending: list[tuple[str, set[str] | None]] = []
    completed: dict[str, str] = {}
    bases: list[BaseFile] = []
    merged: dict[str, set[str]] = {}
    for _ in range(60):
        step = random_.random()
        if step < 0.5 or not pending:
            begins = step < 0.15 and all(inputs is None for _, inputs in pending)
            pending.append((next(times), set(completed) if begins else None))
            continue
        time, inputs = pending.pop(random_.randrange(len(pending)))
        if inputs is None:
            completed[time] = next(times)
        else:
            next(times)
            bases.append(base(time))
            merged[time] = inputs
        slices = ByCompletionTime().slices(GROUP, bases, [log(one) for one in completed], completed.__getitem__)
        newest = max(merged, default=None)
        held = {one.named_time for one in slices[-1].logs}
        assert held == set(completed) - (merged[newest] if newest else set())
        assert sorted(one.named_time for file_slice in slices for one in file_slice.logs) == sorted(completed)


def test_the_timeline_alone_is_read_for_what_is_on_it(storage: Storage) -> None:
    storage.write(".hoodie/timeline/history/manifest_1", b"no manifest")
    storage.write(".hoodie/timeline/history/_version_", b"1")

    found = view(storage, [delta("2", "5"), delta("3", "6")], ".a-0_2.log.1_0-0-0", "a-0_0-0-0_3.parquet")

    assert shown(found.groups("p")["a-0"].slices) == [("3", True, ["2.1_0-0-0"])]
