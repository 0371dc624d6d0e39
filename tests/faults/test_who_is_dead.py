"""Whose pending write the next one rolls back: by this machine's steady clock, and by the user's word."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyhudi.errors import CommitConflictError, ConcurrentWriteError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.rollback.pending import OtherWriters, PlannedRollback
from pyhudi.operations.rollback.rollback import roll_back
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.writers import heartbeat, owner
from pyhudi.timeline.writers.patience import Patience
from support.drive import carry_out, noted, plan, rows_of, task, write
from support.faults.races import SCHEMA, TABLE, interleaved, rows
from support.rules.ends import assert_whole
from support.seams import patch_seam

ALONE = Patience(single_writer=True)
QUICK = WriteSettings(patience=replace(ALONE, heartbeat_interval_s=0.4, heartbeat_misses=2))
THEIRS = "20260101000000000"


def watches_nothing(patch: pytest.MonkeyPatch) -> None:
    """Let a test fail where a writer watches another's heartbeat, which takes up to the 120 s of its tolerance."""

    def watched(seconds: float) -> None:
        raise AssertionError("a writer watches the heartbeat of another")

    patch_seam(patch, "clock of heartbeats", SimpleNamespace(monotonic=time.monotonic, time=time.time, sleep=watched))


@pytest.fixture
def _an_hour_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the machine's clock step once everything so far is written."""
    patch_seam(monkeypatch, "time of a local store", lambda self: time.time() + 3600)


@pytest.mark.usefixtures("_an_hour_ahead")
def test_a_living_write_of_this_machine_outlives_a_step_of_its_clock(tmp_path: Path) -> None:
    """Its heartbeats go on, and are seen to."""
    write(tmp_path, rows("a", "k1", value=1), table=TABLE)
    living = plan(tmp_path, SCHEMA)
    result = task(living, rows("a", "k1", value=2), 0)
    with (
        heartbeat.HeartbeatThread(open_storage(str(tmp_path)), noted(living), interval_s=0.1),
        pytest.raises(ConcurrentWriteError, match=rf"{noted(living)}.*kill {os.getpid()}"),
    ):
        plan(tmp_path, SCHEMA, settings=WriteSettings(patience=replace(ALONE, heartbeat_interval_s=15.0)))
    commit_write(living, [result])

    assert rows_of(tmp_path, "value") == [(2,)]
    assert_whole(tmp_path)


@pytest.mark.usefixtures("_an_hour_ahead")
def test_a_write_waits_for_no_other_and_leaves_it_while_its_process_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [rows("a", "k1", value=1), rows("b", "k1", value=1)], table=TABLE)
    silent = plan(tmp_path, SCHEMA)
    result = task(silent, rows("a", "k1", value=2), 0)
    watches_nothing(monkeypatch)
    write(tmp_path, rows("b", "k1", value=3))
    commit_write(silent, [result])

    assert rows_of(tmp_path, "p", "value") == [("a", 2), ("b", 3)]
    assert_whole(tmp_path)


def test_a_write_whose_process_is_gone_is_rolled_back_after_the_next_commit(tmp_path: Path) -> None:
    write(tmp_path, rows("a", "k1", value=1), table=TABLE)
    dead = plan(tmp_path, SCHEMA)
    dead = replace(dead, transaction=replace(dead.transaction, owner=replace(dead.transaction.owner, pid=2**22 + 1)))
    task(dead, rows("a", "k1", value=2), 0)
    after = write(tmp_path, rows("a", "k1", value=3)).instant

    timeline = open_table(open_storage(str(tmp_path))).timeline()
    assert timeline.find(noted(dead)) is None
    assert [one.requested_time > after for one in timeline.completed if one.action == "rollback"] == [True]
    assert rows_of(tmp_path, "value") == [(3,)]
    assert_whole(tmp_path)


@pytest.mark.usefixtures("_an_hour_ahead")
def test_a_write_that_stood_still_is_rolled_back_by_tasks_that_do_not_watch_it_again(tmp_path: Path) -> None:
    """The plan's process has watched it; a task, which does not wait again, takes its word."""
    write(tmp_path, rows("a", "k1", value=1), table=TABLE)
    still = plan(tmp_path, SCHEMA, settings=QUICK)
    task(still, rows("a", "k1", value=2), 0)
    planned = plan(tmp_path, SCHEMA, settings=QUICK)
    owner._first_sights.clear()
    carry_out(planned, [rows("a", "k2", value=3)])

    assert rows_of(tmp_path, "id", "value") == [("k1", 1), ("k2", 3)]


