"""Rows of file slices that are read for the keys of a write."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyhudi.storage import open_storage
from pyhudi.table.arrow.spill import local_spills
from pyhudi.table.config import TableConfig
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.schema.columns import RECORD_KEY
from pyhudi.writer.slice_reader import SliceReader
from support.made.log_slices import Rows, Slice

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), ("text", pa.string())])
CONFIG = TableConfig.new(
    TableSettings(name="t", table_type="MERGE_ON_READ", record_key_fields=("id",), index_type="GLOBAL_SIMPLE")
)


def test_row_groups_between_whose_bounds_no_wanted_key_lies_are_not_read(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "t"))
    written_slice = Slice(storage, SCHEMA)
    written_slice.add_base([{"id": f"{n:03}", "text": "x" * 300} for n in range(300)], row_group_bytes=1)
    written_slice.add_log(Rows([{"id": "900", "text": "y"}]))
    spills = local_spills(open_storage(str(tmp_path / "spills"), durable=False))
    reader = SliceReader(storage, CONFIG, SCHEMA, lambda time: True, 1 << 20, spills)

    batches = reader.read(
        written_slice.file_slice, pa.schema([pa.field(RECORD_KEY, pa.string())]), pa.array(["150", "155", "900"])
    )

    keys = {key for batch in batches for key in batch.column(0).to_pylist()}
    assert keys == {f"{n:03}" for n in range(100, 200)} | {"900"}
