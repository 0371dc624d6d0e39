"""What writes to merge-on-read tables do for their log files once they are complete."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import StorageError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.result import CommitResult, ServiceResult
from pyhudi.operations.services.compaction import after_write
from pyhudi.operations.services.settings import CompactionSettings, Upkeep
from support.compacting import TABLE, in_bases, merged, rows, run, schedule, slices, timeline_of
from support.drive import write

OFTEN = CompactionSettings(delta_commits=3)


def upsert(path: Path, value: int, compaction: CompactionSettings = OFTEN, **settings: object) -> CommitResult:
    given = replace(WriteSettings(upkeep=Upkeep(compaction=compaction)), **settings)  # type: ignore[arg-type]
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
    assert (done.error, done.left, done.file_groups, done.log_files) == ("", "", 2, 4)
    assert actions(table) == "deltacommit deltacommit deltacommit commit deltacommit deltacommit"
    assert merged(table) == [("a", f"k{key}", 4) for key in range(6)]
    assert in_bases(table) == [("a", f"k{key}", 2) for key in range(6)]
    (again,) = compactions(upsert(table, 5))
    assert again.log_files == 6


def test_by_default_five_delta_commits_make_it_due(tmp_path: Path) -> None:
    """As in Apache Hudi, where Spark writes; the first write counts."""
    did = [compactions(upsert(tmp_path / "t", value, CompactionSettings())) for value in range(5)]

    assert [len(one) for one in did] == [0, 0, 0, 0, 1]


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
        (left,) = compactions(upsert(table, 2, commit_merge_max_bytes=1000))

    assert (left.instant, left.error, left.file_groups) == ("", "", 0)
    assert "hoodie.pyhudi.commit.merge.max.bytes allows 1,000" in left.left
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
    assert "somebody else's" in left.left
    assert next(one.requested_time for one in timeline_of(table).writes if one.action == "commit") == plan.instant
    assert merged(table) == [("a", f"k{key}", 9) for key in range(6)]


def test_a_compaction_that_fails_does_not_fail_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "t"

    def failing(*_: object, **__: object) -> None:
        raise StorageError("The disk is gone.", "Find it.")

    for value in range(2):
        upsert(table, value)
    monkeypatch.setattr(after_write, "compact", failing)
    (failed,) = compactions(upsert(table, 2))

    assert "The disk is gone" in failed.error
    assert merged(table) == [("a", f"k{key}", 2) for key in range(6)]
    assert all(one.logs for one in slices(table))
