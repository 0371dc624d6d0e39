"""The log files of Apache Hudi 1.2: each block is read, and written again is the same to the last byte."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.config.properties_file import PROPERTIES_PATH
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.files.logs import avro_rows, delete_block
from pyhudi.table.files.logs.log_blocks import BlockHead, BlockType, LogBlock
from pyhudi.table.files.logs.log_contents import BlockContent, columns_of
from pyhudi.table.files.logs.log_file import read_blocks
from pyhudi.table.files.names import LogFileName
from pyhudi.table.schema.columns import META_COLUMNS, canonical
from support.recorded.fixture_tables import TABLES, unpack

NAMES = sorted(path.stem for path in TABLES.glob("v9_mor_*.zip"))


def logs(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob(".*.log.*") if LogFileName.parse(file.name))


def content(storage: Storage, block: LogBlock, ordering: tuple[str, ...]) -> bytes:
    """Return the content as it is written by what was read."""
    columns = columns_of(block)
    if block.type == BlockType.DELETE:
        return delete_block.encode(BlockContent(storage, block).deletes([columns.field(name) for name in ordering]))
    batches = list(BlockContent(storage, block).rows(columns))
    rows = b"".join(part for batch in batches for part in avro_rows.encode(batch))
    return avro_rows.encode_head(sum(batch.num_rows for batch in batches)) + rows


@pytest.mark.parametrize("name", NAMES)
def test_a_block_written_again_is_what_it_was(name: str, tmp_path: Path) -> None:
    path = Path(unpack(name, tmp_path))
    storage, files = open_storage(str(path)), logs(path)
    ordering = TableConfig.parse(storage.read(PROPERTIES_PATH), name).ordering_fields
    assert files
    for file in files:
        whole = file.read_bytes()
        for block in read_blocks(storage, file.relative_to(path).as_posix()):
            if block.type in (BlockType.AVRO, BlockType.DELETE):
                written = content(storage, block, ordering)
                framed = b"".join(BlockHead(block.type, block.headers).framed([written]))
                assert whole[block.offset : block.offset + len(framed)] == framed


def test_every_type_of_spark_is_the_same_in_either_format(tmp_path: Path) -> None:
    """Apache Hudi's Parquet has lists of two levels, and in Avro a map is no list of pairs."""
    path = Path(unpack("v9_mor_types", tmp_path))
    storage, tables_by_type = open_storage(str(path)), {}
    for file in logs(path):
        for block in read_blocks(storage, file.relative_to(path).as_posix()):
            columns = canonical(columns_of(block))
            data = pa.schema([one for one in columns if one.name not in (*META_COLUMNS, "p")])
            rows = pa.Table.from_batches(BlockContent(storage, block).rows(data))
            tables_by_type.setdefault(block.type, []).append(rows)

    assert pa.concat_tables(tables_by_type[BlockType.AVRO]) == pa.concat_tables(tables_by_type[BlockType.PARQUET])
