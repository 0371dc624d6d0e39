"""A stream of a table reads each completed write once, whatever completes, is cleaned or archived beside it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import InvalidOptionError, UnreadableTimeError
from pyhudi.operations.services.rollback import rollback
from pyhudi.reader.query import Changes
from pyhudi.reader.scan import MergeTerms, RowReader
from pyhudi.reader.snapshot import Snapshot
from pyhudi.reader.streams.offsets import INITIAL, Offset, WriteSum, parse_offset
from pyhudi.reader.streams.table_stream import TableStream
from pyhudi.reader.streams.terms import NO_LIMITS, BatchLimits, StreamTerms
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers import decisions
from pyhudi.timeline.writers.decisions import Decision, DecisionKind
from support.made import compacting
from support.made.cleaning import archive, clean, clean_nothing
from support.models.past import Past, Shown, random_past
from support.seams import patch_seam, read_seam

NAMES = ("p", "id", "value", "_hoodie_commit_time")


@pytest.fixture(params=[False, True], ids=["copy-on-write", "merge-on-read"])
def past(request: pytest.FixtureRequest, tmp_path: Path) -> Past:
    """Four commits: two to partition a, one to b, then one to a again."""
    past = Past(tmp_path / "t", merge_on_read=request.param)
    past.upsert("a", ["k1", "k2"], 1)
    past.upsert("b", ["k1"], 2)
    past.upsert("a", ["k2", "k3"], 3)
    past.upsert("a", ["k3"], 4)
    return past


def stream(past: Past, start: str = "earliest", **limits: int) -> TableStream:
    """Return a stream as a new process has it."""
    return TableStream(str(past.path), {}, StreamTerms(start, BatchLimits(**limits)))


def kept(offset: Offset) -> Offset:
    """Return an offset as a checkpoint gives it back."""
    return parse_offset(offset.to_fields(), "t")


def rows(source: TableStream, start: Offset, end: Offset) -> list[Shown]:
    """Return the rows of a batch, read from what Spark passes to tasks."""
    planned = source.plan(start, end, shown_columns, 1 << 27)
    if planned is None:
        return []
    batch, asked = planned.snapshot, planned.columns
    reader = RowReader(batch.storage, asked, batch.schema, (), batch.times, MergeTerms(batch.config))
    found = pa.Table.from_batches([one for split in planned.splits for one in reader.read(split)], asked)
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


def shown_columns(batch: Snapshot) -> pa.Schema:
    return pa.schema([batch.schema.field(name) for name in NAMES])


def batches(source: TableStream, start: Offset | None = None) -> list[tuple[Offset, Offset]]:
    """Return the batches up to what is complete."""
    offset_ranges = []
    begun = start or source.initial()
    while (end := source.latest(begun)) != begun:
        offset_ranges.append((begun, end))
        begun = end
    return offset_ranges


def stats_of(past: Past, instant: str) -> list[Mapping[str, int]]:
    """Return what a commit says of its files."""
    timeline = open_table(open_storage(str(past.path))).timeline()
    [write] = [one for one in timeline.writes if one.requested_time == instant]
    return [stat for stats in timeline.files.read_written_files(write).stats.values() for stat in stats]


def ends(source: TableStream, start: Offset | None = None) -> list[str]:
    return [end.time for _, end in batches(source, start)]


def test_one_batch_has_all_that_is_complete_and_the_next_what_came_since(past: Past) -> None:
    source = stream(past)
    first = source.latest(INITIAL)
    assert rows(source, INITIAL, first) == past.as_of("3")
    assert first.time == past.commits[-1].completed

    past.upsert("b", ["k2"], 5)
    second = source.latest(first)

    assert rows(source, first, second) == past.changes(first.time, None)
    assert source.latest(second) == second


def test_a_batch_shows_the_table_at_its_end_however_late_it_is_read(past: Past) -> None:
    source = stream(past, commits=1)
    expected = [
        past.changes(begin if int(begin) else None, end)
        for begin, end in ((a.time, b.time) for a, b in batches(source))
    ]
    past.upsert("a", ["k1", "k2", "k3"], 9)

    assert [rows(stream(past), kept(a), kept(b)) for a, b in batches(source)][:4] == expected


@pytest.mark.parametrize("merge_on_read", [False, True])
@pytest.mark.parametrize("seed", [pytest.param(n, marks=() if n < 6 else pytest.mark.long) for n in range(12)])
def test_batches_together_are_the_incremental_query(tmp_path: Path, seed: int, merge_on_read: bool) -> None:
    """Each batch is the query over its window, and of batches together the newest row of a key is the whole query's."""
    chance = random.Random(seed)
    past = random_past(tmp_path / "t", seed, steps=9, merge_on_read=merge_on_read)
    if chance.random() < 0.5 and not merge_on_read:
        past.swap(chance)
    source = stream(past, commits=chance.randint(1, 4))
    newest: dict[tuple[str, str], Shown] = {}
    for begin, end in batches(source):
        shown = rows(source, begin, end)
        assert shown == past.shown(Changes(begin.time, end.time))
        assert shown == rows(stream(past), kept(begin), kept(end))
        newest |= {row[:2]: row for row in shown}
        if chance.random() < 0.3:
            source = stream(past, commits=chance.randint(1, 4))

    whole = past.shown(Changes("earliest"))
    assert [row for row in whole if newest.get(row[:2]) != row] == []


