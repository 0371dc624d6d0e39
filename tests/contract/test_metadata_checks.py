"""`validate` holds a metadata table against its table: it finds nothing in Apache Hudi's, and each planted fault."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.operations.checks.check_catalogue import ALL
from pyhudi.table.files.bloom_filter import FILTER, BloomFilterBuilder, BloomSettings
from support.faults.planted_metadata import Change, Record, plant
from support.recorded.recorded_metadata import MADE, partitions_of, unpack
from support.rules.ends import assert_whole
from support.rules.health import codes, findings, of_metadata
from support.seams import patch_seam

ROOTS = "__all_partitions__"
# Of version 9 with log files and every kind of partition but a secondary index, and with base files alone.
LOGGED, OF_BASE_FILES, SPARED = "live_9_by_1_2", "live_9_by_1_2_of_base_files", "spared_9_by_1_2"
BY_PARTITION, OLD = "live_9_by_1_2_partitioned", "live_6_by_0_15"
# A file of the newest write, which is pending.
FAILED = "_20261129181604257.log.1_0-312-620"
EMPTY = BloomFilterBuilder(BloomSettings()).footer()[FILTER].encode()


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("metadata"))


@pytest.mark.parametrize("name", [made.name for made in MADE])
def test_nothing_is_wrong_with_metadata_tables_of_apache_hudi(tables: Path, name: str) -> None:
    """What Apache Hudi leaves in them by design or by mistake is no finding, as the decision on the checks says."""
    assert of_metadata(tables / name) == []


def without(chosen: Callable[[Record], bool], most: int = 1) -> Change:
    """Return what takes away some records, the first of those that are chosen."""

    def change(records: list[Record]) -> list[Record]:
        gone = [record["key"] for record in sorted(records, key=lambda one: one["key"]) if chosen(record)][:most]
        assert gone
        return [record for record in records if record["key"] not in gone]

    return change


def altered(chosen: Callable[[Record], bool], alter: Callable[[Record], object], most: int = 1) -> Change:
    """Return what alters the first of the records that are chosen."""

    def change(records: list[Record]) -> list[Record]:
        found = sorted(filter(chosen, records), key=lambda one: one["key"])[:most]
        assert found
        for record in found:
            alter(record)
        return records

    return change


def again(chosen: Callable[[Record], bool], key: Callable[[str], str]) -> Change:
    """Return what adds a record like one of those that are chosen, with another key."""

    def change(records: list[Record]) -> list[Record]:
        like = next(filter(chosen, sorted(records, key=lambda one: one["key"])))
        return [*records, {**like, "key": key(like["key"])}]

    return change


def files(partition: str, alter: Callable[[dict[str, Any]], object]) -> Change:
    """Return what alters the files of a partition of the table, by name."""
    return altered(lambda record: record["key"] == partition, lambda record: alter(record["filesystemMetadata"]))


def newest(names: dict[str, Any], *, log: bool = False) -> str:
    return max((name for name in names if name.startswith(".") == log), key=lambda name: name.rpartition("_")[2])


def info(size: int) -> dict[str, Any]:
    return {"size": size, "isDeleted": False}


def bounds(column: str, *, log: bool | None = False) -> Callable[[Record], bool]:
    """Return what chooses bounds of a column with values, of log files, of base files, or of partitions."""

    def chosen(record: Record) -> bool:
        found = record["ColumnStatsMetadata"]
        is_log = found["fileName"].startswith(".")
        return found["columnName"] == column and found["minValue"] is not None and log in (None, is_log)

    return chosen


def bound(name: str, **value: Any) -> Callable[[Record], None]:
    """Return what puts another bound in the place of one."""

    def alter(record: Record) -> None:
        record["ColumnStatsMetadata"][name] = value

    return alter


def stated(**values: Any) -> Callable[[Record], None]:
    return lambda record: record["ColumnStatsMetadata"].update(values)


def every(record: Record) -> bool:
    return bool(record)


def filters_exchanged(records: list[Record]) -> list[Record]:
    """Exchange the filters of two files with other keys."""
    by_text = {record["BloomFilterMetadata"]["bloomFilter"]: record for record in records}
    first, second, *_ = by_text.values()
    first["BloomFilterMetadata"], second["BloomFilterMetadata"] = (
        second["BloomFilterMetadata"],
        first["BloomFilterMetadata"],
    )
    return records


def another_group(record: Record) -> None:
    record["recordIndexMetadata"]["fileIdLowBits"] += 1


def another_partition(record: Record) -> None:
    record["recordIndexMetadata"]["partitionName"] = (
        "b" if record["recordIndexMetadata"]["partitionName"] == "a" else "a"
    )


def value_of(key: str, value: str) -> Change:
    """Return what puts another value before a record key in a secondary index."""

    def change(records: list[Record]) -> list[Record]:
        return [one if not one["key"].endswith(f"${key}") else {**one, "key": f"{value}${key}"} for one in records]

    return change


@dataclass(frozen=True)
class Fault:
    """One planted fault, the codes that have to name it, and what the finding has to say."""

    name: str
    table: str
    partition: str
    change: Change
    codes: frozenset[str]
    says: str
    cheap: bool = False
    moved: bool = field(default=False)


def fault(name: str, table: str, partition: str, change: Change, codes: str, says: str, **more: bool) -> Fault:
    return Fault(name, table, partition, change, frozenset(codes.split()), says, **more)


FAULTS: Sequence[Fault] = (
    fault(
        "a file that is not listed",
        LOGGED,
        "files",
        files("a", lambda names: names.pop(newest(names, log=True))),
        "METADATA_FILE_MISSING",
        "a/.f83ad638",
        cheap=True,
    ),
    fault(
        "a partition without a record",
        OLD,
        "files",
        without(lambda record: record["key"] == "a"),
        "METADATA_FILE_MISSING",
        "a/a2909c5c",
        cheap=True,
    ),
    fault(
        "a file that is not there",
        LOGGED,
        "files",
        files("b", lambda names: names.update({newest(names).replace("f4f", "a4f"): info(7)})),
        "METADATA_FILE_EXTRA",
        "it is not there",
        cheap=True,
    ),
    fault(
        "a file of a failed write",
        LOGGED,
        "files",
        files(
            "a",
            lambda names: names.update({newest(names, log=True).partition("_")[0] + FAILED: info(7)}),
        ),
        "METADATA_FILE_EXTRA",
        "no completed write made it",
        cheap=True,
    ),
    fault(
        "another size",
        OF_BASE_FILES,
        "files",
        files("a", lambda names: names[newest(names)].update(size=77)),
        "METADATA_FILE_SIZE",
        "says 77 bytes",
        cheap=True,
    ),
    fault(
        "a partition that is not listed",
        OLD,
        "files",
        files(ROOTS, lambda names: names.pop("b")),
        "METADATA_PARTITION_MISSING",
        "lacks 'b'",
        cheap=True,
    ),
    fault(
        "a least bound that is too great",
        LOGGED,
        "column_stats",
        altered(bounds("ts"), bound("minValue", Long=6)),
        "METADATA_BOUNDS",
        "the bounds of ts in 'a/",
    ),
    fault(
        "a greatest bound that is too small",
        OF_BASE_FILES,
        "column_stats",
        altered(bounds("name"), bound("maxValue", String="V")),
        "METADATA_BOUNDS",
        "the bounds of name in",
    ),
    fault(
        "a bound of a decimal in another order",
        SPARED,
        "column_stats",
        altered(bounds("cost"), bound("maxValue", Bytes=b"\xff")),
        "METADATA_BOUNDS",
        "the bounds of cost in",
    ),
    fault(
        "a bound of a log file",
        LOGGED,
        "column_stats",
        altered(bounds("name", log=True), bound("minValue", String="Version 99")),
        "METADATA_BOUNDS",
        "the bounds of name in 'a/.",
    ),
    fault(
        "an old bound that is too great",
        OLD,
        "column_stats",
        altered(bounds("day"), bound("minValue", Int=9)),
        "METADATA_BOUNDS",
        "the bounds of day in",
    ),
    fault(
        "a wrong number of nulls",
        LOGGED,
        "column_stats",
        altered(bounds("price"), stated(nullCount=1)),
        "METADATA_COUNTS",
        "with 1.",
    ),
    fault(
        "a wrong number of values",
        OLD,
        "column_stats",
        altered(bounds("price"), stated(valueCount=100)),
        "METADATA_COUNTS",
        "not 100 with 0",
    ),
    fault(
        "bounds of a file that is gone",
        SPARED,
        "column_stats",
        again(every, lambda key: f"{key[:24]}{'A' * 22}=="),
        "METADATA_LEFT",
        "it has bounds of",
    ),
    fault(
        "a file without bounds",
        LOGGED,
        "column_stats",
        without(lambda record: "20261129181446285" in record["ColumnStatsMetadata"]["fileName"]),
        "METADATA_BOUNDS_MISSING",
        "b/f4f04f66",
    ),
    fault(
        "a bound of a partition that is too small",
        LOGGED,
        "partition_stats",
        altered(bounds("ts", log=None), bound("maxValue", Long=2)),
        "METADATA_BOUNDS",
        "the bounds of ts in 'a'",
    ),
    fault(
        "a tight bound of a partition that is too wide",
        LOGGED,
        "partition_stats",
        altered(bounds("ts", log=None), bound("maxValue", Long=200)),
        "METADATA_BOUNDS_WIDE",
        "to 200",
    ),
    fault(
        "a partition without bounds",
        OF_BASE_FILES,
        "partition_stats",
        without(bounds("name", log=None)),
        "METADATA_BOUNDS_MISSING",
        "has no bounds of name",
    ),
    fault(
        "bounds of a partition that is gone",
        SPARED,
        "partition_stats",
        again(every, lambda key: f"{key[:12]}{'A' * 11}="),
        "METADATA_LEFT",
        "which is no partition",
    ),
    fault("the filter of another file", SPARED, "bloom_filters", filters_exchanged, "METADATA_FILTER", "lacks 'k"),
    fault(
        "a file without a filter",
        SPARED,
        "bloom_filters",
        without(every, 9),
        "METADATA_FILTER_MISSING",
        "there is none",
    ),
    fault(
        "a filter of a file that is gone",
        LOGGED,
        "bloom_filters",
        again(every, lambda key: f"{key[:12]}{'A' * 22}=="),
        "METADATA_LEFT",
        "which no base file has",
    ),
    fault(
        "an entry that names another file group",
        LOGGED,
        "record_index",
        altered(every, another_group),
        "METADATA_KEY_PLACE",
        "'k",
    ),
    fault(
        "an entry that names another partition",
        BY_PARTITION,
        "record_index",
        altered(every, another_partition),
        "METADATA_KEY_PLACE",
        "'k",
    ),
    fault("a row without an entry", OLD, "record_index", without(every), "METADATA_KEY_MISSING", "'k"),
    fault(
        "an entry without a row",
        OF_BASE_FILES,
        "record_index",
        again(every, lambda key: f"{key}-gone"),
        "METADATA_KEY_LEFT",
        "-gone'",
    ),
    fault(
        "entries in another file group than their hash",
        SPARED,
        "record_index",
        list,
        "METADATA_MISPLACED",
        "record-index-0000-0",
        moved=True,
    ),
    fault(
        "a value that is missing",
        SPARED,
        "secondary_index_by_name",
        without(every),
        "METADATA_VALUE_MISSING",
        "Version 2$k2",
    ),
    fault(
        "a value of the past",
        SPARED,
        "secondary_index_by_name",
        value_of("k1", "Version 1"),
        "METADATA_VALUE_MISSING METADATA_VALUE_LEFT",
        "'Version 1$k1'",
    ),
    fault(
        "a bound of an expression",
        LOGGED,
        "expr_index_low",
        altered(bounds("name", log=True), bound("maxValue", String="Version 9")),
        "METADATA_BOUNDS",
        "the bounds of name in 'a/.",
    ),
    fault(
        "a filter of an expression",
        OF_BASE_FILES,
        "expr_index_low",
        altered(every, lambda record: record["BloomFilterMetadata"].update(bloomFilter=EMPTY), 9),
        "METADATA_FILTER",
        "in name",
    ),
)


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.name.replace(" ", "-"))
def test_each_planted_fault_is_told_alone(tables: Path, tmp_path: Path, case: Fault) -> None:
    """With its place; what lists of files show is told without reading any row."""
    table = copied(tables, case.table, tmp_path)
    plant(table, case.partition, case.change, moved=case.moved)

    findings = of_metadata(table)

    assert {one["code"] for one in findings} == case.codes, findings
    assert any(case.says in one["what"] for one in findings), findings
    assert all("drop_index" in one["cure"] for one in findings)
    assert (of_metadata(table, deep=False) == findings) == case.cheap


def test_a_wrong_filter_of_an_expression_is_no_fault_of_a_file_with_texts_beyond_ascii(
    tables: Path, tmp_path: Path
) -> None:
    """Of which the check computes no expression."""
    table = copied(tables, OF_BASE_FILES, tmp_path)
    plant(table, "expr_index_low", altered(every, lambda one: one["BloomFilterMetadata"].update(bloomFilter=EMPTY), 9))
    for file in (file for folder in ("a", "b") for file in (table / folder).glob("*.parquet")):
        rows = pq.read_table(file)
        names = pa.array(["\u00c4", *rows.column("name").to_pylist()[1:]])
        position = rows.schema.get_field_index("name")
        pq.write_table(rows.set_column(position, rows.schema.field(position), names), file)

    told = [one for one in findings(table) if one["code"] in {"METADATA_FILTER", "FILE_CORRUPT"}]

    assert {one["code"] for one in told} == {"METADATA_FILTER"}
    assert all("in name" in one["what"] for one in told)


def test_each_way_to_be_wrong_has_a_planted_fault() -> None:
    of_all = {"METADATA_LOST", "METADATA_STALE", "METADATA_DAMAGED"}

    assert {one.code for one in ALL if one.code.startswith("METADATA_")} - of_all == {
        code for case in FAULTS for code in case.codes
    }


def copied(tables: Path, name: str, folder: Path) -> Path:
    return Path(shutil.copytree(tables / name, folder / name))


def test_a_plant_without_a_change_is_no_fault(tables: Path, tmp_path: Path) -> None:
    table = copied(tables, SPARED, tmp_path)
    for partition in partitions_of(table):
        plant(table, partition, list)

    assert of_metadata(table) == []


def test_what_changed_below_a_metadata_table_is_told(tables: Path, tmp_path: Path) -> None:
    """Rows of a base file that another program wrote anew."""
    table = copied(tables, SPARED, tmp_path)
    (path,) = table.glob("b/*_20261129183843620.parquet")
    rows = pq.read_table(path, partitioning=None)
    pq.write_table(rows.slice(1), path)

    assert {"METADATA_COUNTS", "METADATA_KEY_LEFT", "METADATA_VALUE_LEFT"} <= {
        one["code"] for one in of_metadata(table)
    }


def test_a_lost_file_is_no_fault_of_the_metadata_table(tables: Path, tmp_path: Path) -> None:
    """Where rows are lost, nothing that the metadata table says of rows is compared."""
    table = copied(tables, LOGGED, tmp_path)
    (path,) = table.glob("b/*_20261129181446285.parquet")
    path.unlink()

    assert {one["code"] for one in of_metadata(table)} == {"NOT_CHECKED"}
    assert "LOST_FILE" in codes(table)


def test_a_metadata_table_that_lacks_a_write_is_told_and_not_compared(tables: Path, tmp_path: Path) -> None:
    table = copied(tables, LOGGED, tmp_path)
    for file in (table / ".hoodie/metadata/.hoodie/timeline").glob("20261129181545575*"):
        file.unlink()

    (only,) = of_metadata(table)

    assert (only["code"], only["instant"]) == ("METADATA_STALE", "20261129181545575")


@pytest.mark.parametrize("partition", ["files", "partition_stats", "record_index"])
def test_a_damaged_partition_is_told_and_the_others_are_held_against_the_table(
    tables: Path, tmp_path: Path, partition: str
) -> None:
    table = copied(tables, SPARED, tmp_path)
    for file in (table / ".hoodie/metadata" / partition).glob("*.hfile"):
        file.write_bytes(file.read_bytes()[:-200])
    plant(table, "secondary_index_by_name", without(every))

    assert {one["code"] for one in of_metadata(table)} == {"METADATA_DAMAGED", "METADATA_VALUE_MISSING"}


def test_a_partition_of_an_unknown_kind_is_named(tables: Path, tmp_path: Path) -> None:
    table = copied(tables, SPARED, tmp_path)
    properties = table / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("metadata.partitions=", "metadata.partitions=vectors,"))

    (only,) = of_metadata(table)

    assert (only["code"], only["severity"]) == ("NOT_CHECKED", "warning")
    assert "vectors" in only["what"]


def test_rows_that_do_not_fit_into_memory_are_compared_in_parts(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_seam(monkeypatch, "record keys that a check compares at a time", 2)
    table = copied(tables, SPARED, tmp_path)
    assert of_metadata(table) == []

    plant(table, "record_index", without(every))
    plant(table, "secondary_index_by_name", without(every))

    assert {one["code"] for one in of_metadata(table)} == {"METADATA_KEY_MISSING", "METADATA_VALUE_MISSING"}


def test_a_table_whose_metadata_table_is_wrong_is_not_whole(tables: Path, tmp_path: Path) -> None:
    """Whatever else a history tolerates of its table, and though it reads no rows."""
    table = copied(tables, SPARED, tmp_path)
    assert_whole(table, written_down=False)
    plant(table, "record_index", without(every))

    with pytest.raises(AssertionError, match="METADATA_KEY_MISSING"):
        assert_whole(table, written_down=False, tolerated={"METADATA_KEY_MISSING"})
