"""What a table should hold after a history of writes, kept in a dict."""

from __future__ import annotations

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


@st.composite
def histories(draw: st.DrawFn, *, steps: int = 5, keys: int = 12) -> list[Step]:
    """Draw a history whose (key, ordering value) pairs are unique, so that arrival order cannot matter."""
    history = []
    stamps = draw(st.permutations(range(steps * keys * 2)))
    at = 0
    for number in range(draw(st.integers(1, steps))):
        operation = (
            "upsert"
            if number == 0
            else draw(st.sampled_from(["upsert", "upsert", "upsert", "delete", "insert_overwrite_table"]))
        )
        rows: list[Row] = []
        for _ in range(draw(st.integers(0 if number else 1, keys))):
            rows.append(
                {
                    "id": f"k{draw(st.integers(0, keys))}",
                    "p": draw(st.sampled_from(["a", "b"])),
                    "ts": stamps[at],
                    "value": draw(st.integers(-5, 5)),
                    "_hoodie_is_deleted": draw(st.integers(0, 4)) == 0,
                }
            )
            at += 1
        if operation == "insert_overwrite_table":
            unique = {(row["p"], row["id"]): row for row in rows}
            rows = [row for row in unique.values() if not row["_hoodie_is_deleted"]]
        history.append(Step(operation, rows, draw(st.integers(1, 7)), draw(st.integers(0, 999))))
    return history
