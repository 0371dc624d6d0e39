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
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from faults import slow_job
from faults.slow_job import ROWS, TABLE, Job, tuples
from pyhudi.errors import ConcurrentWriteError
from pyhudi.operations.inspect.history import history
from pyhudi.operations.result import CommitResult
from pyhudi.operations.write.run import write
from pyhudi.options.parsing import parse_options
from pyhudi.storage import open_storage
from pyhudi.storage.process import find_process
from support.drive import rows_of
from support.readers import rows_by_hudi_rs
from support.rules.ends import assert_whole

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
COLUMNS = ("id", "p", "ts", "value")
# What a straggler leaves is swept after a second instead of two minutes.
BRIEF = {"hoodie.client.heartbeat.interval_in_ms": "1000", "hoodie.client.heartbeat.tolerable.misses": "1"}
# A heartbeat that is overdue after eight seconds, and a task that blocks for several times as long.
SHORT = {"hoodie.client.heartbeat.interval_in_ms": "2000", "hoodie.client.heartbeat.tolerable.misses": "4"}
BLOCKED_S = 25
# How often the other writer has to be refused.
TRIED = 6
PATIENCE_S = 300


@dataclass
class Driver:
    """A driver of Spark in a process of its own, which carries out one job after another."""

    process: subprocess.Popen[str]
    log: Path

    def begin(self, job: Job) -> None:
        """Have it write."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{job.encode()}\n")
        self.process.stdin.flush()

    def until(self, what: Callable[[], object]) -> None:
        """Wait until something holds; fail when the process ends before, or patience does."""
        deadline = time.monotonic() + PATIENCE_S
        while not what():
            ended = self.process.poll() is not None
            assert what() or not ended, self.log.read_text()[-5000:]
            assert time.monotonic() < deadline, self.log.read_text()[-5000:]
            time.sleep(0.05)

    def answer(self, job: Job) -> str:
        """Wait for a job's end and return what came of its write."""
        answer = Path(job.flags, "answer")
        self.until(answer.exists)
        return answer.read_text()

    def stopped(self, job: Job) -> int:
        """Wait until the tasks that stop have done so in the middle of a write; return the last one's Java machine."""
        notes = [Path(job.flags, f"stopped-{partition}") for partition in job.stops]
        self.until(lambda: all(note.exists() for note in notes) and inflight(job))
        return int(notes[-1].read_text())


@contextmanager
def driver(folder: Path, master: str = "local[4]") -> Iterator[Driver]:
    """Start a driver, which is gone at the end of the block."""
    log = folder / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, slow_job.__file__, master],
            stdout=stream,
            stderr=subprocess.STDOUT,
            stdin=subprocess.PIPE,
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYTHONPATH": os.pathsep.join([str(TESTS / "support" / "warm"), str(TESTS)]),
            },
            cwd=folder,
            text=True,
        )
        try:
            yield Driver(process, log)
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A driver that executes its tasks itself."""
    with driver(tmp_path_factory.mktemp("local")) as found:
        yield found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A driver with two executors, in place of each of which Spark starts another where it dies."""
    with driver(tmp_path_factory.mktemp("cluster"), "local-cluster[2,1,800]") as found:
        yield found


def write_here(job: Job) -> CommitResult:
    """Write a job's rows in this process."""
    rows = pa.table([pa.array(column) for column in zip(*tuples(job), strict=True)], COLUMNS)
    options = {**TABLE, **job.options}
    if job.index:
        options = {**{key: value for key, value in options.items() if key != "buckets"}, "hoodie.index.type": job.index}
    request = parse_options(options).to_write_request(job.path, rows.schema, overwrite=False)
    return write(request, [rows.slice(at, ROWS).to_batches() for at in range(0, rows.num_rows, ROWS)])


def inflight(job: Job) -> list[str]:
    """Return the inflight files of instants that are not completed."""
    folder = Path(job.path, ".hoodie/timeline")
    done = {one.name.split("_")[0] for one in folder.glob("*_*.commit")}
    return [one.name for one in folder.glob("*.inflight") if one.name.split(".")[0] not in done]


