"""Tables of another engine that note no index: a key is never doubled in silence, and the user's answer is kept."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import (
    MissingOptionError,
    OptionConflictError,
    TableConfigError,
    UnsupportedTableError,
)
from pyhudi.operations.inspect.detail import detail
from pyhudi.operations.services.metadata.drop_index import drop_index
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.config.properties_file import update_config
from pyhudi.table.config.table_settings import TableSettings
from support.drawn.lookups import APART, LOGGED, TABLE, assert_healthy, rows
from support.drive import plan, rows_of, write
from support.places import files_below
from support.recorded.fixture_tables import unpack
from support.recorded.recorded_lookups import as_table, content_of, held
from support.write_settings import write_settings

INDEX = "hoodie.index.type"
DEFINITIONS = ".hoodie/.index_defs/index.json"
FILTERED = replace(APART, output=replace(APART.output, bloom_filter=True))
TYPES = pytest.mark.parametrize("made", [TABLE, LOGGED], ids=["cow", "mor"])


def forget(path: Path, **changes: str) -> None:
    """Take the note of the index out of a table, as if Apache Hudi had made it."""
    update_config(
        open_storage(str(path)), {INDEX: None, **{key.replace("_", "."): text for key, text in changes.items()}}
    )


def noted(path: Path) -> str | None:
    """Return the index that the properties name."""
    return load_config(open_storage(str(path))).index_type


def record_index(path: Path, partitioned: bool | None, *, metadata: bool = True) -> None:
    """Give a table a record index; ``partitioned`` is None where no definition says of which kind."""
    storage = open_storage(str(path))
    if metadata:
        update_config(storage, {"hoodie.table.metadata.partitions": "files,record_index"})
        storage.write(".hoodie/metadata/x", b"x")
    if partitioned is not None:
        definition = {"indexName": "record_index", "indexOptions": {"isPartitioned": str(partitioned).lower()}}
        storage.write(DEFINITIONS, json.dumps({"indexDefinitions": {"record_index": definition}}).encode())


@TYPES
@pytest.mark.parametrize("operation", ["upsert", "delete"])
def test_a_key_of_another_partition_refuses_the_write(tmp_path: Path, made: TableSettings, operation: str) -> None:
    """Also where only a log file holds it, and where another task has the row; nothing is written."""
    write(tmp_path, [rows(1, 2, value=1), rows(3, value=1, p="b")], table=made, settings=FILTERED)
    write(tmp_path, rows(2, value=2), settings=FILTERED)
    forget(tmp_path)
    before = rows_of(tmp_path, "p", "id", "value")

    with pytest.raises(MissingOptionError) as raised:
        write(tmp_path, [rows(1, 7, value=3), rows(2, 3, value=3, p="b")], operation=operation)

    assert all(text in raised.value.what for text in ("'k2'", "partition 'b' is in partition 'a'", str(tmp_path)))
    assert all(f"{INDEX}={kind}" in raised.value.todo for kind in ("SIMPLE", "GLOBAL_SIMPLE"))
    assert rows_of(tmp_path, "p", "id", "value") == before
    assert noted(tmp_path) is None
    assert_healthy(tmp_path)


def test_rows_of_known_and_of_new_keys_pass_and_inserts_look_for_nothing(tmp_path: Path) -> None:
    write(tmp_path, [rows(1, 2, value=1), rows(3, value=1, p="b")], table=TABLE, settings=FILTERED)
    forget(tmp_path)

    done = write(tmp_path, [rows(1, 7, value=2), rows(3, 8, value=2, p="b"), rows(9, value=2, p="c")])
    assert (done.inserts, done.updates) == (3, 2)
    write(tmp_path, rows(1, value=3, p="b"), operation="insert")

    assert len(rows_of(tmp_path, "p", "id")) == 7


@pytest.mark.parametrize(("answer", "left"), [("SIMPLE", [("a", 1), ("b", 2)]), ("GLOBAL_SIMPLE", [("b", 2)])])
def test_what_the_user_says_is_kept_and_ends_the_question(
    tmp_path: Path, answer: str, left: list[tuple[str, int]]
) -> None:
    write(tmp_path, rows(1, value=1), table=TABLE, settings=FILTERED)
    forget(tmp_path)

    write(tmp_path, rows(1, value=2, p="b"), table=TableSettings(index_type=answer))

    assert rows_of(tmp_path, "p", "value") == left
    assert noted(tmp_path) == answer
    write(tmp_path, rows(1, value=3, p="b"))


def test_the_log_says_once_how_to_end_the_search(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, rows(1, value=1), table=TABLE, settings=FILTERED)
    forget(tmp_path)
    with caplog.at_level(logging.WARNING, "pyhudi"):
        write(tmp_path, rows(1, value=2))
        write(tmp_path, rows(1, value=3))

    told = [record.getMessage() for record in caplog.records if "notes no index" in record.getMessage()]
    assert len(told) == 1
    assert all(text in told[0] for text in (str(tmp_path), f"{INDEX}=GLOBAL_SIMPLE"))


def test_footers_leave_files_out_and_too_many_of_the_others_refuse_the_write(tmp_path: Path) -> None:
    """A file that its filter excludes does not count; one without a footer's help does."""
    few = replace(APART, lookup=replace(APART.lookup, most_elsewhere=2))
    for number in range(4):
        write(tmp_path, rows(number, 100 + number, value=1, p=f"p{number}"), table=TABLE, settings=FILTERED)
    forget(tmp_path)
    assert write(tmp_path, rows(50, value=2), settings=few).lookup.candidates == 0
    for number in range(3):
        plain = replace(APART, output=replace(APART.output, bloom_filter=False))
        write(tmp_path, rows(number + 10, 200 + number, value=1, p=f"q{number}"), operation="insert", settings=plain)

    with pytest.raises(MissingOptionError, match=r"More than 2 files.*'k151'.*unnoted\.index\.max\.files"):
        write(tmp_path, rows(151, value=2), settings=few)
    wide = replace(APART, lookup=replace(APART.lookup, most_elsewhere=3))
    done = write(tmp_path, rows(151, value=2), settings=wide)
    assert (done.inserts, done.lookup.candidates) == (1, 3)


