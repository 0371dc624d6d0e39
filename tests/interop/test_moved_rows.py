"""Rows that move between partitions, by pyhudi and by Apache Hudi in turn, under indexes of the whole table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import pending
from interop.readers import read_hudi_rs
from interop.writer import write_without_spark
from support.readers import read_without_spark

pytestmark = pytest.mark.interop

PATH, KEY = "_hoodie_partition_path", "_hoodie_record_key"
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
MOVES = "hoodie.{}.index.update.partition.path"

Rows = list[tuple[str, str, int, int]]


def table_of(rows: Rows) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


class Both:
    """One table of both writers, held against what its rows and their partitions should be."""

    def __init__(self, apache: ApacheHudi, table: Path, index: str, table_type: str) -> None:
        self._apache, self._table = apache, table
        self._moves = MOVES.format(index.removeprefix("GLOBAL_").lower())
        self._options = {
            "hoodie.table.name": "moved",
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
            "hoodie.index.type": index,
        }

    def ours(self, rows: Rows, expected: list[tuple[str, str, str, int]], *, moves: bool = True, **more: str) -> None:
        options = {**self._options, self._moves: str(moves).lower(), **more}
        write_without_spark(self._table, table_of(rows), options)
        self.check(expected)

    def theirs(self, rows: Rows, expected: list[tuple[str, str, str, int]], *, moves: bool = True, **more: str) -> None:
        """Have Apache Hudi write, which looks into files and not into its own metadata table."""
        options = {**self._options, self._moves: str(moves).lower(), "hoodie.metadata.enable": "false", **more}
        self._apache.write(self._table, table_of(rows), options)
        self.check(expected)

    def check(self, expected: list[tuple[str, str, str, int]]) -> None:
        rows_by_reader = {
            "pyhudi": read_without_spark(self._table),
            "Apache Hudi": self._apache.read(self._table),
            "hudi-rs": read_hudi_rs(self._table),
        }
        for reader, rows in rows_by_reader.items():
            # Apache Hudi's readers show the folder's value in the partition column, whatever its files hold.
            by_folder = reader == "Apache Hudi"
            columns = (rows.column(name).to_pylist() for name in (PATH, KEY, PATH if by_folder else "p", "v"))
            shown = [(path, key, path if by_folder else p, v) for path, key, p, v in expected]
            assert sorted(zip(*columns, strict=True)) == shown, reader
        assert pending(self._table) == set()


@pytest.mark.parametrize(
    ("index", "table_type"), [("GLOBAL_SIMPLE", "COPY_ON_WRITE"), ("GLOBAL_BLOOM", "MERGE_ON_READ")]
)
def test_a_row_moves_and_its_key_is_there_once(apache: ApacheHudi, tmp_path: Path, index: str, table_type: str) -> None:
    both = Both(apache, tmp_path / "t", index, table_type)
    both.ours(
        [("a", "x", 1, 1), ("b", "x", 5, 2), ("c", "y", 1, 3), ("d", "y", 5, 4)],
        [("x", "a", "x", 1), ("x", "b", "x", 2), ("y", "c", "y", 3), ("y", "d", "y", 4)],
    )
    # One moves, one is too old to, one is there, one is new.
    both.theirs(
        [("a", "y", 2, 11), ("b", "y", 4, 12), ("c", "y", 2, 13), ("e", "z", 1, 15)],
        [("x", "b", "x", 2), ("y", "a", "y", 11), ("y", "c", "y", 13), ("y", "d", "y", 4), ("z", "e", "z", 15)],
    )
    both.ours(
        [("a", "z", 3, 21), ("c", "x", 3, 23), ("d", "x", 4, 24), ("e", "z", 2, 25)],
        [("x", "b", "x", 2), ("x", "c", "x", 23), ("y", "d", "y", 4), ("z", "a", "z", 21), ("z", "e", "z", 25)],
    )
    # Theirs finds what ours moved, there and back.
    both.theirs(
        [("a", "x", 4, 31), ("c", "x", 4, 33)],
        [("x", "a", "x", 31), ("x", "b", "x", 2), ("x", "c", "x", 33), ("y", "d", "y", 4), ("z", "e", "z", 25)],
    )
    # Where rows stay, the partition's own is what both keep, and the column says what was written.
    both.theirs(
        [("a", "z", 5, 41)],
        [("x", "a", "z", 41), ("x", "b", "x", 2), ("x", "c", "x", 33), ("y", "d", "y", 4), ("z", "e", "z", 25)],
        moves=False,
    )
    both.ours(
        [("a", "y", 6, 51), ("e", "x", 6, 55)],
        [("x", "a", "y", 51), ("x", "b", "x", 2), ("x", "c", "x", 33), ("y", "d", "y", 4), ("z", "e", "x", 55)],
        moves=False,
    )
