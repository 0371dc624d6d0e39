"""Which tables are refused, and for which property."""

from __future__ import annotations

import pytest
from pyhudi.errors import UnsupportedTableError
from pyhudi.table.config import TableConfig, check_mergeable, check_supported
from pyhudi.table.config.table_settings import TableSettings

NEW = TableConfig.new(TableSettings(name="t", record_key_fields=("id",), bucket_count=4))
OLDER = TableConfig.new(
    TableSettings(name="t", version=8, record_key_fields=("id",), ordering_fields=("ts",), bucket_count=4)
)


@pytest.mark.parametrize("writing", [True, False])
@pytest.mark.parametrize("config", [NEW, OLDER])
def test_a_new_table_is_read_and_written(config: TableConfig, writing: bool) -> None:
    check_supported(config, "file:///t", writing=writing)


@pytest.mark.parametrize("writing", [True, False])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("hoodie.table.version", "5"),
        ("hoodie.timeline.layout.version", "1"),
        ("hoodie.timeline.layout.version", "3"),
        ("hoodie.populate.meta.fields", "false"),
        ("hoodie.datasource.write.drop.partition.columns", "true"),
        ("hoodie.table.base.file.format", "ORC"),
        ("hoodie.table.multiple.base.file.formats.enable", "true"),
        ("hoodie.partition.metafile.use.base.format", "true"),
        ("hoodie.table.format", "iceberg"),
        ("hoodie.bootstrap.base.path", "file:///old"),
    ],
)
def test_a_table_that_pyhudi_does_not_read_is_refused(option: str, value: str, writing: bool) -> None:
    config = TableConfig({**NEW.properties, option: value})

    with pytest.raises(UnsupportedTableError) as raised:
        check_supported(config, "file:///t", writing=writing)

    assert f"{option}={value}" in raised.value.what
    assert "file:///t" in raised.value.what


def test_a_merge_on_read_table_of_version_6_is_read_and_not_written() -> None:
    old = TableConfig({**NEW.properties, "hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"})
    merged = TableConfig({**old.properties, "hoodie.table.type": "MERGE_ON_READ"})

    check_supported(old, "file:///t", writing=True)
    check_supported(merged, "file:///t", writing=False)
    with pytest.raises(UnsupportedTableError, match=r"version=6 and hoodie\.table\.type=MERGE_ON_READ") as raised:
        check_supported(merged, "file:///t", writing=True)
    assert "upgrade" in raised.value.todo


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("hoodie.record.merge.mode", "CUSTOM"),
        ("hoodie.table.partial.update.mode", "KEEP_VALUES"),
        ("hoodie.record.merge.property.hoodie.payload.delete.field", "op"),
        ("hoodie.table.cdc.enabled", "true"),
        ("hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", "true"),
        ("hoodie.datasource.write.slash.separated.date.partitioning", "true"),
        ("hoodie.index.type", "RECORD_INDEX"),
        ("hoodie.index.bucket.engine", "CONSISTENT_HASHING"),
    ],
)
def test_a_table_that_pyhudi_only_reads_is_refused_to_writers(option: str, value: str) -> None:
    config = TableConfig({**NEW.properties, option: value})

    check_supported(config, "file:///t", writing=False)
    with pytest.raises(UnsupportedTableError) as raised:
        check_supported(config, "file:///t", writing=True)

    assert f"{option}={value}" in raised.value.what


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"compaction.payload.class": "com.example.Mine"}, "merge.mode=EVENT_TIME_ORDERING beside"),
        (
            {
                "record.merge.mode": "CUSTOM",
                "compaction.payload.class": "com.example.Mine",
                "record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
            },
            "hoodie.compaction.payload.class=com.example.Mine",
        ),
        ({"record.merge.strategy.id": "1897ef5f-18bc-4557-939c-9d6a8afd1519"}, "beside hoodie.compaction.payload"),
        ({"record.merge.mode": "COMMIT_TIME_ORDERING"}, "merge.mode=COMMIT_TIME_ORDERING beside"),
    ],
)
def test_rules_of_version_8_that_nobody_knows_or_that_disagree_are_refused(changes: dict[str, str], said: str) -> None:
    """To who writes and to who merges; base files are read all the same."""
    config = TableConfig({**OLDER.properties, **{f"hoodie.{option}": value for option, value in changes.items()}})

    check_supported(config, "file:///t", writing=False)
    with pytest.raises(UnsupportedTableError) as to_write:
        check_supported(config, "file:///t", writing=True)
    with pytest.raises(UnsupportedTableError) as to_merge:
        check_mergeable(config, "file:///t")

    assert said in to_write.value.what
    assert said in to_merge.value.what


def test_a_payload_class_that_leaves_columns_open_has_no_mode_before_version_9() -> None:
    """There its code runs as it is; as a plain mode its rows would lose columns in silence."""
    named = {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}
    config = TableConfig({**NEW.properties, "hoodie.table.version": "8", **named})

    with pytest.raises(UnsupportedTableError, match="PartialUpdateAvroPayload"):
        check_supported(config, "file:///t", writing=True)
