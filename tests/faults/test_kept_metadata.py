"""A metadata table that pyhudi keeps: right wherever a process dies that changes its table, whoever finishes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults.test_decisions import nothing_is_carried_out
from pyhudi.errors import PyHudiError
from pyhudi.operations.service_settings import CleanSettings, CompactionSettings
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.compaction.compact import compact
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.metadata.metadata_table import instants_of_metadata
from pyhudi.table.table import open_table
from pyhudi.timeline.timeline import Timeline
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import rows_of, write, write_after_death
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.steps import Share, steps_of
from support.made.begun_metadata import asked_always, assert_in_use, begin_metadata
from support.made.compacting import IMPATIENT as PATIENCE
from support.made.compacting import means, timeline_of
from support.made.following import aside_files
from support.places import copied
from support.rules.ends import assert_whole
from support.rules.written_metadata import check_listing, check_metadata
from support.seams import patch_seam
from support.stores import wrap_stores

QUIET = replace(IMPATIENT, upkeep=OFF)
TABLE = replace(PARTED, table_type="MERGE_ON_READ")


def upsert(path: Path, *keys: int, value: int, partition: str = "a") -> str:
    return write(path, [parted(partition, *keys, value=value)], settings=QUIET).instant


def upsert_by_files_aside(path: Path, _: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "most bytes of a file that a decision holds", 0)
        upsert(path, 1, 2, value=9)


# What dies, by its name.
WORKS: dict[str, Callable[[Path, Any], object]] = {
    "write": lambda path, _: upsert(path, 1, 2, value=9),
    "write by files aside": upsert_by_files_aside,
    "compaction": lambda _, storage: compact(storage, CompactionSettings(), means(storage)),
    "clean": lambda _, storage: clean(storage, CleanSettings(commits=1)),
    "rollback": lambda path, storage: rollback(storage, timeline_of(path).writes[-1].requested_time, patience=PATIENCE),
}


def made(path: Path, version: int = 9, kind: str = "write") -> Path:
    """Make a table whose metadata table began after its first write."""
    table = replace(TABLE, version=version)
    write(path, [parted("a", 1, 2, 3, value=1)], table=table, settings=QUIET)
    begin_metadata(path)
    upsert(path, 1, 2, 3, value=2)
    if kind == "clean":
        WORKS["compaction"](path, open_storage(str(path)))
        upsert(path, 1, 2, value=3)
    return path


def died(path: Path, kind: str, faults: Faults) -> list[str]:
    """Let a process die at a step of what it does; return the steps."""
    with pytest.MonkeyPatch.context() as patch:
        wrap_stores(patch, lambda storage: FaultyStorage(storage, faults))
        with contextlib.suppress(Killed):
            storage: Any = FaultyStorage(open_storage(str(path)), faults)
            WORKS[kind](path, storage)
    return faults.steps


def check_readers(path: Path) -> None:
    """Assert that a reader who lists by the metadata table sees what one sees who lists folders."""

    def files() -> set[str]:
        return {file.path for one in open_snapshot(str(path)).slices() for file in one.data_files}

    listed = files()
    with asked_always():
        assert files() == listed


def finish(path: Path, number: int) -> None:
    """Have another process come by: one that writes, or a service that has other work."""
    if number % 2:
        with contextlib.suppress(PyHudiError):
            savepoint(open_storage(str(path)))
        check_readers(path)
    for value in (11, 12):
        write_after_death(path, [parted("b", 5, value=value)], settings=QUIET)


@pytest.mark.parametrize("kind", WORKS)
@steps_of("write", 8)
def test_a_metadata_table_is_right_after_a_process_died_at_any_step(tmp_path: Path, share: Share, kind: str) -> None:
    """No reader sees a phantom in between, and whoever comes next leaves it right."""
    origin = made(tmp_path / "origin", kind=kind)
    counted = copied(origin, tmp_path / "count")
    steps = died(counted, kind, Faults(watch=lambda: check_readers(counted)))
    check_metadata(counted)
    old = made(tmp_path / "old", version=8, kind=kind)
    for number in share.of(failing(steps, "killed")):
        path = copied(old if number % 4 == 3 else origin, tmp_path / f"t{number}")
        died(path, kind, Faults(at=number, kill=True))
        check_readers(path)

        finish(path, number)

        if kind in {"compaction", "clean"}:
            # What is planned stays planned until a service carries it out.
            died(path, kind, Faults())
        assert rows_of(path, "id")[-1] == ("k5",)
        check_readers(path)
        assert_in_use(path)
        check_listing(path)
        assert_whole(path)


@pytest.mark.parametrize("damage", ["deleted", "cut", "flipped"])
def test_a_metadata_table_whose_file_aside_is_lost_goes_out_of_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """The instant was decided, so it completes, and no reader may list the files of before."""
    path = made(tmp_path / "t")
    with nothing_is_carried_out(Killed()), pytest.raises(Killed):
        upsert_by_files_aside(path, None)
    for aside in aside_files(path):
        data = (path / aside).read_bytes()
        (path / aside).unlink()
        if damage != "deleted":
            (path / aside).write_bytes(data[:-1] if damage == "cut" else data[:-1] + b"}")

    result = write_after_death(path, [parted("b", 5, value=3)], settings=QUIET)

    assert rows_of(path, "id", "value") == [("k1", 9), ("k2", 9), ("k3", 2), ("k5", 3)]
    assert load_config(open_storage(str(path))).metadata_partitions == ()
    assert result.metadata is None
    files = instants_of_metadata(open_table(open_storage(str(path))))
    assert not Timeline.load(files).pending, "half an instant would keep the later ones from the archive"
    assert "is gone, so these properties are set" in caplog.text
    check_readers(path)
    assert_whole(path)
