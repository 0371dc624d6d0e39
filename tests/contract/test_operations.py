"""What each operation leaves on disk: its instant, its statistics, its files, and the order of rows in them."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.write_settings import BulkInsertSort
from support.drawn.histories import TABLE, TINY, part, row
from support.drive import rows_of, write
from support.places import Place, below, files_below, some_on_s3
from support.readers import rows_by_hudi_rs
from support.rules.ends import assert_whole
from support.write_settings import write_settings

FLAT = TableSettings(record_key_fields=("id",), ordering_fields=("ts",), bucket_count=2)


def instant(table: Place) -> tuple[str, dict[str, Any]]:
    """Return the action and the content of the newest completed instant."""
    files = {name.rpartition("/")[2]: data for name, data in files_below(table).items() if "/timeline/" in name}
    newest = max((name for name in files if "_" in name), key=lambda name: name.split("_")[1])
    (metadata,) = list(fastavro.reader(io.BytesIO(files[newest])))
    return newest.rpartition(".")[2], metadata


def data_file(table: Place, name: str) -> pq.ParquetFile:
    return pq.ParquetFile(io.BytesIO(files_below(table)[name]))


def replaced(table: Place) -> dict[str, int]:
    """Return how many file groups the newest instant replaced, by partition."""
    return {name: len(ids) for name, ids in instant(table)[1]["partitionToReplaceFileIds"].items()}


@pytest.fixture
def table(anywhere: Place) -> Place:
    """Partitions a and b, of four keys each in three buckets, and c, of which all rows were deleted one by one."""
    path = below(anywhere, "t")
    keys = [row(f"k{n}", p=name, ts=1, value=n) for n in range(4) for name in "abc"]
    write(path, part(*keys), table=TABLE)
    write(path, part(*(one for one in keys if one["p"] == "c")), operation="delete")
    return path


ACTIONS = {
    "upsert": "commit",
    "insert": "commit",
    "bulk_insert": "commit",
    "delete": "commit",
    "insert_overwrite": "replacecommit",
    "insert_overwrite_table": "replacecommit",
    "delete_partition": "replacecommit",
}


@some_on_s3("operation", ACTIONS, 3)
def test_each_operation_has_the_action_and_the_name_that_apache_hudi_gives_it(table: Place, operation: str) -> None:
    result = write(table, part(row("k1", p="a", ts=2, value=9)), operation=operation)

    assert instant(table)[0] == ACTIONS[operation]
    assert instant(table)[1]["operationType"] == result.operation == operation.upper()
    assert_whole(table, unique=False)


def test_an_insert_extends_the_files_of_its_buckets(table: Place) -> None:
    """As Apache Hudi counts it: inserts are what was added, writes are all rows that the file has now."""
    before = sorted(rows_of(table, "p", "id", "value"))
    result = write(table, part(row("k0", ts=0, value=7), row("k0", ts=0, value=8)), operation="insert")
    (stat,) = instant(table)[1]["partitionToWriteStats"]["a"]

    assert (result.inserts, result.updates, result.files) == (2, 0, 1)
    assert stat["numWrites"] == stat["numInserts"] + data_file(table, f"a/{stat['prevBaseFile']}").metadata.num_rows
    assert rows_of(table, "p", "id", "value") == sorted([*before, ("a", "k0", 7), ("a", "k0", 8)])
    assert rows_by_hudi_rs(table, "p", "id", "value") == rows_of(table, "p", "id", "value")


def test_an_insert_overwrite_replaces_the_partitions_that_its_rows_belong_to(table: Place) -> None:
    """A partition of which only deletes come is emptied, a new one is named with nothing to replace."""
    rows = [
        row("k0", p="a", ts=0, value=5),
        row("n", p="d", ts=0, value=6),
        row("k1", p="b", ts=9, value=0, deleted=True),
    ]
    result = write(table, part(*rows), operation="insert_overwrite")

    assert replaced(table) == {"a": 3, "b": 3, "d": 0}
    assert (result.inserts, result.not_found, result.replaced, result.files) == (2, 1, 6, 2)
    assert rows_of(table, "p", "id", "value") == [("a", "k0", 5), ("d", "n", 6)]
    assert_whole(table)
    write(table, part(row("k0", p="a", ts=1, value=7)))
    assert ("a", "k0", 7) in rows_of(table, "p", "id", "value")
    assert_whole(table)


def test_an_insert_overwrite_without_rows_replaces_nothing(table: Place) -> None:
    before = rows_of(table, "p", "id")
    result = write(table, part(), operation="insert_overwrite")

    assert instant(table)[0] == "replacecommit"
    assert replaced(table) == {}
    assert result.replaced == 0
    assert rows_of(table, "p", "id") == before


@pytest.mark.parametrize("allowed", [True, False])
def test_an_overwrite_without_rows_empties_the_table(table: Place, allowed: bool) -> None:
    """It is no empty commit, whatever `hoodie.allow.empty.commit` says."""
    done = write(table, part(), overwrite=True, settings=write_settings(allow_empty_commit=allowed))

    assert done.replaced == sum(replaced(table).values()) == 9
    assert rows_of(table, "id") == []
    assert_whole(table)


@pytest.mark.parametrize("operation", ["insert", "insert_overwrite", "delete_partition"])
def test_a_write_that_changes_nothing_leaves_no_instant_where_none_is_wanted(table: Place, operation: str) -> None:
    before = instant(table)
    done = write(table, part(), operation=operation, settings=write_settings(allow_empty_commit=False))

    assert done.instant == ""
    assert instant(table) == before
    assert_whole(table)


def test_the_partitions_of_the_rows_are_deleted_where_none_is_named(table: Place) -> None:
    """No other column than the partition's is needed, and no key."""
    rows = pa.table({"p": ["a", "c", "nowhere", "a"]})
    result = write(table, [rows, rows.slice(1), rows.slice(0, 0)], operation="delete_partition")

    assert replaced(table) == {"a": 3, "c": 3, "nowhere": 0}
    assert (result.replaced, result.deletes, result.files) == (6, 0, 0)
    assert {name for (name,) in rows_of(table, "p")} == {"b"}
    assert_whole(table)


