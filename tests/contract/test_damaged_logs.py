"""Every damage of a completed write's log file is named: no reader shows other rows in its place."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import PyHudiError
from pyhudi.operations.planning.request import LogSettings, WriteSettings
from pyhudi.storage import open_storage
from pyhudi.table.files.logs.log_blocks import MAGIC, BlockType, LogBlock
from pyhudi.table.files.logs.log_file import read_blocks
from support.attempts import rows
from support.drive import KEYED, read, write

TABLE = replace(KEYED, table_type="MERGE_ON_READ", bucket_count=1)
# Which contents have no checksum of their own.
UNCHECKED = {BlockType.AVRO, BlockType.DELETE}
_HOSTILE = (0, 1, -1, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class Damage:
    """One way in which a log file is damaged.

    Attributes:
        name: Says how and where.
        data: The file's bytes then.
        unchecked: Whether only content without a checksum is damaged.
    """

    name: str
    data: bytes
    unchecked: bool = False


def make(path: Path, block_format: str) -> None:
    """Make a table of one file group, with log files of several blocks, of deletes, and of both."""
    settings = WriteSettings(logs=LogSettings(block_format=block_format, block_bytes=300))
    write(path, rows(*range(12), value=0), table=TABLE, settings=settings)
    write(path, rows(1, 2, 3, 4, 5, 6, 7, 8, value=1, ts=2), settings=settings)
    write(path, rows(1, 9, value=0, ts=3), operation="delete", settings=settings)
    gone = pa.array([False, True, False])
    write(path, rows(2, 3, 40, value=3, ts=4).append_column("_hoodie_is_deleted", gone), settings=settings)


def damages(path: Path, log: Path, dice: random.Random) -> Iterator[Damage]:
    """Yield ways to damage a log file: cuts, flipped bits in every byte around contents, hostile sizes, tails."""
    data = log.read_bytes()
    blocks = list(read_blocks(open_storage(str(path)), log.relative_to(path).as_posix()))
    content = {
        at: block for block in blocks for at in range(block.content_offset, block.content_offset + block.content_size)
    }
    for at in sorted({0, 1, 6, 13, 14, 17, 18, *(dice.randrange(len(data)) for _ in range(25)), len(data) - 1}):
        yield Damage(f"cut at {at}", data[:at])
    inside = dice.sample(sorted(content), min(150, len(content)))
    for at in sorted({*range(len(data))} - {*content}) + inside:
        flipped = data[:at] + bytes([data[at] ^ (1 << dice.randrange(8))]) + data[at + 1 :]
        yield Damage(f"flip at {at}", flipped, at in content and content[at].type in UNCHECKED)
    for block in blocks:
        yield from _hostile(data, block)
    for name, tail in (("noise", b"noise"), ("magic", MAGIC), ("itself", data), ("half", data[: len(data) // 2])):
        yield Damage(f"{name} behind", data + tail)
        yield Damage(f"{name} before", tail + data)
    yield Damage("empty", b"")


def _hostile(data: bytes, block: LogBlock) -> Iterator[Damage]:
    places = {"length": block.offset + 6, "content": block.content_offset - 8, "trailer": _end(block) - 8}
    for name, at in places.items():
        for size in _HOSTILE:
            changed = data[:at] + struct.pack(">Q", size & 0xFFFFFFFFFFFFFFFF) + data[at + 8 :]
            if changed != data:
                yield Damage(f"{name} {size} of the block at {block.offset}", changed)


def _end(block: LogBlock) -> int:
    return block.content_offset + block.content_size + 12


def content_of(path: Path) -> pa.Table:
    return read(path).sort_by("_hoodie_record_key")


def logs_of(path: Path) -> list[Path]:
    return sorted(one for one in path.rglob(".*.log.*") if not one.name.endswith(".crc"))


@pytest.mark.parametrize("block_format", ["parquet", "avro"])
def test_no_damage_of_a_log_file_shows_other_rows(tmp_path: Path, block_format: str) -> None:
    """Rot inside Avro and delete blocks alone may, which have no checksum."""
    make(tmp_path, block_format)
    expected, dice = content_of(tmp_path), random.Random(block_format)
    wrong: list[Damage] = []
    for log in logs_of(tmp_path):
        whole = log.read_bytes()
        for damage in damages(tmp_path, log, dice):
            log.write_bytes(damage.data)
            try:
                if content_of(tmp_path) != expected:
                    wrong.append(damage)
            except PyHudiError:
                pass
        log.write_bytes(whole)

    assert content_of(tmp_path) == expected
    assert [one.name for one in wrong if not one.unchecked] == []
