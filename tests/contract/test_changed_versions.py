"""A table that another engine upgrades or downgrades while pyhudi is at work on it: the work gives way, and runs again.

The other engine changes the properties right before one call of the store, at each call in turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree
from threading import Timer
from typing import cast

import pytest
from pyhudi import arrow
from pyhudi.errors import CommitConflictError
from pyhudi.operations.service_settings import CompactionSettings
from pyhudi.operations.services.compaction.compact import compact
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.operations.services.versions.timeline_copy import TimelineCopy
from pyhudi.operations.transaction.decide import settle
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config import load_config, update_config
from pyhudi.table.config.version_changes import changes_from_6_to_9
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import State
from support.attempts import PARTED, parted
from support.drawn.upkept import OFF
from support.drive import DEFAULTS, rows_of, write
from support.faults.faulty import READS
from support.faults.traces import Trace, TracedStorage, begin_process, forget_tables, trace_writes
from support.made.compacting import IMPATIENT, means
from support.rules.ends import assert_whole
from support.seams import patch_seam
from support.stores import wrap_stores

_MADE = replace(PARTED, table_type="MERGE_ON_READ")
_QUIET = replace(DEFAULTS, upkeep=OFF)
_FILE = ".hoodie/hoodie.properties"
_READ = f"read {_FILE}"


@dataclass
class _Changing(Trace):
    """Changes the version of a table right before one of the store's calls, from 1."""

    path: Path = Path()
    at: int = 0
    change: Callable[[Path], None] = lambda path: change_version(path, 9)

    def add(self, verb: str, *given: object, **named: object) -> None:
        super().add(verb, *given, **named)
        if len(self.lines) == self.at:
            self.change(self.path)


def move_instants(path: Path, then: Callable[[Callable[[], object]], object] = lambda change: change()) -> None:
    """Upgrade a table of version 6 as Apache Hudi does: pending instants move, too, and the properties change last.

    ``then`` gets what changes them.
    """
    table = open_table(open_storage(str(path)))
    changes = changes_from_6_to_9(table.config)
    copy = TimelineCopy.planned(table, changes)
    copy.make()
    copy.remove_old()
    then(lambda: update_config(table.storage, changes))


def change_version(path: Path, to: int) -> None:
    """Have the properties of a table be those of another version."""
    storage, other = open_storage(str(path)), path.parent / f"version {to}"
    if not other.exists():
        write(other, parted("a", 1, value=1), table=replace(_MADE, version=to), settings=_QUIET)
    now, then = load_config(storage).properties, load_config(open_storage(str(other))).properties
    stays = {"hoodie.table.name", "hoodie.table.checksum", "hoodie.table.initial.version"}
    update_config(storage, {key: then.get(key) for key in {*now, *then} - stays})


def made(path: Path, version: int) -> Path:
    """Make a table with a log file on a base file."""
    for value in (1, 2):
        write(path, parted("a", 1, value=value), table=replace(_MADE, version=version), settings=_QUIET)
    return path


def traced(path: Path, trace: Trace) -> Storage:
    return cast(Storage, TracedStorage(open_storage(str(path)), trace))


def insert(path: Path) -> None:
    arrow.Table(path).insert(parted("a", 3, value=3), **{"hoodie.clean.automatic": False})


def moments(steps: Sequence[str]) -> list[int]:
    """Return the calls, from 1, before which a change differs from one before the call that precedes them."""
    return [
        at for at, before in enumerate(["", *steps[:-1]], 1) if before.split(" ")[0] not in READS or _FILE in before
    ]


def steps_of_insert(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Insert alone, and return the calls of the store."""
    trace = trace_writes(monkeypatch)
    begin_process(trace, "insert")
    insert(path)
    return trace.lines[trace.lines.index("# insert") + 1 :]


@dataclass
class _Attempts:
    """Counts how often a write is planned."""

    trace: Trace
    number: int = 0

    def of(self, storage: Storage) -> object:
        """Return the store of an attempt."""
        self.number += 1
        return TracedStorage(storage, self.trace)


def attempts_beside(path: Path, at: int, change: Callable[[Path], None]) -> int:
    """Insert while something changes the table before one of the store's calls; return how often it was planned."""
    forget_tables()
    attempts = _Attempts(_Changing(path=path, at=at, change=change))
    with pytest.MonkeyPatch.context() as patch:
        wrap_stores(patch, attempts.of)
        insert(path)
    return attempts.number


@pytest.mark.parametrize("start", [8, 9])
def test_a_write_gives_way_and_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: int) -> None:
    steps = steps_of_insert(made(tmp_path / "alone", start), monkeypatch)
    planned = next(number for number, line in enumerate(steps) if line.startswith("create"))
    completing = (line.startswith("create .hoodie/timeline/") and "_<" in line for line in steps)
    completed = next(number for number, completes in enumerate(completing) if completes)
    first = max(number for number, line in enumerate(steps[:planned], 1) if line == _READ)
    last = max(number for number, line in enumerate(steps[:completed], 1) if line == _READ)
    for at in moments(steps):
        path = made(tmp_path / str(at), start)
        number = attempts_beside(path, at, lambda path: change_version(path, 17 - start))
        assert load_config(open_storage(str(path))).version == 17 - start
        if at > first:
            assert number == (2 if at <= last else 1), steps[at - 1]
        assert rows_of(path, "id", "value") == [("k1", 2), ("k3", 3)], steps[at - 1]
        assert_whole(path)


