"""A repair recovers properties, rolls dead writes back and moves orphans aside; an undo puts these back."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyhudi.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    OptionConflictError,
    PyHudiError,
    UnsupportedTableError,
)
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.means import Means
from pyhudi.operations.services.repair.repair_table import repair_table
from pyhudi.operations.services.repair.undo_repair import undo_repair
from pyhudi.operations.upkeep.service_entry import Call
from pyhudi.operations.upkeep.services import SERVICES
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.files.output import Output
from pyhudi.timeline.writers.patience import Patience
from pyhudi.timeline.writers.removed import FOLDER, KEPT_S
from support.drive import read, write
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.steps import Share, steps_of
from support.made.compacting import rows
from support.places import below, copied, files_below
from support.s3 import new_url, put_object
from support.seams import patch_seam
from support.upkeep.meetings import COW, QUIET, Scene

MEANS = Means(Patience(), Output())
PROPERTIES = ".hoodie/hoodie.properties"
BACKUP = f"{PROPERTIES}.backup"
YOUNG = "20981231000000000"


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A table of two writes on this machine, and on S3."""
    if request.param == "s3":
        request.getfixturevalue("direct_s3")
    table_path = new_url() if request.param == "s3" else str(tmp_path / "t")
    for n in range(2):
        write(table_path, rows(("k1", "a", n, n), ("k2", "b", n, n)), table=COW, settings=QUIET)
    yield table_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of four writes on this machine."""
    table_path = tmp_path / "t"
    for n in range(4):
        write(table_path, rows(("k1", "a", n, n), ("k2", "b", n, n)), table=COW, settings=QUIET)
    return table_path


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test wait for a writer to complete its change of the properties: none has such a writer."""
    patch_seam(monkeypatch, "patience with torn properties", 0.01)
    patch_seam(monkeypatch, "patience with torn properties without a backup", 0.01)


def put(place: str | Path, name: str, data: bytes) -> None:
    """Put a file below a table's path by no way of pyhudi."""
    if "://" in str(place):
        put_object(below(str(place), name), data)
    else:
        Path(place, name).write_bytes(data)


def data_files(place: str | Path) -> list[str]:
    return sorted(name for name in files_below(place) if name.endswith(".parquet") and not name.startswith(".hoodie"))


def make_orphan(place: str | Path, instant: str = YOUNG) -> str:
    """Put a copy of a table's newest base file beside it, of an instant that never was, and return its path."""
    newest = max(data_files(place), key=lambda name: name.rpartition("_")[2])
    orphan = f"{newest.partition('_')[0]}_9-9-9_{instant}.parquet"
    put(place, orphan, files_below(place)[newest])
    return orphan


def content(place: str | Path) -> list[str]:
    return sorted(map(str, read(place).select(["id", "p", "ts", "value"]).to_pylist()))


def sick(place: str | Path) -> list[str]:
    """Return what is wrong with a table, by the codes of `validate`."""
    return [row["code"] for row in validate(open_storage(str(place)), deep=True, stale_s=0).to_pylist()]


def call_of(place: str | Path) -> Call:
    """Return a call of a service that needs neither settings nor means."""
    return Call(open_storage(str(place)), MEANS.patience, _nothing, lambda: MEANS)


def _nothing() -> Any:
    raise AssertionError("a repair needs no setting")


def kept(place: str | Path) -> dict[str, bytes]:
    """Return the files that repairs moved, by their paths in the table."""
    return {
        name.split("/", 4)[4]: data
        for name, data in files_below(place).items()
        if name.startswith(FOLDER + "/") and name.count("/") > 3
    }


