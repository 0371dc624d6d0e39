"""What tables of version 8 have otherwise than those of version 9: their properties, and the keys of one field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import OptionConflictError, UnsupportedTableError
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.reader.scan import RowReader
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import TableConfig, load_config, update_config
from pyhudi.table.config.key_types import KeyGeneratorType
from pyhudi.table.config.property_keys import COMPLEX_KEY_ENCODING, INITIAL_VERSION
from pyhudi.table.files.base_file import STAMP
from support.drive import NOTHING_SAID, rows_of, write
from support.made.stated_sizes import state_sizes
from support.rules.health import errors
from support.seams import patch_seam

KEYED = TableSettings(version=8, record_key_fields=("id",), ordering_fields=("ts",), bucket_count=1)
COMPLEX = replace(KEYED, key_generator=KeyGeneratorType.COMPLEX)
MARKER = replace(KEYED, delete_field="op", delete_marker="D")


def rows(*keys: str, ts: int, op: str = "I") -> pa.Table:
    return pa.table({"id": list(keys), "ts": pa.array([ts] * len(keys), pa.int64()), "op": [op] * len(keys)})


def config_of(table: Path) -> TableConfig:
    return load_config(open_storage(str(table)))


def found_by(table: Path, *predicates: Compare) -> list[str]:
    snapshot = open_snapshot(str(table))
    splits = snapshot.plan(snapshot.schema, predicates, 1 << 27)
    schema = snapshot.schema
    batches = [one for split in splits for one in RowReader(snapshot.storage, schema, schema, predicates).read(split)]
    return sorted(key for batch in batches for key in batch.column("id").to_pylist())


def of_another_writer(table: Path, before: str) -> None:
    """Take our stamp off the base files and our note off the table, and spell each key as another release does."""
    for file in table.rglob("*.parquet"):
        stored_rows = pq.read_table(file)
        keys = pc.binary_join_element_wise(before, stored_rows.column("id"), "")
        footer = {name: value for name, value in (stored_rows.schema.metadata or {}).items() if name != STAMP}
        footer |= {
            f"hoodie_{one}_record_key".encode(): how(keys).as_py().encode()
            for one, how in (("min", pc.min), ("max", pc.max))
        }
        stored_rows = stored_rows.set_column(2, "_hoodie_record_key", keys).replace_schema_metadata(footer)
        pq.write_table(stored_rows, file, store_schema=False)
    state_sizes(table)
    update_config(open_storage(str(table)), {COMPLEX_KEY_ENCODING: None})


@pytest.mark.parametrize(("before", "encoding"), [("", "VALUE_ONLY"), ("id:", "FIELD_PREFIXED")])
def test_keys_of_one_field_go_on_as_they_are_spelt(tmp_path: Path, before: str, encoding: str) -> None:
    """By Apache Hudi 1.0.2, or by 1.2; a value that begins as the field does is no proof of the other."""
    write(tmp_path, rows("a", "id:b", "c", ts=1), table=COMPLEX)
    assert config_of(tmp_path).properties[COMPLEX_KEY_ENCODING] == "VALUE_ONLY"
    of_another_writer(tmp_path, before)

    assert "a" in found_by(tmp_path, Compare("id", "=", "a"))
    done = write(tmp_path, rows("a", "id:b", "d", ts=2))

    assert (done.updates, done.inserts) == (2, 1)
    assert config_of(tmp_path).properties[COMPLEX_KEY_ENCODING] == encoding
    keys = [f"{before}{one}" for one in ("a", "c", "d", "id:b")]
    assert rows_of(tmp_path, "_hoodie_record_key", "ts") == list(zip(keys, (2, 1, 2, 2), strict=True))
    assert "id:b" in found_by(tmp_path, Compare("id", "=", "id:b"))
    assert errors(tmp_path) == []


@pytest.mark.parametrize(("made_in", "looked_into"), [("8", 8), ("6", 10)])
def test_files_of_others_are_all_read_only_where_the_table_came_out_of_version_6(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_in: str, looked_into: int
) -> None:
    """The note of the spelling, which each new table of version 8 has, says nothing of that."""
    one_file_each = WriteSettings(lookup=LookupSettings(sizes=FileSizes(small=0)))
    for number in range(10):
        write(
            tmp_path,
            rows(f"k{number}", ts=1),
            operation="insert",
            table=replace(COMPLEX, bucket_count=None, index_type="SIMPLE") if not number else NOTHING_SAID,
            settings=one_file_each,
        )
    of_another_writer(tmp_path, "")
    noted = {COMPLEX_KEY_ENCODING: "VALUE_ONLY", INITIAL_VERSION: made_in}
    update_config(open_storage(str(tmp_path)), noted)
    looks: list[object] = []
    patch_seam(monkeypatch, "check the spelling of foreign keys", lambda *told: looks.append(told))

    write(tmp_path, rows("new", ts=2))

    assert len(looks) == looked_into


def test_keys_that_two_releases_spelt_in_two_ways_are_refused(tmp_path: Path) -> None:
    """Each key may be there twice."""
    write(tmp_path, rows("a", ts=1, op="x"), table=replace(COMPLEX, partition_fields=("op",)))
    of_another_writer(tmp_path, "id:")
    update_config(open_storage(str(tmp_path)), {COMPLEX_KEY_ENCODING: "VALUE_ONLY"})
    write(tmp_path, rows("b", ts=1, op="y"))
    update_config(open_storage(str(tmp_path)), {COMPLEX_KEY_ENCODING: None})

    with pytest.raises(UnsupportedTableError, match=r"as id:value in x/.* and as the bare value in y/"):
        write(tmp_path, rows("a", ts=2, op="x"))


def test_a_delete_marker_holds_for_the_write_that_gives_it(tmp_path: Path) -> None:
    """Version 8 keeps none; nor does the write that makes the table."""
    write(tmp_path, [rows("a", "b", "c", ts=1), rows("gone", ts=1, op="D")], table=MARKER)
    assert not [option for option in config_of(tmp_path).properties if "delete" in option]

    write(tmp_path, rows("a", ts=2, op="D"))
    write(tmp_path, rows("b", ts=2, op="D"), table=MARKER)

    assert rows_of(tmp_path, "id", "op") == [("a", "D"), ("c", "I")]


def test_a_table_stays_in_its_version(tmp_path: Path) -> None:
    """And who asks for another one is told."""
    write(tmp_path, rows("a", ts=1), table=KEYED)
    made = config_of(tmp_path).properties

    write(tmp_path, rows("a", ts=2))
    with pytest.raises(OptionConflictError, match=r"hoodie.write.table.version is 9 here and 8 in the table"):
        write(tmp_path, rows("a", ts=3), table=TableSettings(version=9))

    assert config_of(tmp_path).properties == made
