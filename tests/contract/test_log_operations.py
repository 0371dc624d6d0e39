"""What each operation leaves on merge-on-read tables whose file groups have log files, ours and Apache Hudi's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import (
    BucketMisfitError,
    CommitConflictError,
    DuplicateKeyError,
    KeyNotFoundError,
    NullOrderingError,
    OlderRowError,
    PlacementError,
    SchemaMismatchError,
)
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.result import RowCounts
from pyhudi.operations.service_settings import CompactionSettings, Upkeep
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write_settings import BulkInsertSort
from pyhudi.table.files.logs.block_format import LogSettings
from pyhudi.table.files.output import MIB
from pyhudi.table.schema.columns import META_COLUMNS
from support.attempts import parted, rows
from support.drawn.upkept import OFF
from support.drive import KEYED, plan, read, rows_of, task, write
from support.made import compacting
from support.readers import rows_by_hudi_rs
from support.recorded.fixture_tables import recorded, unpack
from support.recorded.recorded_merges import LATE_ROW, REBORN
from support.write_settings import write_settings

MERGED = replace(KEYED, table_type="MERGE_ON_READ")
PARTED = replace(MERGED, partition_fields=("p",))
LATE = [("k1", 1), ("k2", 2), ("k4", 2)]


def data_files(table: Path) -> list[str]:
    return sorted(path.name for pattern in ("*.parquet", ".*.log.*") for path in table.glob(pattern))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two file groups with a base file each, updated, added to and deleted from by log files."""
    write(tmp_path, rows(1, 2, 3, value=1), table=MERGED)
    write(tmp_path, rows(2, 4, value=2, ts=2))
    write(tmp_path, rows(3, value=0), operation="delete")
    assert rows_of(tmp_path, "id", "value") == LATE
    return tmp_path


def test_a_policy_looks_keys_up_among_base_and_log_files(table: Path) -> None:
    """A key that is in a log file alone is there, one that a log file deletes is not."""
    result = write(
        table, rows(2, 3, 4, 5, value=9, ts=9), operation="insert", settings=write_settings(insert_dup_policy="drop")
    )
    assert (result.inserts, result.dropped, result.log_files) == (2, 2, 0)
    assert rows_of(table, "id", "value") == [*LATE[:2], ("k3", 9), LATE[2], ("k5", 9)]
    with pytest.raises(DuplicateKeyError, match="'k4'"):
        write(table, rows(4, value=9), operation="insert", settings=write_settings(insert_dup_policy="fail"))


def test_deletes_that_must_find_their_keys_look(table: Path) -> None:
    strict = write_settings(delete_missing_ok=False)
    with pytest.raises(KeyNotFoundError, match="'k3'"):
        write(table, rows(2, 3, value=0), operation="delete", settings=strict)
    done = write(table, rows(2, 4, value=0), operation="delete", settings=strict)

    assert (done.deletes, done.not_found) == (2, 0)
    assert rows_of(table, "id", "value") == LATE[:1]


def test_a_delete_takes_all_rows_of_a_key_that_stands_twice(table: Path) -> None:
    """In the log files, of which hudi-rs as Apache Hudi holds one against the first row; or written anew for all."""
    write(table, rows(1, 2, value=8, ts=3), operation="insert")
    write(table, rows(1, 2, value=0), operation="delete", settings=WriteSettings(upkeep=OFF))
    assert rows_of(table, "id", "value") == [LATE[2]]
    assert rows_by_hudi_rs(table, "id", "value") == [("k1", 8), ("k2", 8), LATE[2]]
    compacting.run(table)
    assert rows_of(table, "id", "value") == rows_by_hudi_rs(table, "id", "value") == [LATE[2]]

    write(table, [rows(1, value=9, ts=4), rows(1, value=10, ts=4)], operation="insert")
    done = write(table, rows(1, value=0), operation="delete", settings=write_settings(delete_missing_ok=False))
    assert (done.deletes, done.log_files) == (2, 0)
    assert rows_of(table, "id", "value") == rows_by_hudi_rs(table, "id", "value") == [LATE[2]]


