"""Which file slices a query's predicates leave out before anything of them is read, and what the log says of it."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.arrow import Table
from pyhudi.operations.inspect.explained_read import spelled
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader.skipping.predicates import (
    AnyOf,
    Compare,
    IsNotNull,
    IsNull,
    NoneOf,
    OneOf,
    OnExpression,
    Predicate,
    StartsWith,
)
from pyhudi.reader.skipping.pruning import Pruning
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from pyhudi.storage.base import Folder
from pyhudi.storage.local import LocalStorage
from support.drive import write
from support.recorded.fixture_tables import unpack
from support.seams import patch_seam, read_seam

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


def test_of_files_that_are_known_not_to_hold_a_key_none_is_opened_again(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    open_input = read_seam("open a local file")
    patch_seam(monkeypatch, "open a local file", lambda self, path: opened.append(path) or open_input(self, path))
    key = Compare("_hoodie_record_key", "=", "35")
    logged = [one.partition_path for one in open_snapshot(table).slices() if one.logs]
    stays = "abd" if logged else "ad"  # Keys from "0" to "9" are around it.
    assert left(open_snapshot(table), key) == stays
    opened.clear()

    assert left(open_snapshot(table), key) == stays
    again = {path.partition("/")[0] for path in opened if path.endswith(".parquet")}
    assert again == {"a", "d"} - {*logged}


def test_slices_without_base_files_stay_whatever_key_is_looked_for(tmp_path: Path) -> None:
    snapshot = open_snapshot(unpack("v9_mor_log_only", tmp_path))
    slices = snapshot.slices()

    assert [one.base for one in slices] == [None] * 2
    assert snapshot.slices_of_keys([Compare("_hoodie_record_key", "=", "nowhere")]) == slices


def test_where_no_key_can_be_meant_not_even_slices_with_log_files_stay(table: str) -> None:
    both = [Compare("_hoodie_record_key", "=", key) for key in ("1", "2")]

    assert left(open_snapshot(table), *both) == ""


def test_of_more_files_the_footers_are_left_to_others(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "most footers that a snapshot reads", 1)

    assert left(open_snapshot(table), FIRST) == "abcd"
    assert left(open_snapshot(table), Compare("n", "=", 1), Compare("p", "=", "d")) == ""


def test_the_log_tells_how_many_files_are_left_out(table: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="pyhudi"):
        left(open_snapshot(table), Compare("p", ">", "b"), SECOND)

    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"table {table}: partitions and buckets leave out 2 of 4 file slices",
        f"table {table}: footers leave out 1 of 2 file slices",
    ]


VALUES = ("a", "b", "2024/01/02", "2024/01/03", "2025/07")
SHAPES: dict[str, TableSettings] = {
    "plain": TableSettings(record_key_fields=("id",), partition_fields=("p",), bucket_count=1),
    "hive": TableSettings(record_key_fields=("id",), partition_fields=("p",), bucket_count=1, hive_style=True),
    "encoded": TableSettings(record_key_fields=("id",), partition_fields=("p",), bucket_count=1, url_encode=True),
    "two": TableSettings(record_key_fields=("id",), partition_fields=("q", "p"), bucket_count=1, url_encode=True),
}
ASKED: list[list[Predicate]] = [
    [Compare("p", "=", "b")],
    [Compare("p", "=", "2024/01/03")],
    [Compare("p", "=", "2024")],
    [Compare("p", ">", "2024/01/02"), Compare("p", "<", "2026")],
    [OneOf("p", ("a", "2025/07")), Compare("q", "=", "x")],
    [StartsWith("p", "2024/")],
    [IsNull("p")],
]


@pytest.mark.parametrize("named", [True, False], ids=["in the timeline", "archived"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_partitions_that_nobody_asks_for_are_not_listed(
    tmp_path: Path,
    shape: TableSettings,
    named: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nor is anything else left out, whether the timeline names a partition or its metafile alone says that it is.

    The log tells of what the timeline names, and lists nothing for it.
    """
    path = str(tmp_path / "t")
    rows = [(row, value, "xy"[row % 2]) for row, value in enumerate(VALUES)]
    columns = [list(one) for one in zip(*rows, strict=True)]
    write(path, pa.table(columns, names=["id", "p", "q"]), table=shape)
    if not named:
        write(path, pa.table([[0], ["a"], ["x"]], names=["id", "p", "q"]))
        for item in sorted((tmp_path / "t/.hoodie/timeline").glob("2*"))[:3]:
            item.unlink()
    whole = open_snapshot(path).slices()
    assert len(whole) == len(VALUES)
    partitions = {one.partition_path for one in whole}
    looked: list[str] = []
    look = read_seam("look into a local folder")

    def watched(storage: LocalStorage, folder: str) -> Folder:
        looked.append(folder)
        return look(storage, folder)

    for predicates in ASKED:
        snapshot = open_snapshot(path)
        wanted = [
            one
            for one in whole
            if Pruning(snapshot.config, snapshot.schema, predicates).partition_may_match(one.partition_path)
        ]
        looked.clear()
        with monkeypatch.context() as patch:
            patch_seam(patch, "look into a local folder", watched)
            file_slices = snapshot.slices(predicates)
        if named:
            step = snapshot.slices_to_read(predicates, counts=True).steps[0]
            assert (step.of, step.left_out) == (len(whole), len(whole) - len(wanted)), predicates
        assert file_slices == wanted, predicates
        assert partitions.intersection(looked) == {one.partition_path for one in wanted}, predicates


