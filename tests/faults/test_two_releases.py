"""An older release and this one write one table: in turns, side by side, and after deaths.

The release 56a4b1d is the last without format numbers, 2ce072f5 the last whose decisions of a rescale hold a rule of
buckets. Both releases are processes of `release_job.py`, forked from one that imported it. The older one finds its
modules in an archive among the fixtures.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from faults import release_job
from faults.release_job import DIED
from pyhudi.storage.process import find_process
from pyhudi.table.config.property_keys import RECORD_KEY_OPTION
from pyhudi.timeline.writers.owner import OWNER_FILE
from support.rules.ends import assert_whole

pytestmark = pytest.mark.slow

ARCHIVES = Path(__file__).parents[1] / "fixtures" / "releases"
UNNUMBERED, WITH_RULES = "56a4b1d", "2ce072f5"
SINCE_RULES = pytest.mark.parametrize("origins", [WITH_RULES], indirect=True)
SINCE_EACH = pytest.mark.parametrize("origins", [UNNUMBERED, WITH_RULES], indirect=True)
OLD, NEW = "old", "new"
BOTH_WAYS = pytest.mark.parametrize(("first", "second"), [(OLD, NEW), (NEW, OLD)], ids=["old-new", "new-old"])
TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
RETRIED = {"ConcurrentWriteError", "CommitConflictError"}
TRIES = 200
# Its plan, its view of the table, and its end.
DECISIONS_OF_A_RESCALE = 3
PATIENCE_S = 120
Row = tuple[str, str, int, int]
Model = dict[str, Row]


class RefusedError(Exception):
    """What a process answered in place of a result; its first argument is the name of the error's class."""


class DiedError(Exception):
    """The process ended, as it was to."""


class Origin:
    """The process of one release from which its processes are forked.

    Args:
        name: Which release.
        packages: Where the older release is.
    """

    def __init__(self, name: str, packages: Path) -> None:
        self.name = name
        self.packages = packages
        paths = [str(packages)] if name == OLD else []
        paths += filter(None, [os.environ.get("PYTHONPATH")])
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, release_job.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )

    def fork(self) -> socket.socket:
        """Return what a new process listens to."""
        mine, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"."], [theirs.fileno()])
        return mine

    def __enter__(self) -> Origin:
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        self._process.wait(PATIENCE_S)


Origins = Mapping[str, Origin]


