"""Bounds of partitions that a compaction of the metadata table tightens: exact, and true of all that comes after."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi import arrow
from pyhudi.operations.services.metadata import compaction, tight_partitions
from pyhudi.operations.services.metadata.compaction import compact_metadata
from pyhudi.operations.services.metadata.tight_partitions import tight_bounds
from pyhudi.operations.write.commit import commit_write
from pyhudi.storage import open_storage
from pyhudi.table.config import update_config
from pyhudi.table.files.column_bounds import ColumnBounds
from pyhudi.table.hfile.entries import Entries
from pyhudi.table.metadata.bounds_of_files import FileBounds
from pyhudi.table.metadata.bounds_records import bounds_records
from pyhudi.table.metadata.kinds import PARTITION_STATS
from pyhudi.table.metadata.merging import SaidRecords, merged
from pyhudi.table.metadata.metadata_table import MetadataTable
from pyhudi.table.metadata.record_schema import record_schema
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table
from support.attempts import IMPATIENT
from support.drawn.upkept import OFF
from support.drive import plan, task
from support.made.begun_metadata import asked_always, assert_in_use, begin_metadata
from support.rules.health import of_metadata
from support.seams import patch_seam

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
QUIET = replace(IMPATIENT, upkeep=OFF)
OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}
Act = Callable[[arrow.Table], object]


def rows(partition: str, numbers: Mapping[int, int | None]) -> pa.Table:
    """Return rows by the number of the key, each with its value."""
    keys = {"id": [f"k{key}" for key in numbers], "part": [partition] * len(numbers)}
    values = list(numbers.values())
    columns = {
        "n": pa.array(values, pa.int64()),
        "text": pa.array([None if each is None else f"t{each}" for each in values], pa.string()),
        "cost": pa.array([None if each is None else Decimal(each) for each in values], pa.decimal128(10, 2)),
        "part_of": pa.array([None if each is None else float(each) for each in values], pa.float64()),
        "nothing": pa.nulls(len(values), pa.int32()),
    }
    return pa.table({**keys, "version": pa.array(numbers, pa.int64()), **columns})


def begun(path: Path, table_type: str = COW, **how: Any) -> arrow.Table:
    """Return a table of two partitions with a metadata table; its first partition has the values 0 to 9."""
    first = rows("p0", {key: key for key in range(10)})
    arrow.Table.create(
        str(path), first.schema, record_key="id", partition_by="part", buckets=1, table_type=table_type, **how
    )
    table = arrow.Table(str(path), options=OPTIONS)
    table.upsert(first)
    table.upsert(rows("p1", {100: 100, 101: 101}))
    begin_metadata(path)
    return table


def compacted(path: Path) -> None:
    assert compact_metadata(open_table(open_storage(str(path)))) is not None


def bounds(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the bounds of partitions by partition and column."""
    seen = SeenTable.now(open_table(open_storage(str(path))))
    metadata = MetadataTable.of(seen.table, seen.timeline)
    assert metadata is not None
    records = [one for part in metadata.partition(PARTITION_STATS).records() for one in part.to_pylist()]
    stated = [record["ColumnStatsMetadata"] for record in records]
    return {(one["fileName"], one["columnName"]): one for one in stated}


def of_column(path: Path, partition: str = "p0", column: str = "n") -> tuple[Any, Any, int, int, bool]:
    """Return the least and the greatest value, the counts of values and nulls, and whether the bounds are tight."""
    said = bounds(path)[partition, column]
    least, greatest = (next(one for one in said[name].values() if one is not None) for name in ("minValue", "maxValue"))
    return least, greatest, said["valueCount"], said["nullCount"], said["isTightBound"]


def assert_right(path: Path) -> None:
    """Assert that the metadata table is in use and right, and that no condition misses a row by it."""
    assert_in_use(path)
    assert of_metadata(path) == []
    without = path.parent / "without"
    shutil.copytree(path, without)
    update_config(open_storage(str(without)), {"hoodie.table.metadata.partitions": ""})
    for condition in ("n > 8", "n < 1", "n = 3 and text = 't3'"):
        with asked_always():
            found = arrow.Table(str(path)).read(where=condition)["id"].to_pylist()
        assert sorted(found) == sorted(arrow.Table(str(without)).read(where=condition)["id"].to_pylist()), condition
    shutil.rmtree(without)


def delete_last(table: arrow.Table) -> None:
    table.delete(rows("p0", {9: 9}).select(["id", "part"]))


