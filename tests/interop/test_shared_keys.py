"""Rows of Apache Hudi whose values in several key columns make one key: what pyhudi refuses, and what all read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.readers import read_hudi_rs
from interop.writer import write_without_spark
from pyhudi.errors import DataError
from support.readers import read_without_spark

pytestmark = pytest.mark.interop

SCHEMA = pa.schema([("a", pa.string()), ("b", pa.string()), ("ts", pa.int64())])
COLLIDE = {"hoodie.pyhudi.keys.may.collide": "true"}
DELETE = {"hoodie.datasource.write.operation": "delete"}

Row = tuple[str | None, str | None, int]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_pyhudi_refuses_what_apache_hudi_replaces_in_silence(
    apache: ApacheHudi, tmp_path: Path, table_type: str
) -> None:
    """Stored rows outlive our writes, Apache Hudi's upserts and its compaction."""
    table = tmp_path / "t"
    options = {
        "hoodie.table.name": "shared",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "a,b",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.index.type": "SIMPLE",
    }

    def theirs(rows: list[Row], **more: str) -> None:
        apache.write(table, _table(rows), {**options, **{key.replace("__", "."): text for key, text in more.items()}})

    def ours(rows: list[Row], more: dict[str, str] | None = None) -> None:
        write_without_spark(table, _table(rows), more or {})

    def check(expected: list[Row]) -> None:
        readers = {
            "Apache Hudi": apache.read(table),
            "hudi-rs": read_hudi_rs(table),
            "pyhudi": read_without_spark(table),
        }
        for reader, rows in readers.items():
            found = zip(*(rows.column(name).to_pylist() for name in SCHEMA.names), strict=True)
            assert sorted(found, key=repr) == sorted(expected, key=repr), reader

    theirs([("x,b:y", "z", 1), ("k", "__null__", 1), ("s", "t", 1)])
    theirs([("x", "y,b:z", 2)])
    check([("x", "y,b:z", 2), ("k", "__null__", 1), ("s", "t", 1)])
    for row in (("x,b:y", "z", 3), ("k", "__empty__", 3)):
        with pytest.raises(DataError):
            ours([("s", "t", 3), row])
    for row in (("x,b:y", "z", 3), ("k", None, 3)):
        with pytest.raises(DataError):
            ours([row], DELETE)
    ours([("s", "t", 3), ("k", "", 3), (None, "k", 3)])
    left: list[Row] = [("x", "y,b:z", 2), ("k", "__null__", 1), ("k", "", 3), (None, "k", 3)]
    check([*left, ("s", "t", 3)])

    compacts = {"hoodie__compact__inline": "true", "hoodie__compact__inline__max__delta__commits": "1"}
    theirs([("s", "t", 4)], **(compacts if table_type == "MERGE_ON_READ" else {}))
    check([*left, ("s", "t", 4)])
    ours([("x", "y,b:z", 5), ("k", "__null__", 5)], DELETE)
    check([("k", "", 3), (None, "k", 3), ("s", "t", 4)])
    ours([("x,b:y", "z", 6)], COLLIDE)
    theirs([("x,b:y", "z", 7)])
    check([("k", "", 3), (None, "k", 3), ("s", "t", 4), ("x,b:y", "z", 7)])


def _table(rows: list[Row]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)
