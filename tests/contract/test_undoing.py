"""Writes taken back, kept and gone back to; what was planned or is read beside that is right, or says so loudly."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import fastavro
import pyarrow as pa
import pytest
from pyhudi.errors import (
    CommitConflictError,
    ConcurrentWriteError,
    MissingFileError,
    StorageError,
    UndoError,
    UnreadableTimeError,
)
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.service_settings import KEEP_LATEST_FILE_VERSIONS, ArchiveSettings, CleanSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import delete_savepoint, savepoint
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.reader.query import AsOf
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.instants import State
from pyhudi.timeline.writers import announcements, heartbeat
from support.attempts import IMPATIENT, PARTED, parted, rows
from support.drive import KEYED, carry_out, choosing_now, noted, plan, read, rows_of, task, write
from support.rules.ends import assert_whole
from support.seams import patch_seam
from support.upkeep.cleans import QUIET
from support.upkeep.undoing import (
    Life,
    assert_gone,
    check_each_rolled_back,
    check_kept,
    check_only_the_newest,
    check_restored_to_each,
    check_what_comes_back,
    condemn,
    content,
    lived,
    logged,
    timeline_at,
)

SCHEMA = parted("a", 1, value=1).schema


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return lived(tmp_path / "t")


def names(path: Path, pattern: str) -> list[str]:
    return sorted(one.name for one in (path / ".hoodie" / "timeline").glob(pattern))


def body(path: Path, pattern: str) -> dict[str, object]:
    """Return what the one file of a pattern holds, as Apache Hudi would read it."""
    (name,) = names(path, pattern)
    with (path / ".hoodie" / "timeline" / name).open("rb") as stream:
        (found,) = list(fastavro.reader(stream))
    return found  # type: ignore[return-value]


KINDS = pytest.mark.parametrize("make", [lived, logged], ids=["copy-on-write", "merge-on-read"])


@KINDS
def test_each_write_is_rolled_back_to_the_one_before(tmp_path: Path, make: Callable[[Path], Life]) -> None:
    """Files, partitions, replaced file groups and columns are as before; the first leaves an empty table."""
    check_each_rolled_back(tmp_path, make)


def test_what_a_savepoint_keeps_is_not_undone(tmp_path: Path) -> None:
    check_kept(tmp_path)


def test_a_write_on_which_another_stands_is_not_rolled_back(tmp_path: Path) -> None:
    check_only_the_newest(tmp_path)


@KINDS
def test_a_table_is_restored_to_each_of_its_writes(tmp_path: Path, make: Callable[[Path], Life]) -> None:
    check_restored_to_each(tmp_path, make)


def test_a_rollback_is_spelt_as_apache_hudi_spells_it(life: Life) -> None:
    """One request for each file, found by listing, under plain absolute paths."""
    files = sorted(str(one) for one in life.path.glob(f"*/*_{life.instants[-1]}.parquet"))
    rollback(open_storage(str(life.path)), life.instants[-1])

    requested, completed = body(life.path, "*.rollback.requested"), body(life.path, "*.rollback")
    victim = {"commitTime": life.instants[-1], "action": "commit"}
    assert requested["instantToRollback"] == victim
    assert [one["filesToBeDeleted"] for one in requested["RollbackRequests"]] == [[one] for one in files]  # type: ignore[attr-defined]
    assert {(one["fileId"], one["latestBaseInstant"]) for one in requested["RollbackRequests"]} == {("", "")}  # type: ignore[attr-defined]
    assert (completed["commitsRollback"], completed["instantsRollback"], completed["totalFilesDeleted"]) == (
        [life.instants[-1]],
        [victim],
        2,
    )


def test_a_restore_is_spelt_as_apache_hudi_spells_it(life: Life) -> None:
    """Newest first, each undone write with what a rollback of it would say; rollbacks since are forgotten."""
    storage = open_storage(str(life.path))
    rollback(storage, life.instants[-1])
    told = restore(storage, life.instants[1])

    requested, completed = body(life.path, "*.restore.requested"), body(life.path, "*.restore")
    undone = [{"commitTime": one, "action": "replacecommit"} for one in (life.instants[3], life.instants[2])]
    assert (requested["instantsToRollback"], requested["savepointToRestoreTimestamp"]) == (undone, life.instants[1])
    assert (completed["instantsToRollback"], completed["restoreInstantInfo"]) == (
        [one["commitTime"] for one in undone],
        undone,
    )
    parts = completed["hoodieRestoreMetadata"]
    assert {time: [one["commitsRollback"] for one in each] for time, each in parts.items()} == {  # type: ignore[attr-defined]
        one["commitTime"]: [[one["commitTime"]]] for one in undone
    }
    assert names(life.path, "*rollback*") == []
    assert told.files == 1
    assert restore(storage, life.instants[1]).instant == ""


def test_a_savepoint_names_the_slices_of_its_moment(life: Life) -> None:
    """As of an earlier write, though later ones have changed and replaced them; twice is no error."""
    storage = open_storage(str(life.path))
    first = savepoint(storage, life.instants[1], user="me", comment="before the flood")
    again = savepoint(storage, life.instants[1])

    assert first == again
    assert names(life.path, "*savepoint*") == [
        f"{life.instants[1]}.savepoint.inflight",
        *names(life.path, f"{life.instants[1]}_*.savepoint"),
    ]
    assert (life.path / ".hoodie/timeline" / f"{life.instants[1]}.savepoint.inflight").read_bytes() == b""
    kept = body(life.path, "*.savepoint")
    assert (kept["savepointedBy"], kept["comments"]) == ("me", "before the flood")
    saved_files = {p: sorted(one["savepointDataFile"]) for p, one in kept["partitionMetadata"].items()}  # type: ignore[attr-defined]
    moment = open_snapshot(str(life.path), query=AsOf(life.instants[1]))
    expected: dict[str, list[str]] = {}
    for item in moment.slices():
        expected.setdefault(item.partition_path, []).append(item.base_file.name)
    assert saved_files == {p: sorted(one) for p, one in expected.items()}
    delete_savepoint(storage, life.instants[1])
    assert names(life.path, "*savepoint*") == []
    assert_whole(life.path)


def test_a_savepoint_that_was_decided_on_a_full_disk_is_completed_by_the_next_write(life: Life) -> None:
    storage = open_storage(str(life.path))

    class Full:
        """A store without room for the completed file of a savepoint."""

        def __getattr__(self, name: str) -> Any:
            return getattr(storage, name)

        def create(self, path: str, data: bytes, **options: Any) -> bool:
            if path.endswith(".savepoint"):
                raise StorageError(f"The store could not write {path}: No space left on device.", "Make room.")
            return storage.create(path, data, **options)

    with pytest.raises(StorageError, match="the next write to the table completes it"):
        savepoint(cast("Storage", Full()), life.instants[1])
    write(life.path, parted("b", 9, value=9))

    assert len(names(life.path, f"{life.instants[1]}_*.savepoint")) == 1


def test_columns_are_those_of_the_newest_write_that_is_left(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(table, rows(1, 2, value=1), table=KEYED)
    wider = rows(2, 3, value=2).append_column("more", pa.array(["x", "y"]))
    second = write(table, wider).instant
    assert "more" in read(table).column_names
    rollback(open_storage(str(table)), second)

    assert "more" not in read(table).column_names
    write(table, rows(3, value=3))
    assert rows_of(table, "id", "value") == [("k1", 1), ("k2", 1), ("k3", 3)]
    assert_whole(table)


@pytest.mark.parametrize("by", ["rollback", "restore"])
def test_a_file_that_is_lost_is_cured_by_undoing_the_write_that_made_it(life: Life, by: str) -> None:
    """The error of the read says so."""
    storage = open_storage(str(life.path))
    next(life.path.glob(f"a/*_{life.instants[-1]}.parquet")).unlink()
    with pytest.raises(MissingFileError, match="roll back that commit and all later commits"):
        content(life.path)
    _ = rollback(storage, life.instants[-1]) if by == "rollback" else restore(storage, life.instants[-2])

    assert content(life.path) == life.contents[-2]
    assert_whole(life.path)


# --- who planned before


@pytest.mark.parametrize("when", ["decided", "done"])
@pytest.mark.parametrize("partition", ["a", "b"], ids=["kept rows", "opened"])
def test_a_write_built_on_what_is_undone_conflicts(tmp_path: Path, when: str, partition: str) -> None:
    """It changed a file group that the write before had changed or opened; its plan had seen that."""
    table = tmp_path / "t"
    write(table, parted("a", 1, value=1), table=PARTED)
    second = write(table, [parted("a", 1, 2, value=2), parted("b", 1, value=2)]).instant
    planned = plan(table, SCHEMA)
    undo = condemn if when == "decided" else lambda path, one: rollback(open_storage(str(path)), one)
    undo(table, second)
    with pytest.raises(CommitConflictError, match=f"{second}.*rolled back meanwhile"):
        carry_out(planned, [parted(partition, 1, 2, value=3)])

    write(table, parted("c", 1, value=4))
    assert content(table) == [("a", "k1", 1), ("c", "k1", 4)]
    assert_whole(table)


def test_a_write_beside_what_is_undone_commits(tmp_path: Path) -> None:
    """Nothing that it saw of its own file groups has changed."""
    table = tmp_path / "t"
    write(table, [parted("a", 1, value=1), parted("b", 1, value=1)], table=PARTED)
    second = write(table, parted("a", 1, 2, value=2)).instant
    planned = plan(table, SCHEMA)
    rollback(open_storage(str(table)), second)
    carry_out(planned, [parted("b", 1, value=3)])

    assert content(table) == [("a", "k1", 1), ("b", "k1", 3)]
    assert_whole(table)


def test_a_write_conflicts_where_replaced_file_groups_come_back(tmp_path: Path) -> None:
    """It opened a new file group in a partition that was empty for it, and is not any more."""
    check_what_comes_back(tmp_path)


def test_a_write_that_was_built_on_the_only_one_conflicts(tmp_path: Path) -> None:
    """It is then the oldest on the timeline, and the one before looks like an archived one."""
    table = tmp_path / "t"
    first = write(table, parted("a", 1, 2, value=1), table=PARTED).instant
    planned = plan(table, SCHEMA)
    rollback(open_storage(str(table)), first)
    with pytest.raises(CommitConflictError, match="rolled back meanwhile"):
        carry_out(planned, [parted("a", 2, value=3)])

    assert content(table) == []


def test_a_write_planned_before_a_restore_conflicts(life: Life) -> None:
    """Whatever it writes to."""
    planned = plan(life.path, SCHEMA)
    restore(open_storage(str(life.path)), life.instants[2])
    with pytest.raises(CommitConflictError, match="took the table back"):
        carry_out(planned, [parted("z", 1, value=3)])

    assert content(life.path) == life.contents[3]
    assert_whole(life.path)


# --- what broke off


def test_the_next_write_finishes_a_rollback_that_was_only_decided(life: Life) -> None:
    """Readers see the write until then, and the next one neither sees it nor is refused for it."""
    condemn(life.path, life.instants[-1])
    assert content(life.path) == life.contents[-1]
    write(life.path, parted("b", 9, value=9), settings=IMPATIENT)

    assert content(life.path) == sorted([*life.contents[-2], ("b", "k9", 9)])
    assert_gone(life.path, life.instants[-1])
    assert_whole(life.path)


@pytest.mark.parametrize("far", ["decided", "completed file gone", "data gone"])
def test_a_rollback_that_somebody_else_began_is_finished(life: Life, tmp_path: Path, far: str) -> None:
    """It is no decision, and the newest one is the commit of its victim, which nobody completes again."""
    other, victim = life.copied(tmp_path / "other"), life.instants[-1]
    condemn(other.path, victim)
    (requested,) = names(other.path, "*.rollback.requested")
    shutil.copy(other.path / ".hoodie/timeline" / requested, life.path / ".hoodie/timeline")
    if far != "decided":
        (completed,) = (life.path / ".hoodie/timeline").glob(f"{victim}_*")
        completed.unlink()
    if far == "data gone":
        for file in life.path.glob(f"*/*_{victim}.parquet"):
            file.unlink()
    write(life.path, parted("b", 9, value=9))

    assert content(life.path) == sorted([*life.contents[-2], ("b", "k9", 9)])
    assert_gone(life.path, victim)
    assert_whole(life.path)


def test_a_replay_of_a_write_that_is_being_undone_writes_again(tmp_path: Path) -> None:
    """Its write id is not taken for done."""
    table = tmp_path / "t"
    write(table, parted("a", 1, value=1), table=PARTED)
    second = write(table, parted("a", 2, value=2), write_id="mine").instant
    condemn(table, second)
    again = write(table, parted("a", 2, value=2), write_id="mine")

    assert again.instant > second
    assert content(table) == [("a", "k1", 1), ("a", "k2", 2)]
    assert_whole(table)


def test_while_a_restore_is_pending_nobody_writes(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to go on; so do those of another restore and of a rollback."""

    storage = open_storage(str(life.path))
    with monkeypatch.context() as patch:
        patch_seam(
            patch,
            "hide the completion of a restored instant",
            lambda *_: (_ for _ in ()).throw(StorageError("Gone.", "Try again.")),
        )
        with pytest.raises(StorageError, match="Gone"):
            restore(storage, life.instants[1])
    for act in (
        lambda: write(life.path, parted("a", 1, value=1), settings=IMPATIENT),
        lambda: restore(storage, life.instants[2]),
        lambda: rollback(storage, life.instants[-1]),
        lambda: savepoint(storage),
    ):
        with pytest.raises(ConcurrentWriteError, match=rf"HudiTable.restore\('{life.instants[1]}'\) again"):
            act()
    assert content(life.path) == life.contents[-1]
    restore(storage, life.instants[1])

    assert content(life.path) == life.contents[2]
    assert_whole(life.path)


