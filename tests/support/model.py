"""What a table should hold after a history of writes, kept in a dict."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import strategies as st

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("p", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("value", pa.int64()),
        pa.field("_hoodie_is_deleted", pa.bool_()),
    ]
)

Key = tuple[str, str]
Row = dict[str, object]


@dataclass(frozen=True)
class Step:
    """One write of a history: its operation, its rows, and how they are dealt out over tasks."""

    operation: str
    rows: list[Row]
    tasks: int
    shuffle: int

    def parts(self) -> list[pa.Table]:
        """Return the rows shuffled and dealt out, one table a task."""
        order = sorted(range(len(self.rows)), key=lambda n: hash((self.shuffle, n)))
        hands = [[self.rows[n] for n in order[task :: self.tasks]] for task in range(self.tasks)]
        return [pa.Table.from_pylist(hand, SCHEMA) for hand in hands]


@dataclass
class Model:
    """The live rows by (partition, key), folded as copy-on-write does under EVENT_TIME_ORDERING."""

    rows: dict[Key, Row] = field(default_factory=dict)

    def apply(self, step: Step) -> None:
        """Take one write."""
        if step.operation == "insert_overwrite_table":
            self.rows = {}
        newest: dict[Key, Row] = {}
        for row in step.rows:
            key = (str(row["p"]), str(row["id"]))
            known = newest.get(key)
            if known is None or int(str(row["ts"])) >= int(str(known["ts"])):
                newest[key] = row
        for key, row in newest.items():
            base = self.rows.get(key)
            if step.operation == "delete":
                self.rows.pop(key, None)
            elif base is not None and int(str(base["ts"])) > int(str(row["ts"])):
                continue
            elif row["_hoodie_is_deleted"]:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row

    def tuples(self) -> list[tuple[object, ...]]:
        """Return the live rows as sorted tuples of (p, id, ts, value)."""
        return sorted((row["p"], row["id"], row["ts"], row["value"]) for row in self.rows.values())


def random_history(seed: int, *, steps: int, keys: int, partitions: Sequence[str] = ("a", "b")) -> list[Step]:
    """Return a history whose (key, ordering value) pairs are unique, so that arrival order cannot matter.

    Args:
        seed: Decides everything else.
        steps: Number of writes.
        keys: Number of keys of each partition, few enough for writes to meet each other's rows.
        partitions: Values of the partition column.
    """
    chance = random.Random(seed)
    most = 2 * keys
    stamps = chance.sample(range(10 * steps * most), steps * most)
    history = []
    for number in range(steps):
        operations = ["upsert", "upsert", "upsert", "delete", "insert_overwrite_table"]
        operation = chance.choice(operations) if number else "upsert"
        rows: list[Row] = [
            {
                "id": f"k{chance.randrange(keys)}",
                "p": chance.choice(partitions),
                "ts": stamps.pop(),
                "value": chance.randrange(1000),
                "_hoodie_is_deleted": chance.random() < 0.25,
            }
            for _ in range(chance.randint(0 if number else 1, most))
        ]
        if operation == "insert_overwrite_table":
            unique = {(row["p"], row["id"]): row for row in rows}
            rows = [row for row in unique.values() if not row["_hoodie_is_deleted"]]
        history.append(Step(operation, rows, chance.randint(1, 7), chance.randrange(1000)))
    return history


def histories(*, steps: int = 5, keys: int = 10) -> st.SearchStrategy[list[Step]]:
    """Draw random histories; a seed rather than each value, because drawn values hardly ever meet each other."""
    return st.builds(random_history, st.integers(0, 1 << 32), steps=st.integers(1, steps), keys=st.integers(1, keys))
