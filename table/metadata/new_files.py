"""The bytes of new files of a metadata table: log files of one instant, base files, and its properties.

Source: ``HoodieBackedTableMetadataWriter``, ``HoodieTableMetadataUtil`` and files that Apache Hudi wrote.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..config import TableConfig
from ..config.java_properties import format_properties
from ..config.property_keys import VERSION
from ..config.table_config import checksum
from ..files.logs.avro_bytes import numbers, repeated, side_by_side, texts
from ..files.logs.log_blocks import BlockHead, BlockType, Header
from ..files.names import BaseFileName, LogFileName, WriteToken
from ..hfile.entries import Entries
from ..hfile.writer import HFileWriter

_TOKEN = WriteToken(0, 0, 0)
_SIZES = struct.Struct(">ii")
_FORMAT_OF_DELETES = 3
# In the list of deletes: the key, and the partition and the number zero that go with each.
_IS, _NUMBER_ZERO, _END = b"\x02", b"\x04\x00", b"\x00"
_MERGER = "00000000-0000-0000-0000-000000000000"


def log_name(group: str, instant_time: str) -> str:
    """Return the name of the log file of an instant in a file group, given the group's id."""
    return LogFileName(group, instant_time, 1, _TOKEN).format()


def base_name(group: str, instant_time: str) -> str:
    """Return the name of the base file of an instant in a file group, given the group's id."""
    return BaseFileName(group, _TOKEN, instant_time, ".hfile").format()


def log_bytes(instant_time: str, partition: str, deletes: pa.BinaryArray, entries: Entries, schema: str) -> bytes:
    """Return a log file with keys to delete, and entries; see `log_of`."""
    return log_of(instant_time, partition, deletes, hfile_bytes([entries], schema) if len(entries) else b"", schema)


def log_of(instant_time: str, partition: str, deletes: pa.BinaryArray, content: bytes, schema: str) -> bytes:
    """Return a log file: a block of deletes if there are keys to delete, then one of an HFile's bytes, if any.

    ``partition`` is the partition of the metadata table, and ``schema`` the Avro schema of the records in ``content``.
    Without both blocks it is the placeholder of a file group without a base file, which names the group for readers.
    """
    headers = {Header.INSTANT_TIME: instant_time}
    blocks = []
    if len(deletes) or not content:
        headers_of_deletes = {**headers, Header.SCHEMA: schema} if len(deletes) else headers
        blocks.append((BlockHead(BlockType.DELETE, headers_of_deletes), _content_of_deletes(deletes, partition)))
    if content:
        blocks.append((BlockHead(BlockType.HFILE, {**headers, Header.SCHEMA: schema}), content))
    return b"".join(bytes(part) for head, block in blocks for part in head.framed([block]))


def hfile_bytes(parts: Iterable[Entries], schema: str) -> bytes:
    """Return an HFile with entries, given in the order of their keys as bytes."""
    file = GrowingHFile(schema)
    for entries in parts:
        file.add(entries)
    return file.content()


class GrowingHFile:
    """An HFile in memory, whose entries come in the order of their keys as bytes."""

    def __init__(self, schema: str) -> None:
        # A list of blocks has no room for more, as a buffer that grows has for twice its content.
        self._blocks: list[bytes] = []
        self._file = HFileWriter(_BlockList(self._blocks), schema)

    @property
    def count(self) -> int:
        return self._file.count

    def add(self, entries: Entries) -> None:
        self._file.add(entries)

    def content(self) -> bytes:
        """End the file, and return its bytes."""
        self._file.close()
        return b"".join(self._blocks)


@dataclass(frozen=True, slots=True)
class _BlockList:
    """A stream that appends what it gets to a list."""

    blocks: list[bytes]

    def write(self, data: bytes) -> None:
        self.blocks.append(data)


def _content_of_deletes(keys: pa.BinaryArray, partition: str) -> bytes:
    """Return the content of a delete block: each key, with its partition and the ordering value 0."""
    if not len(keys):
        return _SIZES.pack(_FORMAT_OF_DELETES, 1) + _END
    count = len(keys)
    encoded_partition = numbers(np.array([len(partition.encode())])).data.tobytes() + partition.encode()
    encoded_keys = side_by_side(
        [repeated(_IS, count), texts(keys), repeated(_IS + encoded_partition + _NUMBER_ZERO, count)]
    )
    content = numbers(np.array([count])).data.tobytes() + encoded_keys.data.tobytes() + _END
    return _SIZES.pack(_FORMAT_OF_DELETES, len(content)) + content


def metadata_properties(config: TableConfig) -> bytes:
    """Return the content of ``hoodie.properties`` of a metadata table; ``config`` is that of its table.

    The table has version 8 or 9.
    """
    name = f"{config.name}_metadata"
    return format_properties(
        {
            "hoodie.table.name": name,
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": config.properties[VERSION],
            "hoodie.table.initial.version": config.properties[VERSION],
            "hoodie.table.checksum": checksum("", name),
            "hoodie.table.base.file.format": "HFILE",
            "hoodie.table.recordkey.fields": "key",
            "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
            "hoodie.populate.meta.fields": "false",
            "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
            "hoodie.record.merge.mode": "CUSTOM",
            "hoodie.record.merge.strategy.id": _MERGER,
            "hoodie.datasource.write.drop.partition.columns": "false",
            "hoodie.timeline.layout.version": "2",
            "hoodie.timeline.path": "timeline",
            "hoodie.timeline.history.path": "history",
            "hoodie.archivelog.folder": "history",
        },
        "Properties of the metadata table",
    )
