"""Log compactions of merge-on-read tables: planned, carried out, and what writers and readers see of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import CommitConflictError, PyHudiError, UnsupportedTableError
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.service_settings import (
    ArchiveSettings,
    CleanSettings,
    CompactionSettings,
    LogCompactionSettings,
    Upkeep,
)
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.reader.query import AsOf, Changes
from pyhudi.reader.scan import RowReader
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.files.logs.log_blocks import BlockType
from pyhudi.table.files.logs.log_contents import BlockContent
from pyhudi.table.files.logs.log_file import read_blocks
from pyhudi.timeline.held import pending_compactions
from pyhudi.timeline.instants import State
from pyhudi.timeline.writers.announcements import announce
from support.drive import KEYED, carry_out, choosing_now, plan, write
from support.made.compacting import (
    SCHEMA,
    TWO,
    append,
    begin,
    blocks,
    in_bases,
    join,
    merged,
    new_table,
    plan_join,
    rows,
    run,
    schedule,
    slices,
    timeline_of,
)
from support.seams import patch_seam

META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name", "p", "id", "value")
FIRST = [(f"k{n}", "a" if n % 2 else "b", 10, n) for n in range(8)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    new_table(path, *FIRST)
    append(path, ("k1", "a", 20, 100), ("k2", "b", 5, 101), ("new", "b", 1, 102))
    append(path, ("k1", "a", 15, 103), ("k5", "a", 10, 104), gone=[("k3", "a", 30), ("k4", "b", 1), ("k6", "b", None)])
    return path


@pytest.fixture
def unaware(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return how a reader sees a table that reads all blocks, as hudi-rs 0.5 does, whatever replaces them."""

    def read(path: Path, *columns: str) -> list[tuple[Any, ...]]:
        kinds = {BlockType.AVRO, BlockType.PARQUET, BlockType.DELETE}
        with monkeypatch.context() as patch:
            patch_seam(
                patch,
                "log blocks that count",
                lambda files, _: tuple(one for some in files for one in some if one.type in kinds),
            )
            return merged(path, *columns)

    return read


def completed(path: Path) -> Any:
    """Return what the newest completed log compaction says."""
    timeline = timeline_of(path)
    bodies = [timeline.files.read_commit(one) for one in reversed(timeline.writes) if one.action == "deltacommit"]
    return next(one for one in bodies if one.operation_type == "LOG_COMPACT")


def changes(path: Path, begin: str, end: str | None = None) -> list[tuple[Any, ...]]:
    """Return the rows that a query of changes shows."""
    snapshot = open_snapshot(str(path), query=Changes(begin, end))
    changed_rows = []
    for split in snapshot.plan(snapshot.schema, (), 1 << 27):
        for batch in RowReader(snapshot.storage, snapshot.schema, snapshot.schema, times=snapshot.times).read(split):
            changed_rows += zip(*(batch.column(name).to_pylist() for name in ("id", "value")), strict=True)
    return sorted(changed_rows)


def test_joined_log_files_show_what_was_there(table: Path, unaware: Callable[..., Any]) -> None:
    """Also to readers that know of nothing that is replaced; and later writes meet them as they met the others."""
    before, bases = merged(table, *META), in_bases(table)
    logs = {file_slice.group: [log.named_time for log in file_slice.logs] for file_slice in slices(table)}

    log_compaction = join(table)

    assert merged(table, *META) == unaware(table, *META) == before
    assert in_bases(table) == bases
    for file_slice in slices(table):
        assert blocks(table, file_slice) == (
            [log_compaction.instant] if len(logs[file_slice.group]) > 1 else logs[file_slice.group]
        )
        assert [log.named_time for log in file_slice.logs][: len(logs[file_slice.group])] == logs[file_slice.group]
    assert (log_compaction.service, log_compaction.file_groups, log_compaction.files) == (
        "logcompaction",
        log_compaction.files,
        log_compaction.files,
    )
    stats = [stat for some in completed(table).partition_to_write_stats.values() for stat in some]
    assert log_compaction.bytes == sum(stat.file_size_in_bytes for stat in stats)
    assert join(table).instant == ""
    append(table, ("k3", "a", 29, 1), ("k4", "b", 0, 2), ("k6", "b", 1, 3), ("k1", "a", 20, 4))
    shown = {(key, value) for _, key, value in merged(table)}
    assert merged(table, *META) == unaware(table, *META)
    assert "k3" not in {key for key, _ in shown}, "its delete has a greater value"
    assert {("k4", 4), ("k1", 4)} <= shown
    assert validate(open_storage(str(table)), deep=True).to_pylist() == []


