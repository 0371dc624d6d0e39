"""Rows of one key in a batch, and keys that are there already: writes of which Apache Hudi's outcome is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from support.readers import read_by_hudi_rs

OPERATION = "hoodie.datasource.write.operation"
FOLD_INSERTS = "hoodie.combine.before.insert"
FOLD_UPSERTS = "hoodie.combine.before.upsert"
FOLD_DELETES = "hoodie.combine.before.delete"
DROP = "hoodie.datasource.write.insert.drop.duplicates"
POLICY = "hoodie.datasource.insert.dup.policy"
ROW_WRITER = "hoodie.datasource.write.row.writer.enable"


def rows(*given: tuple[str, str, int, str]) -> pa.Table:
    return pa.table([list(column) for column in zip(*given, strict=True)], ["id", "p", "ts", "n"])


HELD = rows(("k", "a", 10, "held k"), ("l", "a", 10, "held l"), ("k", "b", 10, "held k of b"))
# In a partition that the table lacks: the greater ordering value comes first, comes last, is tied.
NEW = rows(
    ("u", "new", 9, "u1"),
    ("u", "new", 8, "u2"),
    ("v", "new", 8, "v1"),
    ("v", "new", 9, "v2"),
    ("w", "new", 8, "w1"),
    ("w", "new", 8, "w2"),
)
# Lesser and greater than what the table holds.
KNOWN = rows(("k", "a", 9, "k1"), ("k", "a", 8, "k2"), ("l", "a", 11, "l1"), ("l", "a", 12, "l2"))
BATCHES = {
    "new": NEW,
    "new, untied": NEW.slice(0, 4),
    "known": KNOWN,
    "known, lesser": KNOWN.slice(0, 2),
    "both": pa.concat_tables([NEW, KNOWN]),
    # Of a bucket that has a file, and of none.
    "neighbour": rows(("m", "a", 1, "m1")),
}


@dataclass(frozen=True)
class Case:
    """One write of a batch to a table of HELD."""

    operation: str
    batch: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        said = (f"{name.removeprefix('hoodie.').split('.', 1)[1]}={value}" for name, value in self.options.items())
        return " ".join([f"{self.operation} ({self.batch})", *said])

    @property
    def rows(self) -> pa.Table:
        """What is written."""
        return BATCHES[self.batch]

    @property
    def asked(self) -> dict[str, str]:
        """The options of the write, operation and all."""
        return {OPERATION: self.operation, **self.options}


SAME = [
    Case("insert", "both", {FOLD_INSERTS: "true"}),
    Case("insert", "both", {FOLD_INSERTS: "false", POLICY: "none"}),
    Case("insert", "both", {POLICY: "drop"}),
    Case("insert", "both", {POLICY: "drop", FOLD_INSERTS: "true"}),
    Case("insert", "new", {POLICY: "fail"}),
    Case("insert", "known", {DROP: "true"}),
    Case("upsert", "both", {POLICY: "drop"}),
    Case("upsert", "both", {FOLD_UPSERTS: "true"}),
    Case("upsert", "known", {FOLD_UPSERTS: "false"}),
    # Of tied rows the row writer keeps the first, every other way the last.
    Case("bulk_insert", "new", {FOLD_INSERTS: "true", ROW_WRITER: "false"}),
    Case("bulk_insert", "new, untied", {FOLD_INSERTS: "true"}),
    Case("delete", "known, lesser", {FOLD_DELETES: "true"}),
    Case("delete", "known, lesser", {FOLD_DELETES: "false"}),
    Case("insert_overwrite", "both", {FOLD_INSERTS: "true"}),
    Case("insert_overwrite_table", "both", {FOLD_INSERTS: "true"}),
    # The older option folds incoming rows too, unless it is told not to.
    Case("insert", "both", {DROP: "true"}),
    Case("upsert", "both", {DROP: "true"}),
    Case("insert", "both", {DROP: "true", FOLD_INSERTS: "false"}),
    Case("insert_overwrite", "both", {DROP: "true"}),
    Case("insert_overwrite_table", "both", {DROP: "true"}),
]
FAILING = [
    *(Case(operation, "both", {POLICY: "fail"}) for operation in ("insert", "upsert")),
    Case("bulk_insert", "new", {DROP: "true"}),
]
# Where pyhudi does otherwise, as docs/operations.md says; when Apache Hudi's answer is another one, that has to change.
NEIGHBOUR_DROPPED, NEIGHBOUR_FAILS = (Case("insert", "neighbour", {POLICY: policy}) for policy in ("drop", "fail"))
UNFOLDED = Case("upsert", "new", {FOLD_UPSERTS: "false"})
OVERLOOKED = Case("bulk_insert", "new", {POLICY: "drop"})
OTHERWISE = [NEIGHBOUR_DROPPED, NEIGHBOUR_FAILS, UNFOLDED, OVERLOOKED]


def left(table: Path) -> list[str]:
    """Return the rows that the table holds, by their names."""
    return sorted(read_by_hudi_rs(table)["n"].to_pylist())
