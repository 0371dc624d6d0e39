"""What follows each batch of a stream: as much of what is due as fits into its time. Its errors fail no batch."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.result import CommitResult, ServiceResult
from pyhudi.operations.service_settings import CompactionSettings, Upkeep
from pyhudi.operations.services.throughput import note_work
from pyhudi.operations.streams.batch import StreamBatch, StreamSettings
from pyhudi.operations.upkeep.service_entry import Call
from pyhudi.operations.upkeep.service_round import run_services
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.timeline.timeline import Timeline
from support.drive import KEYED, rows_of, write
from support.faults.traces import Trace, TracedStorage
from support.made.compacting import means
from support.places import files_below
from support.seams import patch_seam
from support.stores import wrap_stores

TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
COMPACTION = "compaction"
DELTA_COMMITS = CompactionSettings().delta_commits
MERGED = replace(KEYED, table_type="MERGE_ON_READ")
# More time than the upkeep of these small tables takes by its own clock.
LONG = StreamSettings(upkeep_s=60.0)


@dataclass
class Stream:
    """A stream that writes its batches in this process, each of a few rows with keys of all buckets."""

    path: Path
    table: TableSettings = MERGED
    stream: StreamSettings = LONG
    upkeep: Upkeep = field(default_factory=Upkeep)
    keys: int = 8
    batches: int = 0

    def write(self, count: int = 1) -> list[CommitResult]:
        """Write batches."""
        return [self._write() for _ in range(count)]

    def _write(self) -> CommitResult:
        number, self.batches = self.batches, self.batches + 1
        ids = [f"k{key}" for key in range(self.keys)]
        made = pa.table({"id": ids, "ts": [number] * self.keys, "v": [number] * self.keys})
        batch = StreamBatch("q", number)
        settings = WriteSettings(durable=False, batch=batch, stream=self.stream, upkeep=self.upkeep)
        return write(self.path, made, table=self.table, settings=settings, write_id=batch.write_id)

    @property
    def timeline(self) -> Timeline:
        """The table's timeline."""
        return open_snapshot(str(self.path)).timeline

    def logs_per_slice(self) -> int:
        """Return how many log files the newest slices have at most."""
        return max(len(one.logs) for one in open_snapshot(str(self.path)).slices())

    def values(self) -> set[Any]:
        """Return the values of all keys, each of which is there once."""
        found = rows_of(self.path, "id", "v")
        assert len(found) == self.keys
        return {value for _, value in found}


def of(service: str, done: list[CommitResult]) -> list[ServiceResult]:
    return [one for result in done for one in result.services if one.service == service]


@pytest.fixture(autouse=True)
def _in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "threads of store calls", 1)


@pytest.fixture(autouse=True)
def _by_its_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A millisecond passes from one look at the clock of the upkeep to the next, however busy the machine is."""
    patch_seam(
        monkeypatch, "clock of the upkeep after a batch", SimpleNamespace(monotonic=count(100.0, 0.001).__next__)
    )


class Counted(Trace):
    """A trace that keeps the verbs of the calls alone."""

    def add(self, verb: str, *given: object, **named: object) -> None:
        self.lines.append(verb)


def check_flat(stream: Stream, patch: pytest.MonkeyPatch, batches: int) -> None:
    """Write many batches: in their last third they cost what they cost in their second."""
    trace = Counted()
    wrap_stores(patch, lambda storage: TracedStorage(storage, trace))
    calls, files, instants, logs = [], [], [], []
    for number in range(batches):
        before = len(trace.lines)
        assert not [one.error for result in stream.write() for one in result.services if one.error]
        calls.append(len(trace.lines) - before)
        if number % 10 == 9:
            files.append(len(data_and_timeline(stream.path)))
            instants.append(len(stream.timeline.instants))
            logs.append(stream.logs_per_slice())
    third = batches // 3
    assert max(calls[-third:]) <= max(calls[third:-third]) + 20
    assert sum(calls[-third:]) <= 1.1 * sum(calls[third:-third])
    counts = len(files) // 3
    assert max(files[-counts:]) <= max(files[counts:-counts]) + 10
    assert max(instants) < 70
    assert max(logs) <= DELTA_COMMITS + 1
    assert stream.values() == {stream.batches - 1}


def data_and_timeline(path: Path) -> list[str]:
    """Return the files but the seals, which only a sink's process takes away before a day is over."""
    return [one for one in files_below(path) if "/sealed/" not in one]


@pytest.mark.parametrize("kind", [TYPES[0], pytest.param(TYPES[1], marks=pytest.mark.slow)])
def test_batches_cost_the_same_however_many_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    check_flat(Stream(tmp_path / "t", replace(KEYED, table_type=kind), keys=1), monkeypatch, 210)


@pytest.mark.long
@pytest.mark.parametrize("kind", TYPES)
def test_thousands_of_batches_cost_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    check_flat(Stream(tmp_path / "t", replace(KEYED, table_type=kind)), monkeypatch, 5_000)


