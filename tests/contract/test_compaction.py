"""Compactions of merge-on-read tables: planned, carried out, and what becomes of them."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyhudi.errors import (
    BucketMisfitError,
    CommitConflictError,
    ConcurrentWriteError,
    CorruptInstantError,
    MissingFileError,
    UnsupportedTableError,
    WriteSealedError,
)
from pyhudi.operations.result import ServiceResult
from pyhudi.operations.service_settings import CompactionSettings
from pyhudi.operations.services.execution import claim, take_back
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.words.progress import Progress
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.files.base_file import STAMP
from pyhudi.table.table import Table, open_table
from pyhudi.timeline.held import pending_compactions
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers.patience import Patience
from support.drive import KEYED, write
from support.made.compacting import (
    IMPATIENT,
    append,
    begin,
    in_bases,
    merged,
    new_table,
    rows,
    run,
    schedule,
    slices,
    timeline_of,
)
from support.recorded.fixture_tables import unpack
from support.recorded.recorded_merges import seen
from support.seams import patch_seam
from support.threads import at_once

FIRST = [(f"k{n}", "a" if n % 2 else "b", 10, n) for n in range(8)]
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "p", "id", "value")
IN_NO_HURRY = Patience()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    new_table(path, *FIRST)
    append(path, ("k1", "a", 20, 100), ("k2", "b", 5, 101), ("new", "b", 1, 102))
    append(path, ("k1", "a", 15, 103), gone=[("k3", "a", 30), ("k4", "b", 1), ("k6", "b", None)])
    return path


def states(path: Path, action: str) -> list[State]:
    return [one.state for one in timeline_of(path).instants if one.action == action]


def plan_of(path: Path) -> list[tuple[str, str | None, list[str]]]:
    """Return what the one pending compaction merges."""
    (plan,) = pending_compactions(timeline_of(path)).values()
    return [(one.file_id or "", one.data_file_path, one.delta_file_paths) for one in plan.operations]


def test_a_compaction_leaves_what_readers_saw(table: Path) -> None:
    before = merged(table, *META)

    compaction = run(table)

    assert merged(table, *META) == before
    assert in_bases(table) == merged(table)
    assert not any(one.logs for one in slices(table))
    assert compaction.instant == timeline_of(table).writes[-1].requested_time
    named = {one.base.name for one in slices(table) if one.base is not None}
    assert {name for (name,) in merged(table, "_hoodie_file_name")} <= named


def test_a_compaction_says_what_it_did_as_apache_hudi_does(table: Path) -> None:
    before = {one.file_id: one for one in slices(table) if one.logs}
    compaction = run(table)
    timeline = timeline_of(table)
    body = timeline.files.read_commit(timeline.writes[-1])
    stats = {stat.file_id: stat for stats in body.partition_to_write_stats.values() for stat in stats}

    assert (timeline.writes[-1].action, body.compacted, body.operation_type) == ("commit", True, "COMPACT")
    assert set(stats) == set(before)
    assert sum(one.num_writes for one in stats.values()) == len(
        [
            one
            for one in merged(table, "_hoodie_file_name")
            if one[0] in {s.path.partition("/")[2] for s in stats.values()}
        ]
    )
    for file_id, stat in stats.items():
        old = before[file_id]
        assert stat.prev_commit == old.base_time
        assert stat.prev_base_file == (None if old.base is None else old.base.name)
        assert stat.total_log_files_compacted == len(old.logs)
        assert stat.file_size_in_bytes == stat.total_write_bytes == (table / (stat.path or "")).stat().st_size
        assert (stat.log_files, stat.log_version, stat.base_file) == (None, None, None)
    assert sum(one.total_log_records for one in stats.values()) == 7
    assert sum(one.num_inserts for one in stats.values()) == 1
    assert sum(one.num_update_writes for one in stats.values()) == 1
    # Also those that came too early, or found nothing, count among the keys that logs held: k1, k2, new, k3, k4, k6.
    assert sum(one.total_updated_records_compacted for one in stats.values()) == 6
    assert (compaction.log_files, compaction.file_groups) == (
        sum(len(one.logs) for one in before.values()),
        len(before),
    )
    assert compaction.bytes_read == sum(one.size for one in before.values())
    assert compaction.bytes == sum(one.file_size_in_bytes for one in stats.values())


def test_a_slice_of_which_nothing_is_left_gets_an_empty_base_file(tmp_path: Path) -> None:
    """As Apache Hudi does: without it the deleted rows would come back with the log files' end."""
    table = tmp_path / "t"
    new_table(table, ("k1", "a", 1, 1))
    append(table, gone=[("k1", "a", None)])

    run(table)

    (file_slice,) = slices(table)
    assert file_slice.base is not None
    assert (file_slice.logs, in_bases(table), merged(table)) == ((), [], [])
    append(table, ("k1", "a", 0, 2))
    assert merged(table) == [("a", "k1", 2)]


