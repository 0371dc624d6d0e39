"""Time travel and windows on small tables whose past is known; `tests/contract/test_past.py` has random ones."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.arrow import Table
from pyhudi.errors import InvalidOptionError, OptionConflictError, UnreadableTimeError
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader.query import AsOf, Changes, Query
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.files.output import Output
from support.drive import write
from support.made.cleaning import archive, clean
from support.models.past import TIMELINE, Past, rows_of
from support.recorded.fixture_tables import unpack
from support.seams import patch_seam
from support.write_settings import write_settings

NO_TIMES = ["junk", "", "2026-13-01", "2026-02-30 00:00:00", "20261121", "20269921120000000", "000x"]


@pytest.fixture
def past(tmp_path: Path) -> Past:
    """Three commits: two to partition a, one to b."""
    past = Past(tmp_path / "t")
    past.upsert("a", ["k1", "k2"], 1)
    past.upsert("b", ["k1"], 2)
    past.upsert("a", ["k2", "k3"], 3)
    return past


def refused(past: Past, query: Query | None) -> str:
    with pytest.raises(UnreadableTimeError) as caught:
        past.shown(query)
    assert str(past.path) in str(caught.value)
    return str(caught.value)


def test_a_replaced_file_group_is_there_before_it_was_replaced(past: Past) -> None:
    past.overwrite("c", ["k9"], 4)

    assert past.shown() == past.as_of("3")
    assert past.shown(AsOf(past.commits[2].instant)) == past.as_of(past.commits[2].instant)
    assert len(past.shown(AsOf(past.commits[2].instant))) == 4


def test_overwritten_rows_are_no_changes_and_new_ones_are(past: Past) -> None:
    past.overwrite("c", ["k9"], 4)
    begin = past.commits[0].completed

    assert [row[:3] for row in past.shown(Changes(begin))] == [("c", "k9", 4)]


def test_a_row_that_changed_twice_shows_once_as_it_was_at_the_end(past: Past) -> None:
    past.upsert("a", ["k2"], 4)
    first, _, third, _ = past.commits

    assert [row[:3] for row in past.shown(Changes(first.completed))] == [
        ("a", "k2", 4),
        ("a", "k3", 3),
        ("b", "k1", 2),
    ]
    assert [row[:3] for row in past.shown(Changes(first.completed, third.completed))] == [
        ("a", "k2", 3),
        ("a", "k3", 3),
        ("b", "k1", 2),
    ]


def test_deletes_leave_nothing_to_show(past: Past) -> None:
    past.delete("a", ["k1", "k2", "k3"])

    assert past.shown(Changes(past.commits[2].completed)) == []
    assert [row[:3] for row in past.shown(Changes("earliest"))] == [("b", "k1", 2)]


def test_pending_instants_are_as_if_they_were_not(past: Past) -> None:
    instant = f"{int(past.commits[0].instant) + 1}"
    (past.path / TIMELINE / f"{instant}.commit.requested").touch()

    for one in past.commits:
        assert past.shown(AsOf(one.instant)) == past.as_of(one.instant)
    assert past.shown(Changes("000")) == past.as_of("3")


def test_the_future_is_the_present(past: Past) -> None:
    assert past.shown(AsOf("2999-12-31")) == past.as_of("3")
    assert past.shown(Changes("000", "2999-12-31")) == past.as_of("3")


def test_nothing_changed_after_the_newest_commit(past: Past) -> None:
    newest = past.commits[-1].completed

    assert past.shown(Changes(newest)) == []
    assert past.shown(Changes(newest, newest)) == []
    assert past.shown(Changes("2999-12-31")) == []


def test_a_window_before_the_first_commit_is_empty_where_nothing_was_archived(past: Past) -> None:
    assert past.shown(Changes("2020-01-01", "2020-01-02")) == []
    assert past.shown(Changes("2020-01-01")) == past.as_of("3")


@pytest.mark.parametrize(
    "time", ["2020-01-01", "20200101000000", "2020-01-01 08:00:00.000", "0001-01-01", "1577836800"]
)
def test_a_time_before_the_table_names_its_first_instant(past: Past, time: str) -> None:
    text = refused(past, AsOf(time))

    assert time in text
    assert f"as.of.instant={past.commits[0].instant}" in text
    assert past.shown(AsOf(past.commits[0].instant)) != []


@pytest.mark.parametrize("time", NO_TIMES)
def test_what_is_no_time_is_refused(past: Past, time: str) -> None:
    for query in (AsOf(time), Changes(time), Changes("000", time)):
        with pytest.raises(InvalidOptionError, match="no time that a query can name"):
            past.shown(query)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("2026-01-02", "2026-01-01"),
        ("20260102000000", "20260101000000"),
        ("2026-01-01 00:00:01", "2026-01-01 00:00:00"),
        ("2026-01-01 00:00:00.001", "2026-01-01 00:00:00.000"),
        ("1795214804251", "1795214804250"),
    ],
)
def test_a_window_that_ends_before_it_begins_is_refused(past: Past, begin: str, end: str) -> None:
    with pytest.raises(OptionConflictError, match="ends before"):
        past.shown(Changes(begin, end))


def test_a_begin_before_archived_commits_of_which_nobody_knows_names_the_first_readable_one(past: Past) -> None:
    archive(past.path, 2, told=False)
    first, second, third = past.commits

    for begin in ("2020-01-01", first.instant, first.completed, second.instant):
        text = refused(past, Changes(begin))
        assert f"the first readable begin is {second.completed}." in text
    assert past.shown(Changes(second.completed)) == past.changes(second.completed, None)
    assert past.shown(Changes(third.instant)) == past.changes(second.completed, None)
    assert past.shown(Changes("earliest")) == past.as_of("3")


def test_a_window_begins_among_archived_commits_that_tell_what_they_wrote(past: Past) -> None:
    archive(past.path, 2)
    first, second, third = past.commits

    for begin in (first.completed, "2020-01-01", second.completed, third.completed):
        assert past.shown(Changes(begin)) == past.changes(begin, None)
    assert past.shown(Changes(first.completed, second.completed)) == past.changes(first.completed, second.completed)


def test_the_whole_table_is_searched_for_archived_commits_when_asked(past: Past) -> None:
    archive(past.path, 2, told=False)
    first, second, third = past.commits

    for begin in (first.completed, "2020-01-01", second.completed, third.completed):
        assert past.shown(Changes(begin, full_scan=True)) == past.changes(begin, None)
    assert past.shown(Changes(first.completed, second.completed, full_scan=True)) == past.changes(
        first.completed, second.completed
    )


def test_an_end_among_the_archived_commits_names_the_first_readable_one(past: Past) -> None:
    archive(past.path, 2)
    first, second, third = past.commits

    for query in (Changes("earliest", first.completed), Changes("2020-01-01", first.completed, full_scan=True)):
        text = refused(past, query)
        assert f"the first readable end is {second.completed}." in text
    assert past.shown(Changes("earliest", second.completed)) == past.changes(None, second.completed)
    assert past.shown(Changes("earliest", third.completed)) == past.as_of("3")


def test_a_time_among_archived_commits_that_tell_nothing_names_the_first_active_one(past: Past) -> None:
    archive(past.path, 2, told=False)

    text = refused(past, AsOf(past.commits[1].instant))

    assert f"as.of.instant={past.commits[2].instant}" in text
    assert past.shown(AsOf(past.commits[2].instant)) == past.as_of("3")


def test_a_commit_that_completed_late_and_was_archived_early_is_not_forgotten(past: Past) -> None:
    """A consumer that stopped at the second commit has not seen the first, which was requested before it."""
    first, second, _ = past.commits
    past.exchange(first, second)
    archive(past.path, 1, told=False)

    text = refused(past, Changes(second.completed))

    assert f"the first readable begin is {first.completed}." in text
    assert past.shown(Changes(first.completed)) == past.changes(first.completed, None)


def test_an_instant_that_is_archived_and_still_active_is_active(past: Past) -> None:
    files = {file: file.read_bytes() for file in (past.path / TIMELINE).iterdir() if file.is_file()}
    archive(past.path, 2)
    for file, data in files.items():
        file.write_bytes(data)

    assert past.shown(Changes(past.commits[0].completed)) == past.changes(past.commits[0].completed, None)


def test_cleaned_slices_are_never_left_out_in_silence(past: Past) -> None:
    past.upsert("a", ["k1"], 4)
    first, second, third, fourth = past.commits
    [*_, lost] = clean(past.path, retain=1)

    text = refused(past, AsOf(first.instant))
    assert f"as.of.instant={fourth.instant}" in text
    assert re.search(r"cleaning has taken away \d of the files", text)
    assert lost.partition("/")[0] == "a"
    assert past.shown(AsOf(fourth.instant)) == past.as_of("3")
    assert past.shown(Changes(first.completed)) == past.changes(first.completed, None)
    assert past.shown(Changes(first.completed, second.completed)) == past.changes(first.completed, second.completed)
    text = refused(past, Changes(second.completed, third.completed))
    assert f"The first readable end is {fourth.completed}." in text


def test_partitions_that_nothing_was_cleaned_from_can_be_read(past: Past) -> None:
    past.upsert("a", ["k1", "k2", "k3"], 4)
    clean(past.path, retain=1)
    query = AsOf(past.commits[1].instant)

    refused(past, query)
    assert [row[:3] for row in past.shown(query, Compare("p", "=", "b"))] == [("b", "k1", 2)]
    with pytest.raises(UnreadableTimeError):
        past.shown(query, Compare("p", "=", "a"))


def test_a_partition_that_is_gone_altogether_is_missed(past: Past) -> None:
    past.overwrite("c", ["k9"], 4)
    past.upsert("c", ["k9"], 5)
    clean(past.path, retain=1)
    shutil.rmtree(past.path / "b")

    text = refused(past, AsOf(past.commits[2].instant))

    assert "b/0000000" in text or "a/0000000" in text
    with pytest.raises(UnreadableTimeError, match="b/0000000"):
        past.shown(AsOf(past.commits[2].instant), Compare("p", "=", "b"))


def test_what_a_savepoint_kept_can_be_read_between_what_was_cleaned(past: Past) -> None:
    past.upsert("a", ["k1", "k2", "k3"], 4)
    past.upsert("a", ["k1", "k2", "k3"], 5)
    kept = {file: file.read_bytes() for file in past.path.glob(f"a/*_{past.commits[2].instant}.parquet")}
    clean(past.path, retain=1)
    for file, data in kept.items():
        file.write_bytes(data)

    saved = past.commits[2].instant
    assert past.shown(AsOf(saved)) == past.as_of(saved)
    refused(past, AsOf(past.commits[0].instant))
    refused(past, AsOf(past.commits[3].instant))


@pytest.mark.parametrize("query", [None, AsOf("2999-01-01")])
def test_a_dataframe_whose_slices_were_cleaned_meanwhile_says_so(past: Past, query: Query | None) -> None:
    snapshot = open_snapshot(str(past.path), query=query)
    mark = snapshot.timeline.watermark()
    past.upsert("a", ["k1", "k2", "k3"], 4)
    past.upsert("b", ["k1"], 4)
    assert rows_of(open_snapshot(str(past.path), watermark=mark)) == past.as_of(past.commits[2].instant)
    clean(past.path, retain=1)

    for opened in (snapshot, open_snapshot(str(past.path), watermark=mark, query=query)):
        with pytest.raises(UnreadableTimeError, match=r"Make the DataFrame anew\."):
            opened.slices()


def test_rows_of_a_partition_that_was_dropped_and_cleaned_meanwhile_are_missed(past: Past) -> None:
    """No commit on the timeline names its files, and no newer file in its folder tells of the clean."""
    past.upsert("b", ["k1"], 4)
    past.upsert("b", ["k1"], 5)
    archive(past.path, 2)
    snapshot = open_snapshot(str(past.path))
    Table(str(past.path)).delete_partitions("a")
    past.upsert("b", ["k1"], 6)
    clean(past.path, retain=1)

    assert not [*(past.path / "a").glob("*.parquet")]
    with pytest.raises(UnreadableTimeError, match=r"a/0000000.*Make the DataFrame anew\."):
        snapshot.slices((Compare("p", "=", "a"),))


def test_a_dataframe_shows_what_it_saw_though_all_of_it_is_archived_but_one(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older instants than are known by name are found in the archive; with all of them its columns are gone."""
    patch_seam(monkeypatch, "instants that a watermark names", 1)
    before, mark = past.shown(), open_snapshot(str(past.path)).timeline.watermark()
    past.upsert("a", ["k1", "k2", "k3"], 4)
    past.upsert("c", ["k1"], 4)
    past.upsert("b", ["k1"], 4)
    archive(past.path, 2)
    assert rows_of(open_snapshot(str(past.path), watermark=mark)) == before
    archive(past.path, 2)

    with pytest.raises(UnreadableTimeError, match=r"Make the DataFrame anew\."):
        open_snapshot(str(past.path), watermark=mark)