def test_a_dry_run_tells_the_steps_and_a_repair_takes_them(place: str) -> None:
    before, shown = files_below(place), content(place)
    orphan = make_orphan(place)
    bytes_of_orphan = files_below(place)[orphan]

    told = repair_table(open_storage(place), MEANS, dry_run=True)
    unchanged = files_below(place)
    repair = repair_table(open_storage(place), MEANS)

    assert unchanged == {**before, orphan: bytes_of_orphan}
    assert (told.dry, told.instant, told.moved, told.steps) == (True, "", (orphan,), repair.steps)
    assert [step.partition(":")[0] for step in repair.steps] == ["Move aside (ORPHAN)"]
    assert (repair.moved, repair.bytes, repair.skipped) == ((orphan,), len(bytes_of_orphan), "")
    assert kept(place) == {orphan: bytes_of_orphan}
    assert f"repair {repair.instant} of {place}: 1 file moved aside" in str(repair)
    assert (content(place), sick(place)) == (shown, [])
    again = repair_table(open_storage(place), MEANS)
    assert (again.changed, "had nothing to do" in str(again)) == (False, True)


def test_an_undo_puts_the_files_back_and_leaves_nothing_else(place: str) -> None:
    orphans = [make_orphan(place), make_orphan(place, "20981230000000000")]
    before, shown = files_below(place), content(place)
    repair = repair_table(open_storage(place), MEANS)

    told = undo_repair(open_storage(place), repair.instant, MEANS, dry_run=True)
    assert data_files(place) == sorted(set(data_files(place)) - {*orphans})
    undone = undo_repair(open_storage(place), repair.instant, MEANS)

    assert told.put_back == undone.put_back == tuple(sorted(orphans))
    assert f"repair {repair.instant} of {place}: 2 files put back" in str(undone)
    assert {name: data for name, data in files_below(place).items() if "/.pyhudi/" not in name} == {
        name: data for name, data in before.items() if "/.pyhudi/" not in name
    }
    assert not [name for name in files_below(place) if name.startswith(FOLDER)]
    assert content(place) == shown
    with pytest.raises(InvalidOptionError, match="no files that a repair moved"):
        undo_repair(open_storage(place), repair.instant, MEANS)


def test_two_repairs_are_undone_apart(path: Path) -> None:
    first = make_orphan(path)
    first_repair = repair_table(open_storage(str(path)), MEANS)
    second = make_orphan(path, "20981230000000000")
    two = repair_table(open_storage(str(path)), MEANS)

    with pytest.raises(InvalidOptionError, match=f"{first_repair.instant}, {two.instant}"):
        undo_repair(open_storage(str(path)), "20200101000000000", MEANS)
    undo_repair(open_storage(str(path)), first_repair.instant, MEANS)

    assert first in data_files(path)
    assert list(kept(path)) == [second]


def test_a_dead_write_is_rolled_back_and_none_of_its_files_is_moved(path: Path) -> None:
    shown = content(path)
    dead = Scene(path, ()).dead(("k9", "a", 9, 9))

    told = repair_table(open_storage(str(path)), MEANS, dry_run=True)
    repair = repair_table(open_storage(str(path)), MEANS)

    assert told.steps == repair.steps == (f"Roll the commit {dead.requested_time} back, whose writer is dead.",)
    assert (told.instants, repair.instants, repair.moved, repair.instant) == (1, 1, (), "")
    assert (content(path), sick(path)) == (shown, [])


def leave_living(path: Path) -> str:
    return Scene(path, ()).at_work().requested_time


def leave_foreign(path: Path) -> str:
    """Leave an instant as a Java writer without heartbeats does."""
    return Scene(path, ()).pending("commit", inflight=True).requested_time


@pytest.mark.parametrize("leave", [leave_living, leave_foreign])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_repair_and_an_undo_are_refused_beside_a_writer_that_may_live(
    path: Path, leave: Callable[[Path], str], dry_run: bool
) -> None:
    make_orphan(path)
    repair = repair_table(open_storage(str(path)), MEANS)
    make_orphan(path)
    pending, before = leave(path), data_files(path)

    for act in (
        lambda: repair_table(open_storage(str(path)), MEANS, dry_run=dry_run),
        lambda: undo_repair(open_storage(str(path)), repair.instant, MEANS, dry_run=dry_run),
    ):
        with pytest.raises(ConcurrentWriteError, match=pending):
            act()

    assert data_files(path) == before


