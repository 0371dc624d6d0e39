"""What Apache Hudi's TRUNCATE TABLE leaves: properties and empty folders. Reads are empty, and writes go on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.reader.query import AsOf, Changes
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.config.property_keys import CREATE_SCHEMA
from pyhudi.table.schema.columns import META_COLUMNS
from support.drive import rows_of, write
from support.models.past import TABLE
from support.rules.ends import assert_whole

ROWS = pa.table({"id": ["a", "b"], "p": ["x", "y"], "n": [1, 2]})


def truncate(path: Path) -> None:
    """Leave what Apache Hudi 1.2 leaves, which writes the properties anew."""
    properties = (path / ".hoodie" / "hoodie.properties").read_bytes()
    shutil.rmtree(path)
    for folder in (".aux/.bootstrap/.fileids", ".aux/.bootstrap/.partitions", ".schema", ".temp", "timeline/history"):
        (path / ".hoodie" / folder).mkdir(parents=True)
    (path / ".hoodie" / "hoodie.properties").write_bytes(properties)


@pytest.fixture
def emptied(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    write(path, ROWS, table=TABLE)
    write(path, ROWS)
    truncate(path)
    return path


@pytest.mark.parametrize("query", [None, AsOf("2999-12-31"), Changes("earliest")], ids=["now", "then", "changes"])
def test_an_emptied_table_has_its_columns_and_no_rows(emptied: Path, query: AsOf | Changes | None) -> None:
    snapshot = open_snapshot(str(emptied), query=query)

    assert snapshot.schema.names == [*META_COLUMNS, *ROWS.schema.names]
    assert snapshot.plan(snapshot.schema, (), 1 << 27) == []


@pytest.mark.parametrize("colocated", [True, False], ids=["colocated", "plain"])
def test_writes_go_on(emptied: Path, colocated: bool) -> None:
    done = write(emptied, ROWS, settings=WriteSettings(colocated=colocated))

    assert (done.inserts, done.updates) == (2, 0)
    assert write(emptied, ROWS.slice(1)).updates == 1
    assert rows_of(emptied, "id", "p", "n") == [("a", "x", 1), ("b", "y", 2)]
    assert_whole(emptied)


def test_deletes_find_nothing(emptied: Path) -> None:
    assert write(emptied, ROWS.select(["id", "p"]), operation="delete").deletes == 0


def test_a_table_that_nobody_noted_the_columns_of_is_empty_too(emptied: Path) -> None:
    """Apache Hudi notes none of a table that ``df.write`` made."""
    storage = open_storage(str(emptied))
    properties = load_config(storage).properties
    lines = [f"{name}={value}" for name, value in properties.items() if name != CREATE_SCHEMA]
    (emptied / ".hoodie" / "hoodie.properties").write_text("\n".join([*lines, ""]), encoding="utf-8")
    snapshot = open_snapshot(str(emptied))

    assert snapshot.schema.names == [*META_COLUMNS]
    assert snapshot.plan(snapshot.schema, (), 1 << 27) == []
    assert write(emptied, ROWS, table=TableSettings()).inserts == 2
    assert rows_of(emptied, "id") == [("a",), ("b",)]
