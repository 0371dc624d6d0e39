"""Rows changed as `HudiTable.merge` changes them, on a dict, and the rows that one upsert then takes.

The dict says what the table has to hold; it knows nothing of keys that meet, of ordering values or of file groups.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from pyhudi.operations.planning.pinned import seen_moment
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.result import RowCounts
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from support.models.model import Key, Model, Row, Step, key_of, merges
from support.places import Place
from support.write_settings import write_settings

# The operation of a history's step that is a merge, and whether it looked at the table before the write before it.
MERGE, LATE = "merge", "late"
# The operations in whose place a merge may come.
MERGED = ("upsert", "insert", "delete")


@dataclass
class Changed:
    """What one merge does to rows of a table.

    Attributes:
        rows: The table's rows by place, as the merge saw them.
        updates: The new row of each place that is updated; it has another place where it moves.
        deletes: The places whose rows go.
        inserts: New rows.
        copies: Rows of keys that the table holds several times, which stay.
        unique: Whether keys are unique in the whole table.
    """

    rows: dict[Key, Row]
    updates: dict[Key, Row] = field(default_factory=dict)
    deletes: set[Key] = field(default_factory=set)
    inserts: list[Row] = field(default_factory=list)
    copies: Sequence[Row] = ()
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

    def tuples(self) -> list[tuple[object, ...]]:
        """Return the rows afterwards as sorted tuples of (p, id, ts, value), those of keys that are there twice too."""
        return sorted((row["p"], row["id"], row["ts"], row["value"]) for row in (*self.result().values(), *self.copies))

    def counts(self) -> RowCounts:
        """Return what becomes of the rows."""
        moved = sum((row["p"], row["id"]) != (self.rows[old]["p"], old[1]) for old, row in self.updates.items())
        return RowCounts(len(self.inserts), len(self.updates), len(self.deletes), moved)

    def written(self) -> list[Row]:
        """Return the rows that are to be there, and a delete for each place that is left and that none comes to."""
        live = [*self.updates.values(), *self.inserts]
        came = {self.place(row) for row in live}
        left = {old for old, row in self.updates.items() if self.place(row) != old} | self.deletes
        gone = [{**self.rows[old], "_hoodie_is_deleted": True} for old in sorted(left - came)]
        return [*live, *gone]


def draw(
    rows: Mapping[Key, Row],
    given: Sequence[Row],
    chance: random.Random,
    *,
    least: Callable[[Key], int],
    copies: Sequence[Row] = (),
    unique: bool = False,
) -> Changed:
    """Return a merge of any kind: updates in place, deletes, rows that move, swap their places or take a freed one.

    Args:
        rows: The table's rows by place.
        given: Of these places are rows that come.
        chance: Draws.
        least: Returns the ordering value of a place below which nothing that comes there is seen.
        copies: The rows of keys that the table holds several times, which stay.
        unique: Whether keys are unique in the whole table.
    """
    changed, spread = Changed(dict(rows), copies=copies, unique=unique), [*rows.values(), *given]
    paths, keys = ([*dict.fromkeys(str(row[name]) for row in spread)] for name in ("p", "id"))

    def new(row: Row, floor: int, **more: object) -> Row:
        moved = {**row, **more}
        # Odd ones, which no other write of a history has.
        stamp = (max(floor, least(changed.place(moved))) + 1) // 2 * 2 + 1
        return {**moved, "ts": stamp + 2 * chance.randrange(2), "value": chance.randrange(1000)}

    for place, row in rows.items():
        act = chance.choice(["stay", "stay", "update", "same", "delete", "move", "rename"])
        if act == "update":
            changed.updates[place] = new(row, int(str(row["ts"])))
        elif act == "same":
            changed.updates[place] = {**row, "value": int(str(row["value"])) + chance.randrange(3)}
        elif act == "delete":
            changed.deletes.add(place)
        elif act in {"move", "rename"}:
            home = {"p": chance.choice(paths)} if act == "move" else {"id": chance.choice(keys)}
            changed.updates[place] = new(row, int(str(row["ts"])), **home)
    changed.inserts = [new({**row, "_hoodie_is_deleted": False}, 0) for row in given]
    return _possible(changed, set(map(changed.place, copies)))


def _possible(changed: Changed, others: Set[Key]) -> Changed:
    """Return the same without what a merge refuses: rows that come to a place which another row has or comes to."""
    taken = {place for place in changed.rows if place not in changed.updates and place not in changed.deletes} | others
    updates: dict[Key, Row] = {}
    for old, row in sorted(changed.updates.items(), key=lambda one: changed.place(one[1]) != one[0]):
        free = changed.place(row) not in taken
        # A row that may not move stays as it is; what was to come to its place finds it taken.
        updates |= {old: row} if free else {}
        taken.add(changed.place(row) if free else old)
    allowed_change = replace(changed, updates=updates)
    came = [allowed_change.place(row) for row in updates.values()]
    stays = {
        place for place in allowed_change.rows if place not in updates and place not in allowed_change.deletes
    } | others
    if len(set(came)) < len(came) or stays & set(came):
        return _possible(allowed_change, others)
    inserts: dict[Key, Row] = {}
    for row in allowed_change.inserts:
        if allowed_change.place(row) not in stays | set(came):
            inserts.setdefault(allowed_change.place(row), row)
    return replace(allowed_change, inserts=list(inserts.values()))


def with_merges(history: Sequence[Step], seed: int) -> list[Step]:
    """Return a history in which some writes are merges; after the first one, which may make the table."""
    chance = random.Random(seed)
    steps = list(map(_even, history))
    for number, step in enumerate(steps):
        if number and step.operation in MERGED and chance.random() < 0.5:
            steps[number] = as_merge(step, late=number > 1 and chance.random() < 0.4)
    return steps


def all_merges(history: Sequence[Step]) -> list[Step]:
    """Return a history that is nothing but merges after its first write, half of which come late."""
    first, *rest = map(_even, history)
    return [first, *(as_merge(step, late=number % 2 == 1) for number, step in enumerate(rest))]


def as_merge(step: Step, *, late: bool) -> Step:
    """Return a merge that is given the rows of another write."""
    return replace(step, operation=MERGE, options={LATE: str(late)})


def _even(step: Step) -> Step:
    return replace(step, rows=[{**row, "ts": 2 * int(str(row["ts"]))} for row in step.rows])


def is_late(step: Step) -> bool:
    """Return whether a write is a merge that looked at the table before the write before it."""
    return step.operation == MERGE and step.options[LATE] == "True"


def merged(step: Step, model: Model, *, unique: bool) -> tuple[Step, Changed]:
    """Return the upsert that a merge becomes, and what it does to the rows that a model holds.

    Args:
        step: The merge; its rows are those that it is given.
        model: What the table holds.
        unique: Whether keys are unique in the whole table.
    """
    single = {key: rows[0] for key, rows in _by_home(model).items() if len(rows) == 1}

    def least(place: Key) -> int:
        there = [key for key in model.known() if key[1] == place[1] and (unique or key[0] == place[0])]
        return max(map(model.least, there), default=0)

    changed = draw(
        {("" if unique else key[0], key[1]): row for key, row in single.items()},
        step.rows,
        random.Random(step.shuffle),
        least=least,
        copies=[row for rows in _by_home(model).values() if len(rows) > 1 for row in rows],
        unique=unique,
    )
    return replace(step, operation="upsert", options={}, rows=changed.written()), changed


def disturbed(changed: Changed, step: Step, before: Model, model: Model) -> bool:
    """Return whether another write has changed a row that a merge changes, too.

    Args:
        changed: The merge, as of before.
        step: The other write.
        before: What the table held before it.
        model: What it holds since.
    """
    looks = merges(step) or step.operation.startswith(("insert_overwrite", "delete_partition"))
    homes = [(str(changed.rows[one]["p"]), one[1]) for one in (*changed.updates, *changed.deletes)]
    was, now = _by_home(before), _by_home(model)
    return looks and any(was.get(home) != now.get(home) for home in homes)


def _by_home(model: Model) -> dict[Key, list[Row]]:
    homes: dict[Key, list[Row]] = {}
    for rows in model.rows.values():
        for row in rows:
            homes.setdefault(key_of(row), []).append(row)
    return homes


def moment_of(table: Place) -> str:
    """Return the moment of a table as it is now."""
    storage = open_storage(str(table))
    return seen_moment(open_table(storage))[1]


def based_on(table: Place, settings: WriteSettings, counts: RowCounts | None = None) -> WriteSettings:
    """Return the settings of a write of rows that are made from the table as it is now."""
    return write_settings(settings, based_on=moment_of(table), counted=counts, deletes_read=True)
