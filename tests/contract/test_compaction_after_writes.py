"""What writes to merge-on-read tables do for their log files once they are complete."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyhudi.errors import StorageError
from pyhudi.operations.inspect.history import history
from pyhudi.operations.result import CommitResult, ServiceResult
from pyhudi.operations.service_settings import CompactionSettings, Upkeep
from pyhudi.operations.services.compaction.compactor import Compactor
from pyhudi.operations.services.service import NoTasksError
from pyhudi.storage import open_storage
from support.drive import write, write_in_one_task
from support.made.compacting import TABLE, in_bases, means, merged, rows, run, schedule, slices, timeline_of
from support.places import files_below
from support.recorded.hudi_options import SMALL
from support.seams import patch_seam
from support.write_settings import write_settings

OFTEN = CompactionSettings(delta_commits=3)


def upsert(path: Path, value: int, compaction: CompactionSettings = OFTEN, **settings: object) -> CommitResult:
    given = write_settings(upkeep=Upkeep(compaction=compaction), **settings)
    return write(path, rows(*((f"k{key}", "a", value, value) for key in range(6))), table=TABLE, settings=given)


def compactions(result: CommitResult) -> list[ServiceResult]:
    return [one for one in result.services if one.service in {"compaction", "schedule_compaction"}]


def actions(path: Path) -> str:
    return " ".join(one.action for one in timeline_of(path).instants)


def test_a_write_compacts_when_it_is_due(tmp_path: Path) -> None:
    table = tmp_path / "t"
    did = [compactions(upsert(table, value)) for value in range(5)]

    assert [len(one) for one in did] == [0, 0, 1, 0, 0]
    (done,) = did[2]
    assert (done.error, done.skipped, done.file_groups, done.log_files) == ("", "", 2, 4)
    assert actions(table) == "deltacommit deltacommit deltacommit commit deltacommit deltacommit"
    assert merged(table) == [("a", f"k{key}", 4) for key in range(6)]
    assert in_bases(table) == [("a", f"k{key}", 2) for key in range(6)]
    (again,) = compactions(upsert(table, 5))
    assert again.log_files == 6


def test_by_default_five_delta_commits_make_it_due(tmp_path: Path) -> None:
    """As in Apache Hudi, where Spark writes; the first write counts."""
    did = [compactions(upsert(tmp_path / "t", value, CompactionSettings())) for value in range(5)]

    assert [len(one) for one in did] == [0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("trigger", "carried_out", "clock", "planned"),
    [
        ("NUM_COMMITS", True, (0, 9999, 9999, 9999, 9999, 9999), "--p--p"),
        ("NUM_COMMITS", False, (0, 9999, 9999, 9999, 9999, 9999), "--pppp"),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", True, (0, 9999, 9999, 9999, 9999, 9999), "--p--p"),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", False, (0, 9999, 9999, 9999, 9999, 9999), "--p--p"),
        ("TIME_ELAPSED", True, (0, 0, 0, 580, 620, 580, 620), "----p-p"),
        ("NUM_AND_TIME", True, (0, 620, 580, 580, 620, 620, 620, 580, 620), "----p---p"),
        ("NUM_OR_TIME", True, (0, 620, 0, 0, 0, 620), "-p--pp"),
    ],
)
def test_a_write_plans_when_its_trigger_says_so_and_not_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trigger: str,
    carried_out: bool,
    clock: tuple[int, ...],
    planned: str,
) -> None:
    """After three delta commits, ten minutes, or both: at so many seconds past the time at which each write ends.

    Plans that wait count as compactions for one trigger alone.
    """
    table, did = tmp_path / "t", ""
    options = {
        **SMALL,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.bucket.index.num.buckets": "1",
        # By the lesser one every write begins a file group with a log file, of which a plan is to wait.
        "hoodie.pyhudi.commit.merge.max.bytes": "100000" if carried_out else "1",
        "hoodie.compact.inline.trigger.strategy": trigger,
        "hoodie.compact.inline.max.delta.commits": "3",
        "hoodie.compact.inline.max.delta.seconds": "600",
    }
    for value, seconds in enumerate(clock):
        patch_seam(monkeypatch, "clock of compactions after writes", SimpleNamespace(time=partial(_later, seconds)))
        before = plans(table) if value else set()
        some = rows(("k", "a" if carried_out else f"p{value}", value, value))
        write_in_one_task(table, some, options)
        did += "p" if plans(table) - before else "-"

    assert did == planned


def plans(table: Path) -> set[str]:
    """Return the compactions of a table, pending or not."""
    return {one.requested_time for one in timeline_of(table).instants if one.action in {"compaction", "commit"}}


def _later(seconds: int) -> float:
    return time.time() + seconds


def test_a_write_that_is_not_to_compact_plans_at_most(tmp_path: Path) -> None:
    table, alone = tmp_path / "t", replace(OFTEN, inline=False, schedule_inline=True)
    for value in range(2):
        upsert(table, value, alone)
    (planned,) = compactions(upsert(table, 2, alone))

    assert (planned.service, planned.file_groups, planned.log_files) == ("schedule_compaction", 2, 4)
    assert [compactions(upsert(table, value, alone)) for value in (3, 4, 5)] == [[], [], []]
    assert actions(table).count("compaction") == 1
    assert [compactions(upsert(table, 6, replace(OFTEN, inline=False)))] == [[]]
    assert merged(table) == [("a", f"k{key}", 6) for key in range(6)]
    # What is planned is carried out first, then what is due by now.
    (done,) = compactions(upsert(table, 7))
    assert done.file_groups == 4
    assert "compaction" not in actions(table)
    assert in_bases(table) == merged(table)


def test_what_is_beyond_the_bound_of_a_commit_is_planned_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = tmp_path / "t"
    for value in range(2):
        upsert(table, value)
    with caplog.at_level(logging.WARNING, "pyhudi"):
        (left,) = compactions(upsert(table, 2, merge_max_bytes=1000))

    assert (left.instant, left.error, left.file_groups) == ("", "", 0)
    assert "hoodie.pyhudi.commit.merge.max.bytes allows 1,000" in left.skipped
    assert "HudiTable.compact" in caplog.text
    assert actions(table).endswith("compaction")
    assert merged(table) == [("a", f"k{key}", 2) for key in range(6)]
    assert run(table).file_groups == 2


def test_a_plan_that_somebody_else_carries_out_is_left_alone(tmp_path: Path) -> None:
    table, did = tmp_path / "t", []
    for value in range(2):
        upsert(table, value, replace(OFTEN, inline=False))
    plan = schedule(table)

    def meanwhile(call, units):
        if not did:
            did.append(compactions(upsert(table, 9, OFTEN)))
        return [call(one) for one in units]

    run(table, executor=meanwhile)

    ((left,),) = did
    assert (left.instant, left.error) == ("", "")
    assert "belongs to another process" in left.skipped
    assert next(one.requested_time for one in timeline_of(table).writes if one.action == "commit") == plan.instant
    assert merged(table) == [("a", f"k{key}", 9) for key in range(6)]


def test_a_compaction_that_fails_does_not_fail_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "t"

    def failing(*_: object, **__: object) -> None:
        raise StorageError("The disk is gone.", "Find it.")

    for value in range(2):
        upsert(table, value)
    patch_seam(monkeypatch, "compact after a write", failing)
    (failed,) = compactions(upsert(table, 2))

    assert "The disk is gone" in failed.error
    assert merged(table) == [("a", f"k{key}", 2) for key in range(6)]
    assert all(one.logs for one in slices(table))


def test_a_plan_that_fails_every_time_is_tried_after_ever_more_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After one write, after two more, after four more; whoever asks for it by name has it tried."""
    table, tries = tmp_path / "t", []

    def failing(service: Compactor, unit: object) -> None:
        tries.append(service.work.instant_time)
        raise StorageError("The disk is gone.", "Find it.")

    with monkeypatch.context() as patch:
        patch_seam(patch, "compact a slice", failing)
        did = []
        for value in range(10):
            before = len(tries)
            (*_, done) = compactions(upsert(table, value)) or [ServiceResult("", "")]
            did.append((len(tries) > before, bool(done.error), done.skipped[-43:]))

        assert [tried for tried, _, _ in did] == [n in (2, 3, 5, 9) for n in range(10)]
        assert [failed for _, failed, _ in did] == [n in (2, 3, 5, 9) for n in range(10)]
        assert did[7][2] == "after 2 more writes, and by HudiTable.compact"[-43:]
        assert "failed 3 times in a row (The disk is gone." in caplog.text
        (pending,) = [one for one in history(open_storage(str(table))).to_pylist() if one["failures"]]
        assert (pending["action"], pending["failures"], pending["instant"]) == ("compaction", 4, tries[0])
        assert "The disk is gone" in pending["error"]
        with pytest.raises(StorageError, match="The disk is gone"):
            run(table)
        assert len(set(tries)) == 1

    assert run(table).log_files > 0
    assert in_bases(table) == merged(table) == [("a", f"k{key}", 9) for key in range(6)]
    assert not [name for name in files_below(table) if "/failed/" in name]
    assert not any(history(open_storage(str(table))).column("failures").to_pylist())


