"""Log files: framed as Apache Hudi frames them, read in spite of what is torn, and never at more than their price."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyhudi.errors import UnsupportedTableError
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.files.base_file import file_schema
from pyhudi.table.files.logs.log_blocks import BlockType, Header, LogBlock
from pyhudi.table.files.logs.log_contents import Deletes, deletes_of, rows_of
from pyhudi.table.files.logs.log_file import LogFileWriter, read_blocks
from pyhudi.table.files.logs.log_scan import effective_blocks
from pyhudi.table.schema.columns import META_COLUMNS, avro_schema, with_meta

INSTANT = "20260101000000000"
PATH = ".00000000-f-0_20260101000000000.log.1_0-0-0"
DATA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("ts", pa.int64()), pa.field("d", pa.date32())])
WRITTEN = file_schema(DATA)


def rows(*ids: str) -> pa.RecordBatch:
    n = len(ids)
    meta = [
        pa.array([text] * n).cast(WRITTEN.field(name).type) for name, text in zip(META_COLUMNS, "abcde", strict=True)
    ]
    return pa.RecordBatch.from_arrays(
        [*meta, pa.array(ids), pa.array(range(n)), pa.nulls(n, pa.date32())], schema=WRITTEN
    )


def deletes(*keys: str, ts: int | None = None) -> Deletes:
    n = len(keys)
    return Deletes(pa.array(keys), pa.array(["p"] * n), (pa.array([ts] * n, pa.int64()),), pa.array([ts is None] * n))


def writer(sink: pa.NativeFile, **options: object) -> LogFileWriter:
    return LogFileWriter(
        sink, instant_time=INSTANT, schema=WRITTEN, avro_schema=avro_schema(DATA, "t", meta=True), **options
    )  # type: ignore[arg-type]


@pytest.fixture
def storage() -> Storage:
    return open_storage("memory://logs")


def test_rows_and_deletes_come_back(storage: Storage) -> None:
    sink = pa.BufferOutputStream()
    log = writer(sink)
    log.add_rows(rows("a", "b"))
    log.add_deletes(deletes("c", ts=5))
    log.add_deletes(deletes("d"))
    log.close()
    storage.write(PATH, sink.getvalue().to_pybytes())

    data, ordered, unordered = read_blocks(storage, PATH)
    assert (data.type, ordered.type, unordered.type) == (BlockType.PARQUET, BlockType.DELETE, BlockType.DELETE)
    assert data.instant_time == INSTANT
    assert log.size == unordered.content_offset + unordered.content_size + 12 and log.blocks == 3
    (batch,) = rows_of(storage, data, with_meta(DATA))
    assert batch.column("id").to_pylist() == ["a", "b"]
    field = [DATA.field("ts")]
    assert deletes_of(storage, ordered, field).ordering[0].to_pylist() == [5]
    assert deletes_of(storage, unordered, field).default.to_pylist() == [True]
    assert Header.IS_PARTIAL not in data.headers


def test_what_was_rolled_back_or_compacted_does_not_count() -> None:
    def block(
        time: str, *, target: str | None = None, replaces: str = "", kind: BlockType = BlockType.AVRO
    ) -> LogBlock:
        headers = {Header.INSTANT_TIME: time, Header.COMPACTED_BLOCK_TIMES: replaces}
        if target is not None:
            kind, headers = (
                BlockType.COMMAND,
                {**headers, Header.TARGET_INSTANT_TIME: target, Header.COMMAND_BLOCK_TYPE: "0"},
            )
        return LogBlock("f", 0, kind, headers, 0, 0)

    def times(*blocks: LogBlock) -> list[str]:
        return [one.instant_time for one in effective_blocks([blocks], lambda time: time != "hidden")]

    assert times(block("1"), block("hidden"), block("2", kind=BlockType.CORRUPT), block("3"), block("1")) == [
        "1",
        "1",
        "3",
    ]
    assert times(block("1"), block("2"), block("3", target="1"), block("4", target="9"), block("1")) == ["2", "1"]
    assert times(block("1"), block("2"), block("3"), block("m", replaces="1,2"), block("4")) == ["m", "3", "4"]
    assert times(block("1"), block("2"), block("m", replaces="1,2"), block("3"), block("n", replaces="m,3")) == ["n"]
    assert times(block("m", replaces="1,2"), block("3")) == ["m", "3"]
    with pytest.raises(UnsupportedTableError, match="a command"):
        times(LogBlock("f", 0, BlockType.COMMAND, {Header.COMMAND_BLOCK_TYPE: "1"}, 0, 0))
