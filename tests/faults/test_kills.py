"""Processes of a real Spark killed in the middle of a write: nothing is lost, and nothing half done stays."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from faults import slow_job
from faults.slow_job import ROWS, SETTINGS, Job, tuples
from pyhudi.operations.inspect.history import history
from pyhudi.storage import open_storage
from pyhudi.storage.process import find_process
from support.drive import rows_of, write
from support.readers import rows_by_hudi_rs
from support.rules.checks import assert_whole

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
COLUMNS = ("id", "p", "ts", "value")
# What a straggler leaves is swept after a second instead of two minutes.
BRIEF = {"hoodie.client.heartbeat.interval_in_ms": "1000", "hoodie.client.heartbeat.tolerable.misses": "1"}
# A heartbeat that is overdue after eight seconds, and a task that blocks for several times as long.
SHORT = {"hoodie.client.heartbeat.interval_in_ms": "2000", "hoodie.client.heartbeat.tolerable.misses": "4"}
BLOCKED_S = 25
# How often the other writer has to be refused, however slowly its process starts.
TRIED = 6
PATIENCE_S = 300


@contextmanager
def started(job: Job) -> Iterator[subprocess.Popen[str]]:
    """Run a job in a process of its own, which is gone at the end of the block."""
    log = Path(job.flags, f"{time.monotonic_ns()}.log")
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, slow_job.__file__, job.encode()],
            stdout=stream,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYTHONPATH": os.pathsep.join([str(TESTS / "support" / "warm"), str(TESTS)]),
            },
            cwd=job.flags,
            text=True,
        )
        process.log = log  # type: ignore[attr-defined]
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def until(what: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    """Wait until something holds; fail when the process ends before, or patience does."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        ended = process is not None and process.poll() is not None
        if not what():
            assert not ended, process.log.read_text()[-5000:]  # type: ignore[union-attr]
            assert time.monotonic() < deadline, process and process.log.read_text()[-5000:]  # type: ignore[attr-defined]
        time.sleep(0.05)


def answers(job: Job) -> list[str]:
    """Return what has come of each write of a job by now."""
    said = Path(job.flags, f"answers-{job.value}")
    return said.read_text().splitlines() if said.exists() else []


def answer(job: Job, process: subprocess.Popen[str]) -> str:
    """Wait for a job's end and return what came of its write."""
    process.wait(PATIENCE_S)
    assert process.returncode == 0, process.log.read_text()[-5000:]  # type: ignore[attr-defined]
    (said,) = answers(job)
    return said


def run(job: Job) -> str:
    """Run a job to its end."""
    with started(job) as process:
        return answer(job, process)


def stopped(job: Job, process: subprocess.Popen[str]) -> int:
    """Wait until the tasks that stop have done so in the middle of a write; return the last one's Java machine."""
    notes = [Path(job.flags, f"stopped-{partition}") for partition in job.stops]
    until(lambda: all(note.exists() for note in notes) and inflight(job), process)
    return int(notes[-1].read_text())


def inflight(job: Job) -> list[str]:
    """Return the inflight files of instants that are not completed."""
    folder = Path(job.path, ".hoodie/timeline")
    done = {one.name.split("_")[0] for one in folder.glob("*_*.commit")}
    return [one.name for one in folder.glob("*.inflight") if one.name.split(".")[0] not in done]


def kill(pid: int) -> None:
    """End one process, as the kernel does when memory is short."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: find_process(pid) is None)


def go(job: Job, partition: int) -> None:
    Path(job.flags, f"go-{partition}").touch()


def assert_holds(job: Job) -> None:
    """Assert that the table is whole and holds the job's rows, whoever reads it."""
    assert_whole(job.path)
    assert rows_of(job.path, *COLUMNS) == tuples(job)
    assert rows_by_hudi_rs(Path(job.path), *COLUMNS) == tuples(job)


def actions(job: Job) -> list[str]:
    """Return the table's actions, oldest first."""
    return history(open_storage(job.path)).column("action").to_pylist()[::-1]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with the first rows, as a job writes them."""
    job = Job(str(tmp_path_factory.mktemp("written") / "t"), "")
    rows = pa.table([pa.array(column) for column in zip(*tuples(job), strict=True)], COLUMNS)
    write(job.path, [rows.slice(at, ROWS) for at in range(0, rows.num_rows, ROWS)], table=SETTINGS)
    assert_holds(job)
    return Path(job.path)


@pytest.fixture
def first(tmp_path: Path, written: Path) -> Job:
    """The job that has written the table's first rows."""
    flags = tmp_path / "flags"
    flags.mkdir()
    shutil.copytree(written, tmp_path / "t")
    return Job(str(tmp_path / "t"), str(flags))


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
def test_an_executor_killed_in_the_middle_of_a_write_is_made_up_for(first: Job, colocated: bool) -> None:
    """Spark runs its task again elsewhere; the job commits, and nothing is left of the attempt that died."""
    job = replace(first, value=2, stops=(1,), master="local-cluster[2,1,800]", colocated=colocated)
    with started(job) as process:
        executor = stopped(job, process)
        assert executor != owner_pid(job)
        kill(executor)

        assert answer(job, process) == "COMMITTED"
    assert_holds(job)
    assert actions(job) == ["commit", "commit"]