def test_log_files_without_a_base_file_are_compacted(tmp_path: Path) -> None:
    table = tmp_path / "t"
    new_table(table, ("k1", "a", 1, 1))
    first = append(table, ("k1", "c", 1, 5))
    append(table, ("k1", "c", 2, 6))
    plan = schedule(table)

    assert [(base, len(logs)) for _, base, logs in plan_of(table)] == [(None, 2)]
    run(table)

    timeline = timeline_of(table)
    (stat,) = timeline.files.read_commit(timeline.writes[-1]).partition_to_write_stats["c"]
    assert (stat.prev_commit, stat.prev_base_file) == (first, None)
    assert timeline.writes[-1].requested_time == plan.instant
    assert in_bases(table) == merged(table) == [("a", "k1", 1), ("c", "k1", 6)]


def test_a_plan_names_what_was_complete_before_it_and_nothing_else(table: Path) -> None:
    """A write that was at work then completes later, into the slice that the compaction begins."""
    at_work = begin(table)
    schedule(table)
    planned = plan_of(table)
    append(table, ("k1", "a", 40, 200), at=at_work)
    later = append(table, ("k5", "a", 40, 201))

    names = [name for _, _, logs in planned for name in logs]
    assert not any(at_work in name or later in name for name in names)
    before = merged(table, *META)
    assert ("a", "k1", 200) in merged(table)
    run(table)

    assert merged(table, *META) == before
    assert {one.named_time for file_slice in slices(table) for one in file_slice.logs} <= {at_work, later}
    run(table)
    assert in_bases(table) == merged(table)


def test_a_file_group_is_in_one_pending_plan_at_most(table: Path) -> None:
    """Apache Hudi reads no table on which it is in two."""
    first = schedule(table)
    append(table, ("k1", "a", 40, 200), ("k1", "c", 1, 201))
    second = schedule(table)

    pending = pending_compactions(timeline_of(table))
    groups = [(one.partition_path, one.file_id) for plan in pending.values() for one in plan.operations]
    assert len(groups) == len(set(groups))
    assert (first.file_groups, second.file_groups) == (len(groups) - 1, 1)
    assert schedule(table).instant == ""
    before = merged(table, *META)
    run(table)
    assert states(table, "compaction") == []
    assert merged(table, *META) == before
    assert in_bases(table) == merged(table)


def test_plans_made_at_once_hold_no_file_group_twice(table: Path) -> None:
    found = at_once(4, lambda _: schedule(table))

    assert [one for one in found if isinstance(one, Exception)] == []
    assert len(pending_compactions(timeline_of(table))) == 1


def test_a_pending_plan_is_taken_back_by_name(table: Path) -> None:
    before = merged(table, *META)
    plan = schedule(table)

    done = rollback(open_storage(str(table)), plan.instant)

    assert (done.service, done.files) == ("rollback", 0)
    assert states(table, "compaction") == []
    assert timeline_of(table).find(plan.instant) is None
    assert merged(table, *META) == before
    run(table)
    assert in_bases(table) == merged(table)


def test_a_missing_log_file_is_named_and_the_plan_stays(table: Path) -> None:
    schedule(table)
    name = plan_of(table)[0][2][0]
    (path,) = table.rglob(name)
    content = path.read_bytes()
    path.unlink()

    for _ in range(2):
        with pytest.raises(MissingFileError, match=name.replace(".", r"\.")):
            run(table)
    assert states(table, "compaction") == [State.REQUESTED]
    assert states(table, "rollback") == []

    path.write_bytes(content)
    before = merged(table, *META)
    run(table)
    assert merged(table, *META) == before


def test_a_plan_that_leaves_out_a_complete_log_file_is_refused(table: Path) -> None:
    """Whoever made it did not see that write, whose rows would be in no slice any more."""
    schedule(table)
    timeline = timeline_of(table)
    ((instant, plan),) = pending_compactions(timeline).items()
    most = max(plan.operations, key=lambda one: len(one.delta_file_paths))
    short = most.model_copy(update={"delta_file_paths": most.delta_file_paths[:1]})
    body = timeline.files.codec.encode(plan.model_copy(update={"operations": [short]}))
    open_storage(str(table)).write(timeline.files.path(instant), body)

    with pytest.raises(CorruptInstantError, match="leaves out the log file"):
        run(table)
    assert states(table, "compaction") == [State.REQUESTED]


