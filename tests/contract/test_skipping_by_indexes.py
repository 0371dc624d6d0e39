"""Which file slices indexes of Apache Hudi leave, and that queries by them show every row."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyhudi import arrow
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.snapshot import open_snapshot
from support.made.metadata_tables import files_of, keys_of, simulate
from support.recorded import index_checks
from support.recorded.recorded_metadata import unpack
from support.seams import patch_seam


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("metadata"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the metadata table of however few file slices."""
    patch_seam(monkeypatch, "least file slices on a disk", 0)


def test_a_record_index_leaves_the_file_groups_of_the_keys(tables: Path) -> None:
    index_checks.check_record_index(tables)


def test_filters_leave_the_base_files_of_the_keys(tables: Path) -> None:
    index_checks.check_filters(tables)


def test_a_secondary_index_leaves_the_file_groups_of_the_values(tables: Path) -> None:
    index_checks.check_secondary_index(tables)


def test_an_index_of_an_expression_leaves_the_file_groups_of_its_values(tables: Path) -> None:
    index_checks.check_expressions(tables)


@pytest.mark.usefixtures("asked")
def test_every_row_is_shown(tables: Path) -> None:
    index_checks.check_shown_rows(tables)


@pytest.mark.usefixtures("asked")
def test_other_moments_do_without_indexes_of_now(tables: Path) -> None:
    index_checks.check_other_moments(tables)


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("lacking", ["", "record_index"])
def test_footers_are_not_opened_for_keys_that_an_index_judged(tables: Path, tmp_path: Path, lacking: str) -> None:
    """Neither after the record index nor after filters; so base files without any bytes do no harm."""
    table = Path(shutil.copytree(tables / "spared_9_by_1_2", tmp_path / "t"))
    if lacking:
        properties = table / ".hoodie" / "hoodie.properties"
        text = properties.read_text(encoding="utf-8")
        properties.write_text(text.replace(f"{lacking},", ""), encoding="utf-8")
    snapshot = open_snapshot(str(table))
    wanted = [Compare("id", "=", "k3")]
    (expected,) = snapshot.slices_to_read(wanted).slices
    for file in (file for partition in "ab" for file in (table / partition).glob("*.parquet")):
        file.write_bytes(b"\0" * file.stat().st_size)

    read = open_snapshot(str(table)).slices_to_read(wanted)

    assert [file_slice.group for file_slice in read.slices] == [expected.group]
    assert ("bloom_filters" if lacking else "record_index") in {step.source for step in read.steps}


@pytest.mark.usefixtures("asked")
def test_definitions_that_cannot_be_read_are_done_without(
    tables: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = Path(shutil.copytree(tables / "spared_9_by_1_2", tmp_path / "t"))
    (table / ".hoodie" / ".index_defs" / "index.json").write_text("{", encoding="utf-8")
    snapshot = open_snapshot(str(table))

    with caplog.at_level(logging.WARNING, "pyhudi"):
        read = snapshot.slices_to_read([Compare("name", "=", "Version 3")])

    assert not [step for step in read.steps if step.source.startswith("secondary")]
    assert "does without the secondary indexes" in caplog.text


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("where", "days"),
    [
        ("id = 'k7'", ["d1", "d2"]),
        ("id = 'k7' and day = 'd1'", ["d1"]),
        ("id IN ('k1', 'absent') and day <= 'd1'", ["d1"]),
    ],
)
def test_copies_of_keys_in_other_partitions_are_shown(tmp_path: Path, where: str, days: list[str]) -> None:
    """The index names the newest alone, and has as many keys as each partition has rows."""
    path = str(tmp_path / "t")
    for day in ("d1", "d2"):
        rows = pa.table({"id": [f"k{number}" for number in range(9)], "day": [day] * 9})
        arrow.write(path, rows, record_key="id", partition_by="day", operation="insert", index="BLOOM")
    files = files_of(path)
    keys = keys_of(path, files)
    newest = [number for number, day in enumerate(files.partitions.to_pylist()) if day == "d2"]
    simulate(path, files, keys=keys.take(np.flatnonzero(np.isin(keys.files, newest))))

    assert sorted(arrow.Table(path).read("day", where=where)["day"].to_pylist()) == days
