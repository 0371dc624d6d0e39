"""Base and log files of record keys made by hand, as a view that indexes look into."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyhudi.index.base import KeyedRows
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.files.base_file import RANGE_CHECKSUM, BaseFileWriter, file_schema
from pyhudi.table.files.bloom_filter import FILTER_CHECKSUM, BloomSettings
from pyhudi.table.files.file_group import BaseFile, FileSlice, LogFile
from pyhudi.table.files.logs.delete_block import Deletes
from pyhudi.table.files.logs.log_file import LogFileWriter
from pyhudi.table.files.names import BaseFileName, FileGroupId, LogFileName, WriteToken
from pyhudi.table.files.output import Output
from pyhudi.table.schema.columns import RECORD_KEY, avro_schema

DATA = pa.schema([pa.field("value", pa.string())])
SCHEMA = file_schema(DATA)
AVRO = avro_schema(DATA, "t", meta=True)
BASE_TIME = "20260101000000000"


class CountingStorage(MemoryStorage):
    """A table in memory that notes which files are opened."""

    def open_input(self, path: str) -> Any:
        OPENED[self.path].append(path)
        return super().open_input(path)


OPENED: dict[str, list[str]] = defaultdict(list)


class KeyedFiles:
    """The file slices of one table, of which only the keys matter; it is its own view.

    Attributes:
        storage: Rooted at the table.
        file_slices: The slices of each partition, by file id.
        unseen: Requested times of instants whose log blocks do not count.
    """

    def __init__(self) -> None:
        self.storage = CountingStorage.open(f"memory:keyed/{uuid.uuid4().hex}")
        self.file_slices: dict[str, dict[str, FileSlice]] = {}
        self.unseen: set[str] = set()

    @property
    def opened(self) -> list[str]:
        """The files that were opened since this was asked for last."""
        return OPENED.pop(self.storage.path, [])

    def slices(self, partition_path: str) -> dict[str, FileSlice]:
        return self.file_slices.get(partition_path, {})

    def partitions(self) -> list[str]:
        return sorted(self.file_slices)

    def all_slices(self) -> list[FileSlice]:
        return [file_slice for path in self.partitions() for file_slice in self.slices(path).values()]

    def sees(self, instant_time: str) -> bool:
        return instant_time not in self.unseen

    def add(
        self,
        partition: str,
        keys: Sequence[str | None],
        *,
        bloom: BloomSettings | None = None,
        rows_a_group: int = 1 << 20,
    ) -> FileGroupId:
        """Add a file group with a base file."""
        group = self._new_group(partition)
        sink = pa.BufferOutputStream()
        writer = BaseFileWriter(sink, SCHEMA, AVRO, output=Output(row_group_bytes=1), bloom=bloom)
        for start in range(0, len(keys), rows_a_group):
            writer.write(_rows(keys[start : start + rows_a_group]))
        writer.close()
        name = BaseFileName(group.file_id, WriteToken(0, 0, 0), BASE_TIME)
        path = f"{partition}/{name.format()}"
        base = BaseFile(path, self._write(path, sink), group.file_id, str(name.write_token), BASE_TIME)
        self.file_slices[partition][group.file_id] = FileSlice(group, BASE_TIME, base)
        return group

    def add_log(
        self, partition: str, group: FileGroupId | None, *, rows: Sequence[str] = (), deletes: Sequence[str] = ()
    ) -> FileGroupId:
        """Add a log file with rows and then deletes to a file group, or to one that is new."""
        group = group or self._new_group(partition)
        file_slice = self.slices(partition).get(group.file_id) or FileSlice(group, BASE_TIME, None)
        time = f"{int(BASE_TIME) + 1 + len(file_slice.logs)}"
        sink = pa.BufferOutputStream()
        log = LogFileWriter(sink, instant_time=time, schema=SCHEMA, avro_schema=AVRO)
        if rows:
            log.add_rows(_rows(rows))
        if deletes:
            keys = pa.array(deletes)
            log.add_deletes(Deletes(keys, pa.array([partition] * len(keys)), (), pa.array([True] * len(keys))))
        log.close()
        name = LogFileName(group.file_id, time, 1, WriteToken(0, 0, 0))
        path = f"{partition}/{name.format()}"
        logs = (*file_slice.logs, LogFile(path, self._write(path, sink), name))
        self.file_slices[partition][group.file_id] = FileSlice(group, BASE_TIME, file_slice.base, logs)
        return group

    def say(self, group: FileGroupId, changes: Mapping[str, str | None]) -> None:
        """Have the footer of a base file say something else, as other writers do; None for nothing."""
        file_slice = self.slices(group.partition_path)[group.file_id]
        assert file_slice.base is not None
        source = pq.ParquetFile(pa.BufferReader(self.storage.read(file_slice.base.path)))
        footer = {key.decode(): value.decode() for key, value in source.metadata.metadata.items()}
        footer |= {RANGE_CHECKSUM: None, FILTER_CHECKSUM: None, **changes}
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, SCHEMA, store_schema=False) as writer:
            writer.write_table(source.read().cast(SCHEMA))
            writer.add_key_value_metadata({key: value for key, value in footer.items() if value is not None})
        size = self._write(file_slice.base.path, sink)
        base = BaseFile(file_slice.base.path, size, group.file_id, file_slice.base.write_token, BASE_TIME)
        self.file_slices[group.partition_path][group.file_id] = FileSlice(group, BASE_TIME, base, file_slice.logs)

    def _new_group(self, partition: str) -> FileGroupId:
        known = self.file_slices.setdefault(partition, {})
        return FileGroupId(partition, f"{uuid.UUID(int=len(known))}-0")

    def _write(self, path: str, sink: pa.BufferOutputStream) -> int:
        body = sink.getvalue().to_pybytes()
        self.storage.write(path, body)
        return len(body)


def keyed(rows: Iterable[tuple[str, str]]) -> KeyedRows:
    """Return rows to be looked up, given the partition and the key of each."""
    paths, keys = zip(*rows, strict=True) if (rows := list(rows)) else ((), ())
    return KeyedRows(pa.array(keys, pa.string()), pa.array(paths, pa.string()).dictionary_encode())


def _rows(keys: Sequence[str | None]) -> pa.RecordBatch:
    count = len(keys)
    values = {RECORD_KEY: pa.array(keys, pa.string())}
    constant = pa.array(["x"] * count)
    columns = [
        values.get(field.name, constant if field.type == pa.string() else constant.dictionary_encode())
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
