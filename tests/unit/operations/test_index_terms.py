"""What is said of a table's index, when the table is made and afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyhudi.errors import OptionConflictError, UnsupportedOptionError
from pyhudi.operations.planning.adopted_table import AdoptedTable
from pyhudi.operations.planning.new_table import NewTable
from pyhudi.operations.planning.request import TableSettings
from pyhudi.table.config.property_keys import (
    BUCKET_COUNT,
    BUCKET_ENGINE,
    BUCKET_HASH_FIELDS,
    INDEX_TYPE,
    LOOKUP_INDEXES,
)
from pyhudi.table.config.table_config import TableConfig

KEYED = TableSettings(record_key_fields=("id",), partition_fields=("p",))


def noted(config: TableConfig) -> dict[str, str]:
    """What a table notes of its index."""
    keys = (INDEX_TYPE, BUCKET_COUNT, BUCKET_HASH_FIELDS, BUCKET_ENGINE)
    return {key: config.properties[key] for key in keys if key in config.properties}


@pytest.mark.parametrize("index", LOOKUP_INDEXES)
def test_a_new_table_notes_an_index_that_looks_up_and_no_buckets(index: str) -> None:
    assert noted(NewTable(replace(KEYED, index_type=index), "/t").config()) == {INDEX_TYPE: index}


@pytest.mark.parametrize("index", [None, "BUCKET"])
def test_buckets_are_the_default(index: str | None) -> None:
    assert noted(NewTable(replace(KEYED, index_type=index), "/t").config()) == {
        INDEX_TYPE: "BUCKET",
        BUCKET_COUNT: "8",
        BUCKET_HASH_FIELDS: "id",
        BUCKET_ENGINE: "SIMPLE",
    }


def test_an_index_that_nobody_has_makes_no_table() -> None:
    with pytest.raises(UnsupportedOptionError, match=r"hoodie\.index\.type=HBASE is given for the new table") as raised:
        NewTable(replace(KEYED, index_type="HBASE"), "/t").config()
    assert "BUCKET, SIMPLE, GLOBAL_SIMPLE, BLOOM, GLOBAL_BLOOM" in raised.value.todo


@pytest.mark.parametrize("asked", ["BUCKET", "SIMPLE"])
def test_a_table_keeps_its_index(asked: str) -> None:
    table_config = NewTable(replace(KEYED, index_type="BLOOM"), "/t").config()

    with pytest.raises(OptionConflictError, match=rf"hoodie\.index\.type is '{asked}' here and 'BLOOM' in the table"):
        AdoptedTable(TableSettings(index_type=asked), "/t").changes_to(table_config)
    assert AdoptedTable(TableSettings(index_type="BLOOM"), "/t").changes_to(table_config) == (table_config, {})
    assert AdoptedTable(TableSettings(), "/t").changes_to(table_config) == (table_config, {})


def test_a_table_whose_buckets_alone_are_noted_has_no_other_index() -> None:
    whole = NewTable(KEYED, "/t").config()
    table_config = TableConfig({key: value for key, value in whole.properties.items() if key != INDEX_TYPE})

    with pytest.raises(OptionConflictError, match=r"hoodie\.index\.type is 'SIMPLE' here and 'BUCKET' in the table"):
        AdoptedTable(TableSettings(index_type="SIMPLE"), "/t").changes_to(table_config)
    assert AdoptedTable(TableSettings(index_type="BUCKET"), "/t").changes_to(table_config) == (table_config, {})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (TableSettings(bucket_count=3), "hoodie.bucket.index.num.buckets is 3"),
        (TableSettings(hash_fields=("id",)), "hoodie.bucket.index.hash.field is 'id'"),
    ],
)
def test_buckets_are_not_taught_to_a_table_with_another_index(said: TableSettings, words: str) -> None:
    table_config = NewTable(replace(KEYED, index_type="SIMPLE"), "/t").config()

    with pytest.raises(OptionConflictError) as raised:
        AdoptedTable(said, "/t").changes_to(table_config)

    assert words in raised.value.what
    assert "the table /t has hoodie.index.type=SIMPLE" in raised.value.what
