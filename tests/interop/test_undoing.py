"""Rollbacks of completed writes, savepoints and restores: each side finishes what the other began."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import pending
from interop.scenarios import BUCKETS
from interop.undone import Rows, agreed, call, names, newest
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import delete_savepoint, savepoint
from pyhudi.storage import open_storage
from support.attempts import IMPATIENT, PARTED, parted
from support.drive import write
from support.faults.faulty import Killed
from support.recorded.hudi_options import SMALL
from support.seams import patch_seam, read_seam
from support.upkeep.undoing import assert_gone, condemn, content

pytestmark = pytest.mark.interop

OPTIONS = {**SMALL, BUCKETS: "2"}
TABLE = replace(PARTED, name=SMALL["hoodie.table.name"])


@pytest.fixture
def java(apache: ApacheHudi) -> ApacheHudi:
    # A procedure takes its options from the session, and would build a metadata table that knows too little.
    apache.sql("set hoodie.metadata.enable=false")
    return apache


def life_of(java: ApacheHudi, table: Path) -> tuple[list[str], list[Rows]]:
    """Make a table by both sides: the last two writes add rows and take a partition's away."""
    instants, contents = [], []
    for rows, operation in (
        (pa.concat_tables([parted("a", 1, 2, value=1), parted("b", 1, value=1)]), None),
        (parted("a", 2, 3, value=2), "java"),
        (parted("c", 1, value=3), None),
        (parted("b", 7, value=4), "insert_overwrite"),
    ):
        if operation == "java":
            java.write(table, rows, OPTIONS)
            instants.append(newest(table))
        else:
            instants.append(write(table, rows, operation=operation, table=TABLE).instant)
        contents.append(content(table))
    return instants, contents


def drop(files: list[Path]) -> None:
    """Delete files with Hadoop's checksums beside them."""
    for file in files:
        file.unlink()
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("far", ["decided", "half done"])
def test_each_finishes_the_others_rollback_of_a_completed_write(tmp_path: Path, java: ApacheHudi, far: str) -> None:
    """The next plain write does, and what the write had replaced is there again."""
    instants, contents = life_of(java, tmp_path / "ours")
    victim = instants[-1]
    for name in ("theirs", "plan"):
        shutil.copytree(tmp_path / "ours", tmp_path / name)

    ours = tmp_path / "ours"
    condemn(ours, victim)
    if far == "half done":
        (rollback_time,) = (one.name[:17] for one in names(ours, "*.rollback.requested"))
        (ours / ".hoodie/timeline" / f"{rollback_time}.rollback.inflight").touch()
        drop(names(ours, f"{victim}_*"))
        drop(list(ours.glob(f"b/*_{victim}.parquet")))
    java.write(ours, parted("z", 1, value=9), OPTIONS)
    assert agreed(java, ours) == sorted([*contents[-2], ("z", "k1", 9)])
    assert not names(ours, f"{victim}*")
    assert pending(ours) == set()

    # Apache Hudi's own plan, of a copy, put back as if its process had been killed.
    plan, theirs = tmp_path / "plan", tmp_path / "theirs"
    call(java, plan, "rollback_to_instant", f"instant_time => '{victim}'")
    (requested,) = names(plan, "*.rollback.requested")
    shutil.copy(requested, theirs / ".hoodie/timeline")
    if far == "half done":
        (theirs / ".hoodie/timeline" / requested.name.replace("requested", "inflight")).touch()
        drop(names(theirs, f"{victim}_*"))
    write(theirs, parted("z", 1, value=9), settings=IMPATIENT)
    assert agreed(java, theirs) == sorted([*contents[-2], ("z", "k1", 9)])
    assert_gone(theirs, victim)
    assert pending(theirs) == set()
    # What is completed by us is one that Apache Hudi goes on from.
    java.write(theirs, parted("y", 1, value=9), OPTIONS)
    assert len(agreed(java, theirs)) == len(contents[-2]) + 2


