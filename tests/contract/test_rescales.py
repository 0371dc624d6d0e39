"""Rescales: the same rows in other buckets, which no reader of changes takes for new, and what they leave to others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import (
    BucketMisfitError,
    CommitConflictError,
    ConcurrentWriteError,
    InvalidOptionError,
    UndoError,
    UnsupportedTableError,
)
from pyhudi.operations.inspect.history import history
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.service_settings import KEEP_LATEST_FILE_VERSIONS, ArchiveSettings, CleanSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.repair.repair_table import repair_table
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.operations.write.commit import commit_write
from pyhudi.reader.query import AsOf, Changes
from pyhudi.reader.scan import scan
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.reader.streams.table_stream import TableStream
from pyhudi.reader.streams.terms import StreamTerms
from pyhudi.storage import open_storage
from pyhudi.table.buckets.numbers import APACHE, FIRST, OWN
from pyhudi.table.config import load_config
from pyhudi.table.config.property_keys import BUCKET_COUNT
from pyhudi.table.files.output import Output
from pyhudi.timeline.instants import State
from pyhudi.timeline.writers.reserve import Reserve
from pyhudi.timeline.writers.write_notes import WriteNotes
from support.drive import carry_out, plan, read, rows_of, task, write
from support.made.compacting import SCHEMA, append, as_another_writer, means, rows, schedule, slices, timeline_of
from support.made.rescales import leave_rescale, numbers, rescale
from support.places import copied, files_below
from support.rules.ends import assert_whole
from support.seams import patch_seam
from support.upkeep.meetings import COW, MOR, QUIET
from support.write_settings import write_settings

FOUR = replace(COW, bucket_count=4)
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "value")
ONE_VERSION = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1)


def some(first: int, last: int, *, value: int = 0, step: int = 1) -> pa.Table:
    """Return rows of keys that are numbers, in two partitions."""
    return rows(*((f"k{key}", "ab"[key % 2], value, value or key) for key in range(first, last, step)))


def fill(path: Path, **table: Any) -> Path:
    """Write 40 rows to a new table of four buckets, and change every third."""
    write(path, some(0, 40), table=replace(FOUR, **table), settings=QUIET)
    write(path, some(0, 40, value=7, step=3), settings=QUIET)
    return path


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of each type."""
    return fill(tmp_path_factory.mktemp("made") / "t", table_type=request.param)


