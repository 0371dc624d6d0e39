"""Rows that come after a delete of their key and are older than what it took away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.result import CommitResult
from pyhudi.table.config.property_keys import MERGE_ON_READ
from support.drawn.upkept import OFF
from support.drive import rows_of
from support.drive import write as written
from support.made.compacting import join, run
from support.readers import read_without_spark
from support.write_settings import write_settings

FLAG = pa.field("_hoodie_is_deleted", pa.bool_())
QUIET = WriteSettings(upkeep=OFF)
READ = write_settings(QUIET, deletes_read=True)
LOGGED = TableSettings(record_key_fields=("id",), ordering_fields=("ts",), table_type=MERGE_ON_READ, bucket_count=1)
# Keys whose delete has a value under every index, and keys that are deleted by key alone.
_READ_KEYS, _BARE_KEYS = ["flag", "read"], ["key", "logged"]


def rows(*keys: str, ts: Any, value: int, deleted: bool = False, kind: pa.DataType | None = None) -> pa.Table:
    """Return rows of some keys with one ordering value."""
    columns = {"id": pa.array(keys), "ts": pa.array([ts] * len(keys), kind or pa.int64())}
    return pa.table({**columns, "value": [value] * len(keys), FLAG.name: pa.array([deleted] * len(keys))})


def write(path: Path, parts: pa.Table | list[pa.Table], **options: Any) -> CommitResult:
    """Write rows; no service follows."""
    return written(path, parts, **{"settings": QUIET, **options})


def shown(path: Path) -> dict[Any, Any]:
    """Return the value of each key."""
    return dict(rows_of(path, "id", "value"))  # type: ignore[arg-type]


def indexed(index: str) -> TableSettings:
    """Return what a merge-on-read table with an index is made with."""
    return replace(LOGGED, index_type=index, bucket_count=1 if index == "BUCKET" else None)


def check_late_rows(path: Path, index: str = "BUCKET") -> None:
    """Assert that a delete that read its row holds against rows with less, and one by key alone against older rows."""
    hashes = index == "BUCKET"
    write(path, rows(*_READ_KEYS, "key", "stays", ts=10, value=1), table=indexed(index))
    write(path, rows("logged", ts=3, value=1))
    write(path, rows("logged", ts=10, value=1))
    write(path, rows("flag", ts=10, value=2, deleted=True))
    write(path, rows("read", ts=10, value=2), operation="delete", settings=READ)
    deleted = write(path, rows(*_BARE_KEYS, ts=1, value=2), operation="delete").instant
    assert shown(path) == {"stays": 1}

    every = [*_READ_KEYS, *_BARE_KEYS]
    write(path, rows(*every, ts=5, value=3))
    expected = {"stays": 1, **(dict.fromkeys(_BARE_KEYS, 3) if hashes else {})}
    assert shown(path) == expected
    window = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": deleted}
    late = read_without_spark(path, window)
    assert set(late["id"].to_pylist()) == {key for key in expected if key != "stays"}

    assert join(path).files
    assert shown(path) == expected
    write(path, rows(*every, ts=6, value=4))
    expected |= dict.fromkeys(_BARE_KEYS, 4) if hashes else {}
    assert shown(path) == expected
    assert run(path).instant
    assert shown(path) == expected, "a compaction changes nothing of what entries show"

    write(path, rows(*every, ts=6, value=5))
    assert shown(path) == {"stays": 1, **dict.fromkeys(every, 5)}, "a compaction forgets deletes"


def check_looked_up_rows(path: Path) -> None:
    """Assert the same of keys that an index looks up."""
    check_late_rows(path, "SIMPLE")


def check_hidden_rows(path: Path) -> None:
    """Assert that no row that leaves columns open takes a value of the base row that a delete hides from it."""
    table = replace(LOGGED, partial_update_mode="IGNORE_DEFAULTS")
    write(path, rows("k", ts=10, value=1), table=table)
    write(path, rows("k", ts=1, value=2), operation="delete")
    late = rows("k", ts=5, value=3)
    write(path, late.set_column(2, "value", pa.array([None], pa.int64())))

    assert shown(path) == {"k": None}
