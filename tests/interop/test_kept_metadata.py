"""A metadata table that both keep: Apache Hudi with its defaults reads, changes, compacts and undoes what pyhudi wrote.

After each step all readers are held against what the table must hold, Apache Hudi with conditions too: it lists files
by the metadata table, and leaves them out by `column_stats` and `partition_stats`.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.both import BASE, BY, OPERATION, OPTIONS, VERSION, Both
from interop.every_type import COLUMNS, row
from interop.instants import properties
from interop.undone import call, newest
from interop.writer import write_without_spark
from pyhudi.arrow import Table
from pyhudi.operations.service_settings import CleanSettings
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.storage import open_storage
from pyhudi.table.config import update_config
from support.made.compacting import join, run, schedule
from support.rules.health import of_metadata

pytestmark = pytest.mark.interop

PARTITIONS = "column_stats,files,partition_stats"
# The tests of other things do without these, which Apache Hudi keeps by default.
BOUNDS = {"hoodie.metadata.index.column.stats.enable": "true"}
COMPACTS = {"hoodie.metadata.compact.max.delta.commits": "1"}
CONDITIONS = (("ts > 12", lambda key, ts, value: ts > 12), ("ts < 11", lambda key, ts, value: ts < 11))
_VIEWS = itertools.count()


class Kept(Both):
    """A table whose metadata table both keep."""

    def theirs(self, rows: str, operation: str = "upsert", **more: str) -> None:
        super().theirs(rows, operation, **BOUNDS, **more)

    def check(self) -> None:
        """Hold all readers against what the table holds, and the metadata table against the table."""
        super().check()
        assert properties(self.path)["hoodie.table.metadata.partitions"] == PARTITIONS
        assert of_metadata(self.path) == []
        view = f"kept_{next(_VIEWS)}"
        self.apache.sql(f"create temporary view {view} using hudi options (path '{self.path}')")
        newest_write = max(value for _, value in self.held.values())
        for text, holds in (*CONDITIONS, (f"value = {newest_write}", lambda key, ts, value: value == newest_write)):
            shown = self.apache.sql(f"select id, ts, value from {view} where {text}")  # noqa: S608 (of this file alone)
            wanted = {(key, *held) for key, held in self.held.items() if holds(key, *held)}
            assert {(each["id"], each["ts"], each["value"]) for each in shown} == wanted, text
        self.apache.sql(f"drop view {view}")

    def undone(self, held: Mapping[str, tuple[int, int]]) -> None:
        """Hold the table against what it held before the writes that were undone."""
        self.held = dict(held)
        self.check()


@pytest.fixture
def java(apache: ApacheHudi) -> ApacheHudi:
    """Apache Hudi with its defaults: other tests set what procedures do."""
    apache.sql("reset hoodie.metadata.enable")
    return apache


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheHudi]:
    """Apache Hudi 1.0.2, whose own version 8 is."""
    process = ApacheHudi(tmp_path_factory.mktemp("apache-hudi-1-0"), release="1.0.2")
    yield process
    process.close()


def _plain() -> dict[str, str]:
    return {key: text for key, text in OPTIONS.items() if key != "hoodie.metadata.enable"}


def kept(path: Path, apache: ApacheHudi, kind: str, **more: str) -> Kept:
    """Return a table of Apache Hudi's that has a metadata table."""
    table = Kept(path, apache, {**_plain(), "hoodie.datasource.write.table.type": kind, **more})
    table.theirs(BASE)
    return table


def test_apache_hudi_goes_on_after_each_write_of_ours(tmp_path: Path, java: ApacheHudi) -> None:
    """It compacts the metadata table over our log files, and its own writes follow."""
    table = kept(tmp_path / "t", java, "MERGE_ON_READ")
    table.ours("k0 11, -k1 11, k20 11")
    table.check()
    table.theirs("k2 12, k21 12", **COMPACTS)
    table.ours("k2 13, k22 13")
    table.ours("k3 13, k1 14")
    table.check()
    table.theirs("-k3 14, k4 14", **COMPACTS)
    table.check()
    assert join(table.path).files
    assert schedule(table.path).instant
    table.ours("k5 15")
    assert run(table.path).files
    table.check()
    Table(table.path).delete_partitions("a")
    table.held = {key: held for key, held in table.held.items() if int(key[1:]) % 2}
    table.check()
    table.ours("k6 20")
    assert clean(open_storage(str(table.path)), CleanSettings(commits=1)).files
    table.check()
    table.theirs("k6 21, k8 21, k23 21", **COMPACTS)
    table.ours("k8 22, k25 3")
    table.check()