def test_what_was_joined_is_joined_again_with_what_came_since(table: Path, unaware: Callable[..., Any]) -> None:
    first = join(table)
    append(table, ("k1", "a", 16, 7), ("k2", "b", 50, 8), gone=[("k5", "a", 10)])
    before = merged(table, *META)

    second = join(table)

    assert first.instant < second.instant
    assert merged(table, *META) == unaware(table, *META) == before
    for file_slice in slices(table):
        last = file_slice.logs[-1]
        headers = {one.compacted_times for one in read_blocks(open_storage(str(table)), last.path)}
        if last.named_time == second.instant:
            assert len(headers) == 1
            assert first.instant in headers.pop()
    run(table)
    assert in_bases(table) == merged(table)
    assert [row[3:] for row in merged(table, *META)] == [row[3:] for row in before]


def test_deletes_stay_with_their_values_in_blocks_that_have_one_kind_each(table: Path) -> None:
    """hudi-rs takes no block that has deletes of both kinds."""
    log_compaction, storage = join(table), open_storage(str(table))
    ordering = [rows().schema.field("ts")]
    ordering_values: dict[str, int | None] = {}
    for file_slice in slices(table):
        for log in file_slice.logs:
            for block in read_blocks(storage, log.path) if log.named_time == log_compaction.instant else ():
                if block.type is BlockType.DELETE:
                    deletes = BlockContent(storage, block).deletes(ordering)
                    assert len({*deletes.default.to_pylist()}) == 1
                    ordering_values |= dict(zip(deletes.keys.to_pylist(), deletes.ordering[0].to_pylist(), strict=True))

    assert {key: value for key, value in ordering_values.items() if key != "k6"} == {"k3": 30, "k4": 1}
    assert ordering_values["k6"] in (None, 0)


def test_what_was_joined_does_not_count_without_what_it_replaces(table: Path) -> None:
    """It belongs to the slice of a base file that Apache Hudi asked for meanwhile, and that holds its rows already."""
    plan_join(table)
    schedule_beside(table)
    append(table, ("k1", "a", 20, 500), ("k2", "b", 10, 501))
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "slices that a log compaction must leave", lambda *_, **__: frozenset())
        join(table)
    before = merged(table, *META)
    run(table)

    assert merged(table, *META[:2], *META[3:]) == [(*row[:2], *row[3:]) for row in before]
    assert ("a", "k1", 500) in merged(table)


def schedule_beside(table: Path) -> None:
    """Plan a compaction of all file groups, as Apache Hudi does although a log compaction of them is pending."""

    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "slices that a compaction must leave", lambda *_, **__: frozenset())
        assert schedule(table).instant


def test_a_plan_that_a_compaction_has_overtaken_is_taken_back(table: Path) -> None:
    plan = plan_join(table)
    schedule_beside(table)
    before = merged(table, *META)

    log_compaction = join(table)

    assert "has nothing left to merge" in log_compaction.skipped
    assert log_compaction.files == 0
    assert timeline_of(table).find(plan.instant) is None
    assert merged(table, *META) == before
    run(table)
    assert in_bases(table) == merged(table)