def test_explain_counts_what_a_read_opens_and_what_each_source_left_out(table: str) -> None:
    rows = Table(table)
    logs = sum(len(each.logs) for each in open_snapshot(table).slices())
    where = "p > 'b' AND n >= 30 AND id IN (1, 2, 3, 4, 5, 35)"

    read = rows.explain("id", where=where)

    assert read.conditions == ("p > 'b'", "n >= 30", "id IN (1, 2, 3, 4, 5, and 1 more)")
    assert [(step.source, step.of, step.left_out) for step in read.steps] == [
        ("partitions and buckets", 4, 2),
        ("footers", 2, 1),
    ]
    assert (read.file_slices, read.base_files, read.log_files) == (1, 1, 0)
    assert 0 < (read.column_bytes or 0) < read.bytes
    assert str(read).splitlines()[2:] == [
        "source                  file slices  left out  remain",
        "----------------------  -----------  --------  ------",
        "partitions and buckets            4         2       2",
        "footers                           2         1       1",
    ]
    assert "<td>footers</td><td>2</td>" in read._repr_html_()
    every = rows.explain()
    assert (every.conditions, every.steps, every.file_slices, every.log_files) == ((), (), 4, logs)
    assert str(every).endswith("No condition leaves files out.")
    none = rows.explain(where="_hoodie_record_key = '1' AND _hoodie_record_key = '2'")
    assert (none.file_slices, none.steps[-1].source, none.steps[-1].left_out) == (0, "record keys", 4)


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (AnyOf(((IsNull("n"), Compare("p", "=", "it's")), (StartsWith("p", "a"),))), None),
        (NoneOf("n", (1, None, True)), "n NOT IN (1, NULL, true)"),
        (IsNotNull("n"), "n IS NOT NULL"),
        (OnExpression("date_format", "at", ("yyyy",), Compare("at", "=", "2026")), "date_format(at, 'yyyy') = '2026'"),
    ],
)
def test_a_predicate_is_spelled_as_sql_spells_it(predicate: Predicate, text: str | None) -> None:
    assert spelled(predicate) == (text or "(n IS NULL AND p = 'it''s' OR p LIKE 'a%')")


def test_a_read_of_many_files_without_a_condition_is_told_once_how_to_give_one(
    table: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_seam(monkeypatch, "most files that a read opens without advice", 3)
    with caplog.at_level(logging.WARNING, logger="pyhudi"):
        Table(table).read(where="n = 1")
        Table(table).read(as_of="2999-01-01")
        assert caplog.messages == []
        Table(table).read()
        Table(table).read()

    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"table {table}: a read without a condition opens all 4 files; where=")
