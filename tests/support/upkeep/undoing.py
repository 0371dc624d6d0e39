"""One life of a table that is undone step by step: checks that the contract tests, the faults and the mutations run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyhudi.errors import CommitConflictError, UndoError
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.timeline import Timeline
from support.attempts import PARTED, parted
from support.drive import carry_out, plan, rows_of, write
from support.faults.faulty import Killed
from support.made.compacting import run as compact
from support.places import copied
from support.rules.ends import assert_whole
from support.seams import patch_seam

MERGED = replace(PARTED, table_type="MERGE_ON_READ")
Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Life:
    """A table with the moments through which it went.

    Attributes:
        path: Where it is.
        instants: Its writes, in order.
        contents: What it held after each; after none it held nothing.
    """

    path: Path
    instants: tuple[str, ...]
    contents: tuple[Rows, ...]

    def copied(self, path: Path) -> Life:
        """Return the same life of a copy of the table."""
        copied(self.path, path)
        return Life(path, self.instants, self.contents)


def content(path: Path) -> Rows:
    """Return the table's rows."""
    return rows_of(path, "p", "id", "value")


def timeline_at(path: Path) -> Timeline:
    """Return the table's timeline."""
    storage = open_storage(str(path))
    return open_table(storage).timeline()


def lived(path: Path, after_first: Callable[[Path], object] = lambda _: None) -> Life:
    """Make a table by writes of every kind that a rollback has to know: the last two take file groups away."""
    instants, contents = [], [[]]
    for rows, options in (
        ([parted("a", 1, 2, value=1), parted("b", 1, value=1)], {"table": PARTED}),
        ([parted("a", 2, 3, value=2), parted("c", 1, value=2)], {}),
        ([parted("a", 7, value=3)], {"operation": "insert_overwrite"}),
        ([parted("b", 1, value=0)], {"operation": "delete_partition"}),
        ([parted("a", 8, value=5), parted("b", 8, value=5)], {}),
    ):
        instants.append(write(path, rows, **options).instant)
        contents.append(content(path))
        if len(instants) == 1:
            after_first(path)
    return Life(path, tuple(instants), tuple(contents))


def logged(path: Path, after_first: Callable[[Path], object] = lambda _: None) -> Life:
    """Make a merge-on-read table by base files, appends, a compaction, appends again, and an overwrite."""
    instants, contents = [], [[]]
    for rows, options in (
        ([parted("a", 1, 2, value=1), parted("b", 1, value=1)], {"table": MERGED}),
        ([parted("a", 2, 3, value=2), parted("c", 1, value=2)], {}),
        (None, {}),
        ([parted("a", 1, 3, value=4)], {}),
        ([parted("a", 2, value=0), parted("b", 1, value=0)], {"operation": "delete"}),
        ([parted("a", 7, value=6)], {"operation": "insert_overwrite"}),
    ):
        instants.append((compact(path) if rows is None else write(path, rows, **options)).instant)
        contents.append(content(path))
        if len(instants) == 1:
            after_first(path)
    return Life(path, tuple(instants), tuple(contents))


def condemn(path: Path, instant: str) -> None:
    """Decide that a completed write is rolled back, and be gone."""

    def killed(*_: object) -> None:
        raise Killed("rollback")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch_seam(patch, "roll back an instant", killed)
        rollback(open_storage(str(path)), instant)


def assert_gone(path: Path, instant: str) -> None:
    """Assert that nothing of an instant is left in the table's folder, but for notes and rollbacks that name it."""
    found = [one.relative_to(path).as_posix() for one in path.rglob(f"*{instant}*")]
    assert not [one for one in found if not one.startswith(".hoodie/.pyhudi/sealed/")], found


def check_each_rolled_back(folder: Path, make: Callable[[Path], Life] = lived) -> None:
    """Assert that each write, taken back, leaves the table as it was before, down to its partitions."""
    life = make(folder / "t")
    storage = open_storage(str(life.path))
    for number in reversed(range(len(life.instants))):
        told = rollback(storage, life.instants[number])
        assert content(life.path) == life.contents[number]
        assert told.instants == 1
        assert_gone(life.path, life.instants[number])
        assert_whole(life.path)
        assert {one.parent.name for one in life.path.glob("*/.hoodie_partition_metadata")} == {
            one.parent.name for one in life.path.glob("*/*.parquet")
        }
        assert rollback(storage, life.instants[number]) == told
    write(life.path, parted("b", 9, value=9))

    assert content(life.path) == [("b", "k9", 9)]
    assert_whole(life.path)


def check_kept(folder: Path) -> None:
    """Assert that what a savepoint keeps is neither rolled back nor restored away, until the savepoint is deleted."""
    life = lived(folder / "t")
    storage = open_storage(str(life.path))
    savepoint(storage)
    for undo in (rollback, restore):
        with pytest.raises(UndoError, match=life.instants[-1]):
            undo(storage, life.instants[-1] if undo is rollback else life.instants[0])

    assert content(life.path) == life.contents[-1]
    assert_whole(life.path)


def check_restored_to_each(folder: Path, make: Callable[[Path], Life] = lived) -> None:
    """Assert that a restore leaves the table as it was after a write, and nothing of later ones."""
    life = make(folder / "t")
    for number in range(len(life.instants)):
        copy = life.copied(folder / f"t{number}")
        undone = restore(open_storage(str(copy.path)), life.instants[number])
        assert content(copy.path) == life.contents[number + 1]
        assert undone.instants == len(life.instants) - number - 1
        for instant in life.instants[number + 1 :]:
            assert_gone(copy.path, instant)
        assert_whole(copy.path)
        write(copy.path, parted("c", 9, value=9))
        assert ("c", "k9", 9) in content(copy.path)
        assert_whole(copy.path)


def check_only_the_newest(folder: Path) -> None:
    """Assert that a write on which another stands is not rolled back."""
    life = lived(folder / "t")
    with pytest.raises(UndoError, match="not its newest"):
        rollback(open_storage(str(life.path)), life.instants[0])

    assert content(life.path) == life.contents[-1]
    assert_whole(life.path)


def check_what_comes_back(folder: Path) -> None:
    """Assert that a write which saw a partition taken away is refused when a rollback brings it back."""
    table = folder / "t"
    write(table, parted("a", 1, 2, value=1), table=PARTED)
    second = write(table, parted("a", 1, value=0), operation="delete_partition").instant
    planned = plan(table, parted("a", 1, value=1).schema)
    rollback(open_storage(str(table)), second)
    with pytest.raises(CommitConflictError, match="rolled back meanwhile"):
        carry_out(planned, [parted("a", 1, 2, value=3)])

    assert content(table) == [("a", "k1", 1), ("a", "k2", 1)]
    assert_whole(table)