SHRINKS: Mapping[str, tuple[str, Act, tuple[Any, ...]]] = {
    "a delete": (COW, delete_last, (0, 8, 9, 0, True)),
    "other values": (COW, lambda table: table.upsert(rows("p0", {9: None, 0: 5})), (1, 8, 10, 1, True)),
    "an overwrite": (COW, lambda table: table.insert_overwrite(rows("p0", {3: 3})), (3, 3, 1, 0, True)),
    "logs": (MOR, lambda table: table.upsert(rows("p0", {9: 12})), (0, 12, 11, 0, True)),
    "logs of deletes": (
        MOR,
        lambda table: table.delete(rows("p0", {9: 9}).select(["id", "part"])),
        (0, 9, 10, 0, True),
    ),
    "a compaction": (
        MOR,
        lambda table: (table.upsert(rows("p0", {9: 4, 0: 4})), table.compact()),
        (1, 8, 10, 0, True),
    ),
}


@pytest.mark.parametrize("how", SHRINKS)
def test_a_compaction_tightens_bounds_to_what_files_state(tmp_path: Path, how: str) -> None:
    path = tmp_path / "t"
    table_type, act, wanted = SHRINKS[how]
    table = begun(path, table_type)
    before = bounds(path)["p1", "n"]
    act(table)
    least, greatest, *_, is_tight = of_column(path)
    assert (least, is_tight) == (0, False)
    assert greatest >= 9

    compacted(path)

    assert of_column(path) == wanted
    assert bounds(path)["p1", "n"] == before
    assert_right(path)
    table.upsert(rows("p0", {20: 20}))
    least, greatest, *_, is_tight = of_column(path)
    assert (least, greatest, is_tight) == (wanted[0], 20, False)
    assert_right(path)


def test_readers_leave_out_a_partition_by_tight_bounds(tmp_path: Path) -> None:
    path = tmp_path / "t"
    delete_last(begun(path))

    with asked_always():
        wide = arrow.Table(str(path)).explain(where="n = 9").steps
        compacted(path)
        tight = arrow.Table(str(path)).explain(where="n = 9").steps

    left_out = [[step.left_out for step in steps if step.source == PARTITION_STATS] for steps in (wide, tight)]
    assert left_out == [[1], [2]]


@pytest.mark.parametrize(("version", "table_type", "at_once"), [(8, MOR, None), (9, COW, 1), (9, MOR, None)])
def test_tight_bounds_are_those_that_an_indexing_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, table_type: str, at_once: int | None
) -> None:
    """In every column, however few partitions are taken at once."""
    path = tmp_path / "t"
    table = begun(path, table_type, options={"hoodie.write.table.version": version})
    if at_once:
        patch_seam(monkeypatch, "records that tight bounds are made of at once", at_once)
    table.upsert(pa.concat_tables([rows("p0", {9: None, 1: 7}), rows("p1", {100: 5}), rows("p2", {7: 7})]))
    table.delete(rows("p1", {101: 101}).select(["id", "part"]))

    compacted(path)

    compacted_bounds = bounds(path)
    assert all(one["isTightBound"] for one in compacted_bounds.values())
    assert {partition for partition, _ in compacted_bounds} == {"p0", "p1", "p2"}
    table.drop_index(PARTITION_STATS)
    table.create_index(PARTITION_STATS)
    assert compacted_bounds == bounds(path)


def test_a_partition_without_files_keeps_its_bounds(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = begun(path)
    table.upsert(rows("p1", {102: 102}))
    table.delete_partitions("p1")

    compacted(path)

    assert of_column(path, "p1") == (100, 102, 5, 0, False)
    assert_right(path)


@pytest.mark.parametrize("how", ["rows of some columns", "nulls that keep older values"])
def test_a_partition_with_a_log_file_without_bounds_stays_wide(tmp_path: Path, how: str) -> None:
    path = tmp_path / "t"
    partly = how == "rows of some columns"
    table = begun(path, MOR, **({} if partly else {"partial_update_mode": "IGNORE_DEFAULTS"}))
    changed = rows("p0", {9: 50, 0: 50})
    table.upsert(changed.select(["id", "part", "version", "n"]) if partly else changed, partial=partly)
    table.upsert(rows("p2", {7: 7}))

    compacted(path)

    assert of_column(path) == (0, 50, 12, 0, False)
    assert of_column(path, "p2") == (7, 7, 1, 0, True)
    assert_right(path)


def pending(path: Path) -> Callable[[], object]:
    """Begin a write that widens the bounds, and return what completes it."""
    planned = plan(path, rows("p0", {9: 77}).schema, operation="upsert", settings=QUIET)
    results = [task(planned, rows("p0", {9: 77}), 0)]
    return lambda: commit_write(planned, results)


@pytest.mark.parametrize("begins", ["before the compaction", "while files are merged"])
def test_bounds_stay_wide_while_a_write_is_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: str
) -> None:
    """The compaction itself waits for none."""
    path = tmp_path / "t"
    delete_last(begun(path))
    writes, attempts = [], []
    if begins == "before the compaction":
        writes.append(pending(path))
    real = compaction.tight_records

    def tight_beside_a_write(*given: Any) -> Any:
        result = real(*given)
        attempts.append(bool(result))
        if not writes:
            writes.append(pending(path))
        return result

    patch_seam(monkeypatch, "tight bounds that a compaction states", tight_beside_a_write)

    compacted(path)

    assert attempts == ([] if begins == "before the compaction" else [True])
    assert of_column(path)[:2] == (0, 9)
    assert of_column(path)[-1] is False
    assert_right(path)
    writes[0]()
    assert_right(path)
    compacted(path)
    assert of_column(path) == (0, 77, 10, 0, True)


