"""Files and partitions that bounds in metadata tables leave out: never one with a row that a query wants."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyhudi.arrow as ha
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.table.metadata.record_keys import hash_of_file, hash_of_partition
from support.drawn.stated_bounds import LONG, check_slices, check_text
from support.faults.planted_metadata import Record, plant
from support.made.metadata_tables import simulate
from support.recorded.bounds_checks import check_answer, check_pending, check_rows, check_then
from support.recorded.recorded_metadata import unpack
from support.seams import patch_seam
from support.share import share_of


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("bounds"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the metadata table be asked about a few file slices, too."""
    patch_seam(monkeypatch, "least file slices on a disk", 0)


@settings(max_examples=share_of(25), deadline=None)
@given(st.integers(0, 1 << 32))
def test_no_slice_with_a_wanted_row_is_left_out(seed: int) -> None:
    """Of slices of every type, as Apache Hudi states bounds of base files, log files and partial log files."""
    check_slices(seed)


@pytest.mark.parametrize("logs", [False, True], ids=["base", "log"])
@pytest.mark.parametrize(
    ("least", "greatest", "value"),
    [
        # Cut, and not made greater.
        ("a", LONG, LONG + "z"),
        # Java has a character of two surrogates before the last one of one, bytes have it behind.
        ("a", "\uffff", "\U00010000"),
        ("\U00010000", "\uffff", "\uffff"),
    ],
)
def test_a_text_is_found_whatever_its_bounds_are_in_doubt(least: str, greatest: str, value: str, logs: bool) -> None:
    check_text(least, greatest, value, logs=logs)


def test_tables_by_apache_hudi_keep_their_rows(tables: Path) -> None:
    check_rows(tables)


@pytest.mark.usefixtures("asked")
def test_bounds_of_partitions_hold_for_now_alone(tables: Path) -> None:
    check_then(tables)


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    "stated",
    [
        pytest.param({}, id="bounds"),
        pytest.param({"minValue": None, "maxValue": None, "nullCount": 2}, id="nulls alone"),
        pytest.param({"minValue": None, "maxValue": None}, id="no bounds"),
    ],
)
def test_a_partition_stays_if_its_bounds_lack_a_file(tmp_path: Path, stated: dict[str, Any]) -> None:
    """Apache Hudi leaves out files of writes that complete later, and those whose footers have no bounds, as of INT96.

    Parquet for Java takes values without bounds for nulls, in its newer releases only where a footer counts no nulls.
    """
    table, greatest = tmp_path / "t", _of_two_files(tmp_path / "t")
    narrow = {"maxValue": {"Long": greatest - 1}, "nullCount": stated.get("nullCount", 0)}
    plant(table, "partition_stats", lambda records: _changed(records, greatest, narrow))
    plant(table, "column_stats", lambda records: _changed(records, greatest, stated))

    assert ha.Table(str(table)).read(where="at = '2024-02-02 00:00:00'")["id"].to_pylist() == ["2-"]
    steps = ha.Table(str(table)).explain(where="at = '2025-01-01 00:00:00'").steps
    assert [step.left_out for step in steps if step.source == "partition_stats"] == [0 if stated else 2]


@pytest.mark.usefixtures("asked")
def test_no_file_of_a_write_that_is_not_on_the_timeline_hides_another(tmp_path: Path) -> None:
    """A write that was rolled back may have left bounds of a newer version of a file."""
    table, greatest = tmp_path / "t", _of_two_files(tmp_path / "t")
    undone = "29991231000000000"

    def with_undone(records: list[Record]) -> list[Record]:
        names = [one["ColumnStatsMetadata"]["fileName"] for one in _changed(records, greatest, {}, alone=True)]
        more = [one for one in records if one["ColumnStatsMetadata"]["fileName"] in names]
        name = f"{names[0].rpartition('_')[0]}_{undone}.parquet"
        of_undone = _changed(more, greatest, {"maxValue": {"Long": greatest - 1}})
        end = hash_of_partition("a") + hash_of_file(name)
        return records + [
            {
                **one,
                "key": one["key"][:12] + end,
                "ColumnStatsMetadata": {**one["ColumnStatsMetadata"], "fileName": name},
            }
            for one in of_undone
        ]

    plant(table, "partition_stats", lambda records: _changed(records, greatest, {"maxValue": {"Long": greatest - 1}}))
    plant(table, "column_stats", with_undone)

    assert ha.Table(str(table)).read(where="at = '2024-02-02 00:00:00'")["id"].to_pylist() == ["2-"]


def _of_two_files(table: Path) -> int:
    """Make a table whose partition has two files, and return the greatest value of ``at`` as bounds state it."""
    for day, operation in enumerate(["insert", "bulk_insert"], 1):
        at = [datetime(2024, day, 1, tzinfo=timezone.utc), datetime(2024, day, 2, tzinfo=timezone.utc)]
        rows = pa.table({"id": [f"{day}", f"{day}-"], "day": ["a", "a"], "at": pa.array(at, pa.timestamp("us", "UTC"))})
        ha.write(str(table), rows, record_key="id", partition_by="day", index="bloom", operation=operation)
    simulate(str(table))
    return int(at[-1].timestamp()) * 1_000_000


def _changed(records: list[Record], greatest: int, stated: dict[str, Any], *, alone: bool = False) -> list[Record]:
    """Return records of which those of the column ``at`` with a greatest value say something else, or these alone."""
    changed = []
    for record in records:
        bounds = record["ColumnStatsMetadata"]
        is_meant = bounds["columnName"] == "at" and bounds["maxValue"]["Long"] == greatest
        if is_meant or not alone:
            changed.append({**record, "ColumnStatsMetadata": {**bounds, **stated}} if is_meant else record)
    return changed


def test_what_a_pending_write_states_counts_for_nothing(tables: Path) -> None:
    check_pending(tables)


@pytest.mark.usefixtures("asked")
def test_a_read_by_bounds_has_all_rows(tables: Path) -> None:
    check_answer(tables)
