"""The metadata table of Apache Hudi once `drop_index` took it out of use: its folder stays for readers and builders."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import properties
from interop.readers import read_hudi_rs
from interop.scenarios import BUCKETS
from interop.writer import write_without_spark
from pyhudi.arrow import Table
from pyhudi.operations.service_settings import CleanSettings
from pyhudi.operations.services.clean import clean
from pyhudi.storage import open_storage
from support.readers import read_without_spark
from support.rules.health import errors

pytestmark = pytest.mark.interop

NAMED = "hoodie.table.metadata.partitions"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    BUCKETS: "2",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
}
COMPACT = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


@dataclass
class Shared:
    """A table that both engines write, and what it must hold, by key."""

    path: Path
    apache: ApacheHudi
    kind: str
    held: dict[str, int] = field(default_factory=dict)
    writes: int = 0

    @property
    def options(self) -> dict[str, str]:
        return {**OPTIONS, "hoodie.datasource.write.table.type": self.kind}

    @property
    def folder(self) -> Path:
        return self.path / ".hoodie" / "metadata"

    def theirs(self, *keys: str, **more: str) -> None:
        self.apache.write(self.path, self._rows(keys), {**self.options, **more})

    def ours(self, *keys: str) -> None:
        write_without_spark(self.path, self._rows(keys), self.options)

    def names_partitions(self) -> bool:
        return "files" in properties(self.path).get(NAMED, "")

    def check(self) -> None:
        """Hold all readers against the dict, and the table's files against the format."""
        wanted = sorted(self.held.items())
        for rows in (self.apache.read(self.path), read_without_spark(self.path), read_hudi_rs(self.path)):
            assert sorted(zip(rows["id"].to_pylist(), rows["ts"].to_pylist(), strict=True)) == wanted
        assert errors(self.path) == []

    def _rows(self, keys: tuple[str, ...]) -> pa.Table:
        self.writes += 1
        self.held.update(dict.fromkeys(keys, self.writes))
        ts = pa.array([self.writes] * len(keys), pa.int64())
        return pa.table({"id": list(keys), "p": ["ab"[int(key[1:]) % 2] for key in keys], "ts": ts})


def set_age(folder: Path, days: float) -> None:
    then = time.time() - days * 86400
    for path in folder.rglob("*"):
        os.utime(path, (then, then))


@pytest.mark.parametrize("kind", KINDS)
def test_running_queries_of_apache_hudi_end_well_beside_its_drop(kind: str, tmp_path: Path, apache: ApacheHudi) -> None:
    """A query has chosen to list by the metadata table, which a write and a clean must leave where it is."""
    table = Shared(tmp_path / "t", apache, kind)
    table.theirs("k0", "k1", "k2", "k3")
    table.theirs("k2", "k4")
    set_age(table.folder, 3)
    seen = sorted(table.held.items())
    said = f"path '{table.path}', hoodie.metadata.enable 'true'"
    apache.sql(f"create or replace temporary view running using hudi options ({said})")

    Table(table.path).drop_index("files")
    table.ours("k0", "k5")
    clean(open_storage(str(table.path)), CleanSettings())

    assert not table.names_partitions()
    shown = apache.sql("select id, ts from running order by id")
    assert [(row["id"], row["ts"]) for row in shown] == seen
    table.check()


@pytest.mark.parametrize("kind", KINDS)
def test_apache_hudi_builds_its_metadata_table_anew_in_the_folder_that_stays(
    kind: str, tmp_path: Path, apache: ApacheHudi
) -> None:
    table = Shared(tmp_path / "t", apache, kind)
    table.theirs("k0", "k1", "k2", "k3")
    table.ours("k0", "k4", "k5")
    assert table.names_partitions()
    Table(table.path).drop_index("files")
    assert not table.names_partitions()
    assert (table.folder / ".hoodie" / "hoodie.properties").exists()
    table.check()

    table.theirs("k1", "k5", "k6")
    assert table.names_partitions()
    table.check()
    table.theirs("k0", "k6", "k7", **(COMPACT if kind == "MERGE_ON_READ" else {}))
    table.check()

    table.ours("k2", "k8")
    table.check()
    Table(table.path).drop_index("files")
    clean(open_storage(str(table.path)), CleanSettings())
    assert table.folder.exists(), "its files are new"
    set_age(table.folder, 2)
    clean(open_storage(str(table.path)), CleanSettings())
    assert not table.folder.exists()
    table.check()

    table.theirs("k3", "k8", "k9", **(COMPACT if kind == "MERGE_ON_READ" else {}))
    assert table.names_partitions()
    table.check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_a_record_index_keeps_in_its_partition_is_no_error(
    kind: str, tmp_path: Path, apache: ApacheHudi
) -> None:
    """A global record index leaves a row whose partition value changes where it is, by default."""
    table = tmp_path / "t"
    options = {
        **{name: value for name, value in OPTIONS.items() if name not in {"hoodie.index.type", BUCKETS}},
        "hoodie.datasource.write.table.type": kind,
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
    }
    apache.write(table, pa.table({"id": ["k0", "k1"], "p": ["a", "b"], "ts": [1, 1]}), options)
    apache.write(table, pa.table({"id": ["k0"], "p": ["b"], "ts": [2]}), options)

    rows = read_without_spark(table)
    assert sorted(zip(*(rows[name].to_pylist() for name in ("_hoodie_partition_path", "id", "ts")), strict=True)) == [
        ("a", "k0", 2),
        ("b", "k1", 1),
    ]
    assert errors(table) == []
