"""Merge-on-read tables cleaned, archived, kept and undone: by their rows before and after, and by the files that go."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi.errors import UndoError
from pyhudi.operations.service_settings import CleanSettings
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage.base import FileInfo, Storage
from support.made.logged import Logged
from support.seams import patch_seam, read_seam
from support.upkeep.kept_logs import (
    NEWEST,
    appended,
    assert_sound,
    check_archived_appends_stay_in_place,
    check_lost_log_is_missed,
    check_merged_slices_go,
    check_saved_slices_stay,
)


@pytest.fixture
def table(tmp_path: Path) -> Logged:
    return appended(tmp_path / "t")


# --- clean


def test_a_clean_takes_what_compactions_merged(tmp_path: Path) -> None:
    check_merged_slices_go(tmp_path)


def test_a_clean_beside_a_pending_compaction_takes_what_an_older_one_merged(table: Logged) -> None:
    older = table.files()
    table.compact()
    table.append(1, 2, value=6)
    pending = table.plan_compaction()
    needed = {path for one in pending.slices for path in one.files}

    assert clean(table.storage, NEWEST).files == len(older)
    assert needed <= table.files()
    table.append(1, value=7)
    rows = table.content()
    table.finish(table.execute(pending))
    assert table.content() == rows
    clean(table.storage, NEWEST)
    assert not needed & table.files()
    assert table.content() == rows


def test_only_partitions_are_looked_at_in_which_a_slice_was_replaced(
    table: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append replaces nothing, though its statistic names an instant as its previous one."""
    settings = CleanSettings(commits=1)
    table.compact()
    table.append(1, value=6)
    table.append(1, value=7)
    assert clean(table.storage, settings).files == 5
    table.append(9, value=1, partition="b")
    table.append(9, value=2, partition="b")
    storage, listed = table.storage, []
    list_folder = read_seam("list a local folder")

    def noted(self: Storage, path: str, **given: bool) -> list[FileInfo]:
        listed.append(path)
        return list_folder(self, path, **given)

    with monkeypatch.context() as patch:
        patch_seam(patch, "list a local folder", noted)
        assert clean(storage, settings).files == 0
    assert not {"a", "b"} & set(listed)
    table.compact()
    table.append(1, value=8)
    assert clean(table.storage, settings).files == 6


# --- savepoint and restore


def test_a_savepoint_keeps_the_log_files_of_its_moment(tmp_path: Path) -> None:
    check_saved_slices_stay(tmp_path)


def test_a_restore_takes_a_table_back_over_compactions(table: Logged) -> None:
    """What they merged is read from the log files again, and a plan that is pending goes first of all."""
    at, rows, files = table.append(1, value=6), table.content(), table.files()
    table.compact()
    table.append(1, 2, value=7)
    table.append(8, value=7, partition="c")
    table.compact()
    table.append(1, value=8)
    table.execute(table.plan_compaction())

    done = restore(table.storage, at)

    assert done.instants == 6
    assert table.content() == rows
    assert table.files() == files
    assert [one.requested_time for one in table.timeline.writes][-1] == at
    assert not any(one.action == "compaction" for one in table.timeline.instants)
    assert_sound(table)
    table.append(1, value=9)
    assert ("a", "k1", 9) in table.content()


def test_a_restore_keeps_a_compaction_that_was_requested_before(table: Logged) -> None:
    """It completed later, and its rows are those of then; an append that it did not merge goes."""
    pending = table.plan_compaction()
    at, rows = table.append(1, value=6), table.content()
    table.append(1, value=7)
    table.finish(table.execute(pending))

    restore(table.storage, at)

    assert table.content() == rows
    assert pending.instant in [one.requested_time for one in table.timeline.writes]


def test_there_is_no_way_back_to_log_files_that_were_cleaned(table: Logged) -> None:
    at = table.append(1, value=6)
    table.compact()
    table.append(1, value=7)
    clean(table.storage, NEWEST)
    before = table.files()

    with pytest.raises(UndoError, match=r"gone or about to be cleaned"):
        restore(table.storage, at)
    assert table.files() == before


# --- rollback


def test_the_newest_append_is_rolled_back(table: Logged) -> None:
    rows, files = table.content(), table.files()
    at = table.append(1, 2, value=6)
    table.append(7, value=6, partition="new")
    newest = table.timeline.writes[-1].requested_time

    assert rollback(table.storage, newest).files == 1
    assert "new" not in table.partitions()
    assert rollback(table.storage, at).files == 2
    assert (table.content(), table.files()) == (rows, files)
    assert_sound(table)


@pytest.mark.parametrize("marked", [True, False])
def test_an_append_that_broke_off_is_rolled_back(table: Logged, marked: bool) -> None:
    """By its markers, and where another writer keeps none, by the names of its files."""
    rows, files = table.content(), table.files()
    work = table.begin(1, 2, value=6)
    assert table.content() == rows
    if not marked:
        table.storage.delete_folder(f".hoodie/.temp/{work.instant}")

    assert rollback(table.storage, work.instant).files == 2
    assert (table.content(), table.files()) == (rows, files)


def test_an_append_that_a_compaction_merged_goes_after_the_compaction_alone(table: Logged) -> None:
    at, rows = table.append(1, value=6), table.content()
    files = table.files()
    compaction = table.compact()

    with pytest.raises(UndoError, match=rf"later writes depend on it: commit {compaction}"):
        rollback(table.storage, at)
    assert rollback(table.storage, compaction).files == 3
    assert (table.content(), table.files()) == (rows, files)
    assert rollback(table.storage, at).files == 1
    assert ("a", "k1", 0) in table.content()
    assert_sound(table)


def test_an_append_that_a_pending_compaction_is_going_to_merge_stays(table: Logged) -> None:
    at = table.append(1, value=6)
    pending = table.plan_compaction()

    with pytest.raises(UndoError, match=rf"later writes depend on it: compaction {pending.instant}"):
        rollback(table.storage, at)


def test_a_compaction_stays_of_which_a_clean_has_taken_the_inputs(table: Logged) -> None:
    compaction = table.compact()
    clean(table.storage, NEWEST)

    with pytest.raises(UndoError, match="gone"):
        rollback(table.storage, compaction)
    assert len(table.content()) == 5


# --- archive


def test_archived_appends_are_in_the_slices_in_which_they_were(tmp_path: Path) -> None:
    check_archived_appends_stay_in_place(tmp_path)


# --- files that are gone


def test_a_log_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    check_lost_log_is_missed(tmp_path)
