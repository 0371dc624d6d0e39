"""An upgrade or a downgrade whose process dies at any step, fails at any step, or meets another process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults.test_decisions import nothing_is_carried_out
from pyhudi import arrow
from pyhudi.errors import CommitConflictError, PyHudiError
from pyhudi.operations.services.versions.change_version import change_version
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.files.lost import open_view
from pyhudi.table.table import open_table
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import plan, rows_of, task, write
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.steps import Share, steps_of
from support.made import compacting
from support.made.compacting import means
from support.places import copied
from support.recorded.recorded_version_6 import unpack
from support.rules.ends import assert_whole
from support.rules.health import codes, errors
from support.stores import wrap_stores

QUIET = replace(IMPATIENT, upkeep=OFF)


def change(path: Path, to: int, faults: Faults | None = None) -> None:
    storage: Any = open_storage(str(path))
    storage = storage if faults is None else FaultyStorage(storage, faults)
    how = replace(means(storage), patience=IMPATIENT.patience)
    change_version(storage, "upgrade" if to == 9 else "downgrade", to, how)


def version_of(path: Path) -> int:
    return load_config(open_storage(str(path))).version


def made(path: Path, version: int) -> None:
    """Make a merge-on-read table with a pending compaction and a dead write."""
    table = replace(compacting.TABLE, version=version)
    write(path, compacting.rows(("k1", "a", 1, 1), ("k2", "a", 1, 1)), table=table, settings=QUIET)
    write(path, compacting.rows(("k1", "a", 2, 2)), settings=QUIET)
    compacting.schedule(path)
    write(path, compacting.rows(("k2", "a", 3, 3)), settings=QUIET)
    dead = compacting.rows(("k3", "b", 1, 1))
    planned = plan(path, dead.schema, settings=QUIET)
    task(planned, dead, 0)


def tried(path: Path, to: int, faults: Faults) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        wrap_stores(patch, lambda storage: FaultyStorage(storage, faults))
        with contextlib.suppress(Killed, PyHudiError):
            change(path, to, faults)
    return faults.steps


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("how", ["killed", "before", "after"])
@steps_of("versions", 9)
def test_a_change_of_version_that_broke_off_is_whole_and_is_finished(
    tmp_path: Path, share: Share, version: int, how: str
) -> None:
    """By the next write, which carries a decision out, or by the same call: readers see the same rows all the time."""
    origin, to = tmp_path / "origin", 17 - version
    made(origin, version)
    rows = rows_of(origin, "id", "value")
    steps = tried(copied(origin, tmp_path / "count"), to, Faults())
    for number in share.of(failing(steps, how)):
        path = copied(origin, tmp_path / f"t{number}")
        tried(path, to, Faults(at=number, after=how == "after", kill=how == "killed"))
        assert rows_of(path, "id", "value") == rows
        assert version_of(path) in {8, 9}

        again = copied(path, tmp_path / f"again{number}")
        change(again, to)
        assert version_of(again) == to
        assert rows_of(again, "id", "value") == rows
        for place in (path, again):
            with contextlib.suppress(CommitConflictError):
                write(place, compacting.rows(("k4", "b", 1, 1)), settings=QUIET)
            write(place, compacting.rows(("k4", "b", 2, 2)), settings=QUIET)
            compacting.run(place)
            assert rows_of(place, "id", "value") == [*rows, ("k4", 2)]
            assert_whole(place)


@pytest.mark.parametrize("how", ["killed", "before", "after"])
@pytest.mark.parametrize("name", ["cow_archived", "cow_undone"])
@steps_of("versions", 9)
def test_an_upgrade_of_version_6_that_broke_off_is_whole_and_is_finished(
    tmp_path: Path, share: Share, name: str, how: str
) -> None:
    """With an archive, and with a savepoint and a dead write: readers see the same rows all the time."""
    origin = unpack(tmp_path / "origin") / name
    history = instants_of(origin)
    for path in broken_upgrades(origin, share, how):
        assert instants_of(path) == history


@pytest.mark.parametrize("how", ["killed", "before", "after"])
@steps_of("versions", 36)
def test_an_upgrade_of_log_files_that_broke_off_is_whole_and_is_finished(
    tmp_path: Path, share: Share, how: str
) -> None:
    """With a pending compaction, and a dead append to log files that have its time: both are carried out once."""
    origin = unpack(tmp_path / "origin") / "mor_pending"
    max((origin / ".hoodie").glob("*.deltacommit")).unlink()
    history, planned = instants_of(origin), "20261129102658854.commit"
    for path in broken_upgrades(origin, share, how):
        assert {*history, planned} - {*instants_of(path)} <= ({planned} if version_of(path) == 6 else set())
        if version_of(path) == 9:
            [whole] = set(instants_of(path)) - {*history, planned}
            assert whole.endswith(".commit")
            assert not any(one.logs for one in open_view(open_table(open_storage(str(path))).timeline()).all_slices())


def broken_upgrades(origin: Path, share: Share, how: str) -> Iterator[Path]:
    """Yield tables whose upgrade broke off, and again once it was finished, and hold their rows against each other."""
    rows, folder = rows_of(origin, "_hoodie_record_key", "name"), origin.parent.parent
    steps = tried(copied(origin, folder / "count"), 9, Faults())
    for number in share.of(failing(steps, how)):
        path = copied(origin, folder / f"t{number}")
        tried(path, 9, Faults(at=number, after=how == "after", kill=how == "killed"))
        assert version_of(path) in {6, 9}
        assert rows_of(path, "_hoodie_record_key", "name") == rows
        yield path

        change(path, 9)

        assert version_of(path) == 9
        yield path
        assert not [one for one in (path / ".hoodie").iterdir() if "commit" in one.name]
        assert not list((path / ".hoodie").glob("*/.commits_.archive*"))
        table = arrow.Table(path)
        table.upsert(table.read().slice(0, 1))
        assert rows_of(path, "_hoodie_record_key", "name") == rows
        assert errors(path) == []


def instants_of(path: Path) -> list[str]:
    """Return the completed instants, the archived ones included, but for rollbacks."""
    table = open_table(open_storage(str(path)))
    found = {instant.identity for instant in (*table.archive.instants(), *table.timeline().completed)}
    return sorted(one for one in found if not one.endswith("rollback"))


@pytest.mark.parametrize("version", [8, 9])
def test_a_change_that_was_decided_is_carried_out_by_the_next_write(tmp_path: Path, version: int) -> None:
    """Which was planned for the old version, gives way, and is written again."""
    write(tmp_path, [parted("a", 1, value=1)], table=replace(PARTED, version=version), settings=QUIET)
    with nothing_is_carried_out(Killed()), pytest.raises(Killed):
        change(tmp_path, 17 - version)
    assert version_of(tmp_path) == version
    assert "DECISION_OPEN" in codes(tmp_path, stale_s=-1.0)

    with pytest.raises(CommitConflictError, match="meanwhile"):
        write(tmp_path, [parted("a", 1, value=2)], settings=QUIET)
    assert version_of(tmp_path) == 17 - version
    assert "DECISION_OPEN" not in codes(tmp_path, stale_s=-1.0)
    assert rows_of(tmp_path, "value") == [(1,)]
    write(tmp_path, [parted("a", 1, value=3)], settings=QUIET)

    assert rows_of(tmp_path, "value") == [(3,)]
    assert_whole(tmp_path)