def test_a_plan_of_a_replaced_file_group_makes_no_file_of_it(table: Path) -> None:
    schedule(table)
    write(table, rows(("k1", "a", 99, 300)), operation="insert_overwrite")

    run(table)

    timeline = timeline_of(table)
    compaction = next(one for one in timeline.writes if one.action == "commit")
    assert set(timeline.files.read_commit(compaction).partition_to_write_stats) == {"b"}
    assert [row for row in merged(table) if row[0] == "a"] == [("a", "k1", 300)]


def test_keys_that_another_writer_put_into_a_wrong_bucket_are_refused(table: Path) -> None:
    """What is merged carries the stamp by which keys are trusted, so that nobody would look again."""
    append(table, ("k1", "a", 20, 100), misplaced=True)
    before = merged(table, *META)

    with pytest.raises(BucketMisfitError, match="'k1'"):
        run(table)

    assert merged(table, *META) == before
    assert base_files(table, schedule(table).instant or "0") == []


def test_a_table_that_does_not_tell_its_number_of_buckets_is_compacted(tmp_path: Path) -> None:
    """As Apache Hudi's do not; whoever writes to one tells the number, and its keys are held against that."""
    path = unpack("v9_mor_parquet", tmp_path)
    before = seen(path)

    compaction = run(path)

    assert seen(path) == before == seen(path, "read_optimized")
    made = [one for one in Path(path).rglob(f"*_{compaction.instant}.parquet") if ".hoodie" not in one.parts]
    assert made
    assert not any(STAMP in (pq.read_metadata(one).metadata or {}) for one in made)