def test_a_foreign_write_is_rolled_back_once_the_user_says_that_it_is_dead(path: Path) -> None:
    pending = leave_foreign(path)

    done = repair_table(open_storage(str(path)), replace(MEANS, patience=Patience(eager=True)))

    assert done.steps == (f"Roll the commit {pending} back, whose writer is dead.",)
    assert sick(path) == []


def lose_properties(path: str, data: bytes) -> None:
    put(path, BACKUP, data)
    storage = open_storage(path)
    storage.delete(PROPERTIES)


def cut_properties(path: str, data: bytes) -> None:
    put(path, BACKUP, data)
    put(path, PROPERTIES, data[:400])


def leave_backup(path: str, data: bytes) -> None:
    put(path, BACKUP, data)


@pytest.mark.parametrize("break_off", [lose_properties, cut_properties, leave_backup])
def test_properties_come_from_their_backup_and_an_undo_returns_to_what_was(
    place: str, break_off: Callable[[str, bytes], None]
) -> None:
    data, shown = files_below(place)[PROPERTIES], content(place)
    break_off(place, data)
    before = {name: found for name, found in files_below(place).items() if name in {PROPERTIES, BACKUP}}

    told = repair_table(open_storage(place), MEANS, dry_run=True)
    repair = repair_table(open_storage(place), MEANS)
    after = files_below(place)

    assert told.steps == repair.steps == (f"End the change of {PROPERTIES} that broke off, by its backup.",)
    assert (after[PROPERTIES], BACKUP in after) == (data, False)
    assert kept(place) == before
    assert (content(place), sick(place)) == (shown, [])
    undo_repair(open_storage(place), repair.instant, MEANS)
    undone = files_below(place)
    assert {name: found for name, found in undone.items() if name in {PROPERTIES, BACKUP}} == before
    assert not [name for name in undone if name.startswith(FOLDER)]


def test_a_repair_beside_another_that_ends_the_same_change_of_properties_keeps_no_copies(path: Path) -> None:
    storage, backup = open_storage(str(path)), path / BACKUP
    leave_backup(str(path), (path / PROPERTIES).read_bytes())

    class Ended:
        """A store in which another process ends the change once a repair has noted what it copies."""

        def __getattr__(self, name: str) -> Any:
            return getattr(storage, name)

        def create(self, path: str, data: bytes) -> bool:
            is_new = storage.create(path, data)
            if path.startswith(FOLDER):
                backup.unlink()
            return is_new

    repair = repair_table(cast("Storage", Ended()), MEANS)

    assert (repair.moved, repair.steps, repair.instant) == ((), (), "")
    assert not [name for name in files_below(path) if name.startswith(FOLDER)]
    assert sick(path) == []


def test_an_undo_leaves_properties_that_were_changed_since(path: Path) -> None:
    cut_properties(str(path), files_below(path)[PROPERTIES])
    repair = repair_table(open_storage(str(path)), MEANS)
    changed = files_below(path)[PROPERTIES] + b"my.own=1\n"
    put(path, PROPERTIES, changed)

    undone = undo_repair(open_storage(str(path)), repair.instant, MEANS)

    assert undone.put_back == ()
    assert undone.skipped.count("the properties were changed since") == 2
    assert files_below(path)[PROPERTIES] == changed
    assert {*kept(path)} == {PROPERTIES, BACKUP}


def shorten(path: Path) -> str:
    """Archive all writes but the newest two; return a time between two archived writes."""
    times = sorted(name.rpartition("/")[2].partition("_")[0] for name in files_below(path) if name.endswith(".commit"))
    archive(open_storage(str(path)), ArchiveSettings(min_commits=2, max_commits=3))
    return str(int(times[0]) + 1)