def test_a_file_group_that_is_to_be_joined_is_not_compacted_and_the_other_way_round(table: Path) -> None:
    joining = plan_join(table)
    append(table, ("k1", "c", 1, 600))
    compacting = schedule(table)

    assert joining.file_groups > 1
    assert compacting.file_groups > 1
    held = [
        (one.partition_path, one.file_id)
        for plan in pending_compactions(timeline_of(table)).values()
        for one in plan.operations
    ]
    assert len(held) == len({*held}) == joining.file_groups + compacting.file_groups
    append(table, ("k1", "c", 2, 601))
    append(table, ("k1", "c", 3, 602))
    assert plan_join(table).instant == "", "one is pending, the other ones are held"
    before = merged(table, *META)
    join(table)
    assert merged(table, *META) == before
    run(table)
    assert in_bases(table) == merged(table)


def test_what_comes_before_a_write_at_work_is_joined(table: Path, unaware: Callable[..., Any]) -> None:
    """At a time right before it, so that its log files come behind the joined one for all readers."""
    at_work = begin(table)
    later = append(table, ("k1", "a", 20, 150), ("k2", "b", 1, 151))
    before = merged(table, *META)

    log_compaction = join(table)

    assert log_compaction.files > 0
    assert log_compaction.instant < at_work < later
    assert log_compaction.skipped == ""
    assert merged(table, *META) == unaware(table, *META) == before
    waiting = join(table)
    assert (waiting.instant, waiting.files) == ("", 0)
    assert f"waits for the deltacommit {at_work}" in waiting.skipped, "nothing more comes before it"
    append(table, ("k1", "a", 20, 200), ("k2", "b", 10, 201), at=at_work)
    wanted = merged(table, *META)
    assert {("b", "k2", 201), ("a", "k1", 150)} <= {*merged(table)}, "a tie is of the one that was asked for later"
    assert unaware(table, *META) == wanted

    join(table)
    assert merged(table, *META) == unaware(table, *META) == wanted
    assert validate(open_storage(str(table))).num_rows == 0
    run(table)
    assert in_bases(table) == merged(table)


def test_writes_that_overlap_all_the_time_have_their_log_files_joined(
    tmp_path: Path, unaware: Callable[..., Any]
) -> None:
    """Of any number of writes, each of which begins before the one before it is complete."""
    table = tmp_path / "t"
    new_table(table, ("k1", "a", 10, -1), ("k3", "a", 10, -1))
    at_work, joined = begin(table), 0
    for number in range(12):
        following = begin(table)
        append(table, ("k1", "a", 10, number), ("k3", "a", 10 + number % 3, number), at=at_work)
        at_work = following
        before = merged(table, *META)
        joined += join(table, LogCompactionSettings(blocks=4)).files

        assert merged(table, *META) == unaware(table, *META) == before
    assert joined > 1
    assert ("a", "k1", 11) in merged(table)
    assert max(len(blocks(table, one)) for one in slices(table)) < 6


@pytest.mark.parametrize("why", ["nothing is before it", "what is before it is archived", "somebody archives it"])
def test_a_write_at_work_that_nothing_may_come_before_is_waited_for(tmp_path: Path, why: str) -> None:
    """Readers take files that are older than the first write on the timeline for archived, and committed."""
    table = tmp_path / "t"
    new_table(table, ("k1", "a", 10, 0))
    waits = why == "nothing is before it"
    at_work = begin(table) if waits else ""
    for value in (1, 2):
        append(table, ("k1", "a", 20, value))
    at_work = at_work or begin(table)
    storage, timeline = open_storage(str(table)), timeline_of(table)
    if why == "what is before it is archived":
        left = (State.REQUESTED, State.INFLIGHT)
        files = [each for one in timeline.writes for each in (one, *map(one.at, left))]
        storage.delete(*map(timeline.files.path, files))
    elif not waits:
        announce(storage, at_work)

    for done in (plan_join(table), join(table)):
        assert (done.instant, done.files) == ("", 0)
        assert f"waits for the deltacommit {at_work}" in done.skipped