def test_a_write_that_gives_a_sign_of_life_after_the_plan_is_not_rolled_back(tmp_path: Path) -> None:
    """Only the heartbeat that the plan found overdue is overdue."""
    write(tmp_path, rows("a", "k1", value=1), table=TABLE)
    impatient = WriteSettings(patience=replace(ALONE, heartbeat_interval_s=0.4, heartbeat_misses=-1))
    slow = plan(tmp_path, SCHEMA, settings=impatient)
    result = task(slow, rows("a", "k1", value=2), 0)
    planned = plan(tmp_path, SCHEMA, settings=impatient)
    heartbeat.Heartbeat(open_storage(str(tmp_path)), noted(slow)).touch()
    patient = replace(planned, transaction=replace(planned.transaction, patience=ALONE))
    with pytest.raises(ConcurrentWriteError, match=noted(slow)):
        carry_out(patient, [rows("a", "k2", value=3)])
    commit_write(slow, [result])

    assert rows_of(tmp_path, "id", "value") == [("k1", 2)]
    assert_whole(tmp_path)


def test_a_rollback_looks_again_before_it_decides(tmp_path: Path) -> None:
    """Only the heartbeat that was overdue counts as overdue, and a later one as life."""
    write(tmp_path, rows("a", "k1", value=1), table=TABLE)
    slow = plan(tmp_path, SCHEMA)
    result = task(slow, rows("a", "k1", value=2), 0)
    storage = open_storage(str(tmp_path))
    overdue = storage.modified(heartbeat.Heartbeat(storage, noted(slow)).path)
    time.sleep(0.05)
    heartbeat.Heartbeat(storage, noted(slow)).touch()
    dead = PlannedRollback(slow.transaction.at(noted(slow)).inflight, beat=overdue)
    roll_back(OtherWriters(open_table(storage), Patience()), dead)
    commit_write(slow, [result])

    assert rows_of(tmp_path, "id", "value") == [("k1", 2)]
    assert_whole(tmp_path)


@pytest.mark.parametrize("place", ["here", "elsewhere"])
def test_the_folder_of_a_living_write_outlives_a_judge_whose_clock_is_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """It is claimed, and not on the timeline yet; a process elsewhere is judged by the clock that stamps files."""
    write(tmp_path, rows("a", "k1", value=1), table=TABLE)
    storage = open_storage(str(tmp_path))
    who = owner.Owner.of_this_process("slow")
    claim = owner.Claim(storage, "20260101000000000")
    claim.make(who if place == "here" else replace(who, host="elsewhere", boot_id="other"))
    storage.write(f"{claim.spills}/0.spill", b"rows")
    real = time.time
    if place == "here":
        # The clock of the disk steps, too.
        patch_seam(monkeypatch, "time of a local store", lambda self: real() + 3600)
    monkeypatch.setattr(time, "time", lambda: real() + 3600)
    write(tmp_path, rows("a", "k1", value=2))

    assert claim.owner() is not None
    assert storage.exists(f"{claim.spills}/0.spill")
    assert not owner.Seal(storage, claim.instant_time).is_given_up()


def test_the_folder_of_a_dead_write_goes_at_the_tolerance_or_after_a_day_without_an_owner(tmp_path: Path) -> None:
    write(tmp_path, rows("a", "k1", value=1), table=TABLE)
    storage = open_storage(str(tmp_path))
    who = replace(owner.Owner.of_this_process("dead"), host="elsewhere", boot_id="other")
    # Files of an hour ago, of an hour ago without an owner, and of two days ago without one.
    claims = [owner.Claim(storage, f"2026010100000000{number}") for number in (0, 2, 4)]
    claims[0].make(who)
    for claim, hours in zip(claims, (1, 1, 48), strict=True):
        storage.write(f"{claim.spills}/0.spill", b"rows")
        for path in (tmp_path / claim.folder).rglob("*.*"):
            os.utime(path, (time.time() - hours * 3600,) * 2)
    write(tmp_path, rows("a", "k1", value=2))

    assert [storage.has_files(claim.folder) for claim in claims] == [False, True, False]


