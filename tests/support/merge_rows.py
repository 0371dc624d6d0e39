"""The rows of a small table that tests merge into, whatever carries the merge out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyhudi.methods.base import TableMethods
from support.drive import rows_of

SCHEMA = pa.schema([("id", pa.int32()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("t", pa.string())])
NAMES = tuple(SCHEMA.names)
Values = tuple[object, ...]

START: list[Values] = [(1, "a", 5, 1, "one"), (2, "a", 5, 2, "two"), (3, "b", 5, 3, "three"), (4, "b", 9, 4, None)]


def given(*rows: Values) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in rows], SCHEMA)


def rows(table: TableMethods[Any]) -> list[Values]:
    """Return what a table holds, read without Spark."""
    return rows_of(table.path, *NAMES)


def counts(done: Any) -> tuple[int, int, int, int]:
    return done.inserts, done.updates, done.deletes, done.moved
