"""Time travel to archived writes: answered exactly as before they left the timeline, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import MissingFileError, UnreadableTimeError
from pyhudi.reader.query import AsOf
from pyhudi.reader.scan import RowReader
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.files.read_written import read_written
from pyhudi.table.table import open_table
from pyhudi.timeline.clock import next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import RollbackMetadata
from support.made.cleaning import archive, clean
from support.models.past import Past, rows_of
from support.recorded.fixture_tables import unpack

FIXTURES = [
    "v8_cow",
    "v8_mor",
    "v8_mor_commit_time",
    "v9_cow_evolved",
    "v9_lookup_bloom_mor",
    "v9_lookup_global_simple_cow",
    "v9_mor_avro",
    "v9_mor_compacted",
    "v9_mor_evolved",
    "v9_mor_log_compacted",
]


@pytest.fixture(params=[False, True], ids=["cow", "mor"])
def past(tmp_path: Path, request: pytest.FixtureRequest) -> Past:
    """Five commits: two to partition a, one to b, then the whole table replaced, and an upsert."""
    past = Past(tmp_path / "t", merge_on_read=request.param)
    past.upsert("a", ["k1", "k2"], 1)
    past.upsert("b", ["k1"], 2)
    past.upsert("a", ["k2", "k3"], 3)
    past.overwrite("c", ["k9"], 4)
    past.upsert("a", ["k1"], 5)
    return past


def refused(past: Past, time: str, *predicates: Any) -> str:
    with pytest.raises(UnreadableTimeError) as caught:
        past.shown(AsOf(time), *predicates)
    return str(caught.value)


def test_archived_writes_show_the_rows_of_then(past: Past) -> None:
    archive(past.path, 4)

    for one in past.commits[:4]:
        assert past.shown(AsOf(one.instant)) == past.as_of(one.instant)
        between = f"{int(one.instant) + 1}"
        assert past.shown(AsOf(between)) == past.as_of(between)


def test_a_condition_leaves_out_partitions_of_then(past: Past) -> None:
    archive(past.path, 4)
    third = past.commits[2].instant

    for partition in ("a", "b", "c"):
        expected = [row for row in past.as_of(third) if row[0] == partition]
        assert past.shown(AsOf(third), Compare("p", "=", partition)) == expected


def test_what_was_archived_in_several_rounds_and_is_there_twice_counts_once(past: Past) -> None:
    storage = open_storage(str(past.path))
    archive(past.path, 1)
    kept = {one.file: storage.read(one.file) for one in past.commits[1:4]}
    archive(past.path, 3)
    for file, body in kept.items():
        storage.write(file, body)

    assert past.shown(AsOf(past.commits[0].instant)) == past.as_of(past.commits[0].instant)
    assert past.shown(AsOf(past.commits[2].instant)) == past.as_of(past.commits[2].instant)


def test_a_time_before_the_archive_names_its_first_write(past: Past) -> None:
    archive(past.path, 3)

    assert f"as.of.instant={past.commits[0].instant} " in refused(past, "2020-01-01")


def test_an_archive_without_bodies_tells_nothing(past: Past) -> None:
    archive(past.path, 3, told=False)

    for one in past.commits[:3]:
        text = refused(past, one.instant)
        assert f"as.of.instant={past.commits[3].instant} " in text


def test_what_is_told_before_the_first_silence_is_shown(past: Past) -> None:
    archive(past.path, 1)
    archive(past.path, 2, told=False)

    assert past.shown(AsOf(past.commits[0].instant)) == past.as_of(past.commits[0].instant)
    assert f"as.of.instant={past.commits[3].instant} " in refused(past, past.commits[1].instant)
    assert f"as.of.instant={past.commits[0].instant} " in refused(past, "2020-01-01")


def test_an_archived_clean_is_not_forgotten(tmp_path: Path) -> None:
    past = Past(tmp_path / "t")
    for number in range(1, 5):
        past.upsert("a", ["k1", "k2"], number)
    past.upsert("b", ["k1"], 5)
    clean(past.path, retain=3)
    for number in range(6, 9):
        past.upsert("a", ["k1", "k2"], number)
    archive(past.path, 7)
    first, second, third, *_ = past.commits

    for commit in (first, second):
        text = refused(past, commit.instant)
        assert "cleaning has taken away" in text
        assert f"as.of.instant={third.instant} " in text
    for commit in past.commits[2:]:
        assert past.shown(AsOf(commit.instant)) == past.as_of(commit.instant)


def test_a_file_that_nobody_took_is_missing(past: Past) -> None:
    past.upsert("b", ["k7"], 6)
    archive(past.path, 5)
    fifth = past.commits[4].instant
    [lost] = past.path.glob(f"a/*_{fifth}*.parquet")
    lost.unlink()

    with pytest.raises(MissingFileError, match=lost.name):
        past.shown(AsOf(fifth))
    assert past.shown(AsOf(past.commits[3].instant)) == past.as_of(past.commits[3].instant)


def test_a_replaced_file_that_is_gone_was_cleaned(past: Past) -> None:
    archive(past.path, 4)
    for file in past.path.glob("b/*.parquet"):
        file.unlink()

    text = refused(past, past.commits[1].instant)
    assert "cleaning has taken away 1 of the files" in text
    assert f"as.of.instant={past.commits[3].instant} " in text
    assert past.shown(AsOf(past.commits[0].instant)) == past.as_of(past.commits[0].instant)
    in_a = [row for row in past.as_of(past.commits[2].instant) if row[0] == "a"]
    assert past.shown(AsOf(past.commits[2].instant), Compare("p", "=", "a")) == in_a


def test_a_file_of_a_write_that_nothing_tells_of_is_no_part_of_any_answer(past: Past) -> None:
    archive(past.path, 4)
    first, second, third, *_ = past.commits
    source = next(iter(past.path.glob("b/*.parquet")))
    unknown = f"{int(second.instant) + 1}"
    (source.parent / f"00000000-0000-4000-8000-000000000000-0_0-1-1_{unknown}.parquet").write_bytes(source.read_bytes())

    assert past.shown(AsOf(first.instant)) == past.as_of(first.instant)
    assert past.shown(AsOf(second.instant)) == past.as_of(second.instant)
    assert f"the write {unknown}" in refused(past, third.instant)
    in_a = [row for row in past.as_of(third.instant) if row[0] == "a"]
    assert past.shown(AsOf(third.instant), Compare("p", "=", "a")) == in_a


def test_an_archived_write_that_was_undone_since_is_not_told(past: Past) -> None:
    archive(past.path, 4)
    first, second, *_ = past.commits
    storage = open_storage(str(past.path))
    timeline = open_table(storage).timeline()
    now = next_time(int(storage.now() * 1000), timeline.greatest_time(), "UTC")
    body = RollbackMetadata(
        start_rollback_time=now,
        time_taken_in_millis=0,
        total_files_deleted=0,
        commits_rollback=[second.instant],
        partition_metadata={},
    )
    timeline.complete(Instant(now, "rollback", State.COMPLETED, f"{int(now) + 1}"), encode(body))

    assert past.shown(AsOf(first.instant)) == past.as_of(first.instant)
    refused(past, second.instant)


def test_a_dataframe_of_an_archived_time_is_pinned(past: Past) -> None:
    archive(past.path, 2)
    mark = open_snapshot(str(past.path)).timeline.watermark()
    expected = {one.instant: past.as_of(one.instant) for one in past.commits[:4]}
    past.upsert("b", ["k8"], 6)
    archive(past.path, 2)

    for time, rows in expected.items():
        assert rows_of(open_snapshot(str(past.path), watermark=mark, query=AsOf(time))) == rows


def test_an_archived_write_that_the_pinned_moment_may_not_have_seen_is_refused(past: Past) -> None:
    first, *_, last = past.commits
    past.exchange(first, last)
    archive(past.path, 1)
    mark = open_snapshot(str(past.path)).timeline.watermark()

    with pytest.raises(UnreadableTimeError):
        open_snapshot(str(past.path), watermark=mark, query=AsOf(past.commits[0].instant))


def test_what_is_archived_between_the_plan_and_the_listing_is_found_in_the_archive(past: Past) -> None:
    archive(past.path, 1)
    planned = open_snapshot(str(past.path), query=AsOf(past.commits[0].instant))
    archive(past.path, 3)

    assert rows_of(planned) == past.as_of(past.commits[0].instant)


def test_what_a_reader_of_the_timeline_missed_of_archived_bodies_is_not_remembered(past: Past) -> None:
    """It takes the bodies of writes that were archived meanwhile for empty ones."""
    storage = open_storage(str(past.path))
    before = open_table(storage).timeline()
    archive(past.path, 4)
    assert read_written(before).instants

    for one in past.commits[:4]:
        assert past.shown(AsOf(one.instant)) == past.as_of(one.instant)


def test_commits_that_completed_in_another_order_are_shown_by_requests(past: Past) -> None:
    past.exchange(past.commits[1], past.commits[2])
    archive(past.path, 4)

    for one in past.commits[:4]:
        assert past.shown(AsOf(one.instant)) == past.as_of(one.instant)


@pytest.mark.parametrize("name", FIXTURES)
def test_tables_of_apache_hudi_show_the_same_after_archiving(tmp_path: Path, name: str) -> None:
    path = unpack(name, tmp_path)
    completed = open_snapshot(path).timeline.completed
    times = [one.requested_time for one in completed if one.is_write]
    expected = {time: _all(path, time) for time in times[:-1]}
    archive(path, max(number for number, one in enumerate(completed) if one.requested_time < times[-1]) + 1)

    assert [one.requested_time for one in open_snapshot(path).timeline.writes] == times[-1:]
    assert any(expected.values())
    for time, rows in expected.items():
        assert _all(path, time) == rows


def _all(path: str, time: str) -> tuple[pa.Schema, list[str]] | None:
    try:
        return _columns_and_rows(path, time)
    except UnreadableTimeError:
        return None


def _columns_and_rows(path: str, time: str) -> tuple[pa.Schema, list[str]]:
    snapshot = open_snapshot(path, query=AsOf(time))
    batches = [
        batch
        for split in snapshot.plan(snapshot.schema, (), 1 << 27)
        for batch in RowReader(snapshot.storage, snapshot.schema, snapshot.schema, times=snapshot.times).read(split)
    ]
    return snapshot.schema, sorted(map(str, pa.Table.from_batches(batches, snapshot.schema).to_pylist()))
