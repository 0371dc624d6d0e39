"""The bytes of log files, taken apart by rules written down here a second time."""

from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

MAGIC = b"#HUDI#"
DELETE, AVRO, PARQUET = 1, 3, 5
INSTANT, SCHEMA = 0, 2


@dataclass(frozen=True)
class Block:
    """One block: its type and headers by Hudi's numbers."""

    kind: int
    headers: dict[int, str]
    content: bytes

    @cached_property
    def rows(self) -> pa.Table:
        """The rows of a data block."""
        if self.kind == PARQUET:
            return pq.ParquetFile(io.BytesIO(self.content)).read()
        schema = fastavro.parse_schema(json.loads(self.headers[SCHEMA]))
        version, count = struct.unpack_from(">ii", self.content)
        assert version in {1, 2, 3}
        at, records = 8, []
        for _ in range(count):
            (size,) = struct.unpack_from(">i", self.content, at)
            records.append(fastavro.schemaless_reader(io.BytesIO(self.content[at + 4 : at + 4 + size]), schema, None))
            at += 4 + size
        return pa.Table.from_pylist(records)


def blocks_of(file: Path) -> tuple[Block, ...]:
    """Return the blocks of a log file, having checked that they are whole and that nothing lies between them."""
    try:
        return _blocks(file.read_bytes())
    except AssertionError as error:
        raise AssertionError(f"{file} {error}") from error


# Tests look at a file again with each copy of its table.
@lru_cache(maxsize=1024)
def _blocks(data: bytes) -> tuple[Block, ...]:
    at, blocks = 0, []
    while at < len(data):
        assert data[at : at + 6] == MAGIC, f"has no block at {at}"
        (length,) = struct.unpack_from(">q", data, at + 6)
        end = at + 14 + length
        assert end <= len(data), f"is torn at {at}"
        (said,) = struct.unpack_from(">q", data, end - 8)
        assert said == length + 6, f"has a trailer that says otherwise at {at}"
        version, kind = struct.unpack_from(">ii", data, at + 14)
        assert version == 1
        headers, place = _map(data, at + 22)
        (size,) = struct.unpack_from(">q", data, place)
        content = data[place + 8 : place + 8 + size]
        footers, place = _map(data, place + 8 + size)
        assert place == end - 8
        assert not footers
        blocks.append(Block(kind, headers, content))
        at = end
    return tuple(blocks)


def _map(data: bytes, at: int) -> tuple[dict[int, str], int]:
    (count,) = struct.unpack_from(">i", data, at)
    at += 4
    entries: dict[int, Any] = {}
    for _ in range(count):
        number, size = struct.unpack_from(">ii", data, at)
        entries[number] = data[at + 8 : at + 8 + size].decode()
        at += 8 + size
    return entries, at