def test_a_write_that_meets_a_half_finished_restore_names_it(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its victims are pending again by then, and no advice about their writers helps."""

    storage = open_storage(str(life.path))
    with monkeypatch.context() as patch:
        patch_seam(
            patch,
            "take restored instants off the timeline",
            lambda *_: (_ for _ in ()).throw(StorageError("Gone.", "Try again.")),
        )
        with pytest.raises(StorageError, match="Gone"):
            restore(storage, life.instants[1])

    for settings in (WriteSettings(), IMPATIENT):
        with pytest.raises(ConcurrentWriteError, match=rf"HudiTable.restore\('{life.instants[1]}'\) again"):
            write(life.path, parted("a", 1, value=1), settings=settings)
    restore(storage, life.instants[1])
    assert content(life.path) == life.contents[2]


def test_a_dead_write_is_no_reason_to_wait(life: Life) -> None:
    """It is rolled back first; nothing of it is left either."""
    task(plan(life.path, SCHEMA, settings=IMPATIENT), parted("a", 1, value=9), 0)
    impatient = IMPATIENT.patience
    rollback(open_storage(str(life.path)), life.instants[-1], patience=impatient)
    assert content(life.path) == life.contents[-2]
    assert_whole(life.path)
    task(plan(life.path, SCHEMA, settings=IMPATIENT), parted("a", 1, value=9), 0)
    restore(open_storage(str(life.path)), life.instants[0], patience=impatient)

    assert content(life.path) == life.contents[1]
    assert_whole(life.path)


@pytest.mark.parametrize("act", [rollback, savepoint, restore])
def test_what_is_being_archived_is_neither_undone_nor_kept(life: Life, act: Callable[..., object]) -> None:
    """Whoever archives has said so; nothing was begun."""
    storage, to = open_storage(str(life.path)), life.instants[-1 if act is rollback else 1]
    announcements.announce(storage, to)
    with pytest.raises(UndoError, match="archived"):
        act(storage, to)

    assert content(life.path) == life.contents[-1]
    assert len(timeline_at(life.path).instants) == len(life.instants)


def test_a_rollback_leaves_the_writes_that_will_be_archived_a_newer_one(life: Life) -> None:
    """Readers take archived writes for committed by the oldest write of the timeline."""
    storage = open_storage(str(life.path))
    announcements.announce(storage, life.instants[-2])
    with pytest.raises(UndoError, match="no write on its timeline"):
        rollback(storage, life.instants[-1])

    assert content(life.path) == life.contents[-1]


def test_an_archiving_that_meets_a_rollback_of_the_newest_write_leaves_the_write_before(tmp_path: Path) -> None:
    instants = [write(tmp_path, rows(n, value=n), table=KEYED, settings=QUIET).instant for n in range(4)]
    storage, listed = open_storage(str(tmp_path)), timeline_at(tmp_path)
    rollback(storage, instants[-1])
    archive(storage, ArchiveSettings(min_commits=1, max_commits=1), timeline=listed)

    assert rows_of(tmp_path, "value") == [(0,), (1,), (2,)]
    assert [each.requested_time for each in timeline_at(tmp_path).writes] == [instants[2]]


def test_a_restore_that_met_an_archiving_is_taken_back(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was announced after the restore had looked; nobody requests the restore again."""
    storage = open_storage(str(life.path))
    announcements.announce(storage, life.instants[1])
    with monkeypatch.context() as patch, pytest.raises(UndoError, match="archived"):
        patch_seam(patch, "instants that a service sees announced", lambda _: ())
        restore(storage, life.instants[1])
    announcements.forget_before(storage, life.instants[-1])
    write(life.path, parted("b", 9, value=9))

    assert content(life.path) == sorted([*life.contents[-1], ("b", "k9", 9)])
    assert_whole(life.path)
    restore(storage, life.instants[1])
    assert content(life.path) == life.contents[2]


# --- pending writes by name


def test_a_write_that_lives_is_rolled_back_by_name_and_fails_loudly(life: Life) -> None:
    """Its heart beats and its process is there; the user says that it is dead, and it can do no harm."""
    slow = choosing_now(plan(life.path, SCHEMA))
    with heartbeat.HeartbeatThread(open_storage(str(life.path)), noted(slow), interval_s=1):
        first = task(slow, parted("a", 1, value=9), 0)
        told = rollback(open_storage(str(life.path)), noted(slow))
        with pytest.raises(CommitConflictError, match="given up"):
            task(slow, parted("c", 1, value=9), 1)
        with pytest.raises(CommitConflictError, match="no longer pending"):
            commit_write(slow, [first])
    abort_write(slow)

    assert told.instants == 1
    assert content(life.path) == life.contents[-1]
    assert_gone(life.path, noted(slow))
    write(life.path, parted("a", 1, value=10))
    assert_whole(life.path)


# --- readers


def test_a_dataframe_made_before_says_that_what_it_saw_is_gone(life: Life) -> None:
    """Neither fewer rows nor those of now are shown in its place."""
    before = open_snapshot(str(life.path)).timeline.watermark()
    rollback(open_storage(str(life.path)), life.instants[-1])
    with pytest.raises(UnreadableTimeError, match=f"{life.instants[-1]} was rolled back since"):
        open_snapshot(str(life.path), watermark=before)


def test_a_dataframe_of_the_only_write_says_so_when_another_came(tmp_path: Path) -> None:
    """The one that is gone is older than the timeline's first, as an archived one would be."""
    table = tmp_path / "t"
    first = write(table, parted("a", 1, value=1), table=PARTED).instant
    before = open_snapshot(str(table)).timeline.watermark()
    rollback(open_storage(str(table)), first)
    write(table, parted("b", 1, value=1))
    with pytest.raises(UnreadableTimeError, match=f"{first} was rolled back since"):
        open_snapshot(str(table), watermark=before)


def test_a_reader_that_listed_instants_before_a_rollback_is_told_to_run_again(life: Life) -> None:
    snapshot = open_snapshot(str(life.path))
    rollback(open_storage(str(life.path)), life.instants[-1])
    with pytest.raises(StorageError, match="was rolled back"):
        snapshot.slices()


def test_a_pending_clustering_is_taken_back_by_name(life: Life) -> None:
    """It blocks writes, and only the user can know that nobody is going to carry it out."""
    at = f"{int(life.instants[-1]) + 1}"
    for state in ("requested", "inflight"):
        (life.path / ".hoodie/timeline" / f"{at}.clustering.{state}").write_bytes(b"")
    rollback(open_storage(str(life.path)), at)

    assert timeline_at(life.path).find(at) is None
    assert [one.state for one in timeline_at(life.path).instants] == [State.COMPLETED] * (len(life.instants) + 1)


def test_a_file_group_whose_replacement_is_archived_is_missed_by_nobody(tmp_path: Path) -> None:
    """The clean that took its files is on the timeline still, and what undid the need for them is not."""
    table = tmp_path / "t"
    write(table, rows(1, 2, value=1), table=KEYED)
    write(table, rows(3, value=2), operation="insert_overwrite_table")
    kept_instants = [write(table, rows(key, value=3)).instant for key in (4, 5, 6)]
    assert clean(open_storage(str(table)), CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1)).files > 0
    assert archive(open_storage(str(table)), ArchiveSettings(min_commits=3, max_commits=3)).instants > 1
    assert timeline_at(table).writes[0].requested_time == kept_instants[0]
    newest = write(table, rows(7, value=4), settings=QUIET).instant

    assert open_snapshot(str(table), query=AsOf(kept_instants[-1])).slices(())
    rollback(open_storage(str(table)), newest)

    assert rows_of(table, "id") == [("k3",), ("k4",), ("k5",), ("k6",)]
    assert_whole(table)


def test_a_service_that_is_to_be_rolled_back_is_told_from_a_write(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for value in range(3):
        newest = write(path, parted("a", 1, value=value), table=PARTED, settings=QUIET).instant
    storage = open_storage(str(path))
    cleaned, undone = clean(storage, CleanSettings(commits=1)).instant, rollback(storage, newest).instant

    with pytest.raises(UndoError, match=f"{cleaned} of the table .* is a clean, a table service and no write"):
        rollback(storage, cleaned)
    with pytest.raises(UndoError, match=f"{undone} of the table .* is a rollback, .*: it took a write back"):
        rollback(storage, undone)
