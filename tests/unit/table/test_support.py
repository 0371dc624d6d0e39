"""Which tables are refused, and for which property."""

from __future__ import annotations

import pytest
from pyhudi.errors import UnsupportedTableError
from pyhudi.table.config import TableConfig, check_supported

NEW = TableConfig.new(name="t", record_key_fields=["id"], bucket_count=4)


@pytest.mark.parametrize("writing", [True, False])
def test_a_new_table_is_read_and_written(writing: bool) -> None:
    check_supported(NEW, "file:///t", writing=writing)


@pytest.mark.parametrize("writing", [True, False])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("hoodie.table.version", "8"),
        ("hoodie.table.version", "6"),
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


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("hoodie.record.merge.mode", "CUSTOM"),
        ("hoodie.table.partial.update.mode", "IGNORE_DEFAULTS"),
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
