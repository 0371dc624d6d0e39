"""Rows of every type and deletes in log files of pyhudi's, in either format, as each reader merges them."""

from __future__ import annotations

from pathlib import Path

import pytest
from interop.readers import Readers
from interop.scenarios import BUCKETS, EVERY_TYPE, LISTS_WITH_NULLS, TWO_ORDERING_FIELDS, Model, Row, Scenario
from interop.writer import write_without_spark
from pyhudi.storage import open_storage
from pyhudi.table.files.logs.log_blocks import BlockType
from pyhudi.table.files.logs.log_file import read_blocks

pytestmark = pytest.mark.interop

FORMATS = {"parquet": BlockType.PARQUET, "avro": BlockType.AVRO}
MERGED = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", BUCKETS: "2"}
DELETE = {"hoodie.datasource.write.operation": "delete"}


@pytest.mark.parametrize("block_format", FORMATS)
@pytest.mark.parametrize("scenario", [EVERY_TYPE, LISTS_WITH_NULLS, TWO_ORDERING_FIELDS], ids=lambda one: one.name)
def test_blocks_are_merged_by_every_reader(
    scenario: Scenario, block_format: str, tmp_path: Path, readers: Readers
) -> None:
    table, model = tmp_path / "t", Model(scenario)
    form = {"hoodie.logfile.data.block.format": block_format}

    def upsert(rows: list[Row], options: dict[str, str]) -> None:
        model.upsert(rows, write_without_spark(table, scenario.table(rows), options).instant)

    upsert(scenario.rows(range(30), 1, ts=10), {**scenario.table_options, **MERGED})
    newer = [*scenario.rows(range(0, 8), 2, ts=20), *scenario.rows(range(8, 14), 2, ts=5)]
    gone = [*scenario.rows(range(14, 18), 2, ts=20, deleted=True), *scenario.rows(range(18, 22), 2, ts=5, deleted=True)]
    upsert([*newer, *gone, *scenario.rows(range(30, 34), 2, ts=7)], form)
    late = scenario.rows([22, 23, 99], 1, ts=1)
    write_without_spark(table, scenario.table(late), DELETE)
    model.delete(late)

    readers.check(table, model, by_spark=scenario is EVERY_TYPE)
    storage = open_storage(str(table))
    logs = [file.relative_to(table).as_posix() for file in table.rglob(".*.log.*") if not file.name.endswith(".crc")]
    kinds = {block.type for path in logs for block in read_blocks(storage, path)}
    by_text = scenario is TWO_ORDERING_FIELDS  # which Apache Hudi misorders in Parquet blocks
    assert kinds == {BlockType.AVRO if by_text else FORMATS[block_format], BlockType.DELETE}
