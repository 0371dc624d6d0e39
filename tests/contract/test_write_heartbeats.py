"""The heartbeat of a write by the process that waits for its tasks: between tasks, and never longer than the write.

No test waits: an interval passes when it says so, by which each heartbeat gets as much older.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyhudi.errors import StorageError
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.operations.write.task import TaskResult
from pyhudi.storage import open_storage
from pyhudi.timeline.writers.heartbeat import Heartbeat
from pyhudi.timeline.writers.owner import Claim
from pyhudi.timeline.writers.patience import Patience
from pyhudi.timeline.writers.write_heartbeat import WriteHeartbeat
from support.attempts import SCHEMA, rows
from support.drawn.upkept import OFF
from support.drive import KEYED, noted, plan, task, write
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam
from support.write_settings import write_settings

# Much longer than a test takes on a busy machine.
INTERVAL_S = 600.0
SETTINGS = write_settings(upkeep=OFF, retry_s=600.0, patience=Patience(heartbeat_interval_s=INTERVAL_S))


class Intervals(threading.Event):
    """What the thread of a heartbeat waits for: the next interval is over, or the write is."""

    def __init__(self) -> None:
        super().__init__()
        self._passed, self._waited = threading.Semaphore(0), threading.Semaphore(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Return whether the write is over, once an interval is or the write."""
        assert timeout == INTERVAL_S
        self._waited.release()
        self._passed.acquire()
        return self.is_set()

    def set(self) -> None:
        """End the write."""
        super().set()
        self._passed.release()

    def pass_by(self, planned: WritePlan, count: int) -> None:
        """Let intervals pass, in each of which the thread does what it has to do."""
        for _ in range(count):
            assert self._waited.acquire(timeout=INTERVAL_S), "the thread has ended"
            grow_old(planned)
            self._passed.release()
        assert self._waited.acquire(timeout=INTERVAL_S), "the thread has ended"
        self._waited.release()


def grow_old(planned: WritePlan) -> None:
    """Have all heartbeats be an interval older."""
    for one in heartbeats(planned):
        path = Path(planned.path, one)
        os.utime(path, (path.stat().st_mtime - INTERVAL_S,) * 2)


@contextmanager
def beating(planned: WritePlan) -> Iterator[Intervals]:
    """Give the heartbeat of a write while the block runs."""
    intervals = Intervals()
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "threads of heartbeats", SimpleNamespace(Event=lambda: intervals, Thread=threading.Thread))
        given = WriteHeartbeat(planned.storage, planned.transaction.key, INTERVAL_S)
    with given:
        yield intervals


@pytest.fixture
def begun(tmp_path: Path) -> tuple[WritePlan, TaskResult]:
    """A write of which the first task is done, and no other has begun."""
    write(tmp_path / "t", rows(1, 2, value=1), table=KEYED, settings=SETTINGS)
    planned = plan(tmp_path / "t", SCHEMA, settings=SETTINGS)
    return planned, task(planned, rows(1, value=2, ts=2), 0)


def heartbeat(planned: WritePlan) -> Heartbeat:
    return Heartbeat(planned.storage, noted(planned))


def heartbeats(planned: WritePlan) -> list[str]:
    return [info.path for info in planned.storage.list(".hoodie/.heartbeat", strict=False)]


def test_the_heartbeat_is_young_while_no_task_runs(begun: tuple[WritePlan, TaskResult]) -> None:
    planned, result = begun
    with beating(planned) as intervals:
        intervals.pass_by(planned, 5)
        age = heartbeat(planned).age()
        assert age is not None
        assert age < 3 * INTERVAL_S
        commit_write(planned, [result])
        intervals.pass_by(planned, 2)

    assert heartbeats(planned) == []
    assert_whole(planned.path)


def test_it_follows_a_write_to_the_instant_of_its_next_note(begun: tuple[WritePlan, TaskResult]) -> None:
    """The instant before is another write's by now, and keeps its own signs of life."""
    planned, _ = begun
    first = noted(planned)
    second = f"{int(first) + 2:017}"
    assert planned.transaction.notes.make(2, second)
    Claim(planned.storage, second).make(planned.transaction.owner)
    Heartbeat(planned.storage, second).touch()
    grow_old(planned)
    with beating(planned) as intervals:
        intervals.pass_by(planned, 4)
        ages = [Heartbeat(planned.storage, one).age() or 0.0 for one in (first, second)]

    assert ages[1] < 3 * INTERVAL_S < ages[0]


