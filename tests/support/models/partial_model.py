"""What a table holds whose rows may leave columns to older rows, kept in dicts and told row by row.

As in Apache Hudi the rows of one write are put together first. What comes of a key meets its base
row at once on copy-on-write tables, and after the other entries of its log on merge-on-read ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("p", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("n", pa.int64()),
        pa.field("_hoodie_is_deleted", pa.bool_()),
    ]
)
UNAVAILABLE = "-gone-"
# Stands for a column that a row does not have.
LEFT_OUT = object()
VALUES = ("name", "n")

Row = dict[str, object]
Key = tuple[object, object]


@dataclass(frozen=True)
class Step:
    """One write, or a compaction.

    Attributes:
        rows: Without rows the log files are compacted.
        columns: The columns that a partial update has; None for whole rows.
        tasks: Over how many tasks they are dealt out, one after another.
    """

    rows: tuple[Row, ...] = ()
    columns: tuple[str, ...] | None = None
    tasks: int = 1

    def parts(self) -> list[pa.Table]:
        """Return the rows of each task."""
        names = SCHEMA.names if self.columns is None else [one for one in SCHEMA.names if one in self.columns]
        schema = pa.schema([SCHEMA.field(name) for name in names])
        size = -(-len(self.rows) // self.tasks)
        hands = [self.rows[start : start + size] for start in range(0, len(self.rows), size)]
        return [pa.Table.from_pylist([{name: row[name] for name in names} for row in hand], schema) for hand in hands]


@dataclass
class PartialModel:
    """The rows of a table, by partition and key.

    Attributes:
        mode: The table's mode of partial updates.
        ordered: Whether the greater ordering value wins; the later row otherwise.
        logs: Whether writes go to logs where their keys' bucket has a file, as all have here after the first write.
        word: What stands for no value, where the mode is about one.
        flagged: Whether the table has the column of the delete flag, so that logs get whole rows of a partial update.
    """

    mode: str | None
    ordered: bool
    logs: bool
    word: str = UNAVAILABLE
    flagged: bool = True
    base: dict[Key, Row] = field(default_factory=dict)
    log: dict[Key, Row] = field(default_factory=dict)
    is_new: bool = True

    def apply(self, step: Step) -> Key | None:
        """Take one step; return a key that it must be refused for, None where it is none."""
        if not step.rows:
            self.compact()
            return None
        given: dict[Key, list[Row]] = {}
        for row in step.rows:
            whole = {**row, **{one: LEFT_OUT for one in VALUES if step.columns is not None and one not in step.columns}}
            if step.columns is not None and "_hoodie_is_deleted" not in step.columns:
                whole["_hoodie_is_deleted"] = None
            given.setdefault((row["p"], row["id"]), []).append(whole)
        folded: dict[Key, Row] = {}
        for key, rows in given.items():
            in_order = sorted(rows, key=_stamp) if self.ordered else rows
            current = in_order[0]
            revived = False
            for later in in_order[1:]:
                revived |= _gone(current) or _gone(later)
                current = self._met(current, later)
            if step.columns is not None and not _gone(current) and (revived or self._seen(key) is None):
                return key
            folded[key] = current
        for key, current in folded.items():
            if self.logs and not self.is_new:
                whole = step.columns is not None and self.flagged and not _gone(current)
                entry = self._met(self._seen(key), current) if whole else current
                self.log[key] = self._met(self.log.get(key), entry)
            else:
                self._into_base(key, current)
        self.is_new = False
        return None

    def compact(self) -> None:
        """Merge the logs into the base."""
        for key, one in self.log.items():
            self._into_base(key, one)
        self.log = {}

    def tuples(self) -> list[tuple[object, ...]]:
        """Return the live rows as tuples of (p, id, ts, name, n), sorted by the first two."""
        live = {key: self._seen(key) for key in {*self.base, *self.log}}
        return sorted(
            ((*key, row["ts"], row["name"], row["n"]) for key, row in live.items() if row is not None),
            key=lambda one: one[:2],
        )

    def _seen(self, key: Key) -> Row | None:
        base, entry = self.base.get(key), self.log.get(key)
        found = base if entry is None else self._met(base, entry)
        return None if found is None or _gone(found) else found

    def _into_base(self, key: Key, entry: Row) -> None:
        merged_row = self._met(self.base.get(key), entry)
        if _gone(merged_row):
            self.base.pop(key, None)
        else:
            self.base[key] = merged_row

    def _met(self, older: Row | None, newer: Row) -> Row:
        """Return what comes of two rows of one key."""
        if older is None:
            return newer
        on_top, below = (older, newer) if self.ordered and _stamp(older) > _stamp(newer) else (newer, older)
        if _gone(on_top) or _gone(below):
            return on_top
        return {name: below[name] if self._open(value) else value for name, value in on_top.items()}

    def _open(self, value: object) -> bool:
        if value is LEFT_OUT:
            return True
        return (self.mode == "IGNORE_DEFAULTS" and value is None) or (
            self.mode == "FILL_UNAVAILABLE" and value == self.word
        )


def random_steps(seed: int, *, mode: str | None, count: int = 7, keys: int = 6) -> list[Step]:
    """Return a random history that begins with whole rows of all keys; where there is no mode, with partial updates."""
    chance = random.Random(seed)
    stamps = chance.sample(range(1000), 40 * count)
    steps = [Step(tuple(_row(f"k{n}", p, stamps.pop(), chance, delete=0.0) for n in range(keys) for p in "ab"))]
    for _ in range(count):
        draw = chance.random()
        if draw < 0.15:
            steps.append(Step())
            continue
        partial = mode is None and draw < 0.75
        delete = 0.05 if partial else 0.15
        some = tuple(
            _row(
                f"k{chance.randrange(keys)}",
                chance.choice("ab"),
                stamps.pop(),
                chance,
                delete=delete,
            )
            for _ in range(chance.randint(1, 2 if partial else 8))
        )
        steps.append(Step(some, _columns(chance) if partial else None, chance.randint(1, 3)))
    return steps


def _columns(chance: random.Random) -> tuple[str, ...]:
    values = chance.choice([("name",), ("n",), ("name", "n"), ()])
    return ("id", "p", "ts", *values, "_hoodie_is_deleted")


def _row(key: str, partition: str, stamp: int, chance: random.Random, *, delete: float) -> Row:
    name = chance.choice([None, UNAVAILABLE, f"name{stamp}", f"name{stamp}"])
    number = chance.choice([None, stamp * 10])
    gone = chance.random() < delete
    return {"id": key, "p": partition, "ts": stamp, "name": name, "n": number, "_hoodie_is_deleted": gone}


def _stamp(row: Mapping[str, object]) -> int:
    return int(str(row["ts"]))


def _gone(row: Mapping[str, object]) -> bool:
    return row["_hoodie_is_deleted"] is True


def rows(*given: tuple[object, ...], columns: Iterable[str] = ("id", "p", "ts", "name", "n")) -> pa.Table:
    """Return rows of some columns."""
    names = list(columns)
    schema = pa.schema([SCHEMA.field(name) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in given], schema)
