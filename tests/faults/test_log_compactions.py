"""Log compactions that fail, die or sleep at every step, and beside writers: no row or delete is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi.operations.services.compaction.compact import compact
from pyhudi.timeline.instants import State
from support.faults.steps import Share, steps_of
from support.made.compacting import (
    TWO,
    append,
    blocks,
    in_bases,
    join,
    merged,
    new_table,
    plan_join,
    run,
    slices,
    timeline_of,
)
from support.places import copied
from support.upkeep.merge_steps import META, Ends, Merge, assert_merged, check_taken_back


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two file groups that have two log files each, and one that has none."""
    table = tmp_path_factory.mktemp("made") / "t"
    new_table(table, ("k1", "a", 10, 1), ("k2", "b", 10, 2), ("k3", "c", 10, 3))
    append(table, ("k1", "a", 20, 11), ("k2", "b", 20, 12))
    append(table, ("k1", "a", 15, 12), gone=[("k2", "b", 30)])
    return table


def check(table: Path, name: str) -> None:
    """Assert that there are as few blocks as can be, in the log files that are named."""
    for file_slice in slices(table):
        assert len(blocks(table, file_slice)) < 2, name
    timeline = timeline_of(table)
    assert {one.state for one in timeline.instants} <= {State.COMPLETED}, name
    for instant in timeline.writes:
        body = timeline.files.read_commit(instant)
        if body.operation_type == "LOG_COMPACT":
            named = {stat.path for stats in body.partition_to_write_stats.values() for stat in stats}
            paths = {path.relative_to(table).as_posix() for path in table.rglob(f".*_{instant.requested_time}.log.*")}
            # Markers stay where it failed as it was taking them away.
            assert {path for path in paths if not path.startswith(".hoodie/")} == named, name


JOIN = Merge(lambda storage, means: compact(storage, TWO, means), join, check)
SOME = steps_of("log-compaction", 14, by_suite=True)


@SOME
@pytest.mark.parametrize("how", ["before", "after", "killed"])
def test_one_that_fails_at_any_step_is_finished_by_the_next(made: Path, tmp_path: Path, how: str, share: Share) -> None:
    before, ends = merged(made, *META), Ends(JOIN, made)
    for table, name in JOIN.failed(made, tmp_path, share, how):
        assert merged(table, *META) == before, name
        asked = [one for one in timeline_of(table).instants if one.action == "logcompaction"]
        assert len(asked) < 2, name
        ends.check(table, name)


@SOME
def test_one_that_sleeps_at_any_step_while_others_join_compact_and_write(
    made: Path, tmp_path: Path, share: Share
) -> None:
    """It counts as dead, is taken over, and wakes up when all is done, compacted, and a new delta commit is there."""

    def others(table: Path) -> None:
        join(table)
        run(table)
        append(table, ("k1", "a", 30, 31))

    ends = Ends(JOIN, made)
    for table, name in JOIN.stopped(made, tmp_path, share, others):
        assert merged(table) == [("a", "k1", 31), ("c", "k3", 3)], name
        if ends.is_new(table):
            # The next that is planned takes along what is noted of one that failed.
            append(table, ("k1", "a", 31, 32))
            before = merged(table, *META)
            assert join(table).instant, name
            assert_merged(JOIN, table, before, name)


@SOME
def test_a_writer_that_appends_at_any_step_is_seen(made: Path, tmp_path: Path, share: Share) -> None:
    """Before the plan its log files are joined, too; after it they come behind."""

    def writer(table: Path) -> None:
        append(table, ("k1", "a", 20, 31), ("k2", "b", 29, 32), gone=[("k3", "c", None)])

    ends = Ends(JOIN, made)
    for table, name in JOIN.stopped(made, tmp_path, share, writer, ends=True):
        assert merged(table) == [("a", "k1", 31)], name
        if ends.check(table, name):
            run(table)
            assert in_bases(table) == merged(table), name


@SOME
def test_a_plan_that_is_taken_back_at_any_step_of_its_execution_is_gone(
    made: Path, tmp_path: Path, share: Share
) -> None:
    planned = copied(made, tmp_path / "planned")
    check_taken_back(JOIN, planned, plan_join(planned).instant, tmp_path, share)