@pytest.mark.slow
def test_a_write_gives_way_where_its_instant_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "made"
    write(made, parted("a", 1, value=2), table=replace(PARTED, version=6), settings=_QUIET)
    steps = steps_of_insert(Path(copytree(made, tmp_path / "alone")), monkeypatch)
    numbers = set()
    for at in moments(steps):
        path = Path(copytree(made, tmp_path / str(at)))
        numbers.add(attempts_beside(path, at, move_instants))
        assert load_config(open_storage(str(path))).version == 9
        assert rows_of(path, "id", "value") == [("k1", 2), ("k3", 3)], steps[at - 1]
        assert_whole(path)
    assert numbers == {1, 2}


def test_a_write_that_completes_while_its_table_is_upgraded_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its instant came behind the listing of the upgrade, which changes the properties a while later."""
    path = tmp_path / "t"
    write(path, parted("a", 1, value=2), table=replace(PARTED, version=6), settings=_QUIET)
    steps = steps_of_insert(Path(copytree(path, tmp_path / "alone")), monkeypatch)
    completing = [bool(re.fullmatch(r"create \.hoodie/[^/]*\.commit", line)) for line in steps]
    later: list[Timer] = []

    def a_while_later(change: Callable[[], object]) -> None:
        later.append(Timer(0.5, change))
        later[0].start()

    number = attempts_beside(path, completing.index(True) + 1, lambda path: move_instants(path, a_while_later))
    later[0].join()

    assert number == 2
    assert rows_of(path, "id", "value") == [("k1", 2), ("k3", 3)]
    assert_whole(path)


@dataclass
class _Pauses:
    """The clock of the process stands still, and each pause of the clock takes the next step."""

    steps: list[Callable[[], object]]

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, _: float) -> None:
        self.steps.pop(0)()


def test_a_write_that_completes_once_a_savepoint_has_moved_waits_for_the_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this upgrade it sees first that an instant moves which makes no rows."""
    path = tmp_path / "t"
    write(path, parted("a", 1, value=2), table=replace(PARTED, version=6), settings=_QUIET)
    arrow.Table(path).savepoint()
    steps = steps_of_insert(Path(copytree(path, tmp_path / "alone")), monkeypatch)
    completing = [bool(re.fullmatch(r"create \.hoodie/[^/]*\.commit", line)) for line in steps]
    pauses = _Pauses([])
    patch_seam(monkeypatch, "clock of the wait for an upgrade", pauses)

    def begin(path: Path) -> None:
        table = open_table(open_storage(str(path)))
        changes = changes_from_6_to_9(table.config)
        copy = TimelineCopy.planned(table, changes)
        copy.make()
        others = [file for file in (path / ".hoodie/timeline").iterdir() if "savepoint" not in file.name]
        contents = {file: file.read_bytes() for file in others if file.is_file()}
        for file in (*contents, *(path / ".hoodie").glob("*.savepoint*")):
            file.unlink()

        def move_others() -> None:
            for file, content in contents.items():
                file.write_bytes(content)
            copy.remove_old()

        pauses.steps += [move_others, lambda: update_config(table.storage, changes)]

    number = attempts_beside(path, completing.index(True) + 1, begin)

    assert (number, pauses.steps) == (2, [])
    assert rows_of(path, "id", "value") == [("k1", 2), ("k3", 3)]
    assert_whole(path)


def test_a_decision_of_version_6_makes_no_file_after_an_upgrade(tmp_path: Path) -> None:
    """Its maker died before it was carried out, and its instant moved as it was."""
    path = tmp_path / "t"
    write(path, parted("a", 1, value=2), table=replace(PARTED, version=6), settings=_QUIET)
    move_instants(path)
    (completed,) = (path / ".hoodie/timeline").glob("*_*.commit")
    completed.unlink()

    table = open_table(open_storage(str(path)))
    settle(table)

    assert [instant.state for instant in table.timeline().instants] == [State.INFLIGHT]


def newest(path: Path) -> str:
    return open_table(open_storage(str(path))).timeline().writes[-1].requested_time


SERVICES: dict[str, Callable[[Storage, str], object]] = {
    "savepoint": savepoint,
    "rollback": lambda storage, newest: rollback(storage, newest, patience=IMPATIENT),
    "compaction": lambda storage, _: compact(storage, CompactionSettings(), means(storage)),
}


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_gives_way_and_can_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    trace, alone, act = trace_writes(monkeypatch), made(tmp_path / "alone", 8), SERVICES[service]
    begin_process(trace, "service")
    act(traced(alone, trace), newest(alone))
    steps, met = trace.lines[trace.lines.index("# service") + 1 :], 0
    for at in moments(steps):
        path = made(tmp_path / str(at), 8)
        written = newest(path)
        forget_tables()
        try:
            act(traced(path, _Changing(path=path, at=at)), written)
        except CommitConflictError as error:
            assert "was upgraded meanwhile, from version 8 (timeline layout 2) to version 9" in error.what
            met += 1
            act(open_storage(str(path)), written)
        assert load_config(open_storage(str(path))).version == 9
        assert rows_of(path, "id", "value") == [("k1", 1 if service == "rollback" else 2)], steps[at - 1]
        assert_whole(path)
    assert met
