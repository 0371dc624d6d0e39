"""Damage of the metadata table: the write that meets it is right, and says which partition went out of use."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyhudi.arrow import Table
from pyhudi.operations.following.metadata_of_write import metadata_of_write
from pyhudi.operations.service_settings import Upkeep
from pyhudi.operations.services.metadata.drop_index import drop_index
from pyhudi.operations.services.metadata.upkeep import keep_up
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.table import open_table
from support.attempts import PARTED, parted
from support.drive import write
from support.made.begun_metadata import asked_always
from support.made.metadata_tables import How, simulate
from support.places import copied
from support.rules.ends import assert_whole
from support.seams import patch_seam
from support.upkeep.undoing import content

MDT = ".hoodie/metadata"
ALL = ("column_stats", "files", "partition_stats")


@dataclass(frozen=True)
class Damage:
    """A damage of the metadata table.

    Attributes:
        does: Damages it.
        left: The partitions that are in use after the next write.
        call: The index that its warning names, which builds all that went.
    """

    does: Callable[[Path], object]
    left: tuple[str, ...]
    call: str


def replace(file: Path, data: bytes) -> None:
    """Give a file other bytes; those of a table that it is copied from stay."""
    file.unlink()
    file.write_bytes(data)


def cut(pattern: str) -> Callable[[Path], object]:
    """Cut base files off in their middle."""

    def does(mdt: Path) -> None:
        files = [*mdt.glob(pattern)]
        assert files
        for file in files:
            replace(file, file.read_bytes()[: file.stat().st_size // 2])

    return does


def remove(pattern: str) -> Callable[[Path], object]:
    def does(mdt: Path) -> None:
        files = [*mdt.glob(pattern)]
        assert files
        for file in files:
            shutil.rmtree(file) if file.is_dir() else file.unlink()

    return does


DAMAGES = {
    "a cut list of files": Damage(cut("files/*.hfile"), (), "partition_stats"),
    "cut bounds of files": Damage(cut("column_stats/*.hfile"), ("files",), "partition_stats"),
    "cut bounds of partitions": Damage(cut("partition_stats/*.hfile"), ("column_stats", "files"), "partition_stats"),
    "no list of files": Damage(remove("files"), (), "partition_stats"),
    "no bounds of partitions": Damage(remove("partition_stats"), ("column_stats", "files"), "partition_stats"),
    "a lost file group": Damage(remove("column_stats/*col-stats-0000-0*"), ("files",), "partition_stats"),
    "no properties": Damage(remove(".hoodie/hoodie.properties"), (), "partition_stats"),
    "cut properties": Damage(
        lambda mdt: replace(mdt / ".hoodie/hoodie.properties", b"hoodie.table.version=x\n"), (), "partition_stats"
    ),
    "cut definitions": Damage(
        lambda mdt: replace(mdt.parent / ".index_defs/index.json", b"{"), ("files",), "partition_stats"
    ),
    "no folder at all": Damage(shutil.rmtree, (), "partition_stats"),
}


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("origin") / "t"
    write(path, [parted("a", 1, 2, value=1), parted("b", 1, value=1)], table=PARTED)
    simulate(str(path), how=How(only=ALL))
    write(path, parted("a", 2, value=2))
    assert_whole(path)
    return path


@pytest.mark.parametrize("name", DAMAGES)
def test_a_write_takes_what_is_damaged_out_of_use_and_says_so(tmp_path: Path, origin: Path, name: str) -> None:
    path, damage = copied(origin, tmp_path / "t"), DAMAGES[name]
    damage.does(path / MDT)

    result = write(path, parted("b", 3, value=3))

    assert load_config(open_storage(str(path))).metadata_partitions == damage.left
    (warning,) = (one for one in result.warnings if "out of use" in one)
    assert f"create_index({damage.call!r})" in warning
    # Where Spark writes, another process completes the write than tells of it.
    told = metadata_of_write(open_table(open_storage(str(path))), result.instant, ALL)
    assert told is not None
    assert told == result.metadata if damage.left else f"create_index({damage.call!r})" in told.warnings[0]
    assert content(path) == [("a", "k1", 1), ("a", "k2", 2), ("b", "k1", 1), ("b", "k3", 3)]
    assert_whole(path)
    assert not write(path, parted("b", 3, value=4)).warnings
    assert_whole(path)


@pytest.mark.parametrize("lost", ["0000", "0001"])
def test_an_index_that_is_built_again_has_the_file_group_that_was_lost(tmp_path: Path, origin: Path, lost: str) -> None:
    """The files of the other group lie in the folder until a clean takes them."""
    path = copied(origin, tmp_path / "t")
    remove(f"column_stats/*col-stats-{lost}-0*")(path / MDT)
    drop_index(open_storage(str(path)), "column_stats")

    Table(str(path)).create_index("partition_stats")

    assert not write(path, parted("b", 3, value=3)).warnings
    file_ids = {file.name.lstrip(".").partition("_")[0] for file in (path / MDT / "column_stats").glob("*col-stats*")}
    assert file_ids == {"col-stats-0000-0", "col-stats-0001-0"}
    assert_whole(path)


@pytest.mark.parametrize("rest", [None, b"", b"hoodie.table.name=t_meta"], ids=["absent", "empty", "cut off"])
def test_properties_that_apache_hudi_changes_at_the_moment_are_no_damage(
    tmp_path: Path, origin: Path, rest: bytes | None
) -> None:
    """Beside them is the backup with the old content."""
    path = copied(origin, tmp_path / "t")
    properties = path / MDT / ".hoodie/hoodie.properties"
    shutil.copy(properties, properties.with_suffix(".properties.backup"))
    properties.unlink() if rest is None else replace(properties, rest)

    written = write(path, parted("b", 3, value=3))

    assert written.warnings == ()
    assert load_config(open_storage(str(path))).metadata_partitions == ALL


def test_a_schema_that_another_thread_drops_from_memory_is_no_damage(
    tmp_path: Path, origin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copied(origin, tmp_path / "t")
    patch_seam(monkeypatch, "most schemas of a metadata table that the process knows", 0)

    assert not write(path, parted("b", 3, value=3)).warnings


@pytest.mark.parametrize(("name", "left"), [("files", ()), ("column_stats", ("files",))])
def test_upkeep_takes_what_is_damaged_out_of_use_and_says_so(
    tmp_path: Path, origin: Path, name: str, left: tuple[str, ...]
) -> None:
    """A write reads no log files of others, so that the compaction is the first to meet it."""
    path = copied(origin, tmp_path / "t")
    for log in (path / MDT / name).glob(".*.log.*"):
        replace(log, log.read_bytes()[:-40])
    assert not write(path, parted("b", 3, value=3)).warnings

    done = keep_up(open_storage(str(path)), Upkeep())

    assert "create_index('partition_stats')" in done.todo
    assert load_config(open_storage(str(path))).metadata_partitions == left
    again = keep_up(open_storage(str(path)), Upkeep())
    assert not again.todo
    assert bool(again.file_groups) == bool(left)
    assert_whole(path)


@pytest.mark.parametrize("name", ["column_stats", "partition_stats"])
def test_readers_do_without_a_partition_whose_log_file_is_torn(tmp_path: Path, origin: Path, name: str) -> None:
    """What the torn block said is lost: bounds that it widened would leave out files with rows."""
    path = copied(origin, tmp_path / "t")
    instant = write(path, parted("b", 3, value=30)).instant
    for log in (path / MDT / name).glob(f".*_{instant}.log.*"):
        replace(log, log.read_bytes()[:-40])

    with asked_always():
        asked = {step.source for step in Table(str(path)).explain(where="value = 30").steps}
        rows = Table(str(path)).read(["id"], where="value = 30")["id"].to_pylist()

    assert name not in asked
    assert rows == ["k3"]


def test_an_index_is_dropped_beside_definitions_that_cannot_be_read(tmp_path: Path, origin: Path) -> None:
    path = copied(origin, tmp_path / "t")
    replace(path / ".hoodie/.index_defs/index.json", b"{")

    done = drop_index(open_storage(str(path)), "files")

    assert "definitions of indexes stay" in done.skipped
    assert load_config(open_storage(str(path))).metadata_partitions == ()