def test_a_write_that_begins_later_goes_on(table: Path, unaware: Callable[..., Any]) -> None:
    plan = plan_join(table)
    late = begin(table)
    append(table, ("k1", "a", 20, 200))

    log_compaction = join(table)
    append(table, ("k1", "a", 20, 300), ("k2", "b", 10, 301), at=late)

    assert log_compaction.instant == plan.instant
    assert late in log_compaction.skipped, "what came since waits for it"
    assert [row for row in merged(table) if row[1] == "k1"] == [("a", "k1", 200)], "the one that was asked for later"
    assert merged(table, *META) == unaware(table, *META)


@pytest.mark.parametrize("when", ["before it is carried out", "while it is"])
def test_an_older_write_that_came_in_between_keeps_its_file_groups_out(
    table: Path, unaware: Callable[..., Any], when: str
) -> None:
    """As a write that was planned long before its first task, or where Apache Hudi planned without waiting."""
    older = begin(table)
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "whether an instant may append log files", lambda *_: False)
        plan = plan_join(table)
    assert f"waits for the deltacommit {older}" in join(table).skipped

    def between(call, units):
        done = [call(one) for one in units]
        append(table, ("k1", "a", 20, 700), at=older)
        return done

    if when == "while it is":
        with pytest.MonkeyPatch.context() as patch, pytest.raises(CommitConflictError, match="came in between"):
            patch_seam(patch, "whether an instant may append log files", lambda *_: False)
            join(table, executor=between)
    else:
        append(table, ("k1", "a", 20, 700), at=older)
    before = merged(table, *META)
    log_compaction = join(table)

    assert ("a", "k1", 700) in merged(table)
    assert merged(table, *META) == unaware(table, *META) == before
    assert log_compaction.file_groups > 0
    timeline = timeline_of(table)
    (instant,) = [one for one in timeline.writes if one.requested_time == plan.instant]
    assert sum(map(len, timeline.files.read_commit(instant).partition_to_write_stats.values())) < plan.file_groups


def test_a_write_that_chose_its_time_before_it_and_began_after_it_is_refused(tmp_path: Path) -> None:
    """Its log file would come before the joined one, and readers that know of nothing replaced would read it first."""
    table = tmp_path / "t"
    new_table(table, ("k1", "a", 10, 1))
    append(table, ("k1", "a", 20, 2))
    append(table, ("k1", "a", 30, 3))
    planned, late, given = plan(table, SCHEMA), plan(table, SCHEMA), [rows(("k1", "a", 30, 4))]
    choosing_now(late)
    join(table)

    with pytest.raises(CommitConflictError, match="log compaction"):
        carry_out(late, given)
    assert merged(table) == [("a", "k1", 3)]
    carry_out(planned, given)
    assert merged(table) == [("a", "k1", 4)]


