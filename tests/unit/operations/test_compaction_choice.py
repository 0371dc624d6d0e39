"""When a compaction is due, and which file slices it merges: values in, values out."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from pyhudi.errors import InvalidOptionError
from pyhudi.operations.service_settings import (
    BOUNDED_IO,
    BY_DAY,
    BY_REGEX,
    LOG_COUNT,
    LOG_SIZE,
    NUM_AND_TIME,
    NUM_COMMITS,
    NUM_COMMITS_AFTER_LAST_REQUEST,
    NUM_OR_TIME,
    TIME_ELAPSED,
    UNBOUNDED,
    CompactionSettings,
)
from pyhudi.operations.services.compaction.choice import Cost, choose_partitions, choose_slices
from pyhudi.operations.services.compaction.due_rules import is_due, log_compaction_is_due
from pyhudi.storage import open_storage
from pyhudi.table.files.file_group import BaseFile, FileSlice, LogFile
from pyhudi.table.files.names import FileGroupId, LogFileName
from pyhudi.timeline.clock import parse_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.timeline import Timeline
from support.made.timelines import instants_in

MB = 1 << 20
NOW = parse_time("20260101120000000", "UTC")


def at(minute: int) -> str:
    return f"2026010111{minute:02d}00000"


def timeline(*said: str) -> Timeline:
    """Instants at one minute each: d a delta commit, D a pending one, c a compaction, C a pending one; l, L joining."""
    kinds = {
        "d": ("deltacommit", State.COMPLETED),
        "D": ("deltacommit", State.INFLIGHT),
        "c": ("commit", State.COMPLETED),
        "C": ("compaction", State.REQUESTED),
        "l": ("deltacommit", State.COMPLETED),
        "L": ("logcompaction", State.REQUESTED),
    }
    instants, storage = [], open_storage(f"memory://{uuid.uuid4().hex}")
    files = instants_in(storage)
    for minute, letter in enumerate("".join(said)):
        action, state = kinds[letter]
        done = at(minute) if state == State.COMPLETED else None
        instants.append(Instant(at(minute), action, state, done))
        if letter == "l":
            files.request(Instant(at(minute), "logcompaction", State.REQUESTED))
    return Timeline(tuple(instants), files)


@pytest.mark.parametrize(
    ("trigger", "said", "due"),
    [
        (NUM_COMMITS, "ddd", False),
        (NUM_COMMITS, "dddd", True),
        (NUM_COMMITS, "dddD", True),
        (NUM_COMMITS, "ddddcddd", False),
        (NUM_COMMITS, "ddddcdddd", True),
        (NUM_COMMITS, "ddddCd", True),
        (NUM_COMMITS, "", False),
        (NUM_COMMITS, "c", False),
        (NUM_COMMITS_AFTER_LAST_REQUEST, "ddddCddd", False),
        (NUM_COMMITS_AFTER_LAST_REQUEST, "ddddCdddd", True),
        (NUM_COMMITS_AFTER_LAST_REQUEST, "ddddcddd", False),
        (NUM_COMMITS_AFTER_LAST_REQUEST, "dddd", True),
    ],
)
def test_delta_commits_are_counted_since_the_last_compaction(trigger: str, said: str, due: bool) -> None:
    """A pending one does not count as the last, unless the trigger says so."""
    assert is_due(timeline(said), CompactionSettings(trigger=trigger, delta_commits=4), "UTC", NOW) is due


@pytest.mark.parametrize(
    ("said", "seconds", "due"),
    [
        ("d", 3600, True),
        ("d", 3601, False),
        ("dc", 3541, False),
        ("dc", 3540, True),
        ("", 1, False),
    ],
)
def test_time_counts_from_the_last_compaction_or_the_first_delta_commit(said: str, seconds: int, due: bool) -> None:
    settings = CompactionSettings(trigger=TIME_ELAPSED, delta_seconds=seconds)

    assert is_due(timeline(said), settings, "UTC", NOW) is due


@pytest.mark.parametrize(("commits", "seconds"), [(True, True), (True, False), (False, True), (False, False)])
def test_commits_and_time_together_and_either(commits: bool, seconds: bool) -> None:
    settings = CompactionSettings(delta_commits=2 if commits else 9, delta_seconds=1 if seconds else 1 << 30)

    both = is_due(timeline("dd"), replace(settings, trigger=NUM_AND_TIME), "UTC", NOW)
    either = is_due(timeline("dd"), replace(settings, trigger=NUM_OR_TIME), "UTC", NOW)

    assert (both, either) == (commits and seconds, commits or seconds)


@pytest.mark.parametrize(
    ("said", "due"),
    [
        ("ddd", False),
        ("dddd", True),
        ("dddD", True),
        ("ddddl", False),
        ("ddddlddd", False),
        ("ddddldddd", True),
        ("ddddlddddl", False),
        ("ddddcddd", False),
        ("ddddcdddd", True),
        ("ddddcdlddd", False),
        ("ddlddcddl", False),
        ("ddddLdddd", False),
        ("ddddlddddL", False),
        ("ddddCd", True),
        ("", False),
        ("c", False),
    ],
)
def test_log_files_are_joined_after_delta_commits_since_then_and_since_the_last_compaction(
    said: str, due: bool
) -> None:
    """A pending one is carried out before there is another."""
    assert log_compaction_is_due(timeline(said), 4) is due


def file_slice(partition: str, *log_sizes: int, base: int | None = 10 * MB) -> FileSlice:
    """A file slice that is told from others by its partition."""
    file = None if base is None else BaseFile(f"{partition}/f", base, "f", "0-0-0", "1")
    logs = tuple(
        LogFile(f"{partition}/{number}", size, LogFileName("f", str(number), 1))
        for number, size in enumerate(log_sizes)
    )
    return FileSlice(FileGroupId(partition, "f"), "1", file, logs)


SLICES = [
    file_slice("a", MB),
    file_slice("b", MB, MB, MB),
    file_slice("c", 5 * MB),
    file_slice("d", MB // 2, MB // 2, base=None),
]


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        (CompactionSettings(strategy=LOG_SIZE), "cbad"),
        (CompactionSettings(strategy=LOG_SIZE, log_bytes=2 * MB), "cb"),
        # What reaches the bound is taken still: c reads 15 and writes 10.
        (CompactionSettings(strategy=LOG_SIZE, target_io_mb=25), "c"),
        (CompactionSettings(strategy=LOG_SIZE, target_io_mb=26), "cb"),
        (CompactionSettings(strategy=LOG_COUNT), "bdac"),
        (CompactionSettings(strategy=LOG_COUNT, log_files=2), "bd"),
        (CompactionSettings(strategy=BOUNDED_IO, target_io_mb=22), "ab"),
        (CompactionSettings(strategy=UNBOUNDED, target_io_mb=1), "abcd"),
        (CompactionSettings(strategy=BY_REGEX, target_io_mb=1), "abcd"),
    ],
)
def test_a_strategy_orders_and_bounds_the_slices(settings: CompactionSettings, chosen: str) -> None:
    assert "".join(one.partition_path for one in choose_slices(settings, SLICES)) == chosen


def test_a_slice_without_a_base_file_is_expected_to_fill_one() -> None:
    """Apache Hudi reckons with the greatest size of a Parquet file."""
    assert Cost.of(SLICES[3]).metrics() == {
        "TOTAL_LOG_FILES": 2.0,
        "TOTAL_LOG_FILES_SIZE": float(MB),
        "TOTAL_IO_READ_MB": 1.0,
        "TOTAL_IO_WRITE_MB": 120.0,
        "TOTAL_IO_MB": 121.0,
    }


def test_partitions_are_chosen_before_they_are_listed() -> None:
    days = ["2026/1/9", "2026/01/10", "year=2025/month=12/day=31", "2026/01/02"]

    newest = choose_partitions(CompactionSettings(strategy=BY_DAY, partitions=2), days)
    matching_days = choose_partitions(CompactionSettings(strategy=BY_REGEX, partition_regex="1.$"), days)

    assert newest == ["2026/01/10", "2026/1/9"]
    assert matching_days == ["2026/01/10"]
    assert choose_partitions(CompactionSettings(), days) == days
    ordered = choose_slices(CompactionSettings(strategy=BY_DAY), [file_slice(day, MB) for day in days])
    assert [one.partition_path for one in ordered] == ["2026/01/10", "2026/1/9", "2026/01/02", days[2]]
    with pytest.raises(InvalidOptionError, match="'a' is no day"):
        choose_partitions(CompactionSettings(strategy=BY_DAY), ["a"])
