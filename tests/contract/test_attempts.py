"""Commits that merge their rows again because another write of the same data came first."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import CommitConflictError, StorageError
from pyhudi.operations.result import find_write
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.storage.local import LocalStorage
from pyhudi.table.table import open_table
from pyhudi.timeline.writers.owner import Claim
from support.attempts import IMPATIENT, SCHEMA, rows
from support.drawn.upkept import OFF
from support.drive import KEYED, noted, plan, rows_of, task, write
from support.places import files_below
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam
from support.write_settings import write_settings

AGAIN = write_settings(retry_s=60.0, upkeep=OFF)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write(tmp_path / "t", rows(1, 2, value=1), table=KEYED, settings=AGAIN)
    return tmp_path / "t"


def test_a_write_that_another_overtook_is_merged_on_top_of_it(table: Path) -> None:
    """Its time lies before the other's, so that readers would pass its files over: it takes a later one."""
    slow = plan(table, SCHEMA, settings=AGAIN)
    handed = [task(slow, rows(1, 3, value=2, ts=2), number) for number in (0,)]
    other = write(table, rows(1, 4, value=3), settings=AGAIN)
    result = commit_write(slow, handed)

    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 1), ("k3", 2), ("k4", 3)]
    assert result.instant > other.instant > handed[0].instant_time
    assert result.attempts == 2
    opened = open_table(open_storage(str(table)))
    assert find_write(opened, opened.timeline(), result.write_id) == replace(result, services=())
    assert_whole(table)


def test_a_write_that_completes_while_another_merges_is_merged_again(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one completes between the look at the table and the decision, twice."""
    original, meanwhile = read_seam("table that a commit merges with"), [5, 6]

    def see(work: object, timeline: object) -> object:
        seen = original(work, timeline)
        if meanwhile:
            key = meanwhile.pop()
            with monkeypatch.context() as patch:
                patch_seam(patch, "table that a commit merges with", original)
                write(table, rows(key, 1, value=key, ts=1), settings=write_settings(AGAIN, wait_s=0.0))
        return seen

    slow = plan(table, SCHEMA, settings=AGAIN)
    handed = [task(slow, rows(1, 3, value=2, ts=2), 0), task(slow, rows(3, value=4, ts=3), 1)]
    patch_seam(monkeypatch, "table that a commit merges with", see)
    done = commit_write(slow, handed)

    assert done.attempts == 3
    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 1), ("k3", 4), ("k5", 5), ("k6", 6)]
    assert_whole(table)


def test_left_overs_that_cannot_be_deleted_fail_no_complete_write(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = plan(table, SCHEMA, settings=AGAIN)
    handed = [task(slow, rows(1, 3, value=2, ts=2), 0)]
    write(table, rows(1, 4, value=3), settings=AGAIN)
    delete, first = read_seam("delete a local folder"), Claim(open_storage(str(table)), handed[0].instant_time).folder

    def refuse(storage: LocalStorage, folder: str) -> None:
        if folder == first:
            raise StorageError(f"The store could not delete {folder}.", "Try again.")
        delete(storage, folder)

    patch_seam(monkeypatch, "delete a local folder", refuse)
    assert commit_write(slow, handed).attempts == 2
    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 1), ("k3", 2), ("k4", 3)]


def test_a_replay_that_completed_meanwhile_is_the_result(table: Path) -> None:
    slow = plan(table, SCHEMA, settings=AGAIN, write_id="mine")
    handed = [task(slow, rows(1, value=7, ts=2), 0)]
    replay = write(table, rows(1, value=7, ts=2), settings=AGAIN, write_id="mine")
    before = rows_of(table, "id", "value")

    assert commit_write(slow, handed).instant == replay.instant
    assert rows_of(table, "id", "value") == before
    assert_whole(table)


def test_columns_that_another_write_changed_are_no_case_for_another_merge(table: Path) -> None:
    """Which of two sets of columns the table has is for the caller to decide, and left-overs are none."""
    slow = plan(table, SCHEMA.append(SCHEMA.field("value").with_name("x")), settings=AGAIN)
    wide = rows(1, value=2)
    handed = [task(slow, wide.append_column("x", wide["value"]), 0)]
    narrow = rows(4, value=3)
    write(table, narrow.append_column("y", narrow["value"]), settings=AGAIN)
    before = {name for name in files_below(table) if "/sealed/" not in name and "/decisions/" not in name}
    with pytest.raises(CommitConflictError, match="changed the table's columns"):
        commit_write(slow, handed)
    abort_write(slow)

    assert not [name for name in files_below(table) if noted(slow) in name and "/sealed/" not in name]
    assert before
    assert_whole(table)


def test_a_write_whose_spills_a_rollback_took_fails(table: Path) -> None:
    sleeper = plan(table, SCHEMA, settings=write_settings(IMPATIENT, retry_s=60.0))
    handed = [task(sleeper, rows(1, value=2), 0)]
    write(table, rows(3, value=3), settings=IMPATIENT)
    with pytest.raises(CommitConflictError, match="rolled it back"):
        commit_write(sleeper, handed)
    abort_write(sleeper)

    assert rows_of(table, "id", "value") == [("k1", 1), ("k2", 1), ("k3", 3)]


def test_the_completed_instant_says_how_often_it_was_merged(table: Path) -> None:
    slow = plan(table, SCHEMA, settings=AGAIN)
    handed = [task(slow, rows(1, value=2, ts=2), 0)]
    write(table, rows(1, value=3), settings=AGAIN)
    result = commit_write(slow, handed)
    timeline = open_table(open_storage(str(table))).timeline()
    instant = next(one for one in timeline.completed if one.requested_time == result.instant)
    extra = timeline.files.read_commit(instant).extra_metadata

    assert extra["pyhudi.attempts"] == "2"
    assert json.loads(extra.get("pyhudi.met", "[]")) == list(result.met)


def test_a_rollback_before_the_write_began_is_none_of_it_whatever_the_archive_lacks(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came between plan and begin, and was archived, so that no attempt finds out what it undid."""
    slow = plan(table, SCHEMA, settings=write_settings(AGAIN, retry_s=2.0))
    undone = write(table, rows(4, value=4), settings=AGAIN)
    rollback(open_storage(str(table)), undone.instant, patience=IMPATIENT.patience)
    for value in range(3):
        write(table, rows(5, value=value, ts=value), settings=AGAIN)
    archive(open_storage(str(table)), ArchiveSettings(min_commits=1, max_commits=2, batch=2))
    opened = open_table(open_storage(str(table)))
    assert not [one for one in opened.timeline().instants if one.action == "rollback"]
    patch_seam(monkeypatch, "bodies that the archive holds", lambda *_: {})

    done = commit_write(slow, [task(slow, rows(1, value=2, ts=2), 0)])

    assert done.attempts == 1
    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 1), ("k5", 2)]
