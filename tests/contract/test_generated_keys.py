"""Tables without a record key: rows get keys when they are written, and every write adds file groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import CommitConflictError, MissingColumnError, MissingOptionError, NullKeyError, OptionConflictError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write_settings import BulkInsertSort
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.config import property_keys as key
from pyhudi.table.config.key_types import KeyGeneratorType
from pyhudi.table.files.lost import open_view
from pyhudi.table.files.names import bucket_of
from pyhudi.table.files.output import Output
from support.drive import plan, read, rows_of, task, write
from support.places import ALSO_ON_S3, Place, below, files_below, some_on_s3
from support.write_settings import write_settings

ROWS = pa.table({"id": list(range(20)), "p": ["x", "y"] * 10, "v": [n * 10 for n in range(20)]})
SAME = TableSettings(partition_fields=("p",))
TINY = write_settings(batch_size=200, output=Output(memory=400))
SETTINGS = {"spilled": TINY, "plain": WriteSettings(), "colocated": WriteSettings(colocated=True)}


def insert(path: Place, parts: Any = ROWS, table: TableSettings = SAME, **options: Any) -> Any:
    return write(path, parts, operation="insert", table=table, **options)


def data_files(path: Place) -> dict[str, bytes]:
    return {name: data for name, data in files_below(path).items() if name.endswith(".parquet")}


def keys_of(path: Place) -> list[str]:
    return read(path).column("_hoodie_record_key").to_pylist()


@some_on_s3("how", SETTINGS, 3)
def test_rows_get_the_keys_that_apache_hudi_gives_them(anywhere: Place, how: str) -> None:
    """``<instant>_<Spark partition>_<row>``, whatever is spilled on the way."""
    result = insert(below(anywhere, "t"), [ROWS.slice(0, 12), ROWS.slice(12)], settings=SETTINGS[how])

    expected = {n: f"{result.instant}_0_{n}" if n < 12 else f"{result.instant}_1_{n - 12}" for n in range(20)}
    assert (result.operation, result.inserts) == ("INSERT", 20)
    assert rows_of(below(anywhere, "t"), "id", "_hoodie_record_key") == sorted(expected.items())
    assert rows_of(below(anywhere, "t"), "id", "p", "v") == sorted(
        zip(*(ROWS[one].to_pylist() for one in ROWS.column_names), strict=True)
    )
    numbers = read(below(anywhere, "t")).column("_hoodie_commit_seqno").to_pylist()
    assert len(set(numbers)) == 20


def test_the_table_says_that_it_has_no_keys_and_no_index(anywhere: Place) -> None:
    """Apache Hudi goes by its own index then; a bucket index without keys it cannot open."""
    insert(below(anywhere, "t"))
    config = load_config(open_storage(str(below(anywhere, "t"))))

    assert config.generates_keys
    assert (config.merge_mode, config.key_generator) == ("COMMIT_TIME_ORDERING", KeyGeneratorType.SIMPLE)
    assert not {key.RECORD_KEY_FIELDS, key.INDEX_TYPE, key.BUCKET_COUNT, key.BUCKET_HASH_FIELDS} & set(
        config.properties
    )


@some_on_s3("operation", [None, "insert", "bulk_insert"], 3)
def test_later_writes_add_files_and_touch_none(anywhere: Place, operation: str | None) -> None:
    path = below(anywhere, "t")
    insert(path)
    before = data_files(path)
    result = write(path, [ROWS, ROWS], operation=operation)

    assert result.operation == (operation or "insert").upper()
    assert (result.inserts, result.updates) == (40, 0)
    assert {name: data_files(path)[name] for name in before} == before
    assert len(data_files(path)) == len(before) + 4
    assert len(set(keys_of(path))) == 60
    view = open_view(open_snapshot(str(path)).timeline)
    assert not [file_slice.file_id for file_slice in view.all_slices() if bucket_of(file_slice.file_id) is not None]


@ALSO_ON_S3
def test_of_two_attempts_of_a_task_one_is_kept(anywhere: Place) -> None:
    """Both write the same file groups under the same keys, whichever the commit hears of."""
    path = below(anywhere, "t")
    insert(path)
    planned = plan(path, ROWS.schema)
    lost, committed = task(planned, ROWS, 0, attempt=1), task(planned, ROWS, 0, attempt=2)
    commit_write(planned, [committed])

    assert [one.group for one in lost.written] == [one.group for one in committed.written]
    assert len(keys_of(path)) == len(set(keys_of(path))) == 40


@pytest.mark.parametrize(
    ("said", "paths"),
    [
        ({}, {""}),
        ({"partition_fields": ("p", "id")}, {f"{'xy'[n % 2]}/{n}" for n in range(20)}),
        (
            {
                "partition_fields": ("v",),
                "key_generator": KeyGeneratorType.TIMESTAMP,
                "time_options": {key.TIME_TYPE: "UNIX_TIMESTAMP", key.TIME_OUTPUT_FORMAT: "HHmm"},
            },
            {"0000", "0001", "0002", "0003"},
        ),
    ],
)
def test_partitions_are_made_as_of_any_table(anywhere: Place, said: dict[str, Any], paths: set[str]) -> None:
    insert(below(anywhere, "t"), table=TableSettings(**said))

    assert set(read(below(anywhere, "t")).column("_hoodie_partition_path").to_pylist()) == paths


def test_a_new_table_without_a_key_is_not_made_by_chance(anywhere: Place) -> None:
    with pytest.raises(MissingOptionError) as raised:
        write(below(anywhere, "t"), [ROWS])

    assert "hoodie.datasource.write.recordkey.field" in raised.value.todo
    assert '"hoodie.datasource.write.operation", "insert"' in raised.value.todo
    assert files_below(below(anywhere, "t")) == {}


@pytest.mark.parametrize(
    ("says", "options"),
    [
        ("upsert", {"operation": "upsert"}),
        ("hoodie.combine.before.insert", {"settings": write_settings(combine_before_insert=True)}),
        ("insert.dup.policy", {"settings": write_settings(insert_dup_policy="drop")}),
        ("insert.drop.duplicates", {"settings": write_settings(insert_drop_duplicates=True)}),
        ("hoodie.bucket.index.num.buckets", {"table": TableSettings(bucket_count=2)}),
        ("hoodie.index.type", {"table": TableSettings(index_type="BUCKET")}),
        ("hoodie.datasource.write.recordkey.field", {"table": TableSettings(record_key_fields=("id",))}),
    ],
)
def test_what_needs_keys_is_refused(anywhere: Place, says: str, options: dict[str, Any]) -> None:
    path = below(anywhere, "t")
    insert(path)
    before = files_below(path)

    with pytest.raises(OptionConflictError, match=says):
        write(path, ROWS, **options)
    assert files_below(path) == before


@pytest.mark.parametrize("said", [{"bucket_count": 2}, {"hash_fields": ("id",)}, {"index_type": "BUCKET"}])
def test_a_new_table_without_a_key_has_no_buckets(anywhere: Place, said: dict[str, Any]) -> None:
    with pytest.raises(OptionConflictError, match="no record key"):
        insert(below(anywhere, "t"), table=TableSettings(**said))


def test_rows_replace_partitions_and_tables(anywhere: Place) -> None:
    path = below(anywhere, "t")
    insert(path)
    only_x = ROWS.filter(pa.compute.equal(ROWS["p"], "x")).slice(0, 3)
    write(path, only_x, operation="insert_overwrite")
    assert sorted(id for (id,) in rows_of(path, "id")) == [0, 1, 2, 3, 4, 5, 7, 9, 11, 13, 15, 17, 19]

    write(path, [ROWS.slice(0, 2), ROWS.slice(2, 2)], overwrite=True)
    assert rows_of(path, "id") == [(0,), (1,), (2,), (3,)]
    write(path, ROWS, operation="delete_partition", settings=write_settings(partitions_to_delete=("x",)))
    assert rows_of(path, "id") == [(1,), (3,)]


def test_mode_overwrite_with_an_insert_makes_a_table_without_a_key(anywhere: Place) -> None:
    insert(below(anywhere, "t"), overwrite=True)

    assert load_config(open_storage(str(below(anywhere, "t")))).generates_keys


def test_bulk_inserted_rows_are_sorted_as_asked(anywhere: Place) -> None:
    path = below(anywhere, "t")
    settings = WriteSettings(sort=BulkInsertSort(columns=("v",)))
    write(path, [ROWS.sort_by([("v", "descending")])], operation="bulk_insert", settings=settings)

    assert read(path).column("v").to_pylist() == sorted(ROWS["v"].to_pylist())


def test_filters_find_rows(anywhere: Place) -> None:
    insert(below(anywhere, "t"))
    found = open_snapshot(str(below(anywhere, "t"))).slices([Compare("p", "=", "x"), Compare("id", "=", 3)])

    assert [file_slice.partition_path for file_slice in found] == ["x"]


class TestDeletes:
    """Rows are deleted as they were read: their meta columns say where they are."""

    def test_rows_that_were_read_are_deleted(self, anywhere: Place) -> None:
        path = below(anywhere, "t")
        insert(path, [ROWS.slice(0, 12), ROWS.slice(12)])
        write(path, ROWS.slice(0, 2))
        rows = read(path)
        some = rows.filter(pa.compute.is_in(rows["id"], value_set=pa.array([0, 7, 15]))).select(
            ["_hoodie_file_name", "_hoodie_record_key", "_hoodie_partition_path"]
        )
        result = write(path, [some.slice(0, 2), some.slice(2)], operation="delete")

        assert (result.deletes, result.not_found, result.inserts) == (4, 0, 0)
        assert sorted(id for (id,) in rows_of(path, "id")) == [
            1,
            1,
            2,
            3,
            4,
            5,
            6,
            8,
            9,
            10,
            11,
            12,
            13,
            14,
            16,
            17,
            18,
            19,
        ]

    def test_rows_are_found_in_files_that_were_rewritten_since(self, anywhere: Place) -> None:
        path = below(anywhere, "t")
        insert(path)
        rows = read(path)
        write(path, rows.slice(0, 1), operation="delete")

        assert write(path, rows.slice(0, 2), operation="delete").deletes == 1
        assert len(keys_of(path)) == 18

    def test_rows_are_found_beside_file_groups_that_came_after_the_tasks(self, tmp_path: Path) -> None:
        """The new groups once shifted the places by which tasks handed rows to the commit."""
        for number in range(3):
            insert(tmp_path / "t", ROWS.slice(4 * number, 4))
        rows = read(tmp_path / "t")
        some = rows.filter(pa.compute.is_in(rows["id"], value_set=pa.array([0, 5, 9])))
        settings = write_settings(retry_s=60.0)
        slow = plan(tmp_path / "t", some.schema, operation="delete", settings=settings)
        handed = [task(slow, some, 0)]
        for _ in range(6):
            insert(tmp_path / "t", ROWS.slice(12, 1))

        assert commit_write(slow, handed).deletes == 3
        assert not {0, 5, 9} & {id for (id,) in rows_of(tmp_path / "t", "id")}

    def test_rows_of_files_that_are_gone_have_to_be_read_anew(self, anywhere: Place) -> None:
        path = below(anywhere, "t")
        insert(path)
        rows = read(path)
        write(path, ROWS, overwrite=True)
        before = files_below(path)

        with pytest.raises(CommitConflictError, match="Read the rows again"):
            write(path, rows, operation="delete")
        assert data_files(path) == {name: data for name, data in before.items() if name.endswith(".parquet")}

    def test_rows_without_meta_columns_are_nowhere(self, anywhere: Place) -> None:
        path = below(anywhere, "t")
        insert(path)

        with pytest.raises(MissingColumnError, match=r"_hoodie_record_key, _hoodie_partition_path, _hoodie_file_name"):
            write(path, ROWS, operation="delete")
        rows = read(path).set_column(2, "_hoodie_record_key", pa.nulls(20, pa.string()))
        with pytest.raises(NullKeyError, match=r"20 of 20 rows.*_hoodie_record_key"):
            write(path, rows, operation="delete")

    def test_a_key_that_is_not_in_its_file_is_not_found(self, anywhere: Place) -> None:
        path = below(anywhere, "t")
        insert(path)
        rows = read(path).set_column(2, "_hoodie_record_key", pa.array([f"none {n}" for n in range(20)]))

        assert write(path, rows, operation="delete").not_found == 20


def test_tables_of_apache_hudi_may_have_ordering_fields_all_the_same(anywhere: Place) -> None:
    insert(below(anywhere, "t"), table=replace(SAME, ordering_fields=("v",)))
    write(below(anywhere, "t"), ROWS)

    assert len(keys_of(below(anywhere, "t"))) == 40