def test_rows_do_not_matter_where_partitions_are_named(table: Place) -> None:
    write(
        table,
        pa.table({"anything": [1, 2]}),
        operation="delete_partition",
        settings=write_settings(partitions_to_delete=("b",)),
    )

    assert replaced(table) == {"b": 3}
    assert_whole(table)


@pytest.mark.parametrize(
    ("name", "left"),
    [("a%2A", ["b"]), ("%2A", []), ("a%2A*", ["ab", "b"]), ("a%2a", ["a*", "ab", "b"])],
)
def test_an_encoded_wildcard_is_one_where_there_is_no_other(anywhere: Place, name: str, left: list[str]) -> None:
    """As in Apache Hudi, so that a folder of such a name cannot be named alone."""
    table = below(anywhere, "t")
    rows = part(*(row("k", ts=1, value=1, p=value) for value in ("a*", "ab", "b")))
    write(table, rows, table=replace(TABLE, url_encode=True))
    write(table, rows, operation="delete_partition", settings=write_settings(partitions_to_delete=(name,)))

    assert sorted(value for (value,) in rows_of(table, "p")) == left
    assert_whole(table)


def test_the_one_partition_of_a_table_without_partitions(anywhere: Place) -> None:
    table = below(anywhere, "t")
    rows = part(row("k", ts=1, value=1)).drop_columns(["p"])
    write(table, rows, table=FLAT)
    result = write(table, rows, operation="insert_overwrite")
    assert (replaced(table), result.replaced) == ({"": 1}, 1)
    result = write(
        table, rows, operation="delete_partition", settings=write_settings(partitions_to_delete=("none", "*"))
    )
    assert (replaced(table), result.replaced) == ({"": 1}, 1)
    assert rows_of(table, "id") == []
    assert_whole(table)


SORTS = {
    "by key": (WriteSettings(sort=BulkInsertSort(mode="GLOBAL_SORT")), ("id",)),
    "within partitions": (WriteSettings(sort=BulkInsertSort(mode="PARTITION_SORT")), ("id",)),
    "by columns": (WriteSettings(sort=BulkInsertSort(columns=("value", "ts"))), ("value", "ts")),
}


@pytest.mark.parametrize("spilled", [False, True])
@pytest.mark.parametrize("colocated", [False, True])
@pytest.mark.parametrize("sort", SORTS)
def test_a_bulk_insert_sorts_the_rows_of_each_file(anywhere: Place, sort: str, colocated: bool, spilled: bool) -> None:
    """Those that the file had before among them, and within the bounds of a task."""
    table = below(anywhere, "t")
    bounds = {"batch_size": TINY.tasks.batch_size, "output": TINY.output} if spilled else {}
    settings, columns = SORTS[sort]
    settings = write_settings(settings, colocated=colocated, **bounds)
    first = [row(f"k{n * 37 % 100}", ts=n % 3, value=n * 61 % 7) for n in range(100)]
    second = [row(f"k{n * 11 % 130}", ts=n % 3, value=n * 17 % 7) for n in range(60)]
    write(table, part(*first), operation="bulk_insert", table=TABLE, settings=settings)
    write(table, part(*second), operation="bulk_insert", settings=settings)

    newest = [stat["path"] for stat in instant(table)[1]["partitionToWriteStats"]["a"]]
    assert len(newest) == 3
    for name in newest:
        rows = data_file(table, name).read(columns=list(columns)).to_pylist()
        assert rows == sorted(rows, key=lambda one: tuple(one.values()))
    assert len(rows_of(table, "id")) == 160
    assert_whole(table, unique=False)


@pytest.mark.parametrize("mode", ["NONE", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"])
def test_other_sort_modes_leave_the_rows_of_a_file_as_they_come(anywhere: Place, mode: str) -> None:
    table = below(anywhere, "t")
    settings = WriteSettings(sort=BulkInsertSort(mode=mode))
    rows = [row(f"k{n}", ts=1, value=n) for n in (5, 3, 9, 1, 7)]
    write(table, part(*rows), operation="bulk_insert", table=replace(TABLE, bucket_count=1), settings=settings)

    (stat,) = instant(table)[1]["partitionToWriteStats"]["a"]
    assert data_file(table, stat["path"]).read(columns=["value"]).to_pydict() == {"value": [5, 3, 9, 1, 7]}