def kill(driver: Driver, pid: int) -> None:
    """End one process of a driver, as the kernel does when memory is short."""
    os.kill(pid, signal.SIGKILL)
    driver.until(lambda: find_process(pid) is None)


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
    write_here(job)
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
def test_an_executor_killed_in_the_middle_of_a_write_is_made_up_for(
    first: Job, cluster: Driver, colocated: bool
) -> None:
    """Spark runs its task again elsewhere; the job commits, and nothing is left of the attempt that died."""
    job = replace(first, value=2, stops=(1,), colocated=colocated)
    cluster.begin(job)
    executor = cluster.stopped(job)
    assert executor != owner_pid(job)
    kill(cluster, executor)

    assert cluster.answer(job) == "COMMITTED"
    assert_holds(job)
    assert actions(job) == ["commit", "commit"]


def test_an_executor_killed_in_the_middle_of_a_lookup_is_made_up_for(tmp_path: Path, cluster: Driver) -> None:
    """It had rows, and kept some for the write; Spark makes them again elsewhere, and no key is there twice."""
    (tmp_path / "flags").mkdir()
    first = Job(str(tmp_path / "t"), str(tmp_path / "flags"), index="GLOBAL_SIMPLE")
    write_here(first)
    job = replace(first, value=2, stops=(1,))
    cluster.begin(job)
    note = Path(job.flags, "stopped-1")
    cluster.until(note.exists)
    assert not inflight(job), "nothing is written yet"
    kill(cluster, int(note.read_text()))

    assert cluster.answer(job) == "COMMITTED"
    assert_holds(job)
    assert actions(job) == ["commit", "commit"]


def owner_pid(job: Job) -> int:
    """Return the process that the pending instant says is answerable for it."""
    (instant,) = (name.split(".")[0] for name in inflight(job))
    return int(json.loads(Path(job.path, ".hoodie/.pyhudi", instant, "owner.json").read_text())["pid"])


def test_a_task_that_blocks_for_long_keeps_its_write_alive(first: Job, local: Driver) -> None:
    """Rows that take longer than the heartbeat's tolerance do not let a writer of another process in."""
    job = replace(first, value=2, stops=(1,), options=SHORT)
    other = replace(first, value=3, options={**SHORT, "hoodie.write.concurrency.mode": "SINGLE_WRITER"})
    local.begin(job)
    local.stopped(job)
    began, refused = time.monotonic(), 0
    while refused < TRIED or time.monotonic() - began < BLOCKED_S:
        with pytest.raises(ConcurrentWriteError):
            write_here(other)
        refused += 1
        time.sleep(1)
    go(job, 1)

    assert local.answer(job) == "COMMITTED"
    assert_holds(job)


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
def test_a_task_fails_while_its_sibling_writes(first: Job, local: Driver, colocated: bool) -> None:
    """Spark aborts the write while the other goes on; neither a file nor an instant stays of it."""
    before = data_files(first)
    job = replace(first, value=2, stops=(0, 1), fails=(1,), colocated=colocated)
    local.begin(job)
    local.stopped(job)
    go(job, 1)
    local.until(lambda: not inflight(job))
    go(job, 0)

    assert local.answer(job) == "FAILED"
    assert data_files(first) == before
    assert rows_of(job.path, *COLUMNS) == tuples(first)
    assert actions(job) == ["commit"]

    # A folder that no note names goes once a process has watched it for longer than what is brief.
    write_here(replace(first, value=3, options=BRIEF))
    time.sleep(3)
    after = replace(first, value=4, options=BRIEF)
    write_here(after)
    assert_holds(after)
    # What Spark stopped the sibling from finishing, aside, has been swept.
    assert list(Path(first.path, ".hoodie").rglob("*.parquet")) == []


def data_files(job: Job) -> set[Path]:
    """Return the files where readers look for rows."""
    found = {path.relative_to(job.path) for path in Path(job.path).rglob("*.parquet")}
    return {path for path in found if path.parts[0] != ".hoodie"}


def test_a_driver_killed_in_the_middle_of_a_write_is_rolled_back_after_the_next_commit(
    first: Job, local: Driver
) -> None:
    """The instant names the driver's Java machine, which the next writer finds gone; no heartbeat is waited for.

    It is the last test, as the driver is gone after it.
    """
    job = replace(first, value=2, stops=(0, 1))
    local.begin(job)
    machine = local.stopped(job)
    assert owner_pid(job) == machine
    kill(local, machine)
    local.process.kill()
    local.process.wait()
    assert rows_of(job.path, *COLUMNS) == tuples(first)

    after = replace(first, value=3)
    write_here(after)
    assert_holds(after)
    assert actions(after) == ["commit", "commit", "rollback"]