def test_an_executor_killed_in_the_middle_of_a_lookup_is_made_up_for(tmp_path: Path) -> None:
    """It had rows, and kept some for the write; Spark makes them again elsewhere, and no key is there twice."""
    (tmp_path / "flags").mkdir()
    first = Job(str(tmp_path / "t"), str(tmp_path / "flags"), index="GLOBAL_SIMPLE")
    assert run(first) == "COMMITTED"
    job = replace(first, value=2, stops=(1,), master="local-cluster[2,1,800]")
    with started(job) as process:
        note = Path(job.flags, "stopped-1")
        until(note.exists, process)
        assert not inflight(job), "nothing is written yet"
        kill(int(note.read_text()))

        assert answer(job, process) == "COMMITTED"
    assert_holds(job)
    assert actions(job) == ["commit", "commit"]


def test_a_driver_killed_in_the_middle_of_a_write_is_rolled_back_after_the_next_commit(first: Job) -> None:
    """The instant names the driver's Java machine, which the next writer finds gone; no heartbeat is waited for."""
    job = replace(first, value=2, stops=(0, 1))
    with started(job) as process:
        machine = stopped(job, process)
        assert owner_pid(job) == machine
        kill(machine)
        process.kill()
        process.wait()
    assert rows_of(job.path, *COLUMNS) == tuples(first)

    after = replace(first, value=3)
    assert run(after) == "COMMITTED"
    assert_holds(after)
    assert actions(after) == ["commit", "commit", "rollback"]


def owner_pid(job: Job) -> int:
    """Return the process that the pending instant says is answerable for it."""
    (instant,) = (name.split(".")[0] for name in inflight(job))
    return int(json.loads(Path(job.path, ".hoodie/.pyhudi", instant, "owner.json").read_text())["pid"])


def test_a_task_that_blocks_for_long_keeps_its_write_alive(first: Job) -> None:
    """Rows that take longer than the heartbeat's tolerance do not let another session's writer in."""
    job = replace(first, value=2, stops=(1,), options=SHORT)
    other = replace(first, value=3, repeat=True, options={**SHORT, "hoodie.write.concurrency.mode": "SINGLE_WRITER"})
    with started(job) as process:
        stopped(job, process)
        began = time.monotonic()
        with started(other) as rival:
            until(
                lambda: (
                    process.poll() is not None
                    or (time.monotonic() - began > BLOCKED_S and len(answers(other)) >= TRIED)
                ),
                rival,
            )
            Path(first.flags, "enough").touch()
            rival.wait(PATIENCE_S)
        go(job, 1)

        assert answer(job, process) == "COMMITTED"
    assert set(answers(other)) == {"CONCURRENT_WRITE"}
    assert len(answers(other)) >= TRIED
    assert_holds(job)


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
def test_a_task_fails_while_its_sibling_writes(first: Job, colocated: bool) -> None:
    """Spark aborts the write while the other goes on; neither a file nor an instant stays of it."""
    before = data_files(first)
    job = replace(first, value=2, stops=(0, 1), fails=(1,), colocated=colocated)
    with started(job) as process:
        stopped(job, process)
        go(job, 1)
        until(lambda: not inflight(job), process)
        go(job, 0)

        assert answer(job, process) == "FAILED"
    assert data_files(first) == before
    assert rows_of(job.path, *COLUMNS) == tuples(first)
    assert actions(job) == ["commit"]

    time.sleep(2)  # longer than what is brief
    after = replace(first, value=3, options=BRIEF)
    assert run(after) == "COMMITTED"
    assert_holds(after)
    # What Spark stopped the sibling from finishing, aside, has been swept.
    assert list(Path(first.path, ".hoodie").rglob("*.parquet")) == []


def data_files(job: Job) -> set[Path]:
    """Return the files where readers look for rows."""
    found = {path.relative_to(job.path) for path in Path(job.path).rglob("*.parquet")}
    return {path for path in found if path.parts[0] != ".hoodie"}