def test_a_dataframe_whose_instants_left_the_timeline_without_a_trace_says_so(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_seam(monkeypatch, "instants that a watermark names", 1)
    mark = open_snapshot(str(past.path)).timeline.watermark()
    open_storage(str(past.path)).delete(past.commits[0].file)

    with pytest.raises(UnreadableTimeError, match="without being archived"):
        open_snapshot(str(past.path), watermark=mark)


@pytest.mark.parametrize("state", ["requested", "completed"])
def test_an_empty_clean_took_nothing(past: Past, state: str) -> None:
    """Apache Hudi leaves such files behind when it is killed."""
    now = f"{int(past.commits[-1].completed) + 10}"
    name = f"{now}.clean.requested" if state == "requested" else f"{now}_{int(now) + 1}.clean"
    (past.path / TIMELINE / name).touch()

    assert past.shown(AsOf(past.commits[0].instant)) == past.as_of(past.commits[0].instant)
    assert past.shown() == past.as_of("3")


def test_the_query_is_pinned_to_the_moment_at_which_it_was_made(past: Past) -> None:
    mark = open_snapshot(str(past.path)).timeline.watermark()
    queries = (Changes("000"), Changes(past.commits[0].completed), AsOf("2999-01-01"))
    before = [rows_of(open_snapshot(str(past.path), query=query)) for query in queries]
    past.upsert("a", ["k1", "k7"], 4)
    past.overwrite("c", ["k9"], 5)

    for query, rows in zip(queries, before, strict=True):
        assert rows_of(open_snapshot(str(past.path), watermark=mark, query=query)) == rows


def test_partitions_and_buckets_are_left_out_of_every_kind_of_query(past: Past) -> None:
    past.upsert("a", [f"k{n}" for n in range(20)], 4)

    for query in (AsOf(past.commits[3].instant), Changes(past.commits[0].completed), Changes("earliest")):
        snapshot = open_snapshot(str(past.path), query=query)
        assert {one.partition_path for one in snapshot.slices([Compare("p", "=", "b")])} == {"b"}
        assert len(snapshot.slices([Compare("p", "=", "a")])) == 2
        assert len(snapshot.slices([Compare("p", "=", "a"), Compare("id", "=", "k7")])) == 1
        assert [row[1] for row in rows_of(snapshot, Compare("id", "=", "k7")) if row[1] == "k7"] == ["k7"]


def test_only_partitions_that_the_window_wrote_to_are_listed(past: Past) -> None:
    listed: list[str] = []
    snapshot = open_snapshot(str(past.path), query=Changes(past.commits[0].completed, past.commits[1].completed))

    class Recording:
        def __getattr__(self, name: str) -> Any:
            return getattr(snapshot.storage, name)

        def list(self, folder: str, **options: Any) -> Any:
            listed.append(folder)
            return snapshot.storage.list(folder, **options)

        def look(self, folder: str) -> Any:
            listed.append(folder)
            return snapshot.storage.look(folder)

    slices = replace(
        snapshot, seen=replace(snapshot.seen, table=replace(snapshot.seen.table, storage=Recording()))
    ).slices()  # type: ignore[arg-type]

    assert {one.partition_path for one in slices} == {"b"}
    assert [folder for folder in listed if not folder.startswith(".hoodie")] == ["b"]


def test_files_are_chosen_by_a_path_pattern(past: Past) -> None:
    begin = past.commits[0].completed

    assert {row[0] for row in past.shown(Changes(begin, path_glob="/b/*"))} == {"b"}
    assert past.shown(Changes(begin, path_glob="/{a,b}/*")) == past.shown(Changes(begin))
    assert past.shown(Changes(begin, path_glob="/b")) == []


def test_row_groups_without_a_row_of_the_window_are_left_out(tmp_path: Path) -> None:
    settings = write_settings(output=Output(row_group_bytes=1), batch_size=1 << 20)
    asked = TableSettings(record_key_fields=("id",), bucket_count=1)
    parts = [pa.table({"id": range(start, start + 70_000)}) for start in (0, 70_000)]
    write(tmp_path / "t", parts, table=asked, settings=settings)
    done = write(tmp_path / "t", pa.table({"id": [7]}), settings=settings)
    whole, window = (open_snapshot(str(tmp_path / "t"), query=query) for query in (None, Changes(done.instant)))

    groups = [
        [number for split in one.plan(one.schema, (), 1) for part in split.parts for number in part.row_groups or ()]
        for one in (whole, window)
    ]

    assert len(groups[0]) > 1
    assert len(groups[1]) == 1


def test_time_travel_shows_the_columns_of_its_time(tmp_path: Path) -> None:
    path = unpack("v9_cow_evolved", tmp_path)
    first, *_, last = open_snapshot(path).timeline.writes

    assert "extra" not in open_snapshot(path, query=AsOf(first.requested_time)).schema.names
    assert "extra" in open_snapshot(path, query=AsOf(last.requested_time)).schema.names


def test_changes_are_shown_in_the_columns_of_today_or_of_their_end(tmp_path: Path) -> None:
    path = unpack("v9_cow_evolved", tmp_path)
    first, *_ = open_snapshot(path).timeline.writes
    until = Changes("000", first.visible_since)

    assert "extra" in open_snapshot(path, query=until).schema.names
    assert "extra" not in open_snapshot(path, query=replace(until, schema_of_end=True)).schema.names
