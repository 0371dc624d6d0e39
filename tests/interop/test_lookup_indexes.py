"""Tables with indexes that look keys up, written by both in turn: each finds the other's rows, and no key is twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interop.apache_hudi import ApacheHudi, data_files
from interop.instants import properties
from interop.readers import read_hudi_rs, read_pyhudi
from interop.writer import write_without_spark
from pyhudi.errors import MissingOptionError, OptionConflictError
from pyspark.sql import SparkSession
from support.made.compacting import run, schedule
from support.readers import read_without_spark
from support.recorded.hudi_options import SMALL

pytestmark = pytest.mark.interop

INDEX, OPERATION = "hoodie.index.type", "hoodie.datasource.write.operation"
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
JAVA, OURS = "Apache Hudi", "pyhudi"
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
OPTIONS = {
    **{key: value for key, value in SMALL.items() if key != INDEX},
    "hoodie.compact.inline": "false",
    # So few that filters grow, and that some of the keys that a file lacks are taken for present.
    "hoodie.index.bloom.num_entries": "10",
    "hoodie.index.bloom.fpp": "0.05",
    "hoodie.bloom.index.filter.dynamic.max.entries": "20",
}
# Each write opens files of its own for new keys, so that there are many to choose from.
APART = {"hoodie.parquet.small.file.limit": "0"}

Row = tuple[str, str, int, int]


def key(number: int) -> str:
    """Keys of one to four bytes a character, whose tails murmur takes in all ways."""
    return ("k", "é", "日本", "\U0001f600")[number % 4] + "x" * (number % 3) + f"{number:03}"


@dataclass
class Shared:
    """A table that both write, and what it must hold.

    Attributes:
        path: The table's.
        apache: Apache Hudi.
        theirs: Options that Apache Hudi needs with each write, beside `OPTIONS`.
        ours: What pyhudi is told of a table that says nothing; nothing of one of its own.
        is_global: Whether a key is unique in the table.
        places: Where new keys go, as both are told with each write.
        content: The rows, by key and, where it is not, by partition.
    """

    path: Path
    apache: ApacheHudi
    theirs: dict[str, str]
    ours: dict[str, str]
    is_global: bool = False
    places: dict[str, str] = field(default_factory=lambda: APART)
    content: dict[tuple[str, str], Row] = field(default_factory=dict)

    def write(self, writer: str, numbers: Iterable[int], ts: int, value: int, *, moved: int = 0) -> None:
        """Upsert rows, each in the partition that its number tells or so many partitions further."""
        rows = [(key(n), "abc"[(n + moved) % 3], ts, value) for n in numbers]
        self._run(writer, rows, "upsert")
        for row in rows:
            held = self.content.get(self._identity(row))
            if held is None or row[2] >= held[2]:
                self.content[self._identity(row)] = row

    def delete(self, writer: str, numbers: Iterable[int]) -> None:
        """Delete keys, of which some may not be there."""
        rows = [(key(n), "abc"[n % 3], 10**6, 0) for n in numbers]
        self._run(writer, rows, "delete")
        for row in rows:
            self.content.pop(self._identity(row), None)

    def check(self) -> None:
        """Hold all readers against what must be there."""
        for reader, rows in {
            "Apache Hudi": self.apache.read(self.path),
            "hudi-rs": read_hudi_rs(self.path),
            "pyhudi": read_without_spark(self.path),
        }.items():
            assert _tuples(rows) == sorted(self.content.values()), reader

    def _run(self, writer: str, rows: list[Row], operation: str) -> None:
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
        if writer == JAVA:
            self.apache.write(self.path, table, {**OPTIONS, **self.places, **self.theirs, OPERATION: operation})
        else:
            write_without_spark(self.path, table, {**OPTIONS, **self.places, **self.ours, OPERATION: operation})

    def _identity(self, row: Row) -> tuple[str, str]:
        return row[0], "" if self.is_global else row[1]


def _tuples(rows: pa.Table) -> list[Row]:
    return sorted(zip(*(rows.column(name).to_pylist() for name in SCHEMA.names), strict=True))


def file_groups(table: Path) -> set[str]:
    """Return the ids of the file groups that have base files."""
    return {file.name.partition("_")[0] for file in data_files(table)}


# The other four are in test_version_8.py, and tables of theirs that we continue are recorded.
@pytest.mark.parametrize(
    ("index", "table_type", "first"),
    [
        ("SIMPLE", COW, JAVA),
        ("BLOOM", MOR, OURS),
        ("GLOBAL_SIMPLE", MOR, OURS),
        ("GLOBAL_BLOOM", COW, JAVA),
    ],
)
def test_each_finds_the_rows_of_the_other(
    index: str, table_type: str, first: str, tmp_path: Path, apache: ApacheHudi, spark: SparkSession
) -> None:
    said = {INDEX: index, "hoodie.datasource.write.table.type": table_type}
    second = OURS if first == JAVA else JAVA
    is_global = index.startswith("GLOBAL")
    table = Shared(tmp_path / "t", apache, said, said, is_global)

    table.write(first, range(0, 60), ts=1, value=1)
    table.write(second, range(30, 90), ts=2, value=2)
    table.check()
    # From here on new keys join small files, the other's too.
    table.places, groups = {}, file_groups(table.path)
    table.write(first, range(60, 100), ts=3, value=3)
    table.write(second, [*range(20, 30), 70, 100], ts=0, value=4)
    assert file_groups(table.path) == groups
    table.delete(second, range(0, 100, 7))
    if not is_global:
        table.check()
    table.delete(first, [*range(3, 100, 11), 500])
    if is_global:
        table.write(second, range(40, 50), ts=5, value=5, moved=1)
        table.write(first, range(50, 60), ts=5, value=5, moved=2)
        table.write(second, (60, 61, 62, 64), ts=1, value=6, moved=1)
        table.check()
    if table_type == MOR:
        schedule(str(table.path))
        run(str(table.path))
        table.write(JAVA, range(10, 40), ts=6, value=7)
    table.write(OURS, range(25, 110), ts=7, value=8)
    table.check()
    assert properties(table.path)[INDEX] == index
    assert _tuples(read_pyhudi(spark, table.path)) == sorted(table.content.values())


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_table_of_apache_hudis_defaults_needs_no_option_and_bears_any_index_afterwards(
    table_type: str, tmp_path: Path, apache: ApacheHudi
) -> None:
    """Its bloom index too, which fails on files without filters."""
    table = Shared(tmp_path / "t", apache, {"hoodie.datasource.write.table.type": table_type}, {})

    table.write(JAVA, range(0, 60), ts=1, value=1)
    made = properties(table.path)
    table.write(OURS, range(30, 90), ts=2, value=2)
    table.check()
    table.theirs[INDEX] = "BLOOM"
    table.write(JAVA, range(0, 100, 2), ts=3, value=3)
    table.delete(OURS, range(0, 100, 5))
    table.theirs[INDEX] = "GLOBAL_SIMPLE"
    table.delete(JAVA, range(1, 100, 5))
    table.write(OURS, range(0, 120, 3), ts=4, value=4)
    table.check()
    assert INDEX not in properties(table.path)
    assert INDEX not in made
    for file in data_files(table.path):
        assert b"org.apache.hudi.bloomfilter" in pq.read_metadata(file).metadata


def test_a_bucketed_table_of_apache_hudi_gets_no_file_group_of_another_kind(tmp_path: Path, apache: ApacheHudi) -> None:
    """Neither by what is guessed nor by what is said."""
    buckets = {INDEX: "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
    table = Shared(tmp_path / "t", apache, buckets, {})
    table.write(JAVA, range(0, 30), ts=1, value=1)
    before = data_files(table.path)

    for said in ({}, {INDEX: "SIMPLE"}, {INDEX: "BLOOM"}):
        table.ours = said
        with pytest.raises((MissingOptionError, OptionConflictError), match=r"hoodie\.bucket\.index\.num\.buckets"):
            table.write(OURS, range(0, 30), ts=2, value=2)
    assert data_files(table.path) == before
    table.ours = buckets
    table.write(OURS, range(20, 40), ts=2, value=2)
    table.write(JAVA, range(30, 50), ts=3, value=3)
    table.check()