def test_limits_count_commits_and_let_one_pass(past: Past) -> None:
    completion_times = sorted(one.completed for one in past.commits)

    assert ends(stream(past, commits=1)) == completion_times
    assert ends(stream(past, commits=3)) == [completion_times[2], completion_times[3]]
    assert ends(stream(past, bytes=1)) == completion_times
    assert ends(stream(past, bytes=1 << 40)) == [completion_times[3]]
    sizes = [sum(stat["fileSizeInBytes"] for stat in stats_of(past, one.instant)) for one in past.commits]
    assert ends(stream(past, bytes=sum(sizes[:2]) + sizes[2] // 2)) == [completion_times[1], completion_times[3]]
    assert ends(stream(past, commits=2, bytes=1)) == completion_times
    limited = stream(past, commits=1)
    assert limited.latest(INITIAL, NO_LIMITS).time == completion_times[3]


def test_without_a_start_a_process_goes_by_the_batches_that_it_made(past: Past) -> None:
    """Spark 4.0 and 4.1 pass no start, and plan the last batch again after a restart."""
    completion_times = sorted(one.completed for one in past.commits)
    source = stream(past, commits=2)
    first = source.latest()
    assert first.time == completion_times[1]
    assert source.batch(source.initial(), first) is not None
    second = source.latest()
    assert second.time == completion_times[3]
    assert source.latest() == second

    again = stream(past, commits=1)
    assert again.batch(kept(first), kept(first)) is None
    assert again.latest().time == completion_times[2]


def test_a_stream_begins_where_it_is_asked_to(past: Past) -> None:
    first, second = sorted(one.completed for one in past.commits)[:2]

    assert stream(past).initial() == INITIAL
    assert stream(past, "00000000000000").initial() == INITIAL
    newest = stream(past, "latest")
    assert newest.latest(newest.initial()) == newest.initial() == Offset(past.commits[-1].completed)
    later = stream(past, first)
    assert rows(later, later.initial(), later.latest(later.initial())) == past.changes(first, None)
    assert stream(past, first, commits=1).latest().time == second
    past.upsert("c", ["k1"], 5)
    assert rows(newest, newest.initial(), newest.latest(newest.initial())) == past.changes(
        past.commits[3].completed, None
    )


def test_the_first_batch_of_a_stream_from_the_latest_is_replayed_from_there(past: Past) -> None:
    """A new process would begin at what is the latest then: no checkpoint holds the beginning of a first batch."""
    source = stream(past, "latest")
    begin = source.initial()
    past.upsert("c", ["k1"], 5)
    end = source.latest(begin)
    expected = rows(source, begin, end)
    past.upsert("c", ["k2"], 6)
    again = stream(past, "latest")

    assert rows(again, again.initial(), kept(end)) == expected == past.changes(begin.time, end.time)
    assert rows(again, kept(end), again.latest(kept(end))) == past.changes(end.time, None)


def test_available_now_ends_at_what_was_complete_when_it_began(past: Past) -> None:
    source = stream(past, commits=3)
    source.prepare()
    begun = past.commits[-1].completed
    past.upsert("a", ["k1"], 5)

    assert ends(source)[-1] == begun


def test_available_now_reads_all_that_was_complete_where_archiving_has_taken_its_end_from_sight(past: Past) -> None:
    source = stream(past, commits=2)
    source.prepare()
    first, begun = source.latest(INITIAL), past.commits[-1].completed
    for number in (5, 6, 7):
        past.upsert("a", ["k1"], number)
    archive(past.path, 6)

    [end] = ends(source, first)
    assert end > begun


def test_offsets_are_those_of_apache_hudi(past: Past) -> None:
    end = stream(past).latest(INITIAL)

    assert INITIAL.to_fields() == {"offsetCommitTime": "00000000000000"}
    assert end.to_fields()["offsetCommitTime"] == past.commits[-1].completed
    assert kept(end) == end
    for field in ("offsetCommitTime", "commitTime"):
        taken = parse_offset({field: past.commits[1].completed}, "t")
        assert rows(stream(past), taken, stream(past).latest(taken)) == past.changes(taken.time, None)
    for wrong in ({}, {"offsetCommitTime": "tomorrow"}, {"version": 3}, {"offsetCommitTime": None}):
        with pytest.raises(InvalidOptionError, match="checkpoint of its own"):
            parse_offset(wrong, "t")


# --- Writes that complete while a stream looks, or behind it.


def after_each_listing(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Do something when the timeline's folder has been listed, by the number of the listing."""
    look = read_seam("look into a local folder")
    number = 0

    def looking(self: Any, folder: str) -> Any:
        nonlocal number
        listed = look(self, folder)
        if folder.endswith("timeline"):
            number += 1
            monkeypatch.undo()
            act(number)
            patch_seam(monkeypatch, "look into a local folder", looking)
        return listed

    patch_seam(monkeypatch, "look into a local folder", looking)


@pytest.mark.parametrize("at", range(1, 7))
def test_commits_during_every_step_of_the_listing_come_once(
    past: Past, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    source = stream(past)

    def act(number: int) -> None:
        if number == at:
            past.upsert("c", ["k1", "k2"], 7)
            past.upsert("b", ["k7"], 8)

    after_each_listing(monkeypatch, act)
    begin = source.latest(INITIAL)
    rows_read = rows(source, INITIAL, begin)
    monkeypatch.undo()
    for one in batches(source, begin):
        rows_read += rows(source, *one)

    assert sorted(rows_read) == past.as_of("3")


def test_a_listing_that_shows_a_later_commit_and_misses_an_earlier_one_loses_nothing(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder's listing is no snapshot: what was made while it ran may be in it, or not."""
    missed = past.commits[2].file.rpartition("/")[2]
    look = read_seam("look into a local folder")
    listings = 0

    def looking(self: Any, folder: str) -> Any:
        nonlocal listings
        listed = look(self, folder)
        if folder.endswith("timeline"):
            listings += 1
            if listings == 1:
                return _without(listed, missed)
        return listed

    patch_seam(monkeypatch, "look into a local folder", looking)
    source = stream(past)
    end = source.latest(INITIAL)

    assert listings == 2
    assert end.writes == WriteSum.of([one.instant for one in past.commits])
    assert rows(source, INITIAL, end) == past.as_of("3")


def _without(found: Any, missed: str) -> Any:
    class Partial:
        names = tuple(name for name in found.names if name != missed)
        files, folders, links, unfinished_files = found.files, found.folders, found.links, found.unfinished_files

    return Partial()


def hide(past: Past, number: int) -> Callable[[], None]:
    """Take the completed file of a commit away, and return what puts it back."""
    storage, commit = open_storage(str(past.path)), past.commits[number]
    body = storage.read(commit.file)
    storage.delete(commit.file)

    def put() -> None:
        storage.create(commit.file, body)

    return put


@pytest.mark.parametrize("same_process", [True, False])
@pytest.mark.parametrize("later", [0, 2])
def test_a_write_that_completes_behind_the_stream_fails_it_by_name(past: Past, same_process: bool, later: int) -> None:
    put = hide(past, 1)
    source = stream(past)
    end = source.latest(INITIAL)
    assert rows(source, INITIAL, end) != past.as_of("3")
    put()
    for number in range(later):
        past.upsert("c", [f"k{number}"], number)
    late, before = past.commits[1], past.commits[0].completed

    asked = source if same_process else stream(past)
    for act in (lambda: asked.latest(kept(end)), lambda: asked.batch(INITIAL, kept(end))):
        with pytest.raises(UnreadableTimeError, match=late.instant) as caught:
            act()
        assert f"startOffset={before}" in caught.value.todo


def test_several_writes_behind_the_stream_fail_it_after_a_restart(past: Past) -> None:
    puts = [hide(past, number) for number in (0, 1, 2)]
    end = stream(past).latest(INITIAL)
    for put in puts[:2]:
        put()
    with pytest.raises(UnreadableTimeError, match=f"{past.commits[0].instant}.*{past.commits[1].instant}"):
        stream(past).latest(kept(end))
    puts[2]()
    with pytest.raises(UnreadableTimeError, match="had read 1 writes"):
        stream(past).latest(kept(end))


def decided(past: Past, number: int, *, as_completed: str | None = None) -> Callable[[], None]:
    """Take a commit back to where it is decided and its completed file not made; return what makes it."""
    storage, commit = open_storage(str(past.path)), past.commits[number]
    body = storage.read(commit.file)
    storage.delete(commit.file)
    action = commit.action
    files = open_table(storage).timeline().files
    pending = Instant(commit.instant, action, State.REQUESTED)
    files.request(pending)
    files.start(pending)
    completed = Instant(commit.instant, action, State.COMPLETED, as_completed or commit.completed)
    newest = max(decisions.numbers(storage), default=0)
    storage.create(decisions.path_of(newest + 1), Decision(DecisionKind.MAKE, completed, body).encode())

    def put() -> None:
        storage.create(commit.file, body)

    return put


def test_no_offset_passes_a_decision_that_is_not_carried_out(past: Past) -> None:
    """Only a writer that knows no decisions completes behind it."""
    put = decided(past, 2)
    source = stream(past)
    first = source.latest(INITIAL)
    assert first.time == past.commits[1].completed
    assert source.latest(first) == first
    put()
    second = source.latest(first)

    assert second.time == past.commits[3].completed
    assert rows(source, first, second) == past.changes(first.time, second.time)


def test_a_decision_of_the_future_keeps_no_batch_waiting(past: Past) -> None:
    decided(past, 3)

    assert stream(past).latest(INITIAL).time == past.commits[2].completed


def test_a_decision_that_is_carried_out_or_never_will_be_keeps_no_batch_waiting(past: Past) -> None:
    latest_offset = stream(past).latest(INITIAL)
    storage = open_storage(str(past.path))
    ghost = Instant("20200101000000000", "commit", State.COMPLETED, "20200101000000001")
    newest = max(decisions.numbers(storage), default=0)
    storage.create(decisions.path_of(newest + 1), Decision(DecisionKind.MAKE, ghost).encode())

    assert stream(past).latest(INITIAL) == latest_offset


# --- What is no longer there.


def test_archived_writes_belong_to_the_first_batch_and_to_the_sum(past: Past) -> None:
    before = stream(past).latest(INITIAL)
    archive(past.path, 2)
    source = stream(past, commits=1)

    assert ends(source) == [one.completed for one in past.commits[1:]]
    assert rows(source, INITIAL, source.latest(INITIAL)) == past.changes(None, past.commits[1].completed)
    assert stream(past).latest(kept(before)) == kept(before)
    assert stream(past).latest(INITIAL) == before


def test_a_batch_whose_end_is_archived_is_refused_with_the_first_readable_time(past: Past) -> None:
    begin = stream(past, commits=1).latest(INITIAL)
    end = stream(past, commits=1).latest(begin)
    archive(past.path, 3)

    with pytest.raises(UnreadableTimeError, match=past.commits[2].completed) as caught:
        stream(past).batch(kept(begin), kept(end))
    assert f"startOffset as the first readable begin, or else as {begin.time}" in caught.value.todo
    anew = stream(past, begin.time)
    assert rows(anew, anew.initial(), anew.latest()) == past.changes(begin.time, None)


def test_a_batch_whose_files_were_cleaned_is_refused_with_the_first_readable_time(tmp_path: Path) -> None:
    past = Past(tmp_path / "t")
    for number in range(5):
        past.upsert("a", ["k1", "k2", f"k{number}"], number)
    source = stream(past, commits=1)
    begin = source.latest(INITIAL)
    end = source.latest(begin)
    clean(past.path, retain=2)

    with pytest.raises(UnreadableTimeError, match=f"first readable end is {past.commits[3].completed}"):
        rows(source, begin, end)
    assert ends(stream(past, commits=1)) == [one.completed for one in past.commits[3:]]


@pytest.mark.parametrize("later", ["no clean", "empty file", "keeps more"])
@pytest.mark.parametrize("tell_earliest", [True, False])
def test_limits_end_no_batch_before_what_a_clean_left(
    tmp_path: Path, tell_earliest: bool, later: str, caplog: pytest.LogCaptureFixture
) -> None:
    past = Past(tmp_path / "t")
    for number in range(6):
        past.upsert("a", ["k1", "k2", f"k{number}"], number)
    clean(past.path, retain=3, tell_earliest=tell_earliest)
    if later != "no clean":
        clean_nothing(past.path, earliest=past.commits[0].instant, has_body=later == "keeps more")
    past.upsert("a", ["k1"], 7)
    source = stream(past, commits=2)
    begun = INITIAL
    for begin, end in batches(source):
        assert rows(source, begin, end) == past.shown(Changes(begin.time, end.time))
        begun = end

    assert begun.time == past.commits[-1].completed
    assert "larger than its limits" in caplog.text


class Archived(TableStream):
    """A stream beside an archiver, which acts once a batch's timeline is listed."""

    act: Callable[[], None] = staticmethod(lambda: None)

    def batch(self, start: Offset, end: Offset) -> Snapshot | None:
        snapshot = super().batch(start, end)
        act, self.act = self.act, lambda: None
        act()
        return snapshot


def test_a_batch_is_planned_again_where_its_instants_were_archived_meanwhile(past: Past) -> None:
    begin = stream(past, commits=1).latest(INITIAL)
    source = Archived(str(past.path), {}, StreamTerms())
    end = source.latest(begin)
    source.act = lambda: archive(past.path, 2)

    assert rows(source, begin, end) == past.changes(begin.time, None)


def test_a_write_that_was_undone_after_a_batch_had_it_is_reported(past: Past, caplog: pytest.LogCaptureFixture) -> None:
    """Its rows stay where the stream brought them; what comes afterwards is read as ever."""
    source = stream(past)
    first = source.latest(INITIAL)
    rollback(open_storage(str(past.path)), past.commits[-1].instant)
    undone = past.commits.pop()
    upserted = past.upsert("c", ["k1"], 7)

    for again in (source, stream(past)):
        caplog.clear()
        second = again.latest(kept(first))
        assert "1 of the writes that the stream has read were undone" in caplog.text
        assert second.writes == WriteSum.of([one.instant for one in past.commits])
        assert rows(again, first, second) == past.changes(first.time, upserted.completed)
    assert undone.instant < upserted.instant


def test_a_table_that_was_made_anew_is_refused(past: Past, tmp_path: Path) -> None:
    end = stream(past).latest(INITIAL)
    other = Past(tmp_path / "other")
    other.upsert("a", ["k1"], 1)

    with pytest.raises(UnreadableTimeError, match="another table"):
        stream(other).latest(kept(end))


def test_a_table_that_is_made_anew_while_the_query_runs_is_refused(past: Past) -> None:
    """All writes of the new table completed after the offset, as those of a stream should."""
    source = stream(past)
    end = source.latest(INITIAL)
    shutil.rmtree(past.path)
    made = Past(past.path, merge_on_read=past.merge_on_read)
    made.upsert("a", ["k1"], 1)

    for again in (source, stream(past)):
        with pytest.raises(UnreadableTimeError, match="another table"):
            again.latest(kept(end))


def test_an_undone_write_whose_rollback_was_archived_is_no_other_table(past: Past) -> None:
    source = stream(past)
    first = source.latest(INITIAL)
    rollback(open_storage(str(past.path)), past.commits[-1].instant)
    past.upsert("c", ["k1"], 7)
    archive(past.path, 4)
    assert [
        one.action for one in open_table(open_storage(str(past.path))).timeline().instants if not one.is_write
    ] == []

    assert source.latest(kept(first)).time > first.time
    assert stream(past).latest(kept(first)).time > first.time, "a process that was started since"


def test_no_compaction_brings_rows(tmp_path: Path) -> None:
    path = tmp_path / "t"
    compacting.new_table(path, ("k1", "a", 1, 1), ("k2", "a", 1, 1))
    compacting.append(path, ("k1", "a", 2, 2))
    past = Past(path, merge_on_read=True)
    source = stream(past)
    first = source.latest(INITIAL)
    compacting.run(path)
    second = source.latest(first)
    assert rows(source, first, second) == []
    compacting.append(path, ("k2", "a", 3, 3))
    compacting.run(path)
    third = source.latest(second)

    assert [row[:3] for row in rows(source, second, third)] == [("a", "k2", 3)]
    assert [row[:3] for row in rows(source, INITIAL, third)] == [("a", "k1", 2), ("a", "k2", 3)]
    assert len(batches(stream(past, commits=1))) == 3


def test_no_log_compaction_brings_rows(tmp_path: Path) -> None:
    path = tmp_path / "t"
    compacting.new_table(path, ("k1", "a", 1, 1), ("k2", "a", 1, 1))
    for value in (2, 3):
        compacting.append(path, ("k1", "a", value, value))
    past = Past(path, merge_on_read=True)
    source = stream(past)
    first = source.latest(INITIAL)
    assert compacting.join(path).instant
    second = source.latest(first)

    assert second != first
    assert rows(source, first, second) == []


def test_an_overwrite_brings_its_rows_and_no_removals(past: Past) -> None:
    source = stream(past)
    first = source.latest(INITIAL)
    past.overwrite("c", ["k9"], 9)

    assert [row[:3] for row in rows(source, first, source.latest(first))] == [("c", "k9", 9)]


# --- The sum of writes.


def test_a_sum_finds_up_to_two_writes_that_it_lacks_and_passes_over_undone_ones() -> None:
    times = [f"{number:017d}" for number in range(50)]
    seen = WriteSum.of(times[:40])

    assert seen.explain(times[:40], ()) == ()
    assert seen.explain(times[:41], ()) == (times[40],)
    assert seen.explain([*times[:40], times[44], times[49]], ()) == (times[44], times[49])
    assert seen.explain(times[:43], ()) is None
    assert seen.explain(times[:38], (times[38], times[39])) == ()
    assert seen.explain(times[:38], (times[38], times[39], times[45])) == ()
    assert seen.explain([*times[:38], times[48]], (times[38], times[39])) == (times[48],)
    assert seen.explain(times[:38], ()) is None
    assert seen.explain(times[:15], times[15:40]) == (), "all that a restore has undone"
    assert WriteSum.of(times[20:]).explain(times[20:25], [*times[:20], *times[25:]]) == ()
    assert WriteSum.of(times[::-1]) == WriteSum.of(times)