def test_a_stream_is_refused_before_its_first_batch(tmp_path: Path) -> None:
    """Its rows may all be in place; a later batch would find one that is not."""
    write(tmp_path, rows(1, value=1), table=TABLE, settings=FILTERED)
    forget(tmp_path)
    batch = write_settings(hand_over=True)

    with pytest.raises(MissingOptionError, match="stream asks for the index"):
        plan(tmp_path, rows(1, value=2).schema, settings=batch)
    plan(tmp_path, rows(1, value=2).schema, settings=batch, operation="insert")
    plan(tmp_path, rows(1, value=2).schema, settings=batch, table=TableSettings(index_type="SIMPLE"))


@pytest.mark.parametrize("name", ["v9_lookup_global_simple_mor", "v9_lookup_global_bloom_cow"])
def test_a_row_of_apache_hudis_global_index_does_not_double(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    content = content_of(name)
    old, key = next(iter(content))
    moved = {("elsewhere", key): ("moved", 10**6)}

    with pytest.raises(MissingOptionError, match=old):
        write(path, as_table(moved))
    assert held(path) == content
    write(path, as_table(moved), table=TableSettings(index_type="GLOBAL_SIMPLE"))
    assert held(path) == {place: value for place, value in content.items() if place != (old, key)} | moved


def drop(path: Path) -> None:
    """Drop a record index, where the metadata table has one."""
    storage = open_storage(str(path))
    if load_config(storage).metadata_partitions:
        drop_index(storage, "record_index")
        drop_index(storage, "files")


@TYPES
@pytest.mark.parametrize(
    ("partitioned", "metadata", "kind"),
    [
        (False, True, "GLOBAL_SIMPLE"),
        (None, True, "GLOBAL_SIMPLE"),
        (True, True, "SIMPLE"),
        (False, False, "GLOBAL_SIMPLE"),
    ],
)
def test_a_record_index_says_where_keys_are_unique_and_is_noted_as_it_goes(
    tmp_path: Path, made: TableSettings, partitioned: bool | None, metadata: bool, kind: str
) -> None:
    """Two bare writes after the index is dropped: the first is told by a note, the second still knows."""
    write(tmp_path, rows(1, 2, value=1), table=made, settings=APART)
    forget(tmp_path)
    record_index(tmp_path, partitioned, metadata=metadata)
    assert detail(open_storage(str(tmp_path)))["index"].to_pylist() == [kind]

    drop(tmp_path)
    write(tmp_path, rows(1, value=2, p="b"), settings=APART)
    config = load_config(open_storage(str(tmp_path)))
    assert (config.index_type, config.metadata_partitions) == (kind, ())
    assert INDEX not in config.properties, "Apache Hudi would refuse the jobs that name its record index"
    write(tmp_path, rows(2, value=3, p="b"), settings=APART)

    moved = [("b", "k1", 2), ("b", "k2", 3)]
    assert rows_of(tmp_path, "p", "id", "value") == (
        moved if kind == "GLOBAL_SIMPLE" else [("a", "k1", 1), ("a", "k2", 1), *moved]
    )


def test_a_bucketed_table_with_a_record_index_stays_one(tmp_path: Path) -> None:
    buckets = replace(TABLE, index_type=None, bucket_count=2)
    write(tmp_path, rows(1, 2, value=1), table=buckets)
    names = ("num.buckets", "hash.field")
    forget(tmp_path)
    update_config(open_storage(str(tmp_path)), {f"hoodie.bucket.index.{name}": None for name in names})
    record_index(tmp_path, False)
    drop(tmp_path)

    with pytest.raises(MissingOptionError, match=r"num\.buckets"):
        write(tmp_path, rows(1, value=2), settings=APART)
    write(tmp_path, rows(1, value=2), settings=APART, table=TableSettings(bucket_count=2))
    assert (noted(tmp_path), rows_of(tmp_path, "id", "value")) == ("BUCKET", [("k1", 2), ("k2", 1)])


def test_an_index_by_partition_contradicts_a_global_record_index(tmp_path: Path) -> None:
    write(tmp_path, rows(1, value=1), table=TABLE, settings=APART)
    forget(tmp_path)
    record_index(tmp_path, False)

    for kind in ("SIMPLE", "BLOOM"):
        with pytest.raises(OptionConflictError, match="unique in the whole table"):
            write(tmp_path, rows(1, value=2, p="b"), settings=APART, table=TableSettings(index_type=kind))
    drop(tmp_path)
    write(tmp_path, rows(1, value=2, p="b"), settings=APART, table=TableSettings(index_type="GLOBAL_SIMPLE"))
    assert (noted(tmp_path), rows_of(tmp_path, "p")) == ("GLOBAL_SIMPLE", [("b",)])


def test_definitions_that_cannot_be_read_refuse_a_write_that_needs_them(tmp_path: Path) -> None:
    write(tmp_path, rows(1, value=1), table=TABLE, settings=APART)
    open_storage(str(tmp_path)).write(DEFINITIONS, b"{")
    write(tmp_path, rows(1, value=2))
    forget(tmp_path)
    before = files_below(tmp_path)

    with pytest.raises(TableConfigError, match=r"index\.json"):
        write(tmp_path, rows(1, value=3))
    assert files_below(tmp_path) == before


def test_a_dear_record_index_is_dropped_by_nobody_who_did_not_say_so(tmp_path: Path) -> None:
    write(tmp_path, rows(1, value=1), table=TABLE, settings=APART)
    forget(tmp_path)
    record_index(tmp_path, False)

    with pytest.raises(UnsupportedTableError, match="record_index"):
        write(tmp_path, rows(1, value=2))
    assert noted(tmp_path) is None
