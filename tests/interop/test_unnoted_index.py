"""Tables whose keys Apache Hudi keeps unique in the whole table, and of which nothing or the record index says so."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import properties
from interop.readers import read_hudi_rs
from interop.writer import write_without_spark
from pyhudi.arrow import Table
from pyhudi.errors import MissingOptionError
from support.readers import read_without_spark

pytestmark = pytest.mark.interop

INDEX = "hoodie.index.type"
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
PATH, KEY = "_hoodie_partition_path", "_hoodie_record_key"
RECORDS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    INDEX: "GLOBAL_RECORD_LEVEL_INDEX",
    "hoodie.record.index.update.partition.path": "true",
}
BY_PARTITION = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.level.index.enable": "true",
    INDEX: "RECORD_LEVEL_INDEX",
}

Rows = list[tuple[str, str, int, int]]


class Both:
    """A table that Apache Hudi makes with an index and pyhudi writes with none named."""

    def __init__(self, apache: ApacheHudi, table: Path, table_type: str, theirs: dict[str, str]) -> None:
        self._apache, self.table = apache, table
        self._theirs = theirs
        self._options = {
            "hoodie.table.name": "unnoted",
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.datasource.write.precombine.field": "ts",
        }

    def apache(self, rows: Rows, **more: str) -> None:
        named = {key.replace("__", "."): text for key, text in more.items()}
        self._apache.write(self.table, _table(rows), {**self._options, **self._theirs, **named})

    def ours(self, rows: Rows, more: dict[str, str]) -> None:
        write_without_spark(self.table, _table(rows), more)

    def check(self, expected: list[tuple[str, str, int]]) -> None:
        rows_by_reader = {
            "pyhudi": read_without_spark(self.table),
            "Apache Hudi": self._apache.read(self.table),
            "Apache Hudi with its metadata table": self._apache.read(self.table, {"hoodie.metadata.enable": "true"}),
            "hudi-rs": read_hudi_rs(self.table),
        }
        for reader, rows in rows_by_reader.items():
            columns = (rows.column(name).to_pylist() for name in (PATH, KEY, "v"))
            assert sorted(zip(*columns, strict=True)) == expected, reader


def _table(rows: Rows) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


@pytest.mark.parametrize(
    ("table_type", "theirs", "kind"),
    [
        ("COPY_ON_WRITE", RECORDS, "GLOBAL_SIMPLE"),
        ("MERGE_ON_READ", RECORDS, "GLOBAL_SIMPLE"),
        ("COPY_ON_WRITE", BY_PARTITION, "SIMPLE"),
    ],
)
def test_rows_of_a_record_index_are_found_where_it_has_them(
    apache: ApacheHudi, tmp_path: Path, table_type: str, theirs: dict[str, str], kind: str
) -> None:
    """By two bare writes after each other; then Apache Hudi builds its index anew, upserts and compacts."""
    both = Both(apache, tmp_path / "t", table_type, theirs)
    both.apache([("a", "x", 1, 1), ("b", "x", 1, 1), ("c", "y", 1, 1)])
    assert "record_index" in properties(both.table)["hoodie.table.metadata.partitions"]

    Table(both.table).drop_index("record_index")
    both.ours([("a", "y", 2, 2), ("d", "x", 2, 2)], {})
    noted = properties(both.table)
    assert (noted["hoodie.pyhudi.record.index.lookup"], noted["hoodie.table.metadata.partitions"]) == (kind, "files")
    both.ours([("b", "y", 3, 3)], {})
    is_global = kind == "GLOBAL_SIMPLE"
    left = [] if is_global else [("x", "a", 1), ("x", "b", 1)]
    both.check(sorted([*left, ("x", "d", 2), ("y", "a", 2), ("y", "b", 3), ("y", "c", 1)]))

    compacts = {"hoodie__compact__inline": "true", "hoodie__compact__inline__max__delta__commits": "1"}
    both.apache([("a", "x", 4, 4), ("c", "y", 4, 4)], **(compacts if table_type == "MERGE_ON_READ" else {}))

    after = [("x", "a", 4), ("x", "d", 2), ("y", "b", 3), ("y", "c", 4)]
    both.check(after if is_global else sorted([*after, ("x", "b", 1), ("y", "a", 2)]))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_that_a_global_index_would_move_is_asked_about(
    apache: ApacheHudi, tmp_path: Path, table_type: str
) -> None:
    both = Both(apache, tmp_path / "t", table_type, {INDEX: "GLOBAL_BLOOM"})
    both.apache([("a", "x", 1, 1), ("b", "y", 1, 1)])
    both.apache([("a", "x", 2, 2)])

    both.ours([("b", "y", 2, 2), ("c", "y", 2, 2)], {})
    with pytest.raises(MissingOptionError, match="'a' of a row for partition 'y' is in partition 'x'"):
        both.ours([("a", "y", 3, 3)], {})
    both.check([("x", "a", 2), ("y", "b", 2), ("y", "c", 2)])

    both.ours([("a", "y", 3, 3)], {INDEX: "GLOBAL_BLOOM"})
    both.apache([("b", "x", 4, 4), ("a", "y", 4, 4)])
    both.check([("x", "b", 4), ("y", "a", 4), ("y", "c", 2)])


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_copies_that_an_overwrite_deletes_are_gone_for_all_readers(
    apache: ApacheHudi, tmp_path: Path, table_type: str
) -> None:
    """The commit replaces one partition and changes a file group of another."""
    both = Both(apache, tmp_path / "t", table_type, {INDEX: "GLOBAL_SIMPLE"})
    both.apache([("a", "x", 1, 1), ("b", "y", 9, 1), ("c", "y", 9, 1)])

    overwrite = {INDEX: "GLOBAL_SIMPLE", "hoodie.datasource.write.operation": "insert_overwrite"}
    both.ours([("b", "x", 2, 2), ("d", "x", 2, 2)], {**overwrite, "hoodie.pyhudi.overwrite.moves.keys": "true"})
    both.check([("x", "b", 2), ("x", "d", 2), ("y", "c", 1)])

    compacts = {"hoodie__compact__inline": "true", "hoodie__compact__inline__max__delta__commits": "1"}
    both.apache([("c", "y", 10, 3), ("d", "y", 10, 3)], **(compacts if table_type == "MERGE_ON_READ" else {}))
    both.check([("x", "b", 2), ("y", "c", 3), ("y", "d", 3)])