class Release:
    """A process of one release at work on a table.

    Args:
        origin: From which it is forked.
        path: The table.
        table_type: Of the table.
    """

    def __init__(self, origin: Origin, path: Path, table_type: str) -> None:
        self.name = origin.name
        self._origin = origin
        self._arguments = [str(path), table_type]
        self._start()

    def ask(self, do: str, **given: Any) -> Any:
        """Return what the process answers.

        Raises:
            RefusedError: It met an error of pyhudi's.
            DiedError: It is gone, as it was to be.
        """
        self._stream.write(json.dumps({"do": do, **given}) + "\n")
        self._stream.flush()
        line = self._stream.readline()
        assert line, f"the {self.name} release ended at {do}"
        answer = json.loads(line)
        if answer == DIED:
            raise DiedError(do)
        if "error" in answer:
            raise RefusedError(answer["error"], answer["text"])
        return answer["returned"]

    def dies(self, do: str, *, after: int = 0, **given: Any) -> None:
        """Have the process die between a decision and what it decides, then start another one."""
        self.ask("die_decided", after=after)
        with pytest.raises(DiedError):
            self.ask(do, **given)
        self.killed()

    def killed(self) -> None:
        """Kill the process where it is, then start another one."""
        self.end()
        self._start()

    def write(self, *rows: Row, **given: Any) -> str:
        """Write rows by one task, and return the instant."""
        self.ask("plan", **given)
        self.ask("task", rows=rows)
        return str(self.ask("commit"))

    def write_again(self, *rows: Row, dies: bool = False, **given: Any) -> None:
        """Write rows, again and again while other writers are in the way; the last step may end the process."""
        for _ in range(TRIES):
            try:
                self.ask("plan", **given)
                self.ask("task", rows=rows)
                if not dies:
                    self.ask("commit")
                    return
                self.dies("commit")
                return
            except RefusedError as error:
                assert error.args[0] in RETRIED or self._meets_a_defect(*error.args), error.args
                if "pending" not in error.args[1]:
                    self.ask("abort")
                time.sleep(0.05)
        raise AssertionError("other writers were in the way all the time")

    def _meets_a_defect(self, error: str, text: str) -> bool:
        """Return whether an error is due to the older release, which refuses or gives up what it should not."""
        if self.name == OLD:
            # It also compares the properties that a later release adds by itself to a new table.
            return f"meanwhile, with {RECORD_KEY_OPTION}=" in text
        # It gives a write up whose working folder it finds empty, in the moment before the claim is in there.
        return error == "WriteSealedError" or (error == "StorageError" and f"/{OWNER_FILE}: No such file" in text)

    def read(self) -> list[Row]:
        """Return the table's rows."""
        return [(str(key), str(partition), int(ts), int(value)) for key, partition, ts, value in self.ask("read")]

    def end(self) -> None:
        """End the process, and wait until it is gone."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._stream.close()
        deadline = time.monotonic() + PATIENCE_S
        while find_process(self._pid) is not None:
            assert time.monotonic() < deadline, f"the {self.name} release outlives its end"
            time.sleep(0.001)

    def _start(self) -> None:
        with self._origin.fork() as asked:
            self._stream = asked.makefile("rw")
        self._stream.write(json.dumps(self._arguments) + "\n")
        found, self._pid = self.ask("where")
        assert found.startswith(str(self._origin.packages)) == (self.name == OLD)


@pytest.fixture(scope="module")
def origins(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origins]:
    """What processes of both releases are forked from; the older one is the first unless a test names another."""
    commit = getattr(request, "param", UNNUMBERED)
    folder = tmp_path_factory.mktemp(commit)
    with tarfile.open(ARCHIVES / f"{commit}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    with Origin(OLD, folder) as old, Origin(NEW, folder) as new:
        yield {OLD: old, NEW: new}


@contextmanager
def releases(origins: Origins, path: Path, table_type: str, *names: str) -> Iterator[list[Release]]:
    """Have processes of releases in the block, in the order of the names."""
    started: list[Release] = []
    try:
        for name in names:
            started.append(Release(origins[name], path, table_type))
        yield started
    finally:
        for one in started:
            one.end()


def rows(partition: str, *keys: int, value: int) -> tuple[Row, ...]:
    """Return rows of one partition."""
    return tuple((f"k{key}", partition, value, value * 100 + key) for key in keys)


def keep(model: Model, *some: Row) -> None:
    model.update({f"{row[0]} {row[1]}": row for row in some})


def check(model: Model, *those: Release) -> None:
    """Assert that releases read what the model holds."""
    for one in those:
        assert one.read() == sorted(model.values()), one.name


@SINCE_EACH
@TYPES
@BOTH_WAYS
def test_releases_take_turns(tmp_path: Path, origins: Origins, table_type: str, first: str, second: str) -> None:
    """With writes of both kinds, deletes, and services of the one between writes of the other."""
    path, model = tmp_path / "t", Model()
    with releases(origins, path, table_type, first, second) as both:
        for turn in range(12):
            mine, theirs = both[turn % 2], both[1 - turn % 2]
            changed = rows("ab"[turn // 2 % 2], *range(turn, turn + 6), value=turn + 1)
            mine.write(*changed, colocated=turn % 4 < 2)
            keep(model, *changed)
            if turn in (3, 6):
                gone = changed[:2]
                theirs.write(*((*row[:2], turn + 2, 0) for row in gone), operation="delete")
                for row in gone:
                    del model[f"{row[0]} {row[1]}"]
            if turn in (4, 7) and table_type == "MERGE_ON_READ":
                theirs.ask("schedule")
                assert mine.ask("compact")
            if turn > 4:
                theirs.ask("clean")
                mine.ask("archive")
            check(model, *both)
    assert_whole(path)


@TYPES
@BOTH_WAYS
def test_a_commit_of_a_dead_process_is_completed_by_the_other_release(
    tmp_path: Path, origins: Origins, table_type: str, first: str, second: str
) -> None:
    """The process died between its decision and the completed file; the decision made a table, and then changed one."""
    path, model = tmp_path / "t", Model()
    with releases(origins, path, table_type, first, second) as (maker, other):
        for value, partition in ((1, "a"), (2, "a"), (3, "b")):
            decided, next_one = rows(partition, 1, 2, 3, value=value), rows("c", value, value=value)
            maker.ask("plan")
            maker.ask("task", rows=decided)
            maker.dies("commit")
            if model:
                check(model, maker, other)
            other.write_again(*next_one)
            keep(model, *decided, *next_one)
            check(model, maker, other)
        other.write(*rows("c", 9, value=9), patient=False)
        maker.write(*rows("c", 9, value=10), patient=False)
    assert_whole(path)


@SINCE_RULES
@TYPES
def test_a_rescale_that_the_older_release_decided_is_completed_with_its_rule(
    tmp_path: Path, origins: Origins, table_type: str
) -> None:
    path, model = tmp_path / "t", Model()
    with releases(origins, path, table_type, OLD, NEW) as (maker, other):
        keep(model, *rows("a", *range(9), value=1))
        maker.write(*model.values())
        maker.dies("rescale", after=DECISIONS_OF_A_RESCALE - 1, buckets=5)
        keep(model, *rows("a", 3, value=2))
        other.write_again(*rows("a", 3, value=2), named=False)
        check(model, maker, other)
        assert other.ask("rescale", buckets=5) == 0
        keep(model, *rows("a", 4, value=3))
        maker.write(*rows("a", 4, value=3), named=False)
        check(model, maker, other)
        other.write(*rows("a", 4, value=3), patient=False, named=False)
    assert_whole(path)


@SINCE_RULES
@TYPES
def test_the_older_release_leaves_a_rescale_that_this_one_decided_alone(
    tmp_path: Path, origins: Origins, table_type: str
) -> None:
    """It refuses to write until this release has completed the rescale and decided something that it knows."""
    path, model = tmp_path / "t", Model()
    with releases(origins, path, table_type, NEW, OLD) as (maker, other):
        keep(model, *rows("a", *range(9), value=1))
        other.write(*model.values())
        maker.dies("rescale", after=DECISIONS_OF_A_RESCALE - 1, buckets=5)
        with pytest.raises(RefusedError, match=r"UnsupportedTableError.*in the format 4"):
            other.write(*rows("a", 3, value=2), named=False)
        other.killed()
        check(model, maker, other)
        keep(model, *rows("a", 3, value=3))
        maker.write_again(*rows("a", 3, value=3), named=False)
        keep(model, *rows("a", 4, value=4))
        other.write(*rows("a", 4, value=4), named=False)
        check(model, maker, other)
        assert other.ask("rescale", buckets=5) == 0
        maker.write(*rows("a", 4, value=4), patient=False, named=False)
    assert_whole(path)


@TYPES
@BOTH_WAYS
def test_a_commit_meets_what_the_other_release_decided_since_it_was_planned(
    tmp_path: Path, origins: Origins, table_type: str, first: str, second: str
) -> None:
    """It carries the decision out, is refused where both change one file group, and is committed where they do not."""
    path, model = tmp_path / "t", Model()
    with releases(origins, path, table_type, first, second) as (maker, other):
        keep(model, *rows("a", 1, value=1), *rows("b", 1, value=1))
        maker.write(*model.values())
        for value, partition in ((2, "b"), (3, "a")):
            decided, planned = rows("a", 1, value=value), rows(partition, 1, value=value + 10)
            other.ask("plan")
            maker.ask("plan")
            maker.ask("task", rows=decided)
            other.ask("task", rows=planned)
            maker.dies("commit")
            if partition == "b":
                other.ask("commit")
                keep(model, *planned)
            else:
                with pytest.raises(RefusedError, match="CommitConflictError"):
                    other.ask("commit")
                other.ask("abort")
            keep(model, *decided)
            check(model, maker, other)
        other.write(*rows("c", 9, value=9), patient=False)
        maker.write(*rows("c", 9, value=10), patient=False)
    assert_whole(path)


@BOTH_WAYS
@pytest.mark.parametrize("decisions", [0, 1], ids=["planned", "merged"])
def test_a_compaction_of_a_dead_process_is_taken_over_by_the_other_release(
    tmp_path: Path, origins: Origins, first: str, second: str, decisions: int
) -> None:
    """It died having decided its plan, or its end."""
    path, model = tmp_path / "t", Model()
    with releases(origins, path, "MERGE_ON_READ", first, second) as (maker, other):
        for value in (1, 2):
            keep(model, *rows("a", 1, 2, 3, value=value))
            maker.write(*rows("a", 1, 2, 3, value=value))
        maker.dies("compact", after=decisions)
        check(model, maker, other)
        keep(model, *rows("a", 2, value=3))
        other.write_again(*rows("a", 2, value=3))
        other.ask("compact")
        check(model, maker, other)
        maker.write(*rows("b", 1, value=4), patient=False)
        other.write(*rows("b", 1, value=5), patient=False)
        keep(model, *rows("b", 1, value=5))
        check(model, maker, other)
    assert_whole(path)


@pytest.mark.parametrize(
    ("names_it", "first", "second", "table_type"),
    [
        (False, OLD, NEW, "COPY_ON_WRITE"),
        (False, NEW, OLD, "MERGE_ON_READ"),
        (True, NEW, OLD, "COPY_ON_WRITE"),
        (True, OLD, NEW, "MERGE_ON_READ"),
    ],
)
def test_a_write_of_a_dead_process_is_undone_by_the_other_release(
    tmp_path: Path, origins: Origins, table_type: str, first: str, second: str, names_it: bool
) -> None:
    """It died in its tasks; where another process of its release has rolled it back, that one died, too."""
    path, model = tmp_path / "t", Model()
    with releases(origins, path, table_type, first, second) as (dead, other):
        keep(model, *rows("a", 1, 2, value=1))
        dead.write(*model.values())
        victim = dead.ask("plan")
        dead.ask("task", rows=rows("a", 1, value=2) + rows("new", 1, value=2))
        dead.killed()
        if names_it:
            dead.dies("rollback", instant=victim)
        keep(model, *rows("a", 2, value=3))
        other.write_again(*rows("a", 2, value=3))
        check(model, dead, other)
        other.write(*rows("a", 2, value=3), patient=False)
    assert_whole(path)


@pytest.mark.parametrize(
    ("begun", "first", "second", "table_type"),
    [
        (False, OLD, NEW, "MERGE_ON_READ"),
        (False, NEW, OLD, "COPY_ON_WRITE"),
        (True, NEW, OLD, "MERGE_ON_READ"),
        (True, OLD, NEW, "COPY_ON_WRITE"),
    ],
)
def test_tasks_of_a_write_that_the_other_release_rolled_back_leave_nothing(
    tmp_path: Path, origins: Origins, table_type: str, first: str, second: str, begun: bool
) -> None:
    """Each release finds the seal of the other: no task brings the instant back, and the commit is refused.

    To the newer release it is a conflict, which is run again.
    """
    path, model = tmp_path / "t", Model()
    with releases(origins, path, table_type, first, second) as (sleeper, other):
        keep(model, *rows("a", 1, 2, value=1))
        sleeper.write(*model.values())
        victim = sleeper.ask("plan")
        if begun:
            sleeper.ask("task", rows=rows("a", 1, value=2))
        else:
            sleeper.ask("task", rows=rows("new", 1, value=2))
        other.ask("rollback", instant=victim)
        with pytest.raises(RefusedError, match="CommitConflictError" if first == NEW else "WriteSealedError"):
            sleeper.ask("task", rows=rows("a", 1, value=2))
        with pytest.raises(RefusedError, match="CommitConflictError"):
            sleeper.ask("commit")
        sleeper.ask("abort")
        check(model, sleeper, other)
        keep(model, *rows("a", 2, value=3))
        other.write(*rows("a", 2, value=3), patient=False)
        check(model, sleeper, other)
    assert_whole(path)


@TYPES
def test_releases_write_at_once_and_die(tmp_path: Path, origins: Origins, table_type: str) -> None:
    """Each has keys of its own in file groups of both; a third of the processes die once they have decided."""
    path = tmp_path / "t"
    with releases(origins, path, table_type, OLD, NEW) as both:
        both[0].write(*rows("a", 0, value=1))
        failed: list[BaseException] = []

        def work(release: Release, key: int) -> None:
            try:
                for value in range(2, 11):
                    release.write_again(*rows("a", key, value=value), dies=value % 3 == 0)
            except BaseException as error:  # noqa: BLE001
                failed.append(error)

        threads = [threading.Thread(target=work, args=(one, number)) for number, one in enumerate(both, 1)]
        for writer in threads:
            writer.start()
        for writer in threads:
            writer.join(PATIENCE_S * 4)
        assert not failed, failed
        model = Model()
        keep(model, *rows("a", 0, value=1), *rows("a", 1, 2, value=10), *rows("b", 1, value=1))
        for writer in both:
            writer.write(*rows("b", 1, value=1), patient=False)
        check(model, *both)
    assert_whole(path)