def test_a_copy_on_write_table_has_nothing_to_compact(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(table, rows(("k1", "a", 1, 1)), table=KEYED)

    with pytest.raises(UnsupportedTableError, match="copy-on-write"):
        run(table)
    with pytest.raises(UnsupportedTableError, match="copy-on-write"):
        schedule(table)


def test_partitions_are_chosen_by_a_pattern(table: Path) -> None:
    settings = CompactionSettings(strategy="PartitionRegexBasedCompactionStrategy", partition_regex="^a")

    schedule(table, settings)

    assert {one.partition_path for one in slices(table) if one.file_id in {file for file, _, _ in plan_of(table)}} == {
        "a"
    }


def test_two_who_carry_out_one_plan_lose_and_double_nothing(table: Path) -> None:
    before, plan = merged(table, *META), schedule(table)

    outcomes = at_once(3, lambda _: run(table, patience=IN_NO_HURRY))

    assert all(isinstance(one, (ServiceResult, ConcurrentWriteError)) for one in outcomes)
    assert [one.instant for one in outcomes if isinstance(one, ServiceResult) and one.instant] == [plan.instant]
    assert merged(table, *META) == before
    assert in_bases(table) == merged(table)
    assert len(base_files(table, plan.instant)) == plan.file_groups


def test_one_that_was_taken_over_publishes_nothing_more(table: Path) -> None:
    """It stops before its first file, counts as dead, and wakes up when another one has done the work."""
    before, plan = merged(table, *META), schedule(table)
    late: list[BaseException] = []

    def stopped(call, units):
        run(table)
        try:
            return [call(one) for one in units]
        except BaseException as error:
            late.append(error)
            raise

    with pytest.raises(ConcurrentWriteError, match=f"compaction {plan.instant} .* was completed by another process"):
        run(table, executor=stopped)

    assert len(late) == 1
    assert merged(table, *META) == before
    assert len(base_files(table, plan.instant)) == plan.file_groups
    (taken_over,) = [one for one in timeline_of(table).completed if one.action == "rollback"]
    undone = timeline_of(table).files.read_rollback_plan(taken_over)
    assert undone is not None
    assert undone.instant_to_rollback is not None
    assert (undone.instant_to_rollback.commit_time, undone.instant_to_rollback.action) == (plan.instant, "compaction")


@pytest.mark.parametrize("over", [True, False], ids=["over", "back"])
def test_the_error_names_who_took_a_plan_over_or_took_it_back(table: Path, over: bool) -> None:
    """The tasks' own error says that nothing is to be done, which holds for the tasks alone."""
    before = merged(table, *META)
    schedule(table)
    storage = open_storage(str(table))
    config = load_config(storage)

    def stopped(call, units):
        [instant] = timeline_of(table).pending
        if over:
            assert claim(Table(storage, config), instant, IMPATIENT, application="the other") is not None
        else:
            take_back(Table(storage, config), instant)
        return [call(one) for one in units]

    who = r"taken over by another process \('the other', process \d+ on " if over else "taken back by another process"
    with pytest.raises(ConcurrentWriteError, match=rf"compaction \d+ of .* was {who}"):
        run(table, executor=stopped)

    assert merged(table, *META) == before
    run(table)
    assert in_bases(table) == merged(table)


@pytest.mark.parametrize("completes", [True, False])
def test_one_that_was_taken_over_completes_nothing_more(table: Path, completes: bool) -> None:
    """It has made all its files when another one does the work anew, under the same time."""
    before, plan = merged(table, *META), schedule(table)
    storage = open_storage(str(table))

    def stopped(call, units):
        task_results = [call(one) for one in units]
        if completes:
            run(table)
        else:
            assert claim(open_table(storage), timeline_of(table).pending[0], IMPATIENT) is not None
        return task_results

    if completes:
        assert run(table, executor=stopped).instant == ""
    else:
        with pytest.raises(CommitConflictError):
            run(table, executor=stopped)
        assert states(table, "compaction") == [State.INFLIGHT]
        assert base_files(table, plan.instant) == []
        run(table)

    assert merged(table, *META) == before
    assert in_bases(table) == merged(table)
    assert len(base_files(table, plan.instant)) == plan.file_groups


def test_an_observer_learns_of_each_file_group_that_is_merged(table: Path) -> None:
    told: list[Progress] = []

    compaction = run(table, executor=None, observer=told.append)

    assert [one.finished for one in told] == list(range(1, compaction.file_groups + 1))
    assert told[-1] == Progress("compaction", compaction.file_groups, compaction.file_groups, compaction.bytes_read)


def test_an_observer_learns_how_far_tasks_elsewhere_are(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their files are counted while they work, by this process."""
    patch_seam(monkeypatch, "seconds between looks at tasks", 0.01)
    told: list[Progress] = []
    arrived = threading.Condition()

    def observer(progress: Progress) -> None:
        with arrived:
            told.append(progress)
            arrived.notify_all()

    def elsewhere(call, units):
        task_results = []
        for number, unit in enumerate(units, 1):
            task_results.append(call(unit))
            with arrived:
                assert arrived.wait_for(lambda: bool(told) and told[-1].finished == number, 30)  # noqa: B023 (called here)
        return task_results

    compaction = run(table, executor=elsewhere, observer=observer)

    assert compaction.file_groups > 1
    assert told[-1] == Progress("compaction", compaction.file_groups, compaction.file_groups, compaction.bytes_read)


def test_files_of_attempts_that_nobody_reported_go(table: Path) -> None:
    """Spark may run a task twice; of the second attempt's file nobody knows but its marker."""
    plan = schedule(table)

    run(table, executor=lambda call, units: [[call(one), call(one)][1] for one in units])

    assert len(base_files(table, plan.instant)) == plan.file_groups
    assert in_bases(table) == merged(table)


def test_a_straggler_of_a_completed_compaction_leaves_no_file(table: Path) -> None:
    plan, again = schedule(table), []

    def kept(call, units):
        again.append((call, units))
        return [call(one) for one in units]

    run(table, executor=kept)
    ((call, units),) = again
    with pytest.raises(WriteSealedError):
        call(units[0])

    assert len(base_files(table, plan.instant)) == plan.file_groups


def test_nobody_compacts_what_a_pending_rollback_takes_away(table: Path) -> None:
    """A write that completes while somebody undoes what was merged is told so; here the write is gone by then."""
    last = append(table, ("k1", "a", 60, 400))
    without = [row for row in merged(table, *META) if row[0] != last]

    def undoing(call, units):
        done = [call(one) for one in units]
        undo_behind_the_back(table, last)
        return done

    with pytest.raises(CommitConflictError, match="undone or replaced"):
        run(table, executor=undoing)
    assert [row for row in merged(table, *META) if row[0] != last][:3] == without[:3]


def undo_behind_the_back(table: Path, victim: str) -> None:
    """Put a completed rollback on the timeline, as somebody does who does not know of the compaction."""
    from pyhudi.operations.rollback.rollback import plan_of
    from pyhudi.operations.transaction.commit_path import time_after

    opened = open_table(open_storage(str(table)))
    timeline = opened.timeline()
    undone_instant = timeline.write_at(victim)
    assert undone_instant is not None
    rollback = Instant(time_after(opened, timeline), "rollback", State.REQUESTED)
    timeline.files.request(rollback, timeline.files.codec.encode(plan_of(opened, undone_instant, [])))


def base_files(table: Path, instant: str) -> list[Path]:
    return [one for one in table.rglob(f"*_{instant}.parquet") if ".hoodie" not in one.parts]
