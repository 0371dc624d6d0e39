"""Rows of the tables that Apache Hudi wrote with indexes that look keys up, by partition and key."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from support.drive import rows_of
from support.recorded.fixture_tables import recorded

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("name", pa.string()),
        ("ts", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)

Key = tuple[str, str]


def content_of(name: str, query: str = "snapshot") -> dict[Key, tuple[str | None, int]]:
    """Return the name and ordering value of each row that Apache Hudi read."""
    return {(row["p"], row["id"]): (row["name"], row["ts"]) for row in recorded(name, query)}


def as_table(rows: dict[Key, tuple[str | None, int]], *, deleted: bool = False) -> pa.Table:
    """Return rows to be written, or to be deleted by mark."""
    whole = [
        {"id": k, "p": p, "name": name, "ts": ts, "_hoodie_is_deleted": deleted} for (p, k), (name, ts) in rows.items()
    ]
    return pa.Table.from_pylist(whole, SCHEMA)


def held(path: str) -> dict[Key, tuple[Any, ...]]:
    """Return what the table holds, each key once."""
    rows = rows_of(path, "p", "id", "name", "ts")
    twice = [key for key, count in Counter(row[:2] for row in rows).items() if count > 1]
    assert not twice
    return {(str(row[0]), str(row[1])): row[2:] for row in rows}