def test_the_log_names_the_instant_whose_heartbeat_cannot_be_touched(
    begun: tuple[WritePlan, TaskResult], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    planned, _ = begun

    def broken(_: Heartbeat) -> None:
        raise StorageError("The store is away.", "Try again.")

    patch_seam(monkeypatch, "touch a heartbeat", broken)
    grow_old(planned)
    with beating(planned) as intervals:
        intervals.pass_by(planned, 2)

    assert f"the heartbeat of {noted(planned)} could not be touched" in caplog.text


def test_a_short_write_costs_no_request(begun: tuple[WritePlan, TaskResult], monkeypatch: pytest.MonkeyPatch) -> None:
    planned, _ = begun
    asked: list[object] = []
    patch_seam(monkeypatch, "find a note of a write", lambda *given: asked.append(given))
    with WriteHeartbeat(planned.storage, planned.transaction.key, 60.0):
        pass

    assert asked == []


@pytest.mark.parametrize("end", ["sealed", "aborted", "rolled back", "not begun", "of another write"])
def test_a_write_that_is_not_at_work_gets_no_heartbeat(begun: tuple[WritePlan, TaskResult], end: str) -> None:
    planned, _ = begun
    at = noted(planned)
    if end == "sealed":
        planned.at(at).transaction.seal.set(planned.transaction.key)
    elif end == "aborted":
        abort_write(planned)
    elif end == "rolled back":
        planned.storage.delete_folder(f".hoodie/.pyhudi/{at}")
    elif end == "of another write":
        planned.storage.delete_folder(f".hoodie/.pyhudi/{at}")
        Claim(planned.storage, at).make(replace(planned.transaction.owner, key="2026010100/" + "0" * 32))
    else:
        planned = plan(planned.path, SCHEMA, settings=SETTINGS)
    Heartbeat(planned.storage, at).delete()
    with beating(planned) as intervals:
        intervals.pass_by(planned, 3)

    assert heartbeats(planned) == []


def test_a_write_whose_process_is_gone_stays_dead(
    begun: tuple[WritePlan, TaskResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that waits for it, such as a client of Spark Connect, does not keep it alive."""
    planned, _ = begun
    patch_seam(monkeypatch, "find a process", lambda _: None)
    grow_old(planned)
    with beating(planned) as intervals:
        intervals.pass_by(planned, 4)
        age = heartbeat(planned).age()

    assert age is not None
    assert age > 4 * INTERVAL_S


def test_a_heartbeat_that_a_late_touch_brings_back_goes_with_the_write(
    begun: tuple[WritePlan, TaskResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write ends between the look at its seal and the touch."""
    planned, result = begun
    original, waiting = read_seam("touch a heartbeat"), [True]

    def touch(self: Heartbeat) -> None:
        if waiting and waiting.pop():
            with monkeypatch.context() as patch:
                patch_seam(patch, "touch a heartbeat", original)
                commit_write(planned, [result])
        original(self)

    grow_old(planned)
    patch_seam(monkeypatch, "touch a heartbeat", touch)
    with beating(planned) as intervals:
        intervals.pass_by(planned, 4)
        assert heartbeats(planned) != []

    assert heartbeats(planned) == []
    assert_whole(planned.path)


def test_a_write_that_its_own_process_keeps_alive_is_not_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer on another host, which knows no more than the heartbeat, sees it at work, though no task of it runs."""
    table = tmp_path / "t"
    write(table, rows(1, 2, value=1), table=KEYED, settings=SETTINGS)
    planned = plan(table, SCHEMA, settings=SETTINGS)
    result = task(planned, rows(1, value=2, ts=2), 0)
    patch_seam(monkeypatch, "id of the machine", lambda: "another machine")
    with beating(planned) as intervals:
        intervals.pass_by(planned, 6)
        write(table, rows(3, value=3), settings=SETTINGS)
        done = commit_write(planned, [result])

    assert done.updates == 1
    assert heartbeats(planned) == []
    assert open_storage(str(table)).list(".hoodie/.heartbeat", strict=False) == []
