"""Tables with indexes by Apache Hudi: pyhudi leaves out file slices by them, and shows what Apache Hudi shows."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from pyhudi.reader.row_condition import read_condition
from pyhudi.reader.scan import scan
from pyhudi.reader.skipping.predicates import Compare, IsNull, OnExpression
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from support.recorded.index_answers import Row, assert_left, left_by, rows_of
from support.seams import patch_seam

pytestmark = pytest.mark.interop

DAY = datetime.date(2024, 1, 1)
STRANGE = ["a$b", "a\\", "$", "a\\$b", "ü€𝄞", "", "a b", "Ab", "aB", "x" * 200]
OPTIONS = {
    "hoodie.table.name": "indexed",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "3",
    "hoodie.metadata.index.expression.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.write.auto.upgrade": "false",
}
LOCKED = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
INDEXES = (
    "by_name on indexed (name)",
    "low on indexed using bloom_filters(id) options(expr='lower')",
    "years on indexed using column_stats(day) options(expr='year')",
    "days on indexed using column_stats(ts) options(expr='from_unixtime', format='yyyy-MM-dd')",
)


def rows_from(start: int, count: int, version: int, partitions: int = 6) -> pa.Table:
    """Return rows, some of whose values are null or strange."""
    numbers = range(start, start + count)
    names = [None if n % 7 == 3 else STRANGE[n % len(STRANGE)] if n % 2 else f"Name {n % 11}" for n in numbers]
    return pa.table(
        {
            "id": [f"k{n}" if n % 5 else f"k$\\{n}" for n in numbers],
            "p": [f"p-{(n + version) % partitions}" for n in numbers],
            "name": pa.array(names, pa.string()),
            "n": pa.array([None if n % 13 == 1 else n % 17 + version for n in numbers], pa.int32()),
            "ts": pa.array([version * 86_400 * 30 + n * 40_000 for n in numbers], pa.int64()),
            "day": pa.array([DAY + datetime.timedelta(n * 20) for n in numbers], pa.date32()),
            "at": pa.array([n * 86_400_000_000 for n in numbers], pa.timestamp("us", "UTC")),
        }
    )


@dataclass
class Indexed:
    """A table by Apache Hudi with indexes, its rows, and which of the indexes it could make."""

    path: Path
    apache: ApacheHudi
    snapshot: Snapshot
    rows: list[Row]
    made: list[str]

    def ids(self, condition: str) -> list[str]:
        """Return the keys that pyhudi shows."""
        where = read_condition(condition, self.snapshot.schema)
        return sorted(key for batch in scan(self.snapshot, ["id"], where=where) for key in batch["id"].to_pylist())

    def theirs(self, condition: str) -> list[str]:
        """Return the keys that Apache Hudi shows."""
        return sorted(row["id"] for row in self.apache.sql(f"select id from indexed where {condition}"))  # noqa: S608 (our own)


@pytest.fixture(scope="module", params=[("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 8)], ids=["9", "8"])
def indexed(
    request: pytest.FixtureRequest, apache: ApacheHudi, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Indexed]:
    """Rows that were inserted, updated, moved to other partitions and deleted; written on after the indexes."""
    kind, version = request.param
    table = tmp_path_factory.mktemp("indexed") / "indexed"
    options = {
        **OPTIONS,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": str(version),
    }
    apache.write(table, rows_from(0, 60, 0), options)
    for name, value in {**options, **LOCKED}.items():
        if any(word in name for word in ("metadata", "version", "upgrade", "lock")):
            apache.sql(f"set {name}={value}")
    apache.sql(f"create table indexed using hudi location '{table}'")
    made = []
    for index in INDEXES:
        if kind == "MERGE_ON_READ" and "bloom" in index:
            continue
        apache.sql(f"create index {index}")
        made.append(index)
    apache.write(table, rows_from(10, 20, 1), options)
    apache.write(table, rows_from(55, 20, 2), options)
    delete = {**options, "hoodie.datasource.write.operation": "delete"}
    apache.write(table, rows_from(70, 3, 2), delete)
    snapshot = open_snapshot(str(table))
    yield Indexed(table, apache, snapshot, rows_of(snapshot), made)
    apache.sql("drop table indexed")


def test_both_show_the_same_rows(indexed: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "least file slices on a disk", 0)
    keys = [row["id"].replace("\\", "\\\\") for row in indexed.rows[::9]]
    names = [name.replace("\\", "\\\\") for name in STRANGE if name]
    conditions = [f"id = '{key}'" for key in [*keys, "absent", "k70", "k71"]]
    conditions += [f"name = '{name}'" for name in [*names, "Name 1", "absent"]]
    conditions += ["name is null", "n = 3", "n in (4, 18, 99)", "n is null", "id in ('k1', 'k71') or name = 'Ab'"]
    for condition in conditions:
        assert indexed.ids(condition) == indexed.theirs(condition), condition


def test_each_index_leaves_what_holds_the_rows(indexed: Indexed) -> None:
    snapshot, rows = indexed.snapshot, indexed.rows
    for row in rows:
        key, name = row["id"], row["name"]
        assert_left(
            snapshot,
            rows,
            "record_index",
            lambda other, key=key: other["id"] == key,
            Compare("id", "=", key),
            exact=True,
        )
        if name is not None:
            wanted = Compare("name", "=", name)
            assert_left(
                snapshot,
                rows,
                "secondary_index_by_name",
                lambda other, name=name: other["name"] == name,
                wanted,
                exact=True,
            )
    nulls = IsNull("name")
    assert_left(snapshot, rows, "secondary_index_by_name", lambda other: other["name"] is None, nulls, exact=True)


def test_a_second_secondary_index_is_not_asked(indexed: Indexed) -> None:
    """Apache Hudi builds nothing of it, and its own reader misses rows."""
    indexed.apache.sql("create index by_n on indexed (n)")
    snapshot = open_snapshot(str(indexed.path))

    assert "secondary_index_by_n" in snapshot.config.metadata_partitions
    for wanted in (Compare("n", "=", 3), Compare("name", "=", "Ab")):
        assert left_by(snapshot, "secondary_index", wanted) is None


def test_indexes_of_expressions_leave_what_holds_the_rows(indexed: Indexed) -> None:
    snapshot, rows = indexed.snapshot, indexed.rows
    fewest = len(snapshot.slices())
    for year in range(2023, 2030):
        said = OnExpression("year", "day", (), Compare("day", "=", year))
        left = assert_left(snapshot, rows, "expr_index_years", lambda row, year=year: row["day"].year == year, said)
        fewest = min(fewest, fewest if left is None else left)
    assert fewest < len(snapshot.slices())
    for row in rows:
        day = datetime.datetime.fromtimestamp(row["ts"], datetime.timezone.utc).strftime("%Y-%m-%d")
        said = OnExpression("from_unixtime", "ts", ("yyyy-MM-dd",), Compare("ts", "=", day))
        assert row["group"] in (left_by(snapshot, "expr_index_days", said) or ()), day
        if any("low" in index for index in indexed.made):
            low = OnExpression("lower", "id", (), Compare("id", "=", row["id"].lower()))
            assert row["group"] in (left_by(snapshot, "expr_index_low", low) or ()), row["id"]
