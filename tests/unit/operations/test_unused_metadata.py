"""The folder of Apache Hudi's metadata table, which a clean deletes once no process may need it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import StorageError
from pyhudi.operations.service_settings import CleanSettings
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.metadata.drop_index import drop_index
from pyhudi.operations.transaction.undone_metadata import take_out_of_use
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config, update_config
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant, State
from support.drive import write
from support.faults.long_ago import instants
from support.places import files_below
from support.seams import patch_seam, read_seam
from support.upkeep.cleans import TABLE, rows, run_clean

ONE = CleanSettings(commits=1)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four commits to one partition of two file groups; one slice of each is kept by nobody when three are retained."""
    table = tmp_path / "t"
    for value in range(4):
        write(table, rows("a", "k1", "k2", value=value), table=TABLE)
    return table


# By what keeps the folder of a metadata table that is out of use.
KEEPING: dict[str, Callable[[Path], object]] = {
    "a property": lambda t: update_config(open_storage(str(t)), {"hoodie.table.metadata.partitions": "files"}),
    "a partition being built": lambda t: update_config(
        open_storage(str(t)), {"hoodie.table.metadata.partitions.inflight": "record_index"}
    ),
    "a young file": lambda t: set_age(t / METADATA / "files/new", 23),
    "an indexing": lambda t: instants(t).files.request(Instant("20990101000000000", "indexing", State.REQUESTED), b""),
    "a write of another engine": lambda t: instants(t).files.start(
        Instant("20990101000000000", "deltacommit", State.INFLIGHT)
    ),
}
METADATA = ".hoodie/metadata"


def set_age(file: Path, hours: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    then = time.time() - hours * 3600
    os.utime(file, (then, then))


@pytest.fixture
def unused(table: Path) -> Path:
    """The folder of a metadata table that came out of use two days ago."""
    for name in (".hoodie/hoodie.properties", ".hoodie/timeline/0_1.deltacommit", "files/.hoodie_partition_metadata"):
        set_age(table / METADATA / name, 48)
    return table / METADATA


@pytest.mark.parametrize("keeps", KEEPING)
def test_the_folder_of_a_metadata_table_stays_while_a_process_may_need_it(
    table: Path, unused: Path, keeps: str
) -> None:
    KEEPING[keeps](table)
    before = files_below(unused)

    run_clean(table, CleanSettings(), dry_run=True)
    run_clean(table, CleanSettings())

    assert files_below(unused) == before


def test_a_clean_deletes_the_folder_of_a_metadata_table_and_a_write_does_not(table: Path, unused: Path) -> None:
    before = files_below(unused)
    write(table, rows("a", "k1", value=7))
    assert clean(open_storage(str(table)), ONE, inline=True).files > 0
    assert files_below(unused) == before

    clean(open_storage(str(table)), CleanSettings(), dry_run=True)
    assert files_below(unused) == before
    run_clean(table, CleanSettings())
    assert not unused.exists()


def _undo(path: Path) -> None:
    table = open_table(open_storage(str(path)))
    assert take_out_of_use(table, "rollback") == ("files",)


OUT_OF_USE: dict[str, Callable[[Path], object]] = {
    "a drop": lambda t: drop_index(open_storage(str(t)), "files"),
    "an undo": _undo,
    # The files of the fixture are no metadata table.
    "damage": lambda t: write(t, rows("a", "k1", value=7)),
}


@pytest.mark.parametrize("by", OUT_OF_USE)
def test_the_folder_stays_for_a_day_after_its_metadata_table_went_out_of_use(
    table: Path, unused: Path, by: str
) -> None:
    """However old its files are: a query of Apache Hudi may have begun right before."""
    update_config(open_storage(str(table)), {"hoodie.table.metadata.partitions": "files"})
    OUT_OF_USE[by](table)
    run_clean(table, CleanSettings())
    assert not load_config(open_storage(str(table))).metadata_partitions
    assert (unused / "files/.hoodie_partition_metadata").exists()

    for file in unused.rglob("*"):
        set_age(file, 25)
    run_clean(table, CleanSettings())
    assert not unused.exists()


def test_the_folder_of_one_partition_goes_a_day_after_its_drop(table: Path, unused: Path) -> None:
    storage = open_storage(str(table))
    for name in ("files", "column_stats", "record_index"):
        set_age(unused / name / "file", 48)
    update_config(storage, {"hoodie.table.metadata.partitions": "column_stats,files,record_index"})
    drop_index(storage, "record_index")
    run_clean(table, CleanSettings())
    assert (unused / "record_index").exists()

    for file in unused.rglob("*"):
        set_age(file, 25) if file.is_file() else None
    run_clean(table, CleanSettings())

    assert not (unused / "record_index").exists()
    assert (unused / "files/file").exists()
    assert (unused / "column_stats/file").exists()
    assert not [name for name in files_below(unused / ".hoodie") if "out_of_use" in name]


@pytest.mark.parametrize("ahead_h", [-72, 72])
def test_a_wrong_clock_takes_no_young_metadata_table_away_and_keeps_no_old_one(
    table: Path, unused: Path, monkeypatch: pytest.MonkeyPatch, ahead_h: int
) -> None:
    """Ages count by the clock that stamps the files."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + ahead_h * 3600)
    young = unused / "files/new"
    young.touch()
    run_clean(table, CleanSettings())
    assert young.exists()

    young.unlink()
    run_clean(table, CleanSettings())
    assert not unused.exists()


def test_a_file_that_another_engine_makes_meanwhile_outlives_a_metadata_table(
    table: Path, unused: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins to build anew between the look at the files and their deletion."""
    building = unused / ".hoodie/timeline/0.deltacommit.requested"
    original = read_seam("delete an unused metadata table")

    def between(*given: Any) -> None:
        building.touch()
        original(*given)

    patch_seam(monkeypatch, "delete an unused metadata table", between)
    run_clean(table, CleanSettings())

    assert [*files_below(unused)] == [str(building.relative_to(unused))]


def test_a_clean_succeeds_where_the_folder_of_a_metadata_table_cannot_go(
    table: Path, unused: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*given: object) -> None:
        raise StorageError("The disk is gone.", "Mount it.")

    patch_seam(monkeypatch, "delete an unused metadata table", refuse)
    assert run_clean(table, ONE).files > 0
    assert "stays until the next clean" in caplog.text
