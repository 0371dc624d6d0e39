"""An upgrade of version 6 that stalls while another call upgrades the table, and what it copied is undone or archived.

It wakes at each of its calls that change the store in turn, and must not put back what left the timeline meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import CommitConflictError, ConcurrentWriteError, StorageError
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.versions.change_version import change_version
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config import load_config
from pyhudi.table.table import open_table
from support.attempts import IMPATIENT
from support.faults.steps import Share, steps_of
from support.faults.traces import Trace, TracedStorage, forget_tables, trace_writes
from support.made.compacting import means
from support.places import copied
from support.readers import read_without_spark
from support.recorded.recorded_version_6 import shown, unpack
from support.rules.health import errors
from support.stores import wrap_stores


@dataclass
class Stalled(Trace):
    """Calls of a store, in the middle of one of which, from 1, other processes act."""

    at: int = 0
    act: Callable[[], object] = lambda: None

    def add(self, verb: str, *given: object, **named: object) -> None:
        super().add(verb, *given, **named)
        if len(self.lines) == self.at:
            forget_tables()
            self.act()


def upgrade(storage: Any) -> None:
    change_version(storage, "upgrade", 9, replace(means(storage), patience=IMPATIENT.patience))


def undo_newest(storage: Storage) -> None:
    newest = open_table(storage).timeline().writes[-1].requested_time
    rollback(storage, newest, patience=IMPATIENT.patience)


def archive_most(storage: Storage) -> None:
    done = archive(storage, ArchiveSettings(min_commits=1, max_commits=1))
    assert done.instants


ACTS: dict[str, Callable[[Storage], object]] = {"rolled back": undo_newest, "archived": archive_most}


def state(path: Path) -> object:
    """Return what readers see, and the instants on the timeline."""
    timeline = open_table(open_storage(str(path))).timeline()
    seen = shown(read_without_spark(path))
    return seen, [instant.identity for instant in timeline.instants if instant.action != "rollback"]


def completed(path: Path) -> set[str]:
    return {each.name for each in (path / ".hoodie/timeline").glob("*_*.*")}


def stalled(path: Path, at: int, act: Callable[[], object]) -> None:
    """Upgrade a table, and have other processes act in the middle of a call of the store."""
    forget_tables()
    with pytest.MonkeyPatch.context() as patch:
        wrap_stores(patch, lambda storage: storage)
        with contextlib.suppress(CommitConflictError, ConcurrentWriteError, StorageError):
            upgrade(TracedStorage(open_storage(str(path)), Stalled(at=at, act=act)))
    assert load_config(open_storage(str(path))).version == 9


def changes_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """Upgrade a table, and return its calls that change the timeline's folder, each by its number from 1."""
    with monkeypatch.context() as patch:
        trace = trace_writes(patch)
        upgrade(TracedStorage(open_storage(str(path)), trace))
    numbered = enumerate(trace.lines, 1)
    return {
        at: line for at, line in numbered if line.startswith(("write .hoodie/timeline/", "delete .hoodie/timeline/"))
    }


@pytest.mark.parametrize("name", ACTS)
@steps_of("versions", 5)
def test_an_upgrade_that_stalled_puts_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: Share, name: str
) -> None:
    origin = unpack(tmp_path / "origin") / "cow_past"
    other = copied(origin, tmp_path / "other")

    def other_process(path: Path) -> None:
        upgrade(open_storage(str(path)))
        ACTS[name](open_storage(str(path)))

    other_process(other)
    wanted = state(other)
    steps = changes_of(copied(origin, tmp_path / "alone"), monkeypatch)
    for at in share.of([*steps]):
        path = copied(origin, tmp_path / f"t{at}")
        stalled(path, at, partial(other_process, path))
        assert state(path) == wanted, steps[at]
        assert errors(path) == [], steps[at]


def test_an_upgrade_that_stalled_brings_back_what_it_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of an earlier call, with another completion time, which that of the other process is then."""
    origin = unpack(tmp_path / "origin") / "cow_past"
    newest = max((origin / ".hoodie").glob("*.commit"))
    other = Path(shutil.copytree(origin, tmp_path / "other"))
    changed = newest.stat().st_mtime + 1
    os.utime(other / ".hoodie" / newest.name, (changed, changed))
    upgrade(open_storage(str(other)))
    wanted = state(other), completed(other)
    [left] = (other / ".hoodie/timeline").glob(f"{newest.stem}_*")
    (origin / ".hoodie/timeline").mkdir()
    shutil.copy(left, origin / ".hoodie/timeline")
    steps = changes_of(copied(origin, tmp_path / "alone"), monkeypatch)
    [at] = [at for at, line in steps.items() if line.startswith("delete")]
    path = Path(shutil.copytree(origin, tmp_path / "stalled"))

    def other_process() -> None:
        os.utime(path / ".hoodie" / newest.name, (changed, changed))
        upgrade(open_storage(str(path)))

    stalled(path, at, other_process)

    assert (state(path), completed(path)) == wanted
    assert errors(path) == []
