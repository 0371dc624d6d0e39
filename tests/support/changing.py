"""Rows changed as `HudiTable.merge` changes them, on a dict, and the rows that one upsert then takes.

The dict says what the table has to hold; it knows nothing of keys that meet, of ordering values or of file groups.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyhudi.operations.planning.plan import seen_moment
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.result import CommitResult, RowCounts
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from support.drive import rows_of, write
from support.model import SCHEMA, Key, Row

# In this order a place is (partition, key), as the dict of a history has it.
COLUMNS = ("p", "id", "ts", "value")


@dataclass
class Changed:
    """What one merge does to rows of a table.

    Attributes:
        rows: The table's rows by place, as the merge saw them.
        updates: The new row of each place that is updated; it has another place where it moves.
        deletes: The places whose rows go.
        inserts: New rows.
        unique: Whether keys are unique in the whole table.
    """

    rows: dict[Key, Row]
    updates: dict[Key, Row] = field(default_factory=dict)
    deletes: set[Key] = field(default_factory=set)
    inserts: list[Row] = field(default_factory=list)
    unique: bool = False

    def place(self, row: Row) -> Key:
        """Return where a row is."""
        return ("" if self.unique else str(row["p"]), str(row["id"]))

    def result(self) -> dict[Key, Row]:
        """Return the rows afterwards."""
        stay = {
            place: row for place, row in self.rows.items() if place not in self.updates | dict.fromkeys(self.deletes)
        }
        came = {self.place(row): row for row in (*self.updates.values(), *self.inserts)}
        assert len(came) == len(self.updates) + len(self.inserts)
        assert not stay.keys() & came.keys()
        return stay | came

    def counts(self) -> RowCounts:
        """Return what becomes of the rows."""
        moved = sum((row["p"], row["id"]) != (self.rows[old]["p"], old[1]) for old, row in self.updates.items())
        return RowCounts(len(self.inserts), len(self.updates), len(self.deletes), moved)

    def written(self) -> list[Row]:
        """Return the rows that are to be there, and a delete for each place that is left and that none comes to."""
        live = [*self.updates.values(), *self.inserts]
        came = {self.place(row) for row in live}
        left = {old for old, row in self.updates.items() if self.place(row) != old} | self.deletes
        gone = [{**self.rows[old], "value": None, "_hoodie_is_deleted": True} for old in sorted(left - came)]
        return [*live, *gone]


def draw(rows: dict[Key, Row], chance: random.Random, *, newest: int, unique: bool) -> Changed:
    """Return a merge of any kind: updates in place, deletes, rows that move, swap their places or take a freed one.

    Args:
        rows: The table's rows by place.
        chance: Draws.
        newest: An ordering value as great as that of any row so far: rows that come to a place are not older than what
            was there.
        unique: Whether keys are unique in the whole table.
    """
    changed = Changed(dict(rows), unique=unique)
    places = sorted(rows)
    chance.shuffle(places)

    def new(row: Row, **more: object) -> Row:
        return {**row, "ts": newest + chance.randrange(3), "value": chance.randrange(100), **more}

    for place in places:
        row = rows[place]
        act = chance.choice(["stay", "stay", "update", "same", "delete", "move", "rename"])
        if act in {"update", "same"}:
            changed.updates[place] = new(row) if act == "update" else {**row, "value": chance.randrange(100)}
        elif act == "delete":
            changed.deletes.add(place)
        elif act in {"move", "rename"}:
            home = {"p": chance.choice("abc")} if act == "move" else {"id": f"k{chance.randrange(12)}"}
            changed.updates[place] = new(row, **home)
    for number in range(chance.randrange(4)):
        row = {"id": f"k{chance.randrange(12)}", "p": chance.choice("abc"), "ts": newest, "_hoodie_is_deleted": False}
        changed.inserts.append({**row, "value": number})
    return _possible(changed)


def _possible(changed: Changed) -> Changed:
    """Return the same without what a merge refuses: rows that come to a place which another row has or comes to."""
    taken = {place for place in changed.rows if place not in changed.updates and place not in changed.deletes}
    updates: dict[Key, Row] = {}
    for old, row in sorted(changed.updates.items(), key=lambda one: changed.place(one[1]) != one[0]):
        free = changed.place(row) not in taken
        # A row that may not move stays as it is; what was to come to its place finds it taken.
        updates |= {old: row} if free else {}
        taken.add(changed.place(row) if free else old)
    kept = replace(changed, updates=updates)
    came = [kept.place(row) for row in updates.values()]
    stays = {place for place in kept.rows if place not in updates and place not in kept.deletes}
    if len(set(came)) < len(came) or stays & set(came):
        return _possible(kept)
    inserts: dict[Key, Row] = {}
    for row in kept.inserts:
        if kept.place(row) not in stays | set(came):
            inserts.setdefault(kept.place(row), row)
    return replace(kept, inserts=list(inserts.values()))


def moment_of(table: Path) -> str:
    """Return the moment of a table as it is now."""
    storage = open_storage(str(table))
    return seen_moment(storage, load_config(storage))[1]


def based_on(table: Path, settings: WriteSettings, counts: RowCounts | None = None) -> WriteSettings:
    """Return the settings of a write of rows that are made from the table as it is now."""
    return replace(settings, based_on=moment_of(table), counted=counts)


def as_parts(rows: Iterable[Row], tasks: int, chance: random.Random) -> list[pa.Table]:
    """Return rows dealt out to tasks, in any order."""
    shuffled = list(rows)
    chance.shuffle(shuffled)
    return [pa.Table.from_pylist(shuffled[number::tasks], SCHEMA) for number in range(tasks)]


def check_changes(table: Path, made: TableSettings, settings: WriteSettings, *, steps: int, seed: int) -> RowCounts:
    """Assert that merges leave what the dict says, and count what it says.

    Returns:
        What became of all rows together.
    """
    chance, total = random.Random(seed), RowCounts()
    unique = (made.index_type or "").startswith("GLOBAL")
    first = Changed({}, unique=unique)
    keys = chance.sample(range(12), 8)
    first.inserts = [
        {"id": f"k{key}", "p": chance.choice("abc"), "ts": key, "value": key, "_hoodie_is_deleted": False}
        for key in keys
    ]
    write(table, as_parts(first.inserts, 2, chance), table=made, settings=settings)
    rows, newest = first.result(), 12
    for _ in range(steps):
        changed = draw(rows, chance, newest=newest, unique=unique)
        newest += 3
        counts = changed.counts()
        done: CommitResult = write(
            table, as_parts(changed.written(), 2, chance), settings=based_on(table, settings, counts)
        )
        rows = changed.result()

        assert rows_of(table, *COLUMNS) == sorted(tuple(row[name] for name in COLUMNS) for row in rows.values())
        assert RowCounts(done.inserts, done.updates, done.deletes, done.moved) == counts
        total = RowCounts(
            *(getattr(total, name) + getattr(counts, name) for name in ("inserts", "updates", "deletes", "moved"))
        )
    return total