def test_a_copy_on_write_table_has_nothing_to_join(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(table, rows(("k1", "a", 1, 1)), table=KEYED)

    for act in (join, plan_join):
        with pytest.raises(UnsupportedTableError, match="copy-on-write"):
            act(table)


def test_it_is_undone_as_any_write_and_leaves_what_it_was_made_of(table: Path) -> None:
    before, storage = merged(table, *META), open_storage(str(table))
    pending = plan_join(table)
    rollback(storage, pending.instant)
    assert timeline_of(table).find(pending.instant) is None
    log_compaction = join(table)
    newest = timeline_of(table).writes[-2].requested_time
    with pytest.raises(PyHudiError, match=log_compaction.instant):
        rollback(storage, newest)

    rollback(storage, log_compaction.instant)

    assert merged(table, *META) == before
    assert not list(table.rglob(f"*_{log_compaction.instant}.log.*"))
    savepoint(storage, newest)
    join(table)
    append(table, ("k1", "a", 90, 9))
    restore(storage, newest)
    assert merged(table, *META) == before


def test_a_clean_takes_it_with_its_slice_and_nothing_before(table: Path) -> None:
    storage = open_storage(str(table))
    plan = plan_join(table)
    assert clean(storage, CleanSettings(policy="KEEP_LATEST_FILE_VERSIONS", file_versions=1)).files == 0
    join(table)
    assert clean(storage, CleanSettings(policy="KEEP_LATEST_FILE_VERSIONS", file_versions=1)).files == 0
    before = merged(table)
    run(table)
    clean(storage, CleanSettings(policy="KEEP_LATEST_FILE_VERSIONS", file_versions=1))

    assert not list(table.rglob(f"*_{plan.instant}.log.*"))
    assert merged(table) == before == in_bases(table)


def test_its_rows_are_no_changes_and_the_past_is_what_it_was(table: Path) -> None:
    times = [one.requested_time for one in timeline_of(table).writes]
    ends = [one.visible_since for one in timeline_of(table).writes]
    past = merged(table)
    log_compaction = join(table)
    (joined,) = [one for one in timeline_of(table).writes if one.requested_time == log_compaction.instant]

    assert changes(table, ends[-1]) == []
    assert changes(table, ends[1]) == changes(table, ends[1], ends[-1]) != []
    append(table, ("k1", "a", 99, 1))
    assert changes(table, ends[-1]) == changes(table, joined.visible_since) == [("k1", 1)]
    for moment in (times[-1], log_compaction.instant):
        snapshot = open_snapshot(str(table), query=AsOf(moment))
        shown_rows = [
            row
            for split in snapshot.plan(snapshot.schema, (), 1 << 27)
            for batch in RowReader(snapshot.storage, snapshot.schema, snapshot.schema, times=snapshot.times).read(split)
            for row in zip(*(batch.column(name).to_pylist() for name in ("p", "id", "value")), strict=True)
        ]
        assert sorted(shown_rows) == past


def test_it_outlives_the_timeline(table: Path) -> None:
    join(table)
    for number in range(6):
        append(table, ("k7", "a", 40 + number, number))
    before = merged(table, *META)

    gone = archive(open_storage(str(table)), ArchiveSettings(min_commits=2, max_commits=3, delta_commits=None))

    assert gone.instants > 3
    assert merged(table, *META) == before
    join(table)
    assert merged(table, *META) == before
    run(table)
    assert in_bases(table) == merged(table)


INLINE = Upkeep(
    CleanSettings(automatic=False),
    ArchiveSettings(automatic=False),
    CompactionSettings(inline=False),
    LogCompactionSettings(inline=True, blocks=3),
)


def test_a_write_joins_log_files_where_that_is_due(tmp_path: Path) -> None:
    """After three delta commits, and then after three more than itself; a compaction begins the count anew."""
    table = tmp_path / "t"
    new_table(table, *FIRST)
    joined: list[bool] = []
    for number in range(9):
        done = write(table, rows(("k1", "a", 20 + number, number)), settings=WriteSettings(upkeep=INLINE))
        found = [one for one in done.services if one.service == "logcompaction"]
        assert [one.error for one in found if one.error] == []
        joined.append(any(one.instant for one in found))

    assert joined == [False, False, True, False, False, True, False, False, True]
    assert [row for row in merged(table) if row[1] == "k1"] == [("a", "k1", 8)]
    run(table)
    quiet = write(table, rows(("k1", "a", 50, 50)), settings=WriteSettings(upkeep=INLINE))
    assert [one.service for one in quiet.services] == []


def test_one_that_failed_half_way_is_finished_by_the_next_write(table: Path) -> None:
    plan = plan_join(table)

    def dies(call, units):
        call(units[0])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        join(table, executor=dies)
    assert [one.state for one in timeline_of(table).instants if one.action == "logcompaction"] == [State.REQUESTED]
    before = merged(table, *META)

    done = write(table, rows(("k7", "a", 77, 77)), settings=WriteSettings(upkeep=replace(INLINE)))

    assert [one.instant for one in done.services] == [plan.instant]
    assert {row[3:] for row in before} ^ {row[3:] for row in merged(table, *META)} == {("a", "k7", 7), ("a", "k7", 77)}
    assert TWO.blocks == 2