def test_what_is_noted_of_a_plan_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a note that says nothing of use is none."""
    table = tmp_path / "t"
    for value in range(2):
        upsert(table, value)
    with monkeypatch.context() as patch:
        patch_seam(patch, "compact a slice", None)
        upsert(table, 2)
    (note,) = [name for name in files_below(table) if "/failed/" in name]
    (table / note).write_bytes(b"{}")
    of_nobody = (table / note).with_name("20200101000000000")
    of_nobody.write_bytes(b'{"times": 9, "after": "99999999999999999", "error": ""}')

    (done,) = compactions(upsert(table, 3))

    assert (done.error, done.skipped, done.log_files) == ("", "", 4)
    assert not of_nobody.exists()


def test_a_small_plan_needs_no_tasks(tmp_path: Path) -> None:
    """A job of the engine would take longer to begin."""
    table = tmp_path / "t"
    for value in range(3):
        upsert(table, value, replace(OFTEN, inline=False))
    own = means(open_storage(str(table)), executor=None)

    done = run(table, executor=lambda call, units: pytest.fail(f"tasks for {call, units}"), without_tasks=own)

    assert (done.file_groups, done.skipped) == (2, "")
    assert in_bases(table) == [("a", f"k{key}", 2) for key in range(6)]


def test_without_tasks_this_process_merges_up_to_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    patch_seam(monkeypatch, "bytes of a plan that needs no tasks", 0)
    table = tmp_path / "t"
    for value in range(3):
        upsert(table, value, replace(OFTEN, inline=False))
    own = means(open_storage(str(table)), executor=None)

    def nowhere(call: object, units: object) -> None:
        raise NoTasksError("there are no tasks")

    left = run(table, executor=nowhere, without_tasks=replace(own, most_bytes=1000))
    assert (left.instant, left.file_groups) == ("", 0)
    assert "there are no tasks" in left.skipped
    assert "connector.jobs compact carries it out" in left.skipped
    assert "compaction" in actions(table)

    done = run(table, executor=nowhere, without_tasks=replace(own, most_bytes=1 << 20))
    assert (done.file_groups, done.skipped) == (2, "")
    assert "this process merges the 2 file groups" in caplog.text
    assert in_bases(table) == merged(table) == [("a", f"k{key}", 2) for key in range(6)]
