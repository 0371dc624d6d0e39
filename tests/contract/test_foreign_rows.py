"""Rows that another writer left: merged where pyhudi would have made the same keys of them, refused otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import UnsupportedTableError
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.table.config.key_types import KeyGeneratorType
from pyhudi.table.files.base_file import STAMP
from support.drawn.lookups import said
from support.drive import rows_of, write
from support.made.stated_sizes import state_sizes
from support.seams import patch_seam

COMPLEX = TableSettings(
    record_key_fields=("id",), ordering_fields=("ts",), key_generator=KeyGeneratorType.COMPLEX, bucket_count=1
)


def rows(*keys: int, ts: int) -> pa.Table:
    return pa.table({"id": pa.array(keys, pa.int64()), "ts": pa.array([ts] * len(keys), pa.int64())})


def as_another_writer(table: Path, key: str) -> None:
    """Take our stamp off the base files, and spell each key so, ``{}`` being its value."""
    before, after = key.split("{}")
    for file in table.rglob("*.parquet"):
        stored_rows = pq.read_table(file, partitioning=None)
        keys = pc.binary_join_element_wise(before, stored_rows.column("id").cast(pa.string()), after, "")
        footer = {name: value for name, value in (stored_rows.schema.metadata or {}).items() if name != STAMP}
        stored_rows = stored_rows.set_column(2, "_hoodie_record_key", keys).replace_schema_metadata(footer)
        pq.write_table(stored_rows, file, store_schema=False)
    state_sizes(table)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write(tmp_path, rows(*range(20), ts=1), table=COMPLEX)
    return tmp_path


def test_rows_with_the_keys_that_we_make_are_updated(table: Path) -> None:
    as_another_writer(table, "id:{}")

    done = write(table, rows(7, 21, ts=2))

    assert (done.updates, done.inserts) == (1, 1)
    assert rows_of(table, "id", "ts") == sorted([*((n, 1) for n in range(20) if n != 7), (7, 2), (21, 2)])


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "delete"])
def test_rows_whose_keys_lack_the_fields_name_are_refused(table: Path, operation: str) -> None:
    """As some versions of Apache Hudi wrote them, where each key would be there twice after an upsert."""
    as_another_writer(table, "{}")
    before = {file: file.stat().st_mtime_ns for file in table.rglob("*") if file.is_file()}

    with pytest.raises(
        UnsupportedTableError, match=r"holds the record key '\d+' for a row whose key pyhudi spells 'id:"
    ):
        write(table, rows(*range(20), ts=2), operation=operation)

    assert {file: file.stat().st_mtime_ns for file in table.rglob("*.parquet")} == {
        file: stat for file, stat in before.items() if file.suffix == ".parquet"
    }
    assert rows_of(table, "id", "ts") == [(n, 1) for n in range(20)]


def test_such_a_table_can_be_replaced(table: Path) -> None:
    as_another_writer(table, "{}")

    write(table, rows(1, ts=2), overwrite=True)

    assert rows_of(table, "id", "ts") == [(1, 2)]


def test_a_row_that_has_a_key_and_no_values_for_it_is_refused(table: Path) -> None:
    as_another_writer(table, "id:{}")
    for file in table.glob("*.parquet"):
        found = pq.read_table(file)
        nothing = pa.nulls(found.num_rows, pa.int64())
        pq.write_table(found.set_column(found.schema.names.index("id"), "id", nothing), file, store_schema=False)
    state_sizes(table)

    with pytest.raises(UnsupportedTableError, match="whose key pyhudi refuses"):
        write(table, rows(1, ts=2))


@pytest.mark.parametrize("way", ["plain", "placed"])
@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_keys_that_are_looked_up_are_found_or_spelt_as_the_table_spells_them(
    tmp_path: Path, operation: str, way: str
) -> None:
    """A file in which no key was found is not merged: it is looked into all the same."""
    apart = WriteSettings(lookup=LookupSettings(sizes=FileSizes(small=0)), colocated=way == "placed")
    write(tmp_path, rows(*range(20), ts=1), table=replace(COMPLEX, index_type="SIMPLE", bucket_count=None))
    new = rows(30, ts=2) if way == "plain" else said(rows(30, ts=2), "+0")
    as_another_writer(tmp_path, "id:{}")
    assert write(tmp_path, new, operation=operation, settings=apart).updates == 0

    as_another_writer(tmp_path, "{}")
    before = rows_of(tmp_path, "id", "ts")
    with pytest.raises(
        UnsupportedTableError, match=r"holds the record key '\d+' for a row whose key pyhudi spells 'id:"
    ):
        write(tmp_path, new, operation=operation, settings=apart)
    assert rows_of(tmp_path, "id", "ts") == before


def test_keys_that_are_unique_in_the_table_are_held_against_the_spelling_of_all_partitions(tmp_path: Path) -> None:
    def some(key: int, p: str) -> pa.Table:
        return rows(key, ts=1).append_column("p", pa.array([p]))

    made = replace(COMPLEX, index_type="GLOBAL_SIMPLE", bucket_count=None, partition_fields=("p",))
    write(tmp_path, some(1, "a"), table=made)
    as_another_writer(tmp_path, "{}")

    with pytest.raises(UnsupportedTableError, match=r"holds the record key '1' for a row whose key pyhudi spells"):
        write(tmp_path, some(1, "b"))
    assert rows_of(tmp_path, "id", "p") == [(1, "a")]


def test_our_own_files_in_which_no_key_was_found_are_not_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they spell is known."""
    write(tmp_path, rows(1, ts=1), table=replace(COMPLEX, index_type="SIMPLE", bucket_count=None))
    patch_seam(monkeypatch, "check the spelling of foreign keys", lambda *_: pytest.fail("looked into"))

    assert write(tmp_path, rows(2, ts=1)).inserts == 1