def test_a_stream_merges_its_log_files_by_default(tmp_path: Path) -> None:
    done = Stream(tmp_path / "t", stream=StreamSettings()).write(2 * DELTA_COMMITS)

    assert of(COMPACTION, done)


@pytest.mark.parametrize(("part", "taken"), [(0.0, [1, 2]), (0.25, [2])])
def test_a_first_plan_of_a_process_has_a_file_group_and_what_a_part_of_the_seconds_holds_by_a_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: float, taken: list[int]
) -> None:
    """Nothing is known yet of how long it takes, and the rest follows."""
    patch_seam(monkeypatch, "part of the seconds that a first plan may take by a guess", part)
    stream = Stream(tmp_path / "t")
    done = stream.write(DELTA_COMMITS + 1)

    assert [one.file_groups for one in of(COMPACTION, done)][: len(taken)] == taken
    assert stream.values() == {stream.batches - 1}


def test_a_plan_is_cut_to_what_fits(tmp_path: Path) -> None:
    stream = Stream(tmp_path / "t", replace(KEYED, table_type="MERGE_ON_READ", bucket_count=4))
    # One MiB a plan and a bit more than one MiB a file group with five log files: two of these in 60 s, less a fifth.
    note_work(str(stream.path), COMPACTION, [2 << 20], 48.0 / 1.5)
    results = stream.write(DELTA_COMMITS + 1)

    assert 0 < of(COMPACTION, results)[0].file_groups < 4
    assert Counter(one.file_groups > 0 for one in of(COMPACTION, results)) == {True: 2}


@pytest.mark.parametrize(("at_once", "taken"), [(1, ["a"]), (2, ["a", "b"]), (4, ["a", "b", "c"])])
def test_file_groups_that_are_nearly_due_fill_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, taken: list[str]
) -> None:
    """Of the five delta commits that make a file group due, a has all, b four, c three, and d one.

    No two have the same number: between these the sizes of their log files decide, which no two runs have alike.
    """
    patch_seam(monkeypatch, "units that a compaction executes at once", lambda: at_once)
    table = replace(MERGED, partition_fields=("p",), bucket_count=1)
    # Of 3.5 MiB for all four, 3.2 fit.
    note_work(str(tmp_path / "t"), COMPACTION, [2 << 20], 48.0 * 3 / 4.2)
    written = ["abcd", "abcd", "abc", "abc", "ab", "a"]
    for number, places in enumerate(written):
        made = pa.table({"id": list(places), "ts": [number] * len(places), "v": [0] * len(places), "p": list(places)})
        batch = StreamBatch("q", number)
        last = replace(LONG, upkeep_s=60.0 if number == len(written) - 1 else 0.0)
        settings = WriteSettings(durable=False, batch=batch, stream=last, upkeep=Upkeep())
        done = write(tmp_path / "t", made, table=table, settings=settings, write_id=batch.write_id)

    assert [one.file_groups for one in of(COMPACTION, [done])] == [len(taken)]
    slices = open_snapshot(str(tmp_path / "t")).slices()
    assert sorted(one.partition_path for one in slices if not one.logs) == taken


def test_what_does_not_fit_is_left_to_a_round_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stream = Stream(tmp_path / "t", stream=StreamSettings(upkeep_s=0.001), upkeep=Upkeep())
    stream.write(40)

    assert stream.logs_per_slice() == 39
    said = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    assert len(said) == 1
    assert f"python -m pyhudi.connector.jobs services --path {stream.path}" in said[0]
    storage = open_storage(str(stream.path))
    calls = Call(storage, means(storage).patience, Upkeep, lambda: means(storage))
    assert not run_services(calls).warnings
    assert stream.logs_per_slice() == 0
    stream.write(2)
    assert stream.values() == {stream.batches - 1}


def test_services_without_time_come_first_after_the_next_batch(tmp_path: Path) -> None:
    """Cleans alone fill the time of each batch here."""
    stream = Stream(tmp_path / "t", replace(KEYED, table_type="COPY_ON_WRITE"), StreamSettings(upkeep_s=1e-9))
    results = stream.write(120)

    assert of("clean", results)
    assert of("archive", results)
    assert all(len(one.services) <= 1 for one in results)
    assert len(stream.timeline.instants) < 80


@pytest.mark.parametrize(
    "stream", [StreamSettings(upkeep_s=0.0), StreamSettings(upkeep_s=60.0, compacts=False)], ids=["off", "no merges"]
)
def test_options_turn_it_off(tmp_path: Path, stream: StreamSettings) -> None:
    done = Stream(tmp_path / "t", stream=stream).write(2 * DELTA_COMMITS)

    assert not of(COMPACTION, done)


def test_a_failing_service_fails_no_batch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stream = Stream(tmp_path / "t")
    stream.write(2)
    plan = tmp_path / "t" / ".hoodie" / "timeline" / "20260101000000000.compaction.requested"
    plan.write_bytes(b"no plan")
    results = stream.write(6)

    assert {one.instant for one in results} <= {one.requested_time for one in stream.timeline.writes}
    assert [one for one in of(COMPACTION, results) if one.error]
    assert stream.values() == {stream.batches - 1}
    plan.unlink()
