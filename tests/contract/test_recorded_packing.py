"""Tables in which Apache Hudi let new keys join small files, under indexes that look keys up, read and continued.

On merge on read such a write makes a new base file of the group that they join, with the group's updates, and log files
of the others.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from support.drive import write
from support.made.compacting import run, slices
from support.readers import read_without_spark, rows_by_hudi_rs
from support.recorded.fixture_tables import TABLES, recorded, unpack
from support.recorded.recorded_lookups import as_table, content_of, held
from support.recorded.recorded_merges import in_order, shown
from support.recorded.recorded_past import BEGIN, TYPE
from support.rules.health import errors

NAMES = sorted(one.stem for one in TABLES.glob("v?_packed_*.zip"))
LOGGED = [name for name in NAMES if name.endswith("mor")]


def written(path: str) -> dict[str, tuple[set[str], set[str]]]:
    """Return the file groups that each instant wrote a base file of, and those that it wrote a log file of."""
    groups_by_instant: dict[str, tuple[set[str], set[str]]] = {}
    for file in Path(path).glob("[!.]*/*"):
        if file.name.startswith(".hoodie"):
            continue
        is_log = ".log." in file.name
        group, *_, instant = file.name.partition(".log." if is_log else ".parquet")[0].lstrip(".").split("_")
        groups_by_instant.setdefault(instant, (set(), set()))[is_log].add(group)
    return dict(sorted(groups_by_instant.items()))


def test_there_is_a_table_of_each_index_type_and_version() -> None:
    v8 = ("bloom_cow", "global_bloom_mor", "global_simple_cow", "simple_mor")
    assert [*(f"v8_packed_{one}" for one in v8), "v9_packed_bloom_mor", "v9_packed_simple_mor"] == NAMES


@pytest.mark.parametrize("name", LOGGED)
def test_a_change_is_told_whichever_file_it_went_to(name: str, tmp_path: Path) -> None:
    path, earlier_groups, both = unpack(name, tmp_path), set[str](), set[str]()
    rows = recorded(name)

    for instant, (bases, logs) in written(path).items():
        # Or the table would be none of those that this is about.
        assert not bases & logs
        both |= {instant} if bases & earlier_groups and logs else set()
        earlier_groups |= bases
        found = read_without_spark(Path(path), {TYPE: "incremental", BEGIN: f"{int(instant) - 1}"})
        later = [(row["p"], row["id"], row["name"]) for row in rows if row["_hoodie_commit_time"] >= instant]
        assert sorted(zip(*(found.column(one).to_pylist() for one in ("p", "id", "name")), strict=True)) == later
    assert both


@pytest.mark.parametrize("name", NAMES)
def test_a_write_that_rewrote_and_appended_is_taken_back_whole(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    last, (bases, logs) = list(written(path).items())[-1]
    assert bases
    assert bool(logs) == (name in LOGGED)

    rollback(open_storage(path), last)

    assert in_order(shown(path, "snapshot")) == recorded(name, "before the last write")
    assert last not in written(path)
    assert errors(path) == []


@pytest.mark.parametrize("name", NAMES)
def test_new_keys_join_a_file_that_apache_hudi_filled(name: str, tmp_path: Path) -> None:
    """Beside updates of every key: each stands where it stood, once, and no file group is opened."""
    path, content = unpack(name, tmp_path), content_of(name)
    index, moves = name.split("packed_")[1].rpartition("_")[0].upper(), "global" in name
    said, groups = TableSettings(index_type=index), {one.file_id for one in slices(path)}
    updated, new = dict.fromkeys(content, ("ours", 100)), dict.fromkeys([("a", f"o{n}") for n in range(4)], ("new", 1))

    result = write(path, [as_table(updated), as_table(new)], table=said)

    assert (result.updates, result.inserts) == (len(content), len(new))
    assert {one.file_id for one in slices(path)} == groups
    bases, logs = written(path)[result.instant]
    assert bases | logs == groups
    assert not bases & logs
    assert len(bases) == (1 if name in LOGGED else len(groups))
    content = updated | new
    assert held(path) == content

    early = dict.fromkeys(list(content)[::5], ("too early", 0))
    gone = dict.fromkeys(list(content)[1::3], (None, 200))
    write(path, [as_table(early), as_table(gone, deleted=True)])
    content = {key: value for key, value in content.items() if key not in gone}
    assert held(path) == content
    if moves:
        moved = list(content)[::3]
        write(path, as_table({("c", key): ("moved", 300) for _, key in moved}))
        content = {key: value for key, value in content.items() if key not in moved}
        content |= {("c", key): ("moved", 300) for _, key in moved}
        assert held(path) == content
    if name in LOGGED:
        assert run(path).files
        assert held(path) == content
    back = dict.fromkeys(gone, ("back", 400))
    assert write(path, as_table(back)).inserts == len(gone)
    content |= back
    assert held(path) == content
    assert rows_by_hudi_rs(path, "p", "id", "name", "ts") == sorted((*key, *value) for key, value in content.items())
    assert errors(path) == []