@pytest.mark.parametrize("deletes", [True, False])
def test_an_entry_of_a_log_takes_the_copies_that_it_beats(table: Path, deletes: bool) -> None:
    """Those with a greater ordering value stay, before and after a log compaction and a compaction."""
    write(table, [rows(1, value=7, ts=6), rows(1, value=8, ts=9)], operation="insert")
    newer = rows(1, value=5, ts=7).append_column("_hoodie_is_deleted", pa.array([deletes]))
    write(table, newer)
    write(table, rows(2, value=3, ts=8))
    expected = [("k1", 8), ("k2", 3), LATE[2]]

    assert rows_of(table, "id", "value") == expected
    write(table, rows(1, value=6, ts=9))
    compacting.join(table)
    assert rows_of(table, "id", "value") == [("k1", 6), *expected[1:]]
    compacting.run(table)
    assert rows_of(table, "id", "value") == rows_by_hudi_rs(table, "id", "value") == [("k1", 6), *expected[1:]]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("index", "small"),
    [("BUCKET", 0), ("SIMPLE", 0), ("SIMPLE", MIB), ("GLOBAL_SIMPLE", 0), ("GLOBAL_SIMPLE", MIB)],
)
def test_rows_made_of_stored_rows_are_of_all_copies_of_a_key_or_refused(
    tmp_path: Path, kind: str, index: str, small: int
) -> None:
    """In one file group or in several; no log entry speaks of several rows in one."""
    made = replace(KEYED, table_type=kind, **({} if index == "BUCKET" else {"index_type": index, "bucket_count": None}))
    settings = WriteSettings(lookup=LookupSettings(sizes=FileSizes(small=small)))
    write(tmp_path, rows(1, 2, 3, value=1), table=made)
    write(tmp_path, [rows(1, value=8, ts=3), rows(1, value=9, ts=4)], operation="insert", settings=settings)
    write(tmp_path, rows(2, value=2, ts=2))
    of_stored = write_settings(settings, of_stored=True)
    held = data_files(tmp_path)

    for partly in (rows(1, value=0), [rows(1, value=0), rows(1, value=0)]):
        with pytest.raises(DuplicateKeyError, match=r"'k1' has [23] rows in .* holds for [12] of them"):
            write(tmp_path, partly, operation="delete", settings=of_stored)
    with pytest.raises(DuplicateKeyError, match=r"'k1' has [23] rows"):
        write(tmp_path, rows(1, 2, value=5, ts=9), settings=of_stored)
    assert data_files(tmp_path) == held

    result = write(tmp_path, [rows(1, value=0)] * 3, operation="delete", settings=of_stored)
    # A file group with a single row of the key gets a log file.
    alone = kind == "MERGE_ON_READ" and index != "BUCKET" and not small
    assert (result.deletes, result.log_files) == (3, int(alone))
    assert rows_of(tmp_path, "id", "value") == rows_by_hudi_rs(tmp_path, "id", "value") == [("k2", 2), ("k3", 1)]
    result = write(tmp_path, rows(3, value=0), operation="delete", settings=of_stored)
    assert (result.deletes, result.log_files) == (1, int(kind == "MERGE_ON_READ"))


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"])
def test_a_lookup_that_meets_copies_has_their_file_group_written_anew(tmp_path: Path, index: str) -> None:
    """By an upsert as by a delete; a file group without copies gets a log file."""
    write(tmp_path, rows(1, 2, 3, value=1), table=replace(MERGED, index_type=index, bucket_count=None))
    write(tmp_path, [rows(1, 2, value=8, ts=3), rows(1, 2, value=9, ts=4)], operation="insert")

    result = write(tmp_path, rows(1, value=5, ts=9))
    assert (result.files, result.log_files) == (1, 0)
    assert rows_by_hudi_rs(tmp_path, "id", "value") == [("k1", 5), ("k2", 1), ("k2", 8), ("k2", 9), ("k3", 1)]
    result = write(tmp_path, rows(3, value=6, ts=9))
    assert (result.files, result.log_files) == (0, 1)
    result = write(tmp_path, rows(2, value=0), operation="delete")
    assert (result.files, result.log_files, result.deletes) == (1, 0, 3)
    assert rows_of(tmp_path, "id", "value") == rows_by_hudi_rs(tmp_path, "id", "value") == [("k1", 5), ("k3", 6)]