def test_each_keeps_and_restores_to_the_others_savepoint(tmp_path: Path, java: ApacheHudi) -> None:
    """Apache Hudi's clean spares what ours keeps; a restore by either leaves the same table."""
    instants, contents = life_of(java, tmp_path / "t")
    theirs = tmp_path / "theirs"
    shutil.copytree(tmp_path / "t", theirs)
    ours = tmp_path / "t"
    savepoint(open_storage(str(ours)), instants[0], user="me", comment="kept")
    call(java, theirs, "create_savepoint", f"commit_time => '{instants[0]}'")
    for table in (ours, theirs):
        for number in range(3):
            java.write(table, parted("a", 1, 2, value=20 + number), OPTIONS)
        call(java, table, "run_clean", "retain_commits => 1")
        assert names(table, "*.clean")
    cleaned = tmp_path / "cleaned"
    shutil.copytree(ours, cleaned)

    call(java, ours, "rollback_to_savepoint", f"instant_time => '{instants[0]}'")
    restore(open_storage(str(theirs)), instants[0])
    restore(open_storage(str(cleaned)), instants[0])
    for table in (ours, theirs, cleaned):
        assert agreed(java, table) == contents[0]
        assert pending(table) == set()
        for instant in instants[1:]:
            assert_gone(table, instant)
    delete_savepoint(open_storage(str(ours)), instants[0])
    call(java, theirs, "delete_savepoint", f"instant_time => '{instants[0]}'")
    for table in (ours, theirs):
        assert not names(table, "*savepoint*")
        write(table, parted("a", 1, value=30), settings=IMPATIENT)
        java.write(table, parted("b", 1, value=31), OPTIONS)
        assert agreed(java, table) == [("a", "k1", 30), ("a", "k2", 1), ("b", "k1", 31)]


def test_each_finishes_the_others_restore(tmp_path: Path, java: ApacheHudi, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is run again by the other side when some of the writes are undone and the others are not."""
    instants, contents = life_of(java, tmp_path / "ours")
    ours, theirs, plan = (tmp_path / name for name in ("ours", "theirs", "plan"))
    savepoint(open_storage(str(ours)), instants[0])
    for copy in (theirs, plan):
        shutil.copytree(ours, copy)

    stopped = after(1, read_seam("take restored instants off the timeline"))
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch_seam(patch, "take restored instants off the timeline", stopped)
        restore(open_storage(str(ours)), instants[0])
    assert content(ours) == contents[1]
    with pytest.raises(Exception, match="restore"):
        java.write(ours, parted("z", 1, value=9), OPTIONS)
    call(java, ours, "rollback_to_savepoint", f"instant_time => '{instants[0]}'")

    call(java, plan, "rollback_to_savepoint", f"instant_time => '{instants[0]}'")
    for file in (*names(plan, "*.restore.requested"), *names(plan, "*.restore.inflight")):
        shutil.copy(file, theirs / ".hoodie/timeline")
    drop(names(theirs, f"{instants[-1]}_*"))
    drop(list(theirs.glob(f"*/*_{instants[-1]}.parquet")))
    restore(open_storage(str(theirs)), instants[0])

    for table in (ours, theirs):
        assert agreed(java, table) == contents[0]
        assert pending(table) == set()
        assert len(names(table, "*_*.restore")) == 1
        for instant in instants[1:]:
            assert not names(table, f"{instant}*")
        write(table, parted("a", 1, value=30), settings=IMPATIENT)
        java.write(table, parted("b", 1, value=31), OPTIONS)
        assert agreed(java, table) == [("a", "k1", 30), ("a", "k2", 1), ("b", "k1", 31)]
        rollback(open_storage(str(table)), newest(table))
        assert agreed(java, table) == [("a", "k1", 30), ("a", "k2", 1), ("b", "k1", 1)]


def after(count: int, act: Callable[..., object]) -> Callable[..., object]:
    """Return an act that is killed when it is taken once more than so many times."""
    left = iter(range(count))

    def taken(*given: object) -> object:
        if next(left, None) is None:
            raise Killed("restore")
        return act(*given)

    return taken
