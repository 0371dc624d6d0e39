"""Conditions over tables with a metadata table of Apache Hudi, which answers them as pyhudi does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hudi
import pytest
from interop.apache_hudi import ApacheHudi
from pyhudi.arrow import Table
from pyhudi.reader.snapshot import open_snapshot
from support.recorded.recorded_metadata import MADE, unpack
from support.seams import patch_seam

pytestmark = pytest.mark.interop

NAMES = [made.name for made in MADE]
CONDITIONS = (
    "id = 'k1'",
    "id IN ('k0', 'k13', 'k31', 'nowhere')",
    "id = 'k3'",
    "name = 'Version 8'",
    "name = 'Version 1' AND p = 'b'",
    "name IN ('Version 2', 'Version 4')",
    "name > 'Version 6'",
    "ts >= 7",
    "ts < 3 AND name LIKE 'Version%'",
    "ts = 3 OR ts = 8",
    "price = 0.5",
    "price > 3.4",
    "cost < 0",
    "cost = 4",
    "day >= DATE '1970-01-08'",
    "at < TIMESTAMP '1970-01-01 00:00:00.000003Z'",
    "name IS NULL",
    "price IS NOT NULL AND p = 'a'",
    "ts <> 7",
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("metadata"))


@pytest.fixture(scope="module", params=NAMES)
def table(request: pytest.FixtureRequest, tables: Path, apache: ApacheHudi) -> Iterator[Path]:
    """A table that Apache Hudi's SQL knows by its name."""
    path = tables / str(request.param)
    apache.sql(f"CREATE TABLE {path.name} USING hudi LOCATION '{path}'")
    yield path
    apache.sql(f"DROP TABLE {path.name}")


def test_apache_hudi_answers_conditions_as_pyhudi_does(
    table: Path, apache: ApacheHudi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or with fewer rows: it takes an index of an expression for one of its column, and its LIKE loses rows."""
    patch_seam(monkeypatch, "least file slices on a disk", 0)
    columns = "id,ts,_hoodie_partition_path"
    every = apache.put_rows(apache.read(table))
    for condition in CONDITIONS:
        theirs, plain = (
            sorted(map(str, apache.sql(f"SELECT {columns} FROM {source} WHERE {condition}")))  # noqa: S608 (of this file alone)
            for source in (table.name, f"parquet.`{every}`")
        )
        ours = sorted(map(str, Table(table).read(columns, where=condition).to_pylist()))

        assert ours == plain, condition
        assert {*theirs} <= {*ours}, condition


@pytest.mark.parametrize("name", [made.name for made in MADE if made.version >= 8])
def test_hudi_rs_lists_the_same_files(tables: Path, name: str) -> None:
    """It lists by the metadata table, too."""
    slices = hudi.HudiTable(str(tables / name)).get_file_slices()
    theirs = [path for each in slices for path in (each.base_file_relative_path(), *each.log_files_relative_paths())]
    ours = [path for each in open_snapshot(str(tables / name)).slices() for path in each.files]

    assert sorted(filter(None, theirs)) == sorted(ours)