@pytest.fixture
def table(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return copied(made, tmp_path / "t")


@pytest.fixture
def cow(tmp_path: Path) -> Path:
    """A copy-on-write table."""
    return fill(tmp_path / "t")


def at(path: Path, query: Any) -> list[tuple[Any, ...]]:
    """Return the rows that a query shows."""
    snapshot = open_snapshot(str(path), query=query)
    found = pa.Table.from_batches(scan(snapshot), snapshot.schema)
    return sorted(zip(*(found.column(name).to_pylist() for name in META), strict=True))


def completed(path: Path, instant: str) -> str:
    """Return when an instant completed."""
    found = timeline_of(path).write_at(instant)
    assert found is not None
    return found.visible_since


def rules(path: Path) -> set[str]:
    """Return the instants of the rules."""
    return {one.name.partition(".")[0] for one in path.rglob("*.hashing_config")}


@pytest.mark.parametrize("n", [8, 12, 2, 1, 6, 7, 5])
def test_rows_keep_all_but_the_name_of_their_file(table: Path, n: int) -> None:
    """By a multiple, a divisor, a number with a divisor in common, and one without."""
    before, groups = rows_of(table, *META), len(slices(table))
    write(table, some(100, 101), settings=QUIET)
    before = rows_of(table, *META)

    result = rescale(table, n)

    assert rows_of(table, *META) == before
    assert {int(one.file_id[:8]) < n for one in slices(table)} == {True}
    assert not any(one.logs for one in slices(table))
    assert (result.partitions, result.file_groups, result.new_file_groups) == (2, groups, len(slices(table)))
    assert (numbers(table).default, numbers(table).differ) == (n, False)
    assert validate(open_storage(str(table)), deep=True).to_pylist() == []
    assert_whole(table)
    write(table, some(0, 60, value=9), settings=QUIET)
    assert len(rows_of(table, "id")) == 61
    assert_whole(table)


@pytest.mark.parametrize("n", [64, 5])
def test_rows_beyond_the_memory_of_a_task_wait_on_the_disk(cow: Path, n: int) -> None:
    before = rows_of(cow, *META)

    rescale(cow, n, output=Output(row_group_bytes=1 << 12, memory=1 << 13))

    assert rows_of(cow, *META) == before
    assert_whole(cow)


def test_many_buckets_become_many_others_by_spills_in_the_store(cow: Path) -> None:
    before = rows_of(cow, *META)

    for n in (11, 12):
        rescale(cow, n)

    assert rows_of(cow, *META) == before
    assert_whole(cow)
    assert not list(cow.rglob("*.spill"))


def test_an_unpartitioned_table_is_rescaled(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, some(0, 40), table=replace(FOUR, partition_fields=()), settings=QUIET)

    done = rescale(path, 8)

    assert done.partitions == 1
    assert len(rows_of(path, "id")) == 40
    assert_whole(path)


def test_a_table_without_rows_gets_the_number_for_those_to_come(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, some(0, 10), table=FOUR, settings=QUIET)
    write(path, some(0, 0), operation="delete_partition", settings=write_settings(QUIET, partitions_to_delete=("*",)))

    done = rescale(path, 8)

    assert (done.partitions, done.new_file_groups, numbers(path).of("c")) == (0, 0, 8)
    write(path, some(0, 10), settings=QUIET)
    assert_whole(path)


# --- what readers see


def test_readers_of_changes_see_none(table: Path) -> None:
    last = timeline_of(table).writes[-1].visible_since

    rescale(table, 8)
    rescale(table, 2)

    assert at(table, Changes(last)) == []
    newest = write(table, some(1, 2, value=9), settings=QUIET).instant
    assert [row[0] for row in at(table, Changes(last))] == [newest]
    assert len(at(table, Changes("000"))) == 40


def test_a_stream_reads_no_row_twice(table: Path) -> None:
    stream = TableStream(str(table), {}, StreamTerms())
    start = stream.latest(stream.initial())

    rescale(table, 8)
    middle = stream.latest(start)
    batch = stream.plan(start, middle, lambda found: found.schema, 1 << 30)
    write(table, some(1, 2, value=9), settings=QUIET)
    after = stream.plan(middle, stream.latest(middle), lambda found: found.schema, 1 << 30)

    assert batch is None or pa.Table.from_batches(scan(batch.snapshot), batch.snapshot.schema).num_rows == 0
    assert after is not None
    assert pa.Table.from_batches(scan(after.snapshot), after.snapshot.schema).num_rows == 1


def test_each_moment_before_between_and_after_two_rescales_shows_what_it_showed(table: Path) -> None:
    moments = {timeline_of(table).writes[-1].requested_time: rows_of(table, *META)}
    for n in (8, 2):
        rescale(table, n)
        moments[timeline_of(table).writes[-1].requested_time] = rows_of(table, *META)
        done = write(table, some(n, n + 3, value=n), settings=QUIET)
        moments[done.instant] = rows_of(table, *META)

    for time, held in moments.items():
        assert at(table, AsOf(time)) == held


# --- numbers and rules


def test_the_number_before_the_first_rescale_is_noted(cow: Path) -> None:
    done = rescale(cow, 8, ["a"])

    assert rules(cow) == {FIRST, done.instant}
    assert (numbers(cow).of("a"), numbers(cow).of("b")) == (8, 4)


def test_the_last_partition_brings_the_number_of_those_to_come(cow: Path) -> None:
    rescale(cow, 8, ["a"])
    between = numbers(cow)
    rescale(cow, 8, ["b"])

    assert (between.of("a"), between.of("b"), between.of("c")) == (8, 4, 4)
    assert (numbers(cow).of("c"), numbers(cow).differ) == (8, False)
    assert load_config(open_storage(str(cow))).properties[BUCKET_COUNT] == "8"


def test_partitions_have_numbers_of_their_own(cow: Path) -> None:
    rescale(cow, 8, ["a"])
    rescale(cow, 2, ["b"])
    rescale(cow, 16, ["a"])

    assert (numbers(cow).of("a"), numbers(cow).of("b"), numbers(cow).of("c")) == (16, 2, 4)
    write(cow, some(0, 60, value=9), settings=QUIET)
    assert len(rows_of(cow, "id")) == 60
    assert_whole(cow)


def test_a_table_of_version_8_is_rescaled_as_a_whole(tmp_path: Path) -> None:
    path = fill(tmp_path / "t", version=8)
    before = rows_of(path, *META)

    result = rescale(path, 8)

    assert rows_of(path, *META) == before
    assert f"{BUCKET_COUNT}=8" in result.todo
    assert len([one for one in timeline_of(path).writes if one.action == "replacecommit"]) == 1
    assert not (path / APACHE).exists()
    assert len(list((path / OWN).iterdir())) == 2
    assert load_config(open_storage(str(path))).properties[BUCKET_COUNT] == "8"
    with pytest.raises(InvalidOptionError, match="as a whole"):
        rescale(path, 4, ["a"])
    assert_whole(path)


def test_a_trial_run_says_what_would_be_done_and_touches_nothing(table: Path) -> None:
    before = files_below(table)

    told = rescale(table, 8, dry_run=True)

    assert files_below(table) == before
    assert (told.dry, told.partitions, told.file_groups) == (True, 2, len(slices(table)))
    assert told.bytes_read == sum(one.size for one in slices(table))
    assert told.new_file_groups >= rescale(table, 8).new_file_groups


def test_a_call_that_is_repeated_takes_up_the_partitions_that_lack_the_number(cow: Path) -> None:
    rescale(cow, 8, ["a"])

    done = rescale(cow, 8)

    assert (done.partitions, done.file_groups) == (1, 4)
    assert rescale(cow, 8).instant == ""


def test_a_failure_leaves_the_partitions_of_earlier_instants_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An instant has room for two partitions, and the last partition has a row in a wrong bucket."""
    path = tmp_path / "t"
    there = [(f"k{key}", "abcd"[key % 4], 1, key) for key in range(40)]
    write(path, rows(*there), table=replace(MOR, bucket_count=2), settings=QUIET)
    append(path, ("k99", "d", 1, 1), misplaced=True)
    sizes = {name: sum(one.size for one in slices(path) if one.partition_path == name) for name in "abcd"}
    patch_seam(monkeypatch, "bytes that one rescale reads", sizes["a"] + sizes["b"])

    told = rescale(path, 4, dry_run=True)
    with pytest.raises(BucketMisfitError, match="k99"):
        rescale(path, 4)

    done = [one for one in timeline_of(path).writes if one.action == "replacecommit"]
    bodies = [timeline_of(path).files.read_commit(one) for one in done]
    assert told.partitions == 4
    assert [sorted(body.partition_to_write_stats) for body in bodies] == [["a", "b"], ["c"]]
    assert [numbers(path).of(name) for name in "abcd"] == [4, 4, 4, 2]


# --- what keeps it out


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ({"n": 0}, InvalidOptionError, "from 1"),
        ({"n": 100_000}, InvalidOptionError, "99,999"),
        ({"n": 8, "partitions": ["c"]}, InvalidOptionError, "no partition 'c'"),
        ({"n": 8, "partitions": ["a"], "whole_table": True}, InvalidOptionError, "names partitions"),
    ],
)
def test_what_cannot_be_is_refused(cow: Path, call: dict[str, Any], error: type[Exception], words: str) -> None:
    before = files_below(cow)

    with pytest.raises(error, match=words):
        rescale(cow, **call)

    assert files_below(cow) == before


def test_a_table_without_buckets_is_refused(tmp_path: Path) -> None:
    path = fill(tmp_path / "t", bucket_count=None, index_type="SIMPLE")

    with pytest.raises(UnsupportedTableError, match="simple buckets"):
        rescale(path, 8)


def test_a_row_in_a_wrong_bucket_ends_the_rescale_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, some(0, 10), table=replace(MOR, bucket_count=2), settings=QUIET)
    append(path, ("k99", "a", 1, 1), misplaced=True)
    before = rows_of(path, *META)

    with pytest.raises(BucketMisfitError, match="k99"):
        rescale(path, 4)

    assert rows_of(path, *META) == before
    assert not timeline_of(path).pending
    assert numbers(path).of("a") == 2


# --- beside others


def test_a_write_at_work_is_waited_for_and_read(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = plan(table, SCHEMA, settings=QUIET)
    task_result = task(mine, some(1, 2, value=99), 0)
    pauses: list[int] = []

    def completes() -> None:
        pauses.append(1)
        if len(pauses) == 1:
            commit_write(mine, [task_result])

    patch_seam(monkeypatch, "pause of a rescale that waits", completes)
    rescale(table, 8, patience=QUIET.patience)

    assert pauses == [1]
    assert ("k1", 99) in rows_of(table, "id", "value")
    assert_whole(table)


def test_a_write_that_noted_the_time_of_a_rescale_takes_another(table: Path) -> None:
    """It noted the time when nothing had it, and stalled until the rescale was complete and its claim gone."""
    mine = plan(table, SCHEMA, settings=QUIET)
    rescaled = rescale(table, 8, ["a"])
    WriteNotes(open_storage(str(table)), mine.transaction.key).make(1, rescaled.instant)

    result = carry_out(mine, [rows(("k1", "b", 9, 9))])

    assert result.instant > rescaled.instant
    assert ("k1", 9) in rows_of(table, "id", "value")
    assert_whole(table)


@pytest.mark.parametrize("inflight", [False, True])
def test_a_write_that_begins_beside_a_rescale_is_refused_by_name(table: Path, inflight: bool) -> None:
    found = leave_rescale(table, "a", inflight=inflight)

    with pytest.raises(CommitConflictError, match=f"rescale {found.requested_time} is giving the partition 'a'"):
        write(table, some(1, 40, value=9), settings=QUIET)

    assert write(table, rows(("k1", "b", 9, 9)), settings=QUIET).instant


def test_a_write_to_a_table_that_is_rescaled_as_a_whole_is_refused_before_its_rows(table: Path) -> None:
    found = leave_rescale(table)

    with pytest.raises(CommitConflictError, match=f"rescale {found.requested_time} is giving the table"):
        plan(table, SCHEMA, settings=QUIET)


@pytest.mark.parametrize("partitions", [(), ("a",), ("b",)], ids=["all", "its own", "another"])
def test_what_a_dead_rescale_left_is_undone_by_the_next_write(table: Path, partitions: tuple[str, ...]) -> None:
    """The write's tasks have placed its rows, so that its commit could not wait."""
    before = rows_of(table, *META)
    dead_rescale = leave_rescale(table, *partitions, inflight=True)
    Reserve(open_storage(str(table)), dead_rescale.requested_time).release()

    write(table, some(100, 101), settings=write_settings(QUIET, colocated=True, retry_s=0.0))

    assert timeline_of(table).find(dead_rescale.requested_time) is None
    assert len(rows_of(table, *META)) == len(before) + 1
    assert numbers(table).of("a") == 4


def test_another_rescale_is_refused(table: Path) -> None:
    found = leave_rescale(table, "b")

    with pytest.raises(ConcurrentWriteError, match=found.requested_time):
        rescale(table, 8, ["a"], patience=QUIET.patience)


def test_a_pending_compaction_is_given_up(tmp_path: Path) -> None:
    path = fill(tmp_path / "t", table_type="MERGE_ON_READ")
    before, compaction = rows_of(path, *META), schedule(path)

    rescale(path, 8)

    assert timeline_of(path).find(compaction.instant) is None
    assert rows_of(path, *META) == before
    assert_whole(path)


# --- services after it


def test_a_clean_takes_what_it_replaced_and_archiving_follows(table: Path) -> None:
    storage, before = open_storage(str(table)), rows_of(table, *META)
    rescale(table, 8)

    cleaned = clean(storage, ONE_VERSION)
    for key in range(3):
        write(table, some(key, key + 1, value=50 + key), settings=QUIET)
    archive(storage, ArchiveSettings(min_commits=1, max_commits=1, delta_commits=None), ONE_VERSION)

    assert cleaned.files
    assert len(rows_of(table, *META)) == len(before)
    assert numbers(table).of("a") == 8
    write(table, some(0, 60, value=99), settings=QUIET)
    assert len(rows_of(table, "id")) == 60
    assert_whole(table)


def test_a_rollback_brings_rows_and_number_back(table: Path) -> None:
    before, groups = rows_of(table, *META), {one.file_id for one in slices(table)}
    done = rescale(table, 8, ["a"])

    rollback(open_storage(str(table)), done.instant)

    assert rows_of(table, *META) == before
    assert {one.file_id for one in slices(table)} == groups
    assert rules(table) == {FIRST}
    assert numbers(table).of("a") == 4
    assert_whole(table)


def undone_by_java(path: Path, n: int, partitions: list[str] | None, **terms: Any) -> str:
    """Rescale, and undo that as Apache Hudi's `rollback_to_instant` does: rule and property stay."""
    rescaled = rescale(path, n, partitions, **terms)
    kept = {name: data for name, data in files_below(path).items() if is_number_of_buckets(name)}
    rollback(open_storage(str(path)), rescaled.instant)
    for name, data in kept.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return rescaled.instant


def is_number_of_buckets(name: str) -> bool:
    return name.startswith((APACHE, OWN)) or name.endswith("hoodie.properties")


def codes(path: Path) -> list[str]:
    return validate(open_storage(str(path)))["code"].to_pylist()


@pytest.mark.parametrize("partitions", [["a"], None])
def test_a_repair_deletes_the_number_of_a_rescale_that_apache_hudi_rolled_back(
    table: Path, partitions: list[str] | None
) -> None:
    """Apache Hudi goes by it, and would put keys where their rows are not."""
    before = rows_of(table, *META)
    undone = undone_by_java(table, 8, partitions, whole_table=partitions is None)
    [finding] = validate(open_storage(str(table))).to_pylist()
    assert (finding["code"], finding["instant"]) == ("RESCALE_UNDONE", undone)
    assert f"{undone}.hashing_config stays" in finding["what"]
    with pytest.raises(UnsupportedTableError, match="repair"):
        write(table, some(0, 1), settings=QUIET)

    storage = open_storage(str(table))
    told = repair_table(storage, means(storage), dry_run=True)
    assert codes(table) == ["RESCALE_UNDONE"]
    repair = repair_table(storage, means(storage))

    assert repair.steps == told.steps
    assert [undone in step for step in repair.steps] == [True]
    assert (rules(table), load_config(storage).bucket_count, codes(table)) == ({FIRST}, 4, [])
    assert rows_of(table, *META) == before
    write(table, some(0, 60, value=9), settings=QUIET)
    assert len(rows_of(table, "id")) == 60
    assert_whole(table)


def test_a_repair_keeps_the_number_by_which_another_engine_wrote_since(table: Path) -> None:
    """A look-up by the number of before would miss its rows; once that write is undone, the number goes."""
    before = rows_of(table, *META)
    undone = undone_by_java(table, 8, ["a"])
    since = write(table, some(0, 1), operation="delete_partition", settings=QUIET).instant
    as_another_writer(table, since)
    storage = open_storage(str(table))
    [finding] = validate(storage).to_pylist()
    assert since in finding["what"]

    done = repair_table(storage, means(storage))
    assert done.steps == ()
    assert since in done.skipped
    assert rules(table) == {FIRST, undone}

    rollback(storage, since)
    repair_table(storage, means(storage))
    assert (rules(table), codes(table)) == ({FIRST}, [])
    assert rows_of(table, *META) == before


def test_the_property_of_a_table_of_version_8_follows_a_rescale_that_apache_hudi_rolled_back(tmp_path: Path) -> None:
    """Jobs of Apache Hudi 1.0 have to agree with it, and pyhudi goes by its own rule, which tells the rollback."""
    path = fill(tmp_path / "t", version=8)
    undone = undone_by_java(path, 8, None)
    write(path, some(0, 60, value=9), settings=QUIET)
    storage = open_storage(str(path))
    [finding] = validate(storage).to_pylist()
    assert (finding["code"], finding["instant"]) == ("RESCALE_UNDONE", undone)
    assert f"{BUCKET_COUNT}=8" in finding["what"]

    done = repair_table(storage, means(storage))

    assert f"{BUCKET_COUNT}=4" in done.todo
    assert (load_config(storage).bucket_count, codes(path)) == (4, [])
    assert_whole(path)


def test_a_restore_brings_rows_and_numbers_back(table: Path) -> None:
    storage, before = open_storage(str(table)), rows_of(table, *META)
    savepoint_instant = savepoint(storage).instant
    rescale(table, 8)
    write(table, some(0, 60, value=9), settings=QUIET)
    rescale(table, 2)

    restore(storage, savepoint_instant)

    assert rows_of(table, *META) == before
    assert rules(table) == {FIRST}
    assert numbers(table).of("b") == 4
    write(table, some(0, 60, value=9), settings=QUIET)
    assert len(rows_of(table, "id")) == 60
    assert_whole(table)


def test_a_savepoint_of_a_rescale_can_be_restored(table: Path) -> None:
    storage = open_storage(str(table))
    rescale(table, 8)
    before = rows_of(table, *META)
    savepoint_instant = savepoint(storage).instant
    write(table, some(0, 60, value=9), settings=QUIET)

    restore(storage, savepoint_instant)

    assert rows_of(table, *META) == before
    assert numbers(table).of("a") == 8


def test_a_rescale_on_which_a_write_builds_is_not_rolled_back(table: Path) -> None:
    rescaled = rescale(table, 8, ["a"])
    write(table, some(0, 60, value=9), settings=QUIET)

    with pytest.raises(UndoError, match="not its newest"):
        rollback(open_storage(str(table)), rescaled.instant)


def test_history_shows_it_as_a_rescale_with_its_files(table: Path) -> None:
    rescaled = rescale(table, 8, ["a"])

    first = history(open_storage(str(table)), 1).to_pylist()[0]

    assert (first["instant"], first["action"], first["operation"]) == (rescaled.instant, "replacecommit", "RESCALE")
    assert (first["state"], first["files"], first["bytes"]) == (State.COMPLETED.name, rescaled.files, rescaled.bytes)


def test_meta_columns_of_all_rows_stay_with_every_log_block(tmp_path: Path) -> None:
    """Rows in log files keep the numbers that their write gave them."""
    path = fill(tmp_path / "t", table_type="MERGE_ON_READ")
    carry_out(plan(path, SCHEMA, settings=QUIET), [some(0, 5, value=20), some(5, 9, value=21)])
    before = read(path).select(list(META)).sort_by("_hoodie_record_key").to_pylist()

    rescale(path, 16)

    assert read(path).select(list(META)).sort_by("_hoodie_record_key").to_pylist() == before