def test_an_undo_brings_replaced_files_back_before_tight_bounds(tmp_path: Path) -> None:
    """What was tightened goes out of use with the instant that is undone, and is built anew."""
    path = tmp_path / "t"
    table = begun(path)
    overwrite = table.insert_overwrite(rows("p0", {3: 3}))
    compacted(path)
    assert of_column(path) == (3, 3, 1, 0, True)

    table.rollback(overwrite.instant)

    assert of_column(path) == (0, 9, 10, 0, True)
    assert_right(path)


def test_bounds_stay_wide_where_what_tells_them_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "t"
    delete_last(begun(path))
    definitions = path / ".hoodie/.index_defs/index.json"
    before = definitions.read_bytes()
    definitions.write_bytes(b"{")

    compacted(path)

    definitions.write_bytes(before)
    assert of_column(path)[-1] is False
    assert_right(path)


def test_bounds_that_miss_the_rows_of_a_log_file_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    begun(path, MOR).upsert(rows("p0", {9: 50}))
    real = tight_partitions._newest_files

    def base_files(*given: Any) -> dict[str, list[str]]:
        return {path: [name for name in names if name[0] != "."] for path, names in real(*given).items()}

    patch_seam(monkeypatch, "files that tight bounds are of", base_files)

    compacted(path)

    assert of_column(path) == (0, 9, 10, 0, True)
    narrow = [one["what"] for one in of_metadata(path) if one["code"] == "METADATA_BOUNDS"]
    assert any(
        what.endswith("the bounds of n in 'p0', 0 to 9, do not contain 0 to 50 with 0 nulls.") for what in narrow
    )


LONG, INT, MORE = pa.field("n", pa.int64()), pa.field("n", pa.int32()), pa.field("n", pa.decimal128(10, 2))
FEWER, EVERY = pa.field("n", pa.decimal128(10, 1)), ColumnBounds("n", b"\1" * 8, b"\2" * 8, 0)
DIGIT = EVERY._replace(least=b"\1", greatest=b"\2")
NULLS, UNKNOWN, SHORT = ColumnBounds("n", None, None, 3), ColumnBounds("n", None, None, 0), EVERY._replace(nulls=1)


@pytest.mark.parametrize(
    ("stated", "is_tight"),
    [
        ([(LONG, EVERY), (LONG, SHORT)], True),
        ([(LONG, EVERY), (LONG, NULLS)], True),
        ([(LONG, NULLS), (INT, EVERY._replace(least=b"\1" * 4, greatest=b"\2" * 4))], True),
        ([(LONG, EVERY)], False),
        ([(LONG, EVERY), (LONG, UNKNOWN)], False),
        ([(LONG, EVERY), (INT, EVERY._replace(least=b"\1" * 4, greatest=b"\2" * 4))], False),
        ([(MORE, DIGIT), (FEWER, DIGIT)], False),
        ([(MORE, DIGIT), (MORE, DIGIT)], True),
    ],
)
def test_bounds_are_tight_if_every_file_states_all_of_its_values_in_one_type(
    stated: Sequence[tuple[pa.Field, ColumnBounds]], is_tight: bool
) -> None:
    schema = record_schema()
    said = []
    for name, (field, of_file) in zip("ab", stated, strict=False):
        made = bounds_records([FileBounds("p", name, 3, [of_file])], [field], schema, typed=True)
        said.append(SaidRecords(Entries(made.keys.cast(pa.binary()), made.values), schema))
    records = merged(said, adds_up=True)
    assert records is not None

    tight_records = tight_bounds(records, {"p": ["a", "b"]}, ["n"])

    assert (tight_records is not None) is is_tight
    if tight_records is not None:
        [record] = tight_records.to_pylist()
        told = record["ColumnStatsMetadata"]
        assert told["valueCount"] == 6
        assert told["nullCount"] == sum(of_file.nulls or 0 for _, of_file in stated)
        assert told["valueType"]["typeOrdinal"] == {LONG: 4, INT: 3, MORE: 10}[stated[-1][0]]
