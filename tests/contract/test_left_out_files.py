"""Which file slices a query's predicates leave out before anything of them is read, and what the log says of it."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader import snapshot as snapshots
from pyhudi.reader.predicates import AnyOf, Compare, IsNull, Predicate
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from support.drive import write

PLACES = ("a", "b", "c", "d")
FIRST, SECOND = Compare("n", "<", 10), Compare("n", ">=", 30)


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Ten rows in each partition, two of whose four were written twice, log files holding other values."""
    data = pa.table(
        {
            "id": pa.array(range(40), pa.int64()),
            "p": [PLACES[row // 10] for row in range(40)],
            "n": pa.array(range(40), pa.int64()),
        }
    )
    settings = TableSettings(
        record_key_fields=("id",), partition_fields=("p",), bucket_count=1, table_type=request.param
    )
    write(tmp_path / "t", data, table=settings)
    again = data.slice(0, 20)
    write(tmp_path / "t", again.set_column(2, "n", pa.array([100] * 20, pa.int64())))
    return str(tmp_path / "t")


def left(snapshot: Snapshot, *predicates: Predicate) -> str:
    return "".join(one.partition_path for one in snapshot.slices_of_keys(predicates))


def test_footers_leave_out_files_whose_slices_have_no_log_files(table: str) -> None:
    snapshot = open_snapshot(table)
    logged = "ab" if any(one.logs for one in snapshot.slices()) else ""

    assert left(snapshot, FIRST) == logged
    assert left(snapshot, SECOND) == "abd"
    assert left(snapshot, Compare("n", "=", 25), Compare("p", "!=", "x")) == logged + "c"
    assert left(snapshot, AnyOf(((Compare("n", "=", 25),), (Compare("n", "=", 35),)))) == logged + "cd"
    assert left(snapshot, AnyOf(((Compare("n", "=", 25), IsNull("n")), (Compare("p", "=", "d"),)))) == logged + "d"
    assert left(open_snapshot(table, bases_alone=True), FIRST) == ("a" if logged else "")


def test_of_more_files_the_footers_are_left_to_others(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_MOST_FOOTERS", 1)

    assert left(open_snapshot(table), FIRST) == "abcd"
    assert left(open_snapshot(table), Compare("n", "=", 1), Compare("p", "=", "d")) == ""


def test_the_log_tells_how_many_files_are_left_out(table: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="pyhudi"):
        left(open_snapshot(table), Compare("p", ">", "b"), SECOND)

    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"table {table}: partitions and buckets leave out 2 of 4 file slices",
        f"table {table}: the footers of 2 base files leave out 1 of them",
    ]