def test_an_orphan_that_readers_show_goes_where_the_archive_proves_that_its_write_never_completed(path: Path) -> None:
    between = shorten(path)
    shown = content(path)
    newest = max(data_files(path), key=lambda name: name.rpartition("_")[2])
    # Of a file group of its own, so that its rows are in no slice of the table.
    orphan = f"{newest.rpartition('/')[0]}/00000000-{'9' * 8}-{'9' * 4}-{'9' * 4}-{'9' * 10}-0_9-9-9_{between}.parquet"
    put(path, orphan, files_below(path)[newest])
    with_orphan = content(path)

    repair = repair_table(open_storage(str(path)), MEANS)

    assert with_orphan != shown
    assert (repair.moved, content(path)) == ((orphan,), shown)
    undone = undo_repair(open_storage(str(path)), repair.instant, MEANS)
    assert (undone.put_back, content(path)) == ((orphan,), with_orphan)


def test_files_stay_that_are_older_than_all_that_is_known(path: Path) -> None:
    """Where the archive was deleted, the newest slices of the table look like this."""
    shorten(path)
    shown = content(path)
    shutil.rmtree(path / ".hoodie/timeline/history")
    old = sorted(data_files(path))

    repair = repair_table(open_storage(str(path)), MEANS)

    assert "ARCHIVE_LOST" in sick(path)
    assert "ORPHAN_SHOWN" not in sick(path)
    assert repair.moved == ()
    assert "history has no file" in repair.skipped
    assert (sorted(data_files(path)), content(path)) == (old, shown)


def test_no_file_is_moved_while_a_part_of_the_archive_cannot_be_read(path: Path) -> None:
    shorten(path)
    orphan = make_orphan(path)
    archived = next((path / ".hoodie/timeline/history").glob("*.parquet"))
    archived.write_bytes(archived.read_bytes()[:100])

    repair = repair_table(open_storage(str(path)), MEANS)

    assert repair.moved == ()
    assert "could not be checked" in repair.skipped
    assert orphan in data_files(path)


def test_an_undo_puts_nothing_back_that_readers_would_then_show(path: Path) -> None:
    """Archiving deletes orphans before it passes their times, and cannot delete what was moved aside."""
    first = sorted(name.rpartition("/")[2].partition("_")[0] for name in files_below(path) if name.endswith(".commit"))[
        0
    ]
    orphan, shown = make_orphan(path, str(int(first) + 1)), content(path)
    repair = repair_table(open_storage(str(path)), MEANS)
    shorten(path)

    undone = undo_repair(open_storage(str(path)), repair.instant, MEANS)

    assert (repair.moved, undone.put_back) == ((orphan,), ())
    assert "archiving has passed its instant since" in undone.skipped
    assert (content(path), [*kept(path)]) == (shown, [orphan])


def test_an_undo_leaves_another_file_of_the_name_alone(path: Path) -> None:
    orphan = make_orphan(path)
    repair = repair_table(open_storage(str(path)), MEANS)
    put(path, orphan, b"another")

    undone = undo_repair(open_storage(str(path)), repair.instant, MEANS)

    assert "the table has another file of this name" in undone.skipped
    assert (files_below(path)[orphan], [*kept(path)]) == (b"another", [orphan])


