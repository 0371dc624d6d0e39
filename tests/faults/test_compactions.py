"""Compactions that fail, die or sleep at every step, several at once, and beside writers: no row is lost or doubled."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest
from pyhudi.errors import RetryError
from pyhudi.operations.service_settings import KEEP_LATEST_FILE_VERSIONS, ArchiveSettings, CleanSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.compaction.compact import compact
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from pyhudi.timeline.instants import State
from support.faults.steps import Share, steps_of
from support.faults.stops import Stop
from support.made.compacting import ALL, append, in_bases, merged, new_table, run, schedule, slices, timeline_of
from support.places import copied
from support.upkeep.merge_steps import META, Ends, Merge, check_taken_back

NEWEST = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1)
FEW = ArchiveSettings(min_commits=1, max_commits=1, delta_commits=None)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two file groups that have log files, of one of which nothing is left, and one without."""
    table = tmp_path_factory.mktemp("made") / "t"
    new_table(table, ("k1", "a", 10, 1), ("k2", "b", 10, 2), ("k3", "c", 10, 3))
    append(table, ("k1", "a", 20, 11), ("k4", "a", 1, 4))
    append(table, ("k1", "a", 15, 12), gone=[("k2", "b", None)])
    return table


def check(table: Path, name: str) -> None:
    """Assert that all is in base files, and in those that are named."""
    assert not any(one.logs for one in slices(table)), name
    assert in_bases(table) == merged(table), name
    timeline = timeline_of(table)
    assert {one.state for one in timeline.instants} == {State.COMPLETED}, name
    for instant in timeline.writes:
        if instant.action == "commit":
            body = timeline.files.read_commit(instant)
            named = {stat.path for stats in body.partition_to_write_stats.values() for stat in stats}
            paths = {
                path.relative_to(table).as_posix() for path in table.rglob(f"[!.]*_{instant.requested_time}.parquet")
            }
            assert paths == named, name


COMPACT = Merge(lambda storage, means: compact(storage, ALL, means), run, check)
SOME = steps_of("compaction", 12, by_suite=True)


@SOME
@pytest.mark.parametrize("how", ["before", "after", "killed"])
def test_a_compaction_that_fails_at_any_step_is_finished_by_the_next(
    made: Path, tmp_path: Path, how: str, share: Share
) -> None:
    before, ends = merged(made, *META), Ends(COMPACT, made)
    for table, name in COMPACT.failed(made, tmp_path, share, how):
        assert merged(table, *META) == before, name
        # Whoever comes next finds nothing that it has to wait for, and compacts once, under the time that was planned.
        asked = [one for one in timeline_of(table).instants if one.group == "commit"]
        assert len(asked) < 2, name
        if ends.check(table, name):
            done = [one.requested_time for one in timeline_of(table).writes if one.action == "commit"]
            assert [one.requested_time for one in asked] in ([], done), name


@SOME
def test_one_that_sleeps_at_any_step_while_others_compact_and_write(made: Path, tmp_path: Path, share: Share) -> None:
    """It counts as dead, is taken over, and wakes up when all is done and a new delta commit is there."""

    def others(table: Path) -> None:
        run(table)
        append(table, ("k1", "a", 30, 31))

    ends = Ends(COMPACT, made)
    for table, name in COMPACT.stopped(made, tmp_path, share, others):
        assert merged(table) == [("a", "k1", 31), ("a", "k4", 4), ("c", "k3", 3)], name
        ends.check(table, name)


@SOME
def test_a_writer_that_appends_at_any_step_is_seen(made: Path, tmp_path: Path, share: Share) -> None:
    """Before the plan it is merged, after it the row belongs to the slice that the compaction begins."""

    def writer(table: Path) -> None:
        append(table, ("k1", "a", 30, 31), ("k2", "b", 40, 32), gone=[("k3", "c", None)])

    ends = Ends(COMPACT, made)
    for table, name in COMPACT.stopped(made, tmp_path, share, writer, ends=True):
        assert merged(table) == [("a", "k1", 31), ("a", "k4", 4), ("b", "k2", 32)], name
        ends.check(table, name)


@SOME
def test_a_plan_that_is_taken_back_at_any_step_of_its_execution_is_gone(
    made: Path, tmp_path: Path, share: Share
) -> None:
    planned = copied(made, tmp_path / "planned")
    check_taken_back(COMPACT, planned, schedule(planned).instant, tmp_path, share)


@pytest.mark.parametrize("how", ["done", "taken back"])
def test_a_plan_that_is_over_before_it_is_read_is_nobodys_work(made: Path, tmp_path: Path, how: str) -> None:
    """Whoever found it pending a moment ago has nothing to carry out, and nothing is wrong with the table."""
    planned = copied(made, tmp_path / "planned")
    plan = schedule(planned)
    for number in range(1, 13):
        table = copied(planned, tmp_path / f"t{number}")

        def another(table: Path = table) -> None:
            storage = open_storage(str(table))
            if how == "done":
                run(table)
                clean(storage, NEWEST)
                archive(storage, FEW)
            else:
                rollback(storage, plan.instant)

        stop = Stop(at=number, awake=True, meanwhile=another)
        with contextlib.suppress(RetryError):
            COMPACT.attempt(table, stop)
        run(table)
        assert in_bases(table) == merged(made), f"step {number} ({stop.name_of(number)})"
        shutil.rmtree(table)
