"""What the archive still tells: history, and whose a write was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyhudi.operations.inspect.history import history
from pyhudi.operations.result import find_write
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.write_ids import NOTE
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.table import Table
from support.drive import rows_of, write
from support.faults.races import rows
from support.made.cleaning import archive as archive_as_apache_hudi
from support.seams import patch_seam, read_seam
from support.upkeep.archiving import (
    HISTORY,
    OLD_ARCHIVE,
    check_nothing_is_lost,
    check_replaced_groups_stay_away,
    check_rolled_back_without_markers,
    move,
    written,
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(tmp_path / "t", 6)


@pytest.fixture
def old_table(tmp_path: Path) -> Path:
    return written(tmp_path / "t", 6, version=6)


def found(table: Path, write_id: str) -> str:
    storage = open_storage(str(table))
    config = load_config(storage)
    done = find_write(Table(storage, config), Table(storage, config).timeline(), write_id)
    return "" if done is None else done.instant


def instants(table: Path) -> list[str]:
    return [str(one) for one in history(open_storage(str(table))).column("instant").to_pylist()][::-1]


def test_history_is_the_same_before_and_after(table: Path) -> None:
    storage = open_storage(str(table))
    before = history(storage)
    move(table)

    assert history(storage).equals(before)
    for limit in range(8):
        assert history(storage, limit).equals(before.slice(0, limit))


@pytest.mark.parametrize(
    "check", [check_nothing_is_lost, check_rolled_back_without_markers, check_replaced_groups_stay_away]
)
def test_what_must_hold_of_archiving_holds_on_version_6(tmp_path: Path, check: Callable[[Path, int], None]) -> None:
    check(tmp_path, 6)


def test_an_id_is_found_in_the_archive_of_version_6(old_table: Path) -> None:
    """After pyhudi archived, and after another writer, whose file the note of ids does not name."""
    instant_times = instants(old_table)
    before = history(open_storage(str(old_table)))
    move(old_table)
    assert history(open_storage(str(old_table))).equals(before)
    assert [found(old_table, f"id {number}") for number in range(6)] == instant_times

    (old_table / NOTE).unlink()
    (old_table / OLD_ARCHIVE / ".commits_.archive.1_1-0-1").rename(
        old_table / OLD_ARCHIVE / ".commits_.archive.4_1-0-1"
    )
    assert [found(old_table, f"id {number}") for number in range(6)] == instant_times
    result = write(old_table, rows("a", "again", value=1), write_id="id 1")
    assert (result.instant, result.inserts) == (instant_times[1], 1)
    assert ("again",) not in rows_of(old_table, "id")


def test_history_opens_no_more_of_the_archive_than_it_needs(table: Path) -> None:
    once = ArchiveSettings(min_commits=2, max_commits=3, batch=10)
    move(table, once)
    move(written(table, 4, first=6), once)
    (oldest, _) = sorted((table / HISTORY).glob("*.parquet"))
    oldest.write_bytes(b"")

    assert history(open_storage(str(table)), 5).num_rows == 5


def test_an_id_is_found_wherever_its_write_is(table: Path) -> None:
    instant_times = instants(table)
    move(table)

    assert [found(table, f"id {number}") for number in range(6)] == instant_times
    assert found(table, "id 9") == ""
    result = write(table, rows("a", "again", value=1), write_id="id 1")
    assert (result.instant, result.inserts, result.write_id) == (instant_times[1], 1, "id 1")
    assert ("again",) not in rows_of(table, "id")


def test_an_id_of_a_user_may_begin_like_one_of_pyhudi(table: Path) -> None:
    ids = ["auto-nightly", "stream:orders:1", "stream:orders:2"]
    instant_times = [write(table, rows("a", write_id, value=1), write_id=write_id).instant for write_id in ids]

    replays = [write(table, rows("a", write_id, value=2), write_id=write_id) for write_id in ids]
    move(written(table, 4, first=6))

    assert [replay.instant for replay in replays] == instant_times
    assert [found(table, write_id) for write_id in ids] == instant_times
    assert {*ids} <= {*json.loads((table / NOTE).read_text())["ids"]}


def test_ids_that_were_made_up_are_not_noted(table: Path) -> None:
    write(table, rows("x", "x", value=1))
    move(written(table, 3, first=6))

    assert {one.partition(" ")[0] for one in json.loads((table / NOTE).read_text())["ids"]} == {"id"}


@pytest.mark.parametrize("spoil", ["gone", "torn", "odd"])
def test_a_lost_note_is_made_good(table: Path, spoil: str) -> None:
    instant_times = instants(table)
    move(table)
    (table / NOTE).write_text({"gone": "", "torn": '{"files"', "odd": '{"files":[1],"ids":{"id 1":2}}'}[spoil])
    if spoil == "gone":
        (table / NOTE).unlink()

    assert found(table, "id 1") == instant_times[1]
    move(written(table, 4, first=6))
    assert set(json.loads((table / NOTE).read_text())["ids"]) == {f"id {number}" for number in range(8)}


def test_what_others_archived_is_found_too(table: Path) -> None:
    instant_times = instants(table)
    move(table)
    written(table, 4, first=6)
    instant_times = instants(table)
    archive_as_apache_hudi(table, 3)

    assert [found(table, f"id {number}") for number in range(10)] == instant_times


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    from pyhudi.storage.local import LocalStorage

    names: list[str] = []
    original = read_seam("open a local file")

    def open_input(self: LocalStorage, path: str) -> Any:
        names.append(path)
        return original(self, path)

    patch_seam(monkeypatch, "open a local file", open_input)
    yield names


def test_looking_up_an_id_that_is_nowhere_opens_no_file_of_the_archive(table: Path, opened: list[str]) -> None:
    move(table)
    opened.clear()

    assert found(table, "id 9") == ""
    assert opened == []
