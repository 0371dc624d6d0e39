"""Symbolic links below a table's root: nobody follows them, whatever is done, and what they lead to stays as it is."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyhudi.storage.local as local
import pytest
from pyhudi.errors import StorageError
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from support.attempts import IMPATIENT, PARTED, attempt, parted
from support.drive import plan, rows_of, task, write
from support.places import files_below

FIRST = [parted("a", 1, 2, value=1), parted("b", 3, value=1)]
SECOND = [parted("a", 2, 4, value=2)]
AFTER = [("k1", 1), ("k2", 2), ("k3", 1), ("k4", 2)]
OLD = "20200101000000000"
# Its files count as those of a write that failed, an old one's as archived.
YOUNG = "20990101000000000"


def make(root: Path) -> Path:
    """Return a table with the leavings of a write that died in one of its partitions."""
    table = root / "t"
    write(table, FIRST, table=PARTED)
    planned = plan(table, SECOND[0].schema, table=PARTED, settings=IMPATIENT)
    task(planned, parted("b", 9, value=9), 7)
    return table


def upsert(table: Path) -> None:
    """Write, which rolls back the dead write and sweeps."""
    attempt(table, SECOND, IMPATIENT, table=PARTED)


def give_up(table: Path) -> None:
    """Begin a write and abort it."""
    planned = plan(table, SECOND[0].schema, table=PARTED, settings=replace(IMPATIENT, colocated=True))
    try:
        task(planned, SECOND[0], 0)
    finally:
        abort_write(planned)


ACTS: dict[str, Callable[[Path], Any]] = {"upsert": upsert, "abort": give_up}


def link_to_a_full_folder(link: Path, outside: Path) -> None:
    """Put a link in place of whatever is there, to a folder that has it and more."""
    outside.mkdir()
    if link.exists():
        shutil.copytree(link, outside, dirs_exist_ok=True)
        shutil.rmtree(link)
    for name in ("kept.parquet", ".pyhudi-0.crc", f"{OLD}.commit", "MARKERS1", "MARKERS.type", "below/kept"):
        (outside / name).parent.mkdir(exist_ok=True)
        (outside / name).write_bytes(b"kept")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)


# Links that nobody needs: writes go on beside them.
BESIDE = [
    f".hoodie/.pyhudi/{OLD}",
    ".hoodie/.pyhudi/of-a-user",
    f".hoodie/.temp/{OLD}",
    f".hoodie/.heartbeat/{OLD}",
    f".hoodie/.pyhudi/sealed/{OLD}",
    ".hoodie/metadata",
]
# Links inside of folders that are swept: they go with the folder, and nothing beyond them.
INSIDE = [f".hoodie/.pyhudi/{OLD}/spills", f".hoodie/.temp/{YOUNG}/a"]
# Links in place of what a write needs: it is refused, and they are named.
ON_THE_WAY = [".hoodie", ".hoodie/timeline", ".hoodie/.pyhudi", ".hoodie/.temp", ".hoodie/.heartbeat", "a"]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("spot", [*BESIDE, *INSIDE])
def test_a_write_goes_on_beside_a_link(tmp_path: Path, spot: str, act: str) -> None:
    """Whatever the folder that it leads to holds, it is not listed into, swept or deleted."""
    table, outside = make(tmp_path), tmp_path / "outside"
    link_to_a_full_folder(table / spot, outside)
    outside_files = files_below(outside)
    ACTS[act](table)
    upsert(table)

    assert files_below(outside) == outside_files
    assert rows_of(table, "id", "value") == AFTER
    assert spot in INSIDE or (table / spot).is_symlink()


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("spot", ON_THE_WAY)
def test_a_write_whose_way_leads_through_a_link_is_refused(tmp_path: Path, spot: str, act: str) -> None:
    """It would write outside of the table, and what it reads there may be anything."""
    table, outside = make(tmp_path), tmp_path / "outside"
    link_to_a_full_folder(table / spot, outside)
    outside_files = files_below(outside)
    for _ in range(2):
        with pytest.raises(StorageError, match=f"t/{spot} is a symbolic link.*in its place"):
            ACTS[act](table)

    assert files_below(outside) == outside_files
    (table / spot).unlink()
    shutil.copytree(outside, table / spot)
    for foreign in ("kept.parquet", "below", "MARKERS1", "MARKERS.type", f"{OLD}.commit"):
        one = table / spot / foreign
        shutil.rmtree(one) if one.is_dir() else one.unlink()
    upsert(table)
    assert rows_of(table, "id", "value") == AFTER


def test_markers_behind_a_link_are_not_taken_for_none(tmp_path: Path) -> None:
    """Without them a rollback would leave the dead write's files, and call it rolled back."""
    table = make(tmp_path)
    (marked,) = (table / ".hoodie/.temp").iterdir()
    link_to_a_full_folder(marked, tmp_path / "outside")
    outside_files, files = files_below(tmp_path / "outside"), set(files_below(table))
    with pytest.raises(StorageError, match=f"{marked.name} is a symbolic link"):
        rollback(open_storage(str(table)), marked.name)

    assert files_below(tmp_path / "outside") == outside_files
    assert {name for name in files if name.endswith(".parquet")} <= set(files_below(table))