def test_writes_delete_what_was_moved_after_seven_days(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_orphan(place)
    repair_table(open_storage(place), MEANS)
    now = open_storage(place).now()
    seam = "time of S3" if "://" in place else "time of a local store"

    for days, expected in ((6.9, 1), (7.1, 0)):
        later = now + days / 7 * KEPT_S
        with monkeypatch.context() as patch:
            patch_seam(patch, seam, lambda _, later=later: later)
            write(place, rows(("k1", "a", 9, days)), settings=QUIET)
        assert len(kept(place)) == expected

    assert not [name for name in files_below(place) if name.startswith(FOLDER)]


def test_files_of_a_newer_release_stay_and_are_put_back_by_none_but_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_orphan(path)
    repair = repair_table(open_storage(str(path)), MEANS)
    note = path / FOLDER / f"{repair.instant}.json"
    note.write_bytes(note.read_bytes().replace(b'"format": 1', b'"format": 2'))
    before = files_below(path)

    with pytest.raises(UnsupportedTableError, match="in the format 2"):
        undo_repair(open_storage(str(path)), repair.instant, MEANS)
    now = open_storage(str(path)).now()
    patch_seam(monkeypatch, "time of a local store", lambda _: now + 2 * KEPT_S)
    write(path, rows(("k1", "a", 9, 9)), settings=QUIET)

    assert {name: data for name, data in files_below(path).items() if name.startswith(FOLDER)} == {
        name: data for name, data in before.items() if name.startswith(FOLDER)
    }


def test_accept_loss_and_undo_are_two_calls(path: Path) -> None:
    with pytest.raises(OptionConflictError, match="both accept_loss and undo"):
        SERVICES["repair"].run(call_of(path), accept_loss=["x"], undo=YOUNG)


Act = Callable[[Storage], object]


@pytest.mark.slow
@pytest.mark.parametrize("act", ["repair", "undo"])
@steps_of("repair", 3)
def test_a_failure_before_any_step_loses_no_file(tmp_path: Path, path: Path, act: str, share: Share) -> None:
    """One of three: most steps are reads, which leave the table as the write before them has left it."""
    check_no_loss(tmp_path, path, act, "before", share)


@pytest.mark.parametrize("how", [pytest.param("after", marks=pytest.mark.slow), "killed"])
@pytest.mark.parametrize("act", ["repair", "undo"])
@steps_of("repair")
def test_a_failure_at_any_step_loses_no_file(tmp_path: Path, path: Path, act: str, how: str, share: Share) -> None:
    check_no_loss(tmp_path, path, act, how, share)


def check_no_loss(tmp_path: Path, path: Path, act: str, how: str, share: Share) -> None:
    """Each orphan is in the table, or kept, or both; and the next repair or undo ends what broke off."""
    cut_properties(str(path), files_below(path)[PROPERTIES])
    orphans = {name: files_below(path)[name] for name in (make_orphan(path), make_orphan(path, "20981230000000000"))}
    shown, damaged = content(path), files_below(path)[PROPERTIES]
    at = repair_table(open_storage(str(path)), MEANS).instant if act == "undo" else ""
    counted = Faults()
    _act(FaultyStorage(open_storage(str(copied(path, tmp_path / "t0"))), counted), at)
    assert {"stage", "publish", "flush", "delete"} <= {*counted.steps}
    for number in share.of(failing(counted.steps, how)):
        table = copied(path, tmp_path / f"t{number}")
        faults = Faults(at=number, after=how == "after", kill=how == "killed")
        with contextlib.suppress(PyHudiError, Killed):
            _act(FaultyStorage(open_storage(str(table)), faults), at)
        name = f"step {number} ({faults.name_of(number)})"
        table_files, aside = files_below(table), kept(table)
        for orphan, data in orphans.items():
            assert {table_files.get(orphan), aside.get(orphan)} - {None} == {data}, name
        assert damaged in (table_files.get(PROPERTIES), aside.get(PROPERTIES)), name
        assert content(table) == shown, name
        _act(open_storage(str(table)), at, again=True)
        there = {*orphans} & {*data_files(table)}
        assert there == ({*orphans} if at else set()), name
        assert content(table) == shown, name
        if not at:
            assert sick(table) == [], name
        shutil.rmtree(table)


def _act(storage: Any, at: str, *, again: bool = False) -> None:
    """Repair; or undo the repair of a time, which may be done already."""
    if not at:
        repair_table(storage, MEANS)
        return
    try:
        undo_repair(storage, at, MEANS)
    except InvalidOptionError:
        assert again