def arriving(made: pa.Table, *how: int) -> pa.Table:
    return made.append_column("_pyhudi_arrives", pa.array(how, pa.int8()))


@pytest.mark.parametrize("flagged", [False, True])
def test_new_rows_of_a_merge_that_deletes_outdo_are_left_out(
    tmp_path: Path, flagged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """In log files as if they came alone; rows that the table has, and rows that meet other deletes, are written."""
    gone = rows(1, 2, 5, value=0, ts=9)
    flags = pa.array([True] * 3)
    if flagged:
        kept = pa.nulls(6, pa.bool_())
        write(tmp_path, rows(*range(1, 7), value=1).append_column("_hoodie_is_deleted", kept), table=MERGED)
    else:
        write(tmp_path, rows(*range(1, 7), value=1), table=MERGED)
    write(tmp_path, gone.append_column("_hoodie_is_deleted", flags))
    write(tmp_path, rows(5, value=0), operation="delete")
    merged = write_settings(counted=RowCounts(inserts=5, updates=1), upkeep=OFF)
    new = rows(1, 2, 3, 5, 8, 9, value=7, ts=8)

    result = write(tmp_path, arriving(new, 1, 1, 0, 1, 1, 1), settings=merged)
    assert (result.inserts, result.updates, result.dropped) == (3, 1, 2)
    assert [key for key, value in rows_of(tmp_path, "id", "value") if value == 7] == ["k3", "k5", "k8", "k9"]
    assert "left out 2 new rows" in caplog.text
    assert "such as 'k1'" in caplog.text or "such as 'k2'" in caplog.text
    result = write(
        tmp_path, arriving(rows(1, value=7, ts=8), 1), settings=write_settings(merged, counted=RowCounts(inserts=1))
    )
    assert (result.inserts, result.dropped, result.log_files) == (0, 1, 0)
    with pytest.raises(OlderRowError, match="'k2', which was deleted with a greater ordering value"):
        write(tmp_path, arriving(rows(2, value=7, ts=8), 2), settings=merged)
    result = write(tmp_path, arriving(rows(1, 2, value=8, ts=9), 1, 2), settings=merged)
    assert (result.dropped, result.log_files) == (0, 2)


def test_a_delete_after_another_without_a_value_counts_where_a_row_is_between(tmp_path: Path) -> None:
    """As in the log files, whose other rows are read for such keys alone."""
    write(tmp_path, rows(1, 2, value=1), table=MERGED)
    settings = WriteSettings(upkeep=OFF)
    write(tmp_path, rows(1, 2, value=0), operation="delete", settings=settings)
    write(tmp_path, rows(1, value=2, ts=3), settings=settings)
    gone = rows(1, 2, value=0, ts=6).append_column("_hoodie_is_deleted", pa.array([True, True]))
    write(tmp_path, gone, settings=settings)
    merged = write_settings(settings, counted=RowCounts(inserts=2))

    done = write(tmp_path, arriving(rows(1, 2, value=7, ts=5), 1, 1), settings=merged)
    assert (done.inserts, done.dropped) == (1, 1)
    assert rows_of(tmp_path, "id", "value") == [("k2", 7)]


def test_rows_that_lost_against_deletes_which_a_compaction_forgot_meanwhile_are_a_conflict(tmp_path: Path) -> None:
    write(tmp_path, rows(1, 2, value=1), table=MERGED)
    gone = rows(1, value=0, ts=9).append_column("_hoodie_is_deleted", pa.array([True]))
    write(tmp_path, gone)
    made = arriving(rows(1, 2, value=7, ts=8), 1, 0)
    late = plan(tmp_path, made.schema, settings=write_settings(counted=RowCounts(inserts=1, updates=1), upkeep=OFF))
    task_result = task(late, made, 0)
    compacting.run(tmp_path)

    with pytest.raises(CommitConflictError, match="dropped deletes against which rows of this write had lost"):
        commit_write(late, [task_result])


def test_sorted_rows_of_a_bulk_insert_stand_beside_those_that_are_there(table: Path) -> None:
    settings = WriteSettings(sort=BulkInsertSort(columns=("value", "id")))
    write(table, rows(2, 7, value=0, ts=1), operation="bulk_insert", settings=settings)

    assert rows_of(table, "id", "value") == [LATE[0], ("k2", 0), *LATE[1:], ("k7", 0)]
    assert rows_by_hudi_rs(table, "id", "value") == rows_of(table, "id", "value")


def test_a_rewrite_keeps_what_the_log_files_say_of_when_rows_were_written(table: Path) -> None:
    before = {row["id"]: (row["_hoodie_commit_time"], row["_hoodie_commit_seqno"]) for row in read(table).to_pylist()}
    write(table, rows(1, 2, 4, 8, value=5), operation="bulk_insert")
    after = [row for row in read(table).to_pylist() if row["value"] != 5]

    assert {row["id"]: (row["_hoodie_commit_time"], row["_hoodie_commit_seqno"]) for row in after} == before
    assert all(row["_hoodie_file_name"].endswith(".parquet") for row in after)


def test_deletes_in_log_files_heed_event_times(table: Path) -> None:
    """A row that is a delete loses against a newer row; a delete by key wins against all."""
    flagged = rows(1, 2, value=0, ts=1).append_column("_hoodie_is_deleted", pa.array([True, True]))
    write(table, flagged)

    assert rows_of(table, "id", "value") == LATE[1:]
    write(table, rows(1, value=7, ts=0))
    assert rows_of(table, "id", "value") == LATE[1:]
    write(table, rows(2, value=0, ts=0), operation="delete")
    assert rows_of(table, "id", "value") == LATE[2:]
    assert rows_by_hudi_rs(table, "id", "value") == LATE[2:]


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table", "delete_partition"])
def test_what_replaces_file_groups_takes_those_of_log_files_alone(tmp_path: Path, operation: str) -> None:
    first = [parted("a", 1, 2, value=1), parted("b", 1, value=1), parted("a", 3, value=1)]
    write(tmp_path, first, table=PARTED, settings=write_settings(merge_max_bytes=1))

    result = write(tmp_path, parted("a", 9, value=2), operation=operation)

    left = {"insert_overwrite": [("a", "k9"), ("b", "k1")], "insert_overwrite_table": [("a", "k9")]}
    assert rows_of(tmp_path, "p", "id") == left.get(operation, [("b", "k1")])
    assert result.replaced == (3 if operation == "insert_overwrite_table" else 2)


@pytest.mark.parametrize("block_format", ["parquet", "avro"])
def test_columns_are_added_and_widened_by_log_files(tmp_path: Path, block_format: str) -> None:
    """The base file keeps its columns, and each log file those of its commit; readers have those of the table."""
    settings = WriteSettings(logs=LogSettings(block_format=block_format))
    old = pa.table({"id": ["k1", "k2"], "ts": [1, 1], "n": pa.array([1, 2], pa.int32())})
    write(tmp_path, old, table=replace(MERGED, bucket_count=1))
    write(tmp_path, old.slice(1), settings=settings)
    wide = pa.table({"id": ["k2", "k3"], "ts": [2, 2], "n": [1 << 40, 3], "extra": ["x", None]})
    write(tmp_path, wide, settings=settings)

    found = read(tmp_path).drop_columns(list(META_COLUMNS)).sort_by("id")
    assert found.schema.field("n").type == pa.int64()
    assert found.to_pylist() == [
        {"id": "k1", "ts": 1, "n": 1, "extra": None},
        {"id": "k2", "ts": 2, "n": 1 << 40, "extra": "x"},
        {"id": "k3", "ts": 2, "n": 3, "extra": None},
    ]
    with pytest.raises(SchemaMismatchError):
        write(tmp_path, old.set_column(2, "n", pa.array(["a", "b"])))


def test_rows_without_an_ordering_value_are_refused(table: Path) -> None:
    """Apache Hudi would write them, and fail to read the file group ever after."""
    with pytest.raises(NullOrderingError, match="'k1'"):
        write(table, rows(1, value=1).set_column(1, "ts", pa.array([None], pa.int64())))
    assert rows_of(table, "id", "value") == LATE


def test_a_file_group_in_two_tasks_of_a_colocated_write_is_refused(table: Path) -> None:
    with pytest.raises(PlacementError, match="colocate"):
        write(table, [rows(1, value=3), rows(1, value=4)], settings=WriteSettings(colocated=True))
    assert rows_of(table, "id", "value") == LATE


def test_rows_without_keys_are_deleted_by_where_they_were_read(tmp_path: Path) -> None:
    """From log files on, too: a row says of them which file group it is in, and no more."""
    keyless = TableSettings(table_type="MERGE_ON_READ")
    write(tmp_path, rows(1, 2, value=1), table=keyless, operation="insert")
    write(tmp_path, rows(3, value=1), operation="insert")
    for gone, left in ((("k1", "k3"), ["k2"]), (("k2",), [])):
        found = read(tmp_path)
        which = found.filter(pa.array([one in gone for one in found.column("id").to_pylist()]))
        done = write(tmp_path, which, operation="delete")

        assert (done.deletes, done.log_files, done.files) == (len(gone), len(gone), 0)
        assert [row[0] for row in rows_of(tmp_path, "id")] == left


def shown(name: str) -> list[tuple[object, object, object]]:
    """Return what pyhudi shows, which hides a deleted base row from a late one."""
    late = {LATE_ROW[0]: LATE_ROW[1]} if name in REBORN else {}
    return sorted((one["p"], one["id"], late.get(one["id"], one["name"])) for one in recorded(name))


@pytest.mark.parametrize("name", ["v9_mor_avro", "v9_mor_parquet", "v9_mor_commit_time", "v9_mor_log_only"])
@pytest.mark.parametrize("operation", ["upsert", "insert"])
def test_tables_of_apache_hudi_are_appended_to_and_rewritten(tmp_path: Path, name: str, operation: str) -> None:
    """An insert merges what Java's log files say into the base file that it makes."""
    path = unpack(name, tmp_path)
    assert [row[:3] for row in rows_of(path, "p", "id", "name")] == shown(name)
    schema = read(path).drop_columns(list(META_COLUMNS)).schema
    new = pa.Table.from_pylist([{"id": f"new{n}", "p": "a", "name": "ours", "ts": 99} for n in range(9)], schema)

    done = write(path, [new], operation=operation, table=TableSettings(bucket_count=2))

    assert (done.log_files, done.files) == ((2, 0) if operation == "upsert" else (0, 2))
    expected = sorted([*shown(name), *(("a", f"new{n}", "ours") for n in range(9))])
    assert rows_of(path, "p", "id", "name") == expected
    # A base file or a compaction after the fifth append has what pyhudi shows.
    assert rows_by_hudi_rs(path, "p", "id", "name") == expected


def test_a_compaction_of_apache_hudi_that_is_pending_is_no_hindrance(tmp_path: Path) -> None:
    path = unpack("v9_mor_pending", tmp_path)
    new = read(path).drop_columns(list(META_COLUMNS)).slice(0, 1)
    # Else the write carries it out, and what deletes it forgets can be undone by rows of earlier event times.
    leave = WriteSettings(upkeep=Upkeep(compaction=CompactionSettings(inline=False)))
    write(path, new, table=TableSettings(bucket_count=2), settings=leave)

    assert rows_of(path, "p", "id", "name") == shown("v9_mor_pending")


@pytest.mark.parametrize(("name", "kind"), [("v9_mor_avro", "base file"), ("v9_mor_log_only", "log file")])
def test_a_wrong_number_of_buckets_is_told_by_the_keys_that_are_there(tmp_path: Path, name: str, kind: str) -> None:
    path = unpack(name, tmp_path)
    new = read(path).drop_columns(list(META_COLUMNS)).slice(0, 1)
    with pytest.raises(BucketMisfitError, match=f"The {kind} .*, written by instant") as raised:
        write(path, new, table=TableSettings(bucket_count=5))
    assert "hoodie.bucket.index.num.buckets" in raised.value.todo