def test_a_write_does_not_take_the_time_of_a_write_given_up_while_the_clock_lags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next time after the greatest is the same as before, as the clock has not reached it."""
    write(tmp_path, rows("a", "k1", value=1), table=TABLE)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    given_up = plan(tmp_path, SCHEMA)
    taken = task(given_up, rows("a", "k1", value=2), 0).instant_time
    abort_write(given_up)

    assert write(tmp_path, rows("a", "k1", value=3)).instant > taken
    assert rows_of(tmp_path, "value") == [(3,)]
    assert_whole(tmp_path)


@pytest.mark.parametrize("handed_over", [True, False])
def test_a_task_whose_files_were_taken_by_another_writer_meets_a_conflict(tmp_path: Path, handed_over: bool) -> None:
    """The store is not to blame, and a conflict is run again."""
    write(tmp_path, rows("a", "k1", value=1), table=TABLE)

    def lose(publish: Callable[[], Any]) -> Any:
        storage = open_storage(str(tmp_path))
        owner.Seal(storage, noted(slow)).set_for_good()
        storage.delete_folder(owner.Claim(storage, noted(slow)).folder)
        return publish()

    with interleaved() as moments, pytest.raises(CommitConflictError, match=r"taking its writer for dead") as met:
        slow = plan(tmp_path, SCHEMA, settings=WriteSettings(colocated=not handed_over))
        moments.planned["publish"] = lose
        task(slow, rows("a", "k1", value=2), 0)
    assert noted(slow) in met.value.what
    abort_write(slow)

    assert rows_of(tmp_path, "value") == [(1,)]
    write(tmp_path, rows("a", "k1", value=3))
    assert_whole(tmp_path)


@pytest.mark.parametrize("word", [Patience(eager=True), Patience(foreign_age_s=3600.0)], ids=["eager", "age"])
def test_a_foreign_write_without_heartbeat_is_dead_by_the_users_word_alone(tmp_path: Path, word: Patience) -> None:
    """A streaming writer keeps an instant open for hours, idle."""
    write(tmp_path, rows("a", "k1", value=1), table=TABLE)
    for state in ("deltacommit.requested", "deltacommit.inflight"):
        path = tmp_path / ".hoodie" / "timeline" / f"{THEIRS}.{state}"
        path.touch()
        os.utime(path, (time.time() - 86_400,) * 2)
    with pytest.raises(ConcurrentWriteError) as refused:
        write(tmp_path, rows("a", "k2", value=2))
    for named in (THEIRS, "24 hours old", f"it last wrote .hoodie/timeline/{THEIRS}.deltacommit.", "EAGER", "max.age"):
        assert named in str(refused.value)
    assert (tmp_path / ".hoodie" / "timeline" / f"{THEIRS}.deltacommit.inflight").exists()

    write(tmp_path, rows("a", "k2", value=2), settings=WriteSettings(patience=word))

    assert rows_of(tmp_path, "id", "value") == [("k1", 1), ("k2", 2)]
    assert not list((tmp_path / ".hoodie" / "timeline").glob(f"{THEIRS}*"))


def test_a_dead_write_of_another_host_is_gone_soon_and_archiving_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two writes at work the one that beats stays, and archiving gets past the other."""
    write(tmp_path, [rows("a", "k1", value=1), rows("b", "k1", value=1), rows("c", "k1", value=1)], table=TABLE)
    dead = plan(tmp_path, SCHEMA)
    elsewhere = replace(dead.transaction.owner, host="elsewhere", boot_id="other")
    dead = replace(dead, transaction=replace(dead.transaction, owner=elsewhere))
    task(dead, rows("a", "k1", value=2), 0)
    first = [write(tmp_path, rows("b", "k1", value=number)).instant for number in range(3)]
    living = plan(tmp_path, SCHEMA)
    result = task(living, rows("c", "k1", value=5), 0)
    table = open_table(open_storage(str(tmp_path)))
    keeps_two = ArchiveSettings(min_commits=1, max_commits=2)
    archive(table.storage, keeps_two)
    assert {*first, noted(dead)} <= {one.requested_time for one in table.timeline().instants}

    now = time.time() + Patience().heartbeat_tolerance_s + 60
    patch_seam(monkeypatch, "time of a local store", lambda self: now)
    watches_nothing(monkeypatch)
    for number in range(3):
        write(tmp_path, rows("b", "k1", value=10 + number))
    archive(table.storage, keeps_two)
    left = {one.requested_time for one in table.timeline().instants}
    assert noted(dead) not in left
    assert noted(living) in left
    assert not {*first[:-1]} & left
    commit_write(living, [result])

    assert rows_of(tmp_path, "p", "value") == [("a", 1), ("b", 12), ("c", 5)]
    assert_whole(tmp_path)