def test_each_side_undoes_what_the_other_wrote(tmp_path: Path, java: ApacheHudi) -> None:
    table = kept(tmp_path / "t", java, "COPY_ON_WRITE")
    storage = open_storage(str(table.path))
    held = dict(table.held)
    call(java, table.path, "rollback_to_instant", f"instant_time => '{table.ours('k0 11, -k1 11, k20 11')}'")
    table.undone(held)

    table.ours("k0 12, k21 12")
    held = dict(table.held)
    table.theirs("k0 13, k22 13")
    rollback(storage, newest(table.path))
    table.undone(held)

    savepoint(storage, table.ours("k2 12, k23 12"))
    saved, held = newest(table.path), dict(table.held)
    table.theirs("k0 14, -k2 14, k24 14", **COMPACTS)
    table.ours("k0 15, k25 15")
    restore(storage, saved)
    table.held = dict(held)
    Table(table.path).create_index("partition_stats")
    table.check()
    table.theirs("k0 16, k26 16", **COMPACTS)
    table.ours("k26 17")
    table.check()


def test_apache_hudi_1_0_goes_on_in_version_8(tmp_path: Path, older: ApacheHudi) -> None:
    table = kept(tmp_path / "t", older, "COPY_ON_WRITE", **{VERSION: "8"})
    table.ours("k0 11, -k1 11, k20 11")
    table.check()
    table.theirs("k2 12, k21 12", **COMPACTS)
    table.ours("k2 13, k22 13")
    table.check()
    assert clean(open_storage(str(table.path)), CleanSettings(commits=1)).files
    table.theirs("k4 14", **COMPACTS)
    table.check()


def records(path: Path, partition: str) -> dict[str, Any]:
    """Return the records of a partition of the metadata table by key; of files in the order of their names."""
    records_by_key = {record["key"]: record for record in Table(path).metadata(partition).to_pylist()}
    for record in records_by_key.values():
        if record.get("filesystemMetadata"):
            record["filesystemMetadata"] = sorted(record["filesystemMetadata"], key=lambda file: str(file[0]))
    return records_by_key


def test_each_record_of_ours_is_that_of_apache_hudi(tmp_path: Path, java: ApacheHudi) -> None:
    """Which builds a metadata table anew in a copy of the table, from a listing, footers and log blocks."""
    table, copy = tmp_path / "t", tmp_path / "copy"
    options = {**_plain(), "hoodie.datasource.write.table.type": "MERGE_ON_READ", BY: "id"}
    java.write(table, typed(range(3), 1), {**options, **BOUNDS})
    write_without_spark(table, typed(range(3, 30), 2), {**options, OPERATION: "insert"})
    write_without_spark(table, typed(range(10, 25), 3), options)
    shutil.copytree(table, copy)
    shutil.rmtree(copy / ".hoodie" / "metadata")
    update_config(open_storage(str(copy)), {"hoodie.table.metadata.partitions": ""})
    call(java, copy, "create_metadata_table")

    for partition in ("files", "column_stats"):
        assert records(table, partition) == records(copy, partition), partition
    ours, theirs = (records(path, "partition_stats") for path in (table, copy))
    assert ours.keys() == theirs.keys()
    assert of_metadata(table) == []


def typed(ids: range, version: int) -> pa.Table:
    """Return rows with a column of each type of which Apache Hudi makes the same bounds as pyhudi.

    It takes bounds of floats that a footer lacks for zeros, orders bytes with a sign, and keeps none of long texts.
    """
    columns = pa.schema([field for field in COLUMNS if field.name not in {"must", "long", "fl", "do", "by"}])
    return pa.Table.from_pylist([row(number, version) for number in ids], columns)