@pytest.mark.parametrize(
    "spot", ["a", "b/linked", "linked", ".hoodie/hoodie.properties", ".hoodie/timeline/one", "a/one.parquet"]
)
def test_a_read_that_would_miss_what_a_link_leads_to_is_refused(tmp_path: Path, spot: str) -> None:
    """Fewer rows without a word would be worse."""
    table, outside = tmp_path / "t", tmp_path / "outside"
    write(table, FIRST, table=PARTED)
    outside.mkdir()
    at = table / spot
    if at.name in {"one", "one.parquet"}:
        at = next(one for one in at.parent.iterdir() if one.suffix in {".commit", ".parquet"})
    if at.exists():
        shutil.move(at, outside / at.name)
    at.symlink_to(outside / at.name)
    with pytest.raises(StorageError, match=f"{at.name} is a symbolic link"):
        rows_of(table, "id", "value")


def test_a_write_to_a_file_group_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """Its rows would be lost with the next base file, which is made without them."""
    table = tmp_path / "t"
    write(table, FIRST, table=PARTED)
    at = next((table / "a").glob("*.parquet"))
    shutil.move(at, tmp_path / at.name)
    at.symlink_to(tmp_path / at.name)
    with pytest.raises(StorageError, match=f"{at.name} is a symbolic link"):
        upsert(table)


def test_a_file_that_is_a_link_is_replaced_and_deleted_itself(tmp_path: Path) -> None:
    """Neither its target nor the folder of its target is touched."""
    storage = local.LocalStorage.open(str(tmp_path / "t"))
    (tmp_path / "target").write_bytes(b"kept")
    for name in ("replaced", "deleted", "created"):
        storage.write(f"p/{name}", b"x")
        (tmp_path / "t/p" / name).unlink()
        (tmp_path / "t/p" / name).symlink_to(tmp_path / "target")
    storage.write("p/replaced", b"new")
    storage.delete("p/deleted")

    (tmp_path / "full").mkdir()
    (tmp_path / "full/kept").write_bytes(b"kept")
    (tmp_path / "t/folder").symlink_to(tmp_path / "full")
    storage.delete_folder("folder")

    assert files_below(tmp_path / "full") == {"kept": b"kept"}
    assert (tmp_path / "t/folder").is_symlink()
    assert storage.create("p/created", b"new") is False
    assert (tmp_path / "target").read_bytes() == b"kept"
    assert storage.read("p/replaced") == b"new"
    assert sorted(one.name for one in (tmp_path / "t/p").iterdir()) == ["created", "replaced"]


def test_the_way_to_a_table_may_lead_through_links(tmp_path: Path) -> None:
    """Where a table is is its user's business."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "lake").symlink_to(tmp_path / "disk")
    write(tmp_path / "lake/t", FIRST, table=PARTED)
    (tmp_path / "name").symlink_to(tmp_path / "disk/t")
    write(tmp_path / "name", SECOND)

    assert rows_of(tmp_path / "disk/t", "id", "value") == AFTER


def test_a_link_that_is_left_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = make(tmp_path)
    link = table / ".hoodie/.temp" / OLD
    link_to_a_full_folder(link, tmp_path / "outside")
    with caplog.at_level(logging.WARNING, "pyhudi"):
        upsert(table)
        upsert(table)

    assert [one.getMessage() for one in caplog.records if str(link) in one.getMessage()] == [
        f"{link} is a symbolic link, which pyhudi does not follow"
    ]
