"""Tables of Apache Hudi 1.0.2, written and kept up by pyhudi, without a JVM."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.config.property_keys import COMMIT_TIME_ORDERING
from support.drive import rows_of, write
from support.made.compacting import run
from support.readers import rows_by_hudi_rs
from support.recorded.fixture_tables import recorded, unpack
from support.rules.health import errors

COLUMNS = ("id", "name", "ts")
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("name", pa.string()), ("ts", pa.int64())])
BUCKETS = TableSettings(bucket_count=2)
# What pyhudi notes, and a metadata table that it takes out of use.
OURS = (
    "hoodie.index.",
    "hoodie.bucket.index.",
    "hoodie.datasource.write.recordkey.field",
    "hoodie.table.metadata.",
    "hoodie.table.index.defs.",
)


@dataclass
class Held:
    """A table and what it must hold, by key."""

    path: str
    by_time: bool
    rows: dict[str, tuple[str, int]] = field(default_factory=dict)

    def upsert(self, *some: tuple[str, str, int]) -> str:
        """Write rows of (key, name, ordering value), and return the instant."""
        for key, name, ts in some:
            if not self.by_time or key not in self.rows or ts >= self.rows[key][1]:
                self.rows[key] = name, ts
        return write(self.path, [self._table(some)], table=BUCKETS).instant

    def delete(self, key: str) -> None:
        """Delete a key, whatever its ordering value."""
        del self.rows[key]
        write(self.path, [self._table([(key, "", 0)])], operation="delete", table=BUCKETS)

    def check(self) -> None:
        """Hold pyhudi and hudi-rs against the dict."""
        wanted = sorted((key, *values) for key, values in self.rows.items())
        assert rows_of(self.path, *COLUMNS) == wanted
        assert rows_by_hudi_rs(self.path, *COLUMNS) == wanted
        assert errors(self.path) == []

    def _table(self, some: list[tuple[str, str, int]] | tuple[tuple[str, str, int], ...]) -> pa.Table:
        return pa.Table.from_pylist([{"id": key, "p": "a", "name": name, "ts": ts} for key, name, ts in some], SCHEMA)


def made(name: str, folder: Path) -> Held:
    path = unpack(name, folder)
    mode = load_config(open_storage(path)).merge_mode
    rows = {one["id"]: (one["name"], one["ts"]) for one in recorded(name)}
    return Held(path, mode != COMMIT_TIME_ORDERING, rows)


@pytest.mark.parametrize("name", ["v8_cow", "v8_mor", "v8_mor_commit_time", "v8_mor_kept"])
def test_a_table_of_theirs_is_gone_on_with(name: str, tmp_path: Path) -> None:
    """Past what was pending, cleaned and archived there, by writes and all services."""
    held = made(name, tmp_path)
    storage = open_storage(held.path)
    before = load_config(storage).properties
    held.check()

    held.upsert(("k0", "ours", 50), ("k3", "too early", 1), ("new", "ours", 1))
    held.delete("new")
    held.check()
    if name != "v8_cow":
        assert run(held.path).files
        held.upsert(("k0", "too early", 49), ("k3", "ours", 60))
    saved, then = held.upsert(("k0", "saved", 70)), dict(held.rows)
    savepoint(storage, saved)
    rollback(storage, held.upsert(("k0", "gone", 80)))
    held.rows = dict(then)
    held.check()
    held.upsert(("k0", "gone", 90), ("k9", "gone", 1))
    restore(storage, saved)
    held.rows = dict(then)
    for version in range(5):
        held.upsert(("k0", "later", 100 + version))
    held.check()
    clean(storage, CleanSettings(commits=1))
    archive(storage, ArchiveSettings(min_commits=2, max_commits=3, batch=1), CleanSettings(commits=1))
    held.check()

    after = load_config(storage).properties
    assert {key for key in {*before, *after} if before.get(key) != after.get(key) and not key.startswith(OURS)} == set()
    assert after["hoodie.table.version"] == "8"


def test_keys_of_one_field_stay_bare(tmp_path: Path) -> None:
    """As the release writes them that has the key generator COMPLEX leave the field's name out."""
    path = unpack("v8_complex", tmp_path)
    new = pa.table({"id": ["k0", "id:k1", "k9"], "p": ["a"] * 3, "q": pa.array([1] * 3, pa.int32())})
    new = new.append_column("name", [["ours"] * 3]).append_column("ts", pa.array([30] * 3, pa.int64()))

    done = write(path, new)

    assert (done.updates, done.inserts) == (2, 1)
    assert rows_of(path, "_hoodie_record_key", "ts") == [("id:k1", 30), ("k0", 30), ("k2", 10), ("k3", 1), ("k9", 30)]
    assert errors(path) == []
