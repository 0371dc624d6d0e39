"""Merge-on-read tables of Apache Hudi held against the rows that it read itself when it made them."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
from pyhudi.reader.scan import RowReader
from pyhudi.reader.snapshot import open_snapshot
from support.recorded.fixture_tables import TABLES, recorded, unpack

NAMES = sorted(one.stem for kind in ("v9_mor_*", "v9_packed_*", "v8_*") for one in TABLES.glob(f"{kind}.zip"))
# Without copy-on-write ones.
LOGGED = [
    name
    for name in NAMES
    if any(".log." in one and ".hoodie" not in one for one in ZipFile(TABLES / f"{name}.zip").namelist())
]


# The tables in which a key is deleted without an ordering value, and comes back with less than its base row has.
REBORN, LATE_ROW = ("v9_mor_avro", "v9_mor_parquet", "v9_mor_ignore_defaults"), ("k5", "reborn, but too early", 1)


# What log entries leave of keys that a base file holds several times.
COPIES = [
    ("k0", "newest"),
    ("k1", "copy 1"),
    *(("k2", f"copy {number}") for number in range(3)),
    ("k4", "copy 1"),
]


def check_recorded(folder: Path, name: str, query: str = "snapshot") -> None:
    """Assert that a table reads as Apache Hudi reads it, all columns, meta columns among them."""
    assert_recorded(unpack(name, folder), name, query)


def assert_recorded(path: str, name: str, query: str = "snapshot") -> None:
    """Assert the same of a table that was unpacked. Apache Hudi alone shows a deleted base row beside a late one."""
    rows, told = in_order(shown(path, query)), in_order(recorded(name, query))
    if name == "v9_mor_duplicates" and query == "snapshot":
        # To Apache Hudi a log entry meets the first copy of its key alone.
        assert all(row in told for row in rows)
        assert [(row["id"], row["name"]) for row in rows] == COPIES
        return
    if name in REBORN and query == "snapshot":
        late, erased = ([row for row in some if row["_hoodie_record_key"] == LATE_ROW[0]] for some in (rows, told))
        assert [(row["id"], row["name"], row["ts"]) for row in late] == [LATE_ROW]
        assert [(row["id"], row["name"], row["ts"]) for row in erased] == [(LATE_ROW[0], "base", 10)]
        rows, told = ([row for row in some if row not in (*late, *erased)] for some in (rows, told))
    assert rows == told


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows by partition and key, several of one key in any one order."""
    return sorted(rows, key=lambda row: (row["_hoodie_partition_path"], row["_hoodie_record_key"], json.dumps(row)))


def shown(path: str, query: str) -> list[dict[str, Any]]:
    """Return what pyhudi shows, in the words of what was written down."""
    snapshot = open_snapshot(path, bases_alone=query == "read_optimized")
    batches = [
        batch
        for split in snapshot.plan(snapshot.schema, (), 1 << 27)
        for batch in RowReader(snapshot.storage, snapshot.schema, snapshot.schema, times=snapshot.times).read(split)
    ]
    maps = {field.name for field in snapshot.schema if pa.types.is_map(field.type)}
    rows = [
        {name: dict(value) if name in maps and value else value for name, value in row.items()}
        for batch in batches
        for row in batch.to_pylist()
    ]
    told: list[dict[str, Any]] = json.loads(json.dumps(rows, default=_text))
    return told


def seen(path: str, query: str = "snapshot") -> list[dict[str, Any]]:
    """Return the rows that pyhudi shows, in order, less the names of the files, which a compaction changes."""
    rows = in_order(shown(path, query))
    return [{name: value for name, value in row.items() if name != "_hoodie_file_name"} for row in rows]


def _text(value: Any) -> str:
    if isinstance(value, datetime.datetime) and value.tzinfo:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return value.hex() if isinstance(value, bytes) else str(value)
