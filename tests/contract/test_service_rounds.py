"""Rounds of services beside living writers, beside dead ones, and beside each other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.connector.command.changing import repeat_rounds
from pyhudi.errors import InvalidOptionError, RetryError, StorageError
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.result import ServiceResult, ServicesResult
from pyhudi.operations.service_settings import (
    ArchiveSettings,
    CleanSettings,
    CompactionSettings,
    LogCompactionSettings,
    Upkeep,
)
from pyhudi.operations.services.execution import claim
from pyhudi.operations.upkeep.after_write import means_of
from pyhudi.operations.upkeep.service_entry import Call
from pyhudi.operations.upkeep.service_round import run_services
from pyhudi.operations.write.commit import commit_write
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import State
from pyhudi.timeline.writers.patience import Patience
from pyhudi.timeline.writers.reserve import Reserve
from support.drive import carry_out, plan, rows_of, task, write
from support.made.compacting import SCHEMA, Row, append, begin, new_table, rows, schedule, timeline_of
from support.seams import patch_seam
from support.threads import HANGS_S, at_once
from support.upkeep.meetings import COW, MOR, QUIET, Scene

SOON = Upkeep(CleanSettings(commits=1), ArchiveSettings(min_commits=2, max_commits=3))
PATIENT = Patience()


def call_of(path: Path, upkeep: Upkeep = SOON, executor: Any = None) -> Call:
    means = replace(means_of(QUIET, executor=executor), patience=PATIENT)
    return Call(open_storage(str(path)), PATIENT, lambda: upkeep, lambda: means)


def by_name(done: ServicesResult) -> dict[str, ServiceResult]:
    return {one.service: one for one in done.services}


def findings(path: Path) -> list[dict[str, object]]:
    return validate(open_storage(str(path)), deep=True).to_pylist()  # O(findings)


@pytest.mark.parametrize("made", [COW, MOR], ids=["copy-on-write", "merge-on-read"])
def test_a_round_does_beside_a_held_write_what_the_write_does_not_need(made: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for n in range(4):
        write(path, rows(("k1", "a", n, n), ("k2", "b", n, n)), table=made, settings=QUIET)
    held, *others = (plan(path, SCHEMA, settings=QUIET) for _ in range(8))
    task_result = task(held, rows(("k1", "a", 50, 50)), 0)
    for n, other in enumerate(others):
        carry_out(other, [rows((f"k{3 + n}", "cdefghi"[n], n, n))])

    round_ = run_services(call_of(path))

    assert round_.failed == ()
    assert f"{task_result.instant_time} of process" in by_name(round_)["rollback"].skipped
    assert "at work since" in by_name(round_)["rollback"].skipped
    assert f"stay for the {held.transaction.action} {task_result.instant_time}" in by_name(round_)["archive"].skipped
    if made is COW:
        assert by_name(round_)["clean"].files > 0
    else:
        assert by_name(round_)["compaction"].file_groups == 2
    commit_write(held, [task_result])
    expected = [("k1", 50), ("k2", 3), *((f"k{3 + n}", n) for n in range(7))]
    assert rows_of(path, "id", "value") == expected
    assert [one for one in findings(path) if one["severity"] == "error"] == []

    after = by_name(run_services(call_of(path)))

    assert after["archive"].instants > 0
    assert not after["rollback"].skipped
    assert len(timeline_of(path).writes) <= 3
    assert rows_of(path, "id", "value") == expected
    assert findings(path) == []


def test_a_dead_write_is_gone_after_a_round_and_archiving_passes_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, rows(("k1", "a", 0, 0)), table=COW, settings=QUIET)
    dead, *others = (plan(path, SCHEMA, settings=QUIET) for _ in range(6))
    at = task(dead, rows(("k1", "a", 50, 50)), 0).instant_time
    for n, other in enumerate(others):
        carry_out(other, [rows((f"k{2 + n}", "bcdef"[n], n, n))])
    Reserve(open_storage(str(path)), at).release()

    results = by_name(run_services(call_of(path)))

    assert results["rollback"].instants == 1
    assert not results["archive"].skipped
    assert timeline_of(path).find(at) is None
    assert len(timeline_of(path).writes) <= 3
    assert rows_of(path, "id", "value") == [("k1", 0), *((f"k{2 + n}", n) for n in range(5))]
    assert findings(path) == []


def logged(path: Path, count: int = 6) -> None:
    new_table(path, ("k1", "a", 0, 0), ("k2", "b", 0, 0), ("k3", "c", 0, 0))
    for n in range(count):
        append(path, ("k1", "a", n + 1, n), ("k2", "b", n + 1, n), ("k3", "c", n + 1, n))


def test_two_rounds_at_once_execute_each_plan_once(tmp_path: Path) -> None:
    path = tmp_path / "t"
    logged(path)
    schedule(path)
    executed: list[object] = []
    other_ended = threading.Event()

    def executor(call: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        executed.extend(one.group for one in units)
        # The other round meets the plan while it is executed here.
        other_ended.wait(HANGS_S)
        return [call(one) for one in units]

    def act(_: int) -> ServicesResult:
        found = run_services(call_of(path, executor=executor))
        other_ended.set()
        return found

    results = [one for one in at_once(2, act) if isinstance(one, ServicesResult)]
    results.sort(key=lambda one: by_name(one)["compaction"].file_groups)

    assert [one.failed for one in results] == [(), ()]
    assert len(executed) == len({*executed}) == 3
    assert [by_name(one)["compaction"].file_groups for one in results] == [0, 3]
    assert "belongs to another process, at work since" in by_name(results[0])["compaction"].skipped
    assert not [one for one in timeline_of(path).instants if one.action == "rollback"]
    assert findings(path) == []


def test_two_jobs_at_once_execute_each_plan_once(tmp_path: Path) -> None:
    path = tmp_path / "t"
    logged(path)
    schedule(path)
    command = [sys.executable, "-m", "pyhudi.connector.jobs", "services", f"--path={path}"]

    jobs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [one.communicate(timeout=HANGS_S) for one in jobs]

    assert [(one.returncode, text[1]) for one, text in zip(jobs, told, strict=True) if one.returncode] == []
    services = [one for text in told for one in json.loads(text[0])["services"] if one["service"] == "compaction"]
    assert sum(one["file_groups"] for one in services) == 3
    completed = [one for one in timeline_of(path).completed if one.action == "commit"]
    assert len(completed) == 1
    assert not [one for one in timeline_of(path).instants if one.action == "rollback"]


def test_a_round_that_is_broken_off_leaves_its_plan_to_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "t"
    logged(path)

    def executor(call: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        call(units[0])
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(HANGS_S)
        return []

    def call() -> int:
        return len(run_services(call_of(path, executor=executor)).failed)

    assert repeat_rounds(call, every_s=1, grace_s=0.05) == 4

    (pending,) = [one for one in timeline_of(path).pending if one.action == "compaction"]
    assert pending.state == State.REQUESTED
    done = run_services(call_of(path), ["compact"])
    assert (done.skipped, done.services[0].file_groups) == ((), 3)
    assert [one for one in findings(path) if one["severity"] == "error"] == []


def test_a_plan_that_a_living_process_executes_is_skipped_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t"
    logged(path)
    at = schedule(path).instant
    found = next(one for one in timeline_of(path).pending if one.requested_time == at)
    work = claim(open_table(open_storage(str(path))), found, PATIENT, application="the night's")
    assert work is not None

    result = run_services(call_of(path), ["compact"])

    assert result.failed == ()
    (skipped,) = result.skipped
    assert skipped.file_groups == 0
    for text in (at, str(work.owner.pid), work.owner.host, "the night's", "at work since"):
        assert text in skipped.skipped
    assert timeline_of(path).find(at).state == State.INFLIGHT  # type: ignore[union-attr]


def test_a_restore_in_the_way_skips_what_it_forbids_and_fails_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t"
    times = [write(path, rows(("k1", "a", n, n)), table=COW, settings=QUIET).instant for n in range(3)]
    Scene(path, tuple(times)).restore()

    result = run_services(call_of(path))

    assert result.failed == ()
    assert {one.service for one in result.skipped} >= {"rollback", "clean"}
    assert all("restore" in one.skipped for one in result.skipped)


def test_a_failure_is_reported_and_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyhudi.connector.jobs import main

    path = tmp_path / "t"
    logged(path)

    def fails(*_: object, **__: object) -> ServiceResult:
        raise StorageError("The store is away.", "Try again.")

    patch_seam(monkeypatch, "clean a table", fails)
    result = run_services(call_of(path))

    assert [one.service for one in result.failed] == ["clean"]
    assert result.warnings == ("The clean failed: PyHudiError[STORAGE]: The store is away. Try again.",)
    assert by_name(result)["compaction"].file_groups == 3
    assert "clean of" in str(result)
    assert "failed: PyHudiError[STORAGE]" in str(result)
    assert main(["services", f"--path={path}"]) == 4
    assert capsys.readouterr().err == "PyHudiError[STORAGE]: The store is away. Try again.\n"


def test_a_service_that_misses_a_file_which_another_process_took_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "t", rows(("k1", "a", 0, 0)), table=COW, settings=QUIET)
    causes: list[Exception] = [FileNotFoundError(), FileNotFoundError(), OSError()]

    def fails(storage: Storage, *_: object, **__: object) -> ServiceResult:
        if len(causes) == 1:
            return ServiceResult(storage.path, "clean")
        raise StorageError("It was archived.", "Run again.") from causes.pop(0)

    patch_seam(monkeypatch, "clean a table", fails)

    assert run_services(call_of(tmp_path / "t"), ["clean"]).failed == ()
    causes[:] = [OSError(), OSError()]
    assert run_services(call_of(tmp_path / "t"), ["clean"]).failed
    assert len(causes) == 1


def test_log_files_are_joined_where_no_compaction_is_due(tmp_path: Path) -> None:
    path = tmp_path / "t"
    logged(path)
    upkeep = replace(SOON, compaction=CompactionSettings(delta_commits=50), log_compaction=LogCompactionSettings())

    results = by_name(run_services(call_of(path, upkeep)))

    assert not results["compaction"].changed
    assert results["logcompaction"].file_groups == 3


def test_log_files_are_joined_under_a_steady_stream_of_overlapping_writes(tmp_path: Path) -> None:
    path = tmp_path / "t"
    new_table(path, ("k1", "a", 0, 0))
    upkeep = replace(SOON, log_compaction=LogCompactionSettings(blocks=2))
    joined = 0
    at_work = begin(path)
    for n in range(1, 10):
        # The next write begins before this write is complete.
        following = begin(path)
        append(path, ("k1", "a", n, n), at=at_work)
        at_work = following
        joined += by_name(run_services(call_of(path, upkeep), ["log_compact"]))["logcompaction"].log_files

    assert joined >= 6
    assert rows_of(path, "id", "value") == [("k1", 9)]


@pytest.mark.slow
@pytest.mark.parametrize("made", [COW, MOR], ids=["copy-on-write", "merge-on-read"])
def test_rounds_beside_steady_writers_lose_nothing_and_fail_nothing(made: Any, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, rows(*((f"k{one}", one, 0, 0) for one in "abc")), table=made, settings=QUIET)
    upkeep = replace(
        SOON, log_compaction=LogCompactionSettings(blocks=3), compaction=CompactionSettings(delta_commits=6)
    )
    over, rounds = threading.Event(), list[ServicesResult]()
    lost: list[BaseException] = []

    def writer(partition: str) -> None:
        try:
            for n in range(1, 11):
                write_until_complete(path, (f"k{partition}", partition, n, n))
        except BaseException as error:
            lost.append(error)
            raise

    def services() -> None:
        while not over.wait(0.1):
            rounds.append(run_services(call_of(path, upkeep)))

    writers = [threading.Thread(target=writer, args=(one,)) for one in "abc"]
    servers = [threading.Thread(target=services) for _ in range(2)]
    for item in (*writers, *servers):
        item.start()
    for item in writers:
        item.join()
    over.set()
    for item in servers:
        item.join()

    assert lost == []
    assert [text for one in rounds for text in one.warnings] == []
    assert rows_of(path, "id", "value") == [(f"k{one}", 10) for one in "abc"]
    assert [one for one in findings(path) if one["severity"] == "error"] == []
    assert sum(by_name(one)["clean"].files for one in rounds) > 0
    assert sum(by_name(one)["archive"].instants for one in rounds) > 0
    if made is MOR:
        assert sum(by_name(one)["compaction"].file_groups for one in rounds) > 0


def write_until_complete(path: Path, row: Row) -> None:
    """Write, and again where another process was in between."""
    refusals: list[str] = []
    for _ in range(60):
        try:
            write(path, rows(row), settings=QUIET)
        except RetryError as error:
            refusals.append(error.what)
            continue
        return
    raise AssertionError("\n".join(refusals))


def test_a_round_tells_its_results_as_sentences(tmp_path: Path) -> None:
    path = tmp_path / "t"
    logged(path)

    text = str(run_services(call_of(path), ["compact", "clean"]))

    assert text.startswith(f"Services of {path} in ")
    assert "3 file groups merged" in text
    assert text.endswith("Nothing was due of clean.")


def test_names_of_services_are_checked(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidOptionError, match=r"restore.*rollback, clean, compact_metadata, archive, compact, log_compact"
    ):
        run_services(call_of(tmp_path), ["restore"])
